"""Index plans against torch: values, shapes, views, names of the recorded nodes, and every refusal."""

import itertools
import random
import warnings

import numpy as np
import pytest

from jitgrad._tensor.index_parse import parse_index

torch = pytest.importorskip("torch")


class Held:
    """Stands for a tensor: an object with an `array`."""

    def __init__(self, array):
        self.array = np.asarray(array)


def T(values, dtype=None):
    """A marker that becomes a torch tensor on one side and a `Held` on the other."""
    return Marked(torch.tensor(values, dtype=dtype))


class Marked:
    def __init__(self, tensor):
        self.tensor = tensor

    def __repr__(self):
        return f"T({self.tensor.tolist()})"


def translate(index, tensor_to):
    if isinstance(index, Marked):
        return tensor_to(index.tensor)
    if type(index) in (tuple, list):
        return type(index)(translate(item, tensor_to) for item in index)
    if isinstance(index, slice):
        return slice(*(translate(part, tensor_to) for part in (index.start, index.stop, index.step)))
    return index


def ours(shape, index):
    return parse_index(shape, translate(index, lambda tensor: Held(tensor.numpy())))


def recorded(result):
    """Names of the nodes from the tensor to the result, and the dims of the selects."""
    names = []
    node = result.grad_fn
    while node is not None and "Accumulate" not in node.name():
        names.append(node.name())
        node = node.next_functions[0][0]
    return tuple(reversed(names))


def replay(array, steps):
    """The view, made step by step."""
    for step in steps:
        keep = (slice(None),) * step.dim
        if step.kind == "select":
            array = array[(*keep, step.start, ...)]
        elif step.kind == "slice":
            array = array[(*keep, slice(step.start, step.stop, step.step), ...)]
        elif step.kind == "unsqueeze":
            array = np.expand_dims(array, step.dim)
    return array


def check(shape, index):
    base = np.arange(float(np.prod(shape, dtype=int))).reshape(shape)
    x = torch.from_numpy(base).requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = x[translate(index, lambda tensor: tensor)]
    plan = ours(shape, index)
    view = base[plan.view]
    assert isinstance(view, np.ndarray)
    assert np.shares_memory(view, base) or not view.size
    assert view.shape == plan.view_shape
    result = view[plan.key] if plan.advanced else view
    assert result.shape == plan.shape == tuple(expected.shape)
    np.testing.assert_array_equal(result, expected.detach().numpy())
    assert plan.node_names == recorded(expected)
    np.testing.assert_array_equal(replay(base, plan.steps), view)
    if not plan.advanced:
        same = zip(view.strides, expected.stride(), view.shape, strict=True)
        assert not view.size or all(mine == 8 * stride or size == 1 for mine, stride, size in same)
    else:
        assert len(plan.advanced) == view.ndim
    for array, size in zip(plan.advanced, plan.view_shape, strict=False):
        assert array is None or (array.dtype == np.int64 and ((array >= 0) & (array < size)).all())


X = (2, 3, 4)
S = slice
N = None
E = Ellipsis
MASK = [[True, False, True], [False, True, True]]
WIDE = [[True, False, True, True], [False] * 4, [True] * 4]

