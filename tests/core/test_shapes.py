"""Shapes against torch: `Size`, dimension numbers, broadcasting, views, matmul; results and messages."""

import copy
import itertools
import pickle
import random

import numpy as np
import pytest

from jitgrad._core import shapes as S

torch = pytest.importorskip("torch")


def outcome(function):
    """(value, None, '') or (None, exception type, message) of a call."""
    try:
        return function(), None, ""
    except Exception as error:
        return None, type(error), str(error)


def same(ours, theirs):
    """Both give the same value, or both raise the same exception with the same words."""
    expected, kind, words = outcome(theirs)
    if kind is None:
        assert ours() == expected
    else:
        with pytest.raises(kind) as mine:
            ours()
        assert str(mine.value) == words


SIZE_CASES = [
    lambda Size: Size([2, 3]),
    lambda Size: Size(),
    lambda Size: Size([2, 3]) + (4,),  # noqa: RUF005
    lambda Size: (4,) + Size([2, 3]),  # noqa: RUF005
    lambda Size: Size([2, 3]) * 2,
    lambda Size: 2 * Size([2, 3]),
    lambda Size: Size([2, 3])[:1],
    lambda Size: Size([2, 3])[-1],
    lambda Size: Size([2, 3]).numel(),
    lambda Size: Size([]).numel(),
    lambda Size: Size([1.5]),
    lambda Size: Size([1, "a"]),
    lambda Size: Size(3),
    lambda Size: Size([2]) + [1],  # noqa: RUF005
    lambda Size: Size([-1, 2]),
    lambda Size: Size([torch.tensor(3)]),
    lambda Size: Size([np.int64(3)]),
    lambda Size: Size([2, 3]) == (2, 3),
    lambda Size: Size(k for k in (1, 2)),
    lambda Size: hash(Size([2, 3])) == hash((2, 3)),
    lambda Size: copy.deepcopy(Size([2, 3])),
]


@pytest.mark.parametrize("case", SIZE_CASES)
def test_size(case):
    def shown(Size):
        result = case(Size)
        return repr(result), isinstance(result, Size)

    same(lambda: shown(S.Size), lambda: shown(torch.Size))


def test_size_pickles():
    size = pickle.loads(pickle.dumps(S.Size([2, 3])))
    assert type(size) is S.Size
    assert size == (2, 3)
    assert type(S.Size([np.int64(3)])[0]) is int


def test_size_refuses_a_list_on_the_left():
    with pytest.raises(TypeError):
        [1] + S.Size([2])  # noqa: RUF005


DIM_CASES = [((), 1), ((), -2), ((), 0), ((), -1), ((3,), 1), ((3,), -1), ((2, 3), -3), ((2, 3), 2), ((2, 3), -2)]


@pytest.mark.parametrize(("shape", "dim"), DIM_CASES)
def test_wrap_dim(shape, dim):
    n = max(len(shape), 1)
    same(lambda: S.wrap_dim(dim, len(shape)), lambda: torch.zeros(shape).sum(dim) is None or dim % n)
    # size(): a 0-dim tensor has no dimension at all
    same(lambda: shape[S.wrap_dim(dim, len(shape), wrap_scalar=False)], lambda: torch.zeros(shape).size(dim))


def test_wrap_dim_takes_integers_only():
    assert S.wrap_dim(np.int64(-1), 3) == 2
    with pytest.raises(TypeError):
        S.wrap_dim(1.0, 3)


@pytest.mark.parametrize("dims", [0, -1, 5, (0, 1), (-1, 0), (0, 0), (0, -2), (0, 5), [1]])
@pytest.mark.parametrize("shape", [(2, 3), (), (4,)])
def test_wrap_dims(shape, dims):
    def kept():
        wrapped = S.wrap_dims(dims, len(shape))
        return tuple(1 if k in wrapped else size for k, size in enumerate(shape))

    same(kept, lambda: tuple(torch.zeros(shape).sum(dims, keepdim=True).shape))


def test_wrap_dims_of_nothing():
    assert S.wrap_dims(None, 3) == (0, 1, 2)
    assert S.wrap_dims((), 3) == ()


NEW_SHAPES = [
    (4, -1),
    (-1, -1),
    (-1, 0),
    (-1,),
    (7,),
    (-2, 3),
    (2, -1),
    (),
    (0, -1),
    (0, -1, 2),
    (6,),
    (3, 2),
    (-1, -2),
    (0,),
]


@pytest.mark.parametrize("new", NEW_SHAPES)
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (), (1,)])
def test_infer_size(shape, new):
    x = torch.zeros(shape)
    same(lambda: S.infer_size(new, x.numel()), lambda: tuple(x.reshape(new).shape))


@pytest.mark.parametrize(
    "args", [(2, 3), ((2, 3),), ([2, 3],), (S.Size([2, 3]),), (np.int64(2), 3), (6,), ((),), (torch.tensor(2), 3)]
)
def test_parse_shape(args):
    expected = torch.zeros(*args).shape
    shape = S.parse_shape(args)
    assert shape == tuple(expected)
    assert all(type(size) is int for size in shape)


@pytest.mark.parametrize("args", [("a",), (True,), (1.5,), ((2, "a"),), (), (None,), (torch.zeros(2),)])
def test_parse_shape_errors(args):
    with pytest.raises(TypeError) as error:
        S.parse_shape(args, "zeros", "size")
    if args and not isinstance(args[0], torch.Tensor):
        with pytest.raises(TypeError) as expected:
            torch.zeros(*args)
        assert str(error.value) in str(expected.value)
    with pytest.raises(TypeError, match=r"reshape\(\) takes 1 positional argument but 2 were given"):
        S.parse_shape(((3, 2), 1), "reshape", "shape")