GOOD = [
    0, -1, S(N), E, N, (), (S(N), S(1, 2)), (S(N), S(0, 3)), (S(N), S(0, 99)), (0, S(N), [1, 2]), (S(N), 0, [1, 2]),
    ([0, 1], S(N), [1, 2]), ([0, 1], 0, [1, 2]), [0, 1], ((0, 1), (1, 2)), ((0, 1),), np.array([[0, 1], [1, 0]]),
    np.array([0, 1]), np.array([True, False]), np.array(1), np.array(True), np.int64(1), True, False, (True, 0),
    (0, True), (True, [0, 1]), [True, False], T(True), T(False), T(1), T(1, torch.uint8), T(0, torch.uint8),
    T(1, torch.int8), T(-1, torch.int32), T([1, 0], torch.int32), T([1, -2]), [], ([], 0), (0, []), S(N, N, 2),
    S(T(1), N), S(T([1]), N), S(N, N, T(1)), S(np.int64(1), N), (0, 0, 0), (E, E), (E, 0), (0, E, 0), (E, 0, E),
    T(MASK), (S(N), T([True, False, True])), (S(N), S(N), T([False] * 4)), (N, T([True, False])),
    (T([True, False]), [1]), T([[[True] * 4] * 3] * 2), range(2), (range(2), 1), ([0, 1], N), (N, [0, 1]),
    ([0, 1], N, [0, 1]), (0, N, [0, 1]), (S(N), N), (0, [T(0), T(1)]), (0, [T([0]), T([1])]), [0] * 40, [[0]] * 40,
    T(np.zeros(0).tolist(), torch.int64), S(1, 0), S(5, N), S(-1, N), S(True, N), (0, (0, 1)), (0, ((0, 1), (1, 2))),
    S(0, 2**70), S(-(2**70), N), (N, N, 0), (S(0, 2), E, S(1, 3)), (S(0, 2, 1), N, E, N, S(1, 3)),
    np.arange(24).reshape(X) > 5, [np.int64(1), 0], (T([0, 1]), T(0)), (T(0), T([0, 1])), (T([True, False]), 0),
    (T([[0]]), T([True, True, False])), [True, 1], (True, False), (S(N), True), (S(N), False), (True, True),
    (True, T(True), 0), (0, np.array(WIDE)), (S(N), WIDE), (S(N), T(WIDE)), (E, T(WIDE)), (T(MASK), E),
    T(np.zeros((2, 3)).tolist(), torch.bool), ([0], True), (T([0, 1]), E, T([0, 1])), (T([0, 1]), N, E, T([0, 1])),
    ([[0], [1]], [0, 2]), range(0), (0, range(0)), (S(-1, 5, 2), 1), S(1, -1), S(-100, 100), (S(N), N, 0),
    (0, S(0, 1)), (S(0, 1), 0), (S(N), S(N), S(N)), S(0, 2), (E, S(N)), (E, N), (0, E), (S(N), E, S(1, N)),
    (N, N, N, 0, 0, 0), (E, [0], E), np.array([1, 0], np.int8), np.array([1, 0], np.uint64), np.array([], np.int64),
    (T([[1], [0]]), S(1, N), T([0, 3])), (S(N, N, 2), T([0, -1]), S(1, 3)),
    (T([0, 1, 1]), T([0, 2, 1]), T([3, -4, 0])), (T([[0, 1], [1, 0]]), N, 1, S(0, 4, 3)),
]  # fmt: skip

WARNED = [
    [0, S(1)], [[0, 1], [1, 2]], [[0, 1]], [N, 0], [E, 0], [T(0), T(1)], [T([0, 1]), T([1, 1])], [[]], [[0, 1], [1]],
    [0, T(1)], [T(0), 1], [np.array([1]), 0], [N], [S(N)], [0, N], [[0, 1], N], T([1, 0], torch.uint8),
    np.array([1, 0], np.uint8), (S(N), T([1, 0, 1], torch.uint8)),
]  # fmt: skip

BAD = [
    [True, False, True], T([1, 0], torch.int8), T([1, 0], torch.int16), T(1.0), T([1.0]), T([]), 1.0, (1.5, 0),
    (0, {1}), object(), (0, "a"), "a", b"a", S(N, N, -1), S(N, N, 0), S(1.0, N), S(T([1, 2]), N), S(T(1.0), N),
    S("a", N), S(1, 2, T(0)), (S(N, N, 0), 0), (S(N, N, -2), 0), 2, -3, -100, (0, 3), (0, 0, 0, 0), [0, 5],
    (0, [0, 5]), ([0, 1], [0, 5]), (S(N), S(N), [0, -5]), (N, S(N), [0, 5]), ([0, 5], [0, 9]),
    (S(N), [[0], [7]], [1, 2, 3]), ([0, 1], [0, 1, 2]), ([0, 1], [[0, 1, 2]]), T([[True, False]] * 2),
    (S(N), T([True, False])), (S(N), S(N), T([True, False])), (N, T([True, False, True])),
    (T([True, True]), [0, 1, 2]), T([[[[True]]]]), (S(N), range(5)), {1}, (0, [0, "a"]), (0, [N]), (0, [S(N)]), 2**70,
    (0, 2**70), -(2**40), T(7), [7], [-3], (S(N), [-4]), T(5, torch.int32), (0, T(5)), T(2**62), (N, 5), (E, 7),
    (N, [9]), (0, N, N, 7), (0, S(1, 2), 7), (0, [[0, 1], [1]]), (0, [[0, 1], 1]), (0, [0, [1, 2]]),
    (S(0, 2), S(N), S(N), 0), ([0, 1],) * 4, (T([True] * 3), S(N)), (S(N), T([[True, False]])),
    (T([[True, False]]), S(N)), T(np.zeros((0, 3)).tolist(), torch.bool), T(np.zeros((2, 0)).tolist(), torch.bool),
    [2**70], [False], (False, [0, 1]), (T([True, True]), S(N), T([True, False, True, True])), iter([0]), 2**63,
    -(2**63) - 1, (0, [T([0, 1]), T([1, 0])]),
]  # fmt: skip


@pytest.mark.parametrize("index", GOOD, ids=repr)
def test_values(index):
    check(X, index)


@pytest.mark.parametrize("index", WARNED, ids=repr)
def test_values_with_a_warning(index):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(X, index)
    with pytest.warns(UserWarning, match=r"non-tuple sequence|indexing with dtype .*uint8") as seen:
        ours(X, index)
    assert len(seen) == 1


def same_error(shape, index):
    x = torch.zeros(shape)
    with pytest.raises(Exception) as expected, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x[translate(index, lambda tensor: tensor)]
    with pytest.raises(expected.type) as error:
        ours(shape, index)
    assert str(error.value) == str(expected.value)


@pytest.mark.parametrize("index", BAD, ids=repr)
def test_errors(index):
    same_error(X, index)


@pytest.mark.parametrize("index", [N, E, (), True, False, T(True), (N, True), (N, E, N), T(False)], ids=repr)
def test_values_of_a_zero_dim_tensor(index):
    check((), index)


@pytest.mark.parametrize("index", [0, S(N), (0,), (S(N),), T(0), (0, 0), [0], T([0]), np.int64(0)], ids=repr)
def test_errors_of_a_zero_dim_tensor(index):
    same_error((), index)


@pytest.mark.parametrize("shape", [(0, 3), (2, 0), (0,), (1, 0, 2)])
def test_empty_tensors(shape):
    for index in (
        S(N),
        S(1, 5),
        N,
        [],
        T([], torch.int64),
        True,
        False,
        (E, N),
        (E, []),
        T(np.zeros(shape).tolist(), torch.bool),
    ):
        check(shape, index)
    if shape[0] == 0:
        same_error(shape, 0)
        same_error(shape, [0])


def test_stricter_than_torch():
    # torch truncates floats in lists and arrays, and reads nothing, so checks nothing, where the result is empty
    for index in ([0, 1.5], np.array([0.0, 1.0])):
        with pytest.raises(IndexError, match="tensors used as indices must be"):
            ours(X, index)
    with pytest.raises(IndexError, match="index 5 is out of bounds for dimension 0 with size 2"):
        ours((2, 0), [5])


def test_easier_than_torch():
    assert ours(X, np.bool_(True)).shape == (1, *X)
    assert ours(X, (E, np.array(WIDE))).shape == (2, 7)
    assert ours(X, (E, 0, E, 1)).shape == (2,)


def _random_entry(rng, size, numpy):
    kind = rng.randrange(7)
    shape = rng.choice([(2,), (1,), (3, 2), (3, 1)])
    if kind == 0:
        return rng.randrange(-size, size + 1)
    if kind in (1, 2):
        bounds = [rng.choice([None, *range(-size - 1, size + 2)]) for _ in range(2)]
        return slice(*bounds, rng.choice([None, 1, 2, 3]))
    if kind == 3:
        return slice(None)
    if kind == 4:
        return T(rng.randrange(-size, size))
    if kind == 5:
        return numpy.integers(-size, size, shape).tolist()
    return T(numpy.integers(-size, size, shape).tolist())


def test_random_indices():
    rng, numpy = random.Random(0), np.random.default_rng(0)
    done = refused = 0
    for _ in range(600):
        shape = tuple(rng.randint(1, 4) for _ in range(rng.randint(1, 4)))
        index = [_random_entry(rng, size, numpy) for size in shape[: rng.randint(1, len(shape))]]
        for extra in rng.sample([None, None, Ellipsis, True], rng.randint(0, 2)):
            index.insert(rng.randint(0, len(index)), extra)
        index = tuple(index)
        try:
            result = torch.zeros(shape)[translate(index, lambda tensor: tensor)]
        except IndexError:
            same_error(shape, index)
            refused += 1
            continue
        if result.numel():  # torch does not look at index values where the result is empty
            check(shape, index)
            done += 1
    assert done > 200
    assert refused > 30


def test_writing_through_a_plan():
    for index in itertools.islice((i for i in GOOD if not isinstance(i, Marked) or i.tensor.numel()), 0, None, 3):
        base = np.arange(24.0).reshape(X)
        x = torch.from_numpy(base.copy())
        x[translate(index, lambda tensor: tensor)] = -1.0
        plan = ours(X, index)
        view = base[plan.view]
        view[plan.key if plan.advanced else ...] = -1.0
        np.testing.assert_array_equal(base, x.numpy())