def test_check_sizes():
    same(lambda: S.check_sizes((2, -3)), lambda: torch.ones(2, -3))
    S.check_sizes((0, 2))


SHAPES = [(), (1,), (0,), (3,), (2, 3), (2, 1), (1, 3), (2, 4), (5, 2, 3), (4, 3), (0, 3), (5, 1, 1)]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(SHAPES, repeat=2)))
def test_broadcasting_two(a, b):
    x, y = torch.zeros(a), torch.zeros(b)
    same(lambda: S.broadcast_shapes(a, b), lambda: tuple((x + y).shape))
    same(lambda: S.check_broadcastable(a, b) or a, lambda: tuple(x.clone().add_(y).shape))


def test_broadcasting_many():
    assert S.broadcast_shapes() == ()
    assert S.broadcast_shapes((2, 1)) == (2, 1)
    assert S.broadcast_shapes((3,), (2, 1), (5, 1, 1)) == (5, 2, 3)
    with pytest.raises(RuntimeError, match=r"size of tensor a \(3\) must match the size of tensor b \(4\)"):
        S.broadcast_shapes((3,), (2, 1), (4,))


EXPANSIONS = [(3,), (-1,), (3, -1), (-1, 2), (-2, 2), (3, 3), (2, 3), (), (1,), (0, 2), (4, 2, 3), (2, 2), (0,)]


@pytest.mark.parametrize("sizes", EXPANSIONS)
@pytest.mark.parametrize("shape", [(2,), (2, 3), (), (1, 2), (1,), (0,)])
def test_expand_shape(shape, sizes):
    same(lambda: S.expand_shape(shape, sizes), lambda: tuple(torch.zeros(shape).expand(sizes).shape))


def _random_layout(rng):
    """A strided tensor: dimensions of a block permuted, sliced, and some of size 1 or expanded."""
    x = torch.zeros([rng.choice([1, 2, 3, 4]) for _ in range(rng.randint(1, 4))])
    x = x.permute(rng.sample(range(x.ndim), x.ndim))
    if rng.random() < 0.4:
        k = rng.randrange(x.ndim)
        x = x.narrow(k, 0, max(1, x.shape[k] - 1))
    if rng.random() < 0.3:
        x = x[rng.choice([None, slice(None, None, 2)])]
    if rng.random() < 0.3:
        x = x.unsqueeze(0).expand(2, *x.shape)
    return x


def _random_shape(rng, numel):
    shape = []
    while numel > 1 and len(shape) < 5:
        size = rng.choice([k for k in range(1, numel + 1) if numel % k == 0])
        shape.append(size)
        numel //= size
    return (*shape, numel)


def test_can_view_random_layouts():
    rng = random.Random(0)
    seen = {True: 0, False: 0}
    for _ in range(1500):
        x = _random_layout(rng)
        new = _random_shape(rng, x.numel())
        expected, kind, words = outcome(lambda x=x, new=new: x.view(new).stride())
        assert kind is None or words == S.VIEW_ERROR
        strides = S.can_view(tuple(x.shape), x.stride(), new)
        assert strides == expected
        seen[strides is None] += 1
        in_bytes = S.can_view(tuple(x.shape), tuple(4 * s for s in x.stride()), new, unit=4)
        assert in_bytes == (None if expected is None else tuple(4 * s for s in expected))
    assert min(seen.values()) > 100


@pytest.mark.parametrize(
    ("shape", "new"),
    [((0, 3), (3, 0)), ((0, 3), (0, 3)), ((0,), (2, 0, 2)), ((), ()), ((), (1, 1)), ((1,), ()), ((1, 1), ())],
)
def test_can_view_small(shape, new):
    x = torch.zeros(shape)
    assert S.can_view(shape, x.stride(), new) == x.view(new).stride()


@pytest.mark.parametrize("shape", [(), (3,), (2, 3, 4), (2, 0, 4), (1, 1)])
def test_contiguous_strides(shape):
    assert S.contiguous_strides(shape) == torch.zeros(shape).stride()
    assert S.contiguous_strides(shape, 8) == tuple(8 * s for s in torch.zeros(shape).stride())


MATRICES = [
    (),
    (3,),
    (4,),
    (2, 3),
    (3, 2),
    (4, 5),
    (6, 2, 3),
    (6, 3, 2),
    (5, 3, 2),
    (1, 3, 4),
    (6, 4, 5),
    (5, 1, 2, 3),
    (0, 3),
]


@pytest.mark.parametrize(("a", "b"), list(itertools.product(MATRICES, repeat=2)))
def test_matmul_shapes(a, b):
    x, y = torch.zeros(a), torch.zeros(b)
    same(lambda: S.matmul_shape(a, b), lambda: tuple((x @ y).shape))


@pytest.mark.parametrize("check", ["mm", "mv", "dot", "bmm"])
def test_product_checks(check):
    ours, theirs = getattr(S, f"check_{check}"), getattr(torch, check)
    # 0-dim operands left out: torch.mv lets them through
    for a, b in itertools.product(MATRICES[1:], repeat=2):
        same(lambda a=a, b=b: ours(a, b), lambda a=a, b=b: theirs(torch.zeros(a), torch.zeros(b)) is None or None)
