"""`jit_function`: values, gradients, the contract, and what the graph makes of it."""
# ruff: noqa: PLW0108  (a lambda is a Python function, which what it calls is not)

import gc
import weakref

import numba
import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from jitgrad.autograd.kernels import KernelError, jit_function
from tests.kernels_user.cases import make_product, make_scan, scan_backward, scan_forward, tensor

compiled = pytest.mark.skipif(not settings.jit, reason="says what the compiler says")


def test_values_and_gradient():
    x = tensor([1.0, 2.0, 3.0])
    y = make_scan()(x, 0.5)
    assert y.tolist() == [1.0, 2.5, 4.25]
    y.backward(tensor([1.0, 10.0, 100.0], grad=False))
    assert x.grad.tolist() == [1 + 5 + 25, 10 + 50, 100]


def test_decorators_and_the_node():
    @jit_function
    def scan(x, decay):
        """A running sum that decays."""
        return scan_forward(x, decay)

    scan.backward(numba.njit(scan_backward))
    x = tensor([1.0, 2.0])
    y = scan(x, decay=0.5)
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "ScanBackward"
    assert y.grad_fn.next_functions == ((x.fn, 0),)
    assert scan.__doc__ == "A running sum that decays."
    y.sum().backward()
    assert x.grad.tolist() == [1.5, 1.0]


@pytest.mark.parametrize("run", [1, 2, 3])
def test_the_first_call_and_the_following_ones_agree(run):
    scan = make_scan()
    for _ in range(run):
        x = tensor([1.0, -1.0, 4.0], dtype=jitgrad.float32)
        y = scan(x, 0.25)
        y.sum().backward()
    assert y.dtype is jitgrad.float32
    assert x.grad.dtype is jitgrad.float32
    np.testing.assert_allclose(x.grad.numpy(), [1.3125, 1.25, 1.0])


def test_two_inputs_each_alone_and_together():
    product = make_product()
    for _ in range(2):
        for needs in ((True, True), (True, False), (False, True)):
            x, w = tensor([1.0, 2.0], grad=needs[0]), tensor([3.0, 5.0], grad=needs[1])
            product(x, w).backward(tensor([1.0, 10.0], grad=False))
            assert (x.grad is None) == (not needs[0])
            assert (w.grad is None) == (not needs[1])
            if needs[0]:
                assert x.grad.tolist() == [3.0, 50.0]
            if needs[1]:
                assert w.grad.tolist() == [1.0, 20.0]


def test_four_inputs_and_needs():
    seen = []

    def forward(a, b, c, d):
        return a * b + c * d

    def backward(grad, a, b, c, d, out, needs):
        ga = grad * b if needs[0] else np.empty_like(a)
        gb = grad * a if needs[1] else np.empty_like(a)
        return ga, gb, grad * d, grad * c

    op = jit_function(forward, backward)
    leaves = [tensor([float(k + 1)], grad=k != 1) for k in range(4)]
    op(*leaves).sum().backward()
    assert [None if leaf.grad is None else leaf.grad.item() for leaf in leaves] == [2.0, None, 4.0, 3.0]
    assert seen == []


def test_a_leaf_used_twice_gets_the_sum():
    x = tensor([2.0, 3.0])
    make_product()(x, x).sum().backward()
    assert x.grad.tolist() == [4.0, 6.0]


def test_several_outputs_and_scratch():
    def forward(x):
        s = np.sin(x)
        c = np.cos(x)
        return s, c, x.sum(), c * 1.0  # two outputs, then scratch

    def backward(grad_s, grad_c, x, s, c, total, kept):
        return grad_s * kept - grad_c * s + 0.0 * total

    op = jit_function(forward, backward, outputs=2)
    x = tensor([0.3, 0.7])
    s, c = op(x)
    (s * 2.0 + c * 3.0).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * np.cos([0.3, 0.7]) - 3 * np.sin([0.3, 0.7]))
    x.grad = None
    s, c = op(x)
    c.sum().backward()  # no gradient came for s: zeros
    np.testing.assert_allclose(x.grad.numpy(), -np.sin([0.3, 0.7]))
    s, c = op(x)
    assert jitgrad.autograd.grad(s.sum(), x)[0].tolist() == pytest.approx(np.cos([0.3, 0.7]).tolist())


def test_a_number_as_output_is_a_0d_tensor_and_its_gradient_a_number():
    def forward(x, w):
        total = 0.0
        for i in range(x.size):
            total += w * x[i] * x[i]
        return total

    def backward(grad, x, w, total):
        return 2.0 * grad * w * x

    op = jit_function(forward, backward)
    x = tensor([1.0, 2.0])
    y = op(x, 3.0)
    assert y.shape == ()
    assert y.item() == 15.0
    (y * 2.0).backward()
    assert x.grad.tolist() == [12.0, 24.0]


@pytest.mark.parametrize("dtype", [jitgrad.float32, jitgrad.float64])
def test_a_number_that_backward_sees_again_keeps_its_dtype(dtype):
    norm = jit_function(
        lambda x: (np.sqrt((x * x).sum()), x.sum()),
        lambda grad, x, y, total: grad * x / (y + (total - total)),
        name="norm",
    )
    x = tensor([3.0, 4.0], dtype=dtype)
    for _ in range(2):  # the first call and the following ones
        (g,) = jitgrad.autograd.grad(norm(x), x)  # else a float32 gradient would come out as float64
        assert (g.dtype, g.tolist()) == (dtype, pytest.approx([0.6, 0.8]))


def test_0d_inputs_and_gradients_as_numbers():
    op = jit_function(lambda x: x[()] * x[()], lambda grad, x, out: 2.0 * grad * x[()], name="square")
    x = tensor(3.0)
    op(x).backward()
    assert x.grad.item() == 6.0
    assert x.grad.shape == ()


def test_an_output_of_integers_takes_no_gradient():
    op = jit_function(
        lambda x: (x * 2.0, (x > 0).astype(np.int64)), lambda grad, x, y, k: grad * 2.0, outputs=2, name="split"
    )
    x = tensor([1.0, -1.0])
    y, k = op(x)
    assert k.dtype is jitgrad.int64
    assert not k.requires_grad
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_arguments_without_gradient():
    def forward(x, index, pair, flag, word, constant):
        out = np.empty_like(x)
        for i in range(x.size):
            out[i] = x[index[i]] * pair[0] + pair[1] + constant[i]
        if flag and word == "negative":
            out *= -1.0
        return out

    def backward(grad, x, index, pair, flag, word, constant, out):
        g = np.zeros_like(x)
        for i in range(x.size):
            g[index[i]] += grad[i] * pair[0] * (-1.0 if flag and word == "negative" else 1.0)
        return g, np.zeros_like(constant)

    op = jit_function(forward, backward)
    x = tensor([1.0, 2.0, 3.0])
    index = jitgrad.tensor([2, 0, 0])
    y = op(x, index, (2.0, 1), True, "negative", np.array([0.0, 1.0, 2.0]))
    assert y.tolist() == [-7.0, -4.0, -5.0]
    y.sum().backward()
    assert x.grad.tolist() == [-4.0, 0.0, -2.0]
    assert op(x, index, (2.0, 1), True, "plain", np.zeros(3)).tolist() == [7.0, 3.0, 3.0]


def test_a_constant_array_is_copied_so_that_later_writes_do_no_harm():
    w = np.array([3.0, 5.0])
    x = tensor([1.0, 1.0])
    y = make_product()(x, w)
    w[:] = 0.0
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 5.0]


def test_differentiable_narrows():
    op = jit_function(lambda x, w: x * w, lambda grad, x, w, out: grad * w, differentiable=("x",), name="half")
    x, w = tensor([2.0]), tensor([3.0])
    op(x, w).sum().backward()
    assert x.grad.tolist() == [3.0]
    assert w.grad is None
    with pytest.raises(ValueError, match="differentiable names 'z', but the parameters of scan are x, decay"):
        make_scan(differentiable=("z",))


def test_defaults_and_wrong_arguments():
    op = jit_function(lambda x, scale=2.0: x * scale, name="scaled")
    assert op(tensor([1.0])).tolist() == [2.0]
    assert op(tensor([1.0]), scale=3.0).tolist() == [3.0]
    with pytest.raises(TypeError, match="missing argument 'x'"):
        op()
    with pytest.raises(TypeError, match="takes 2 arguments but 3 were given"):
        op(tensor([1.0]), 1.0, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        op(tensor([1.0]), size=2)
    with pytest.raises(TypeError, match="multiple values for argument 'x'"):
        op(tensor([1.0]), x=2)


# ---- the graph
def test_forward_only_says_so_when_a_gradient_is_asked():
    op = jit_function(scan_forward, name="scan")
    x = tensor([1.0, 2.0])
    y = op(x, 0.5)
    assert y.requires_grad
    with pytest.raises(
        RuntimeError,
        match=r"scan has no backward.*\n    @scan.backward\n    def scan_backward\(grad, x, decay, result\)",
    ):
        y.sum().backward()
    assert not op(x.detach(), 0.5).requires_grad
    with jitgrad.no_grad():
        assert not op(x, 0.5).requires_grad


def test_double_backward_by_a_rule_in_ops():
    scan = make_scan()
    reverse = jit_function(lambda g, decay: scan_forward(g[::-1].copy(), decay)[::-1].copy(), name="reverse")
    scan.double_backward(lambda grad, x, decay, y: reverse(grad, decay))
    reverse.backward(lambda grad, g, decay, out: scan_forward(grad, decay))
    x = tensor([1.0, 2.0, 3.0])
    y = scan(x, 0.5)
    (g,) = jitgrad.autograd.grad((y * y).sum(), x, create_graph=True)
    assert g.tolist() == pytest.approx((2 * scan_backward(y.detach().numpy(), x.detach().numpy(), 0.5, None)).tolist())
    (h,) = jitgrad.autograd.grad(g.sum(), x)
    ones = np.ones(3)
    matrix = np.array([[1, 0, 0], [0.5, 1, 0], [0.25, 0.5, 1]])
    np.testing.assert_allclose(h.numpy(), 2 * matrix.T @ matrix @ ones)


def test_a_rule_sees_outputs_with_their_history():
    def forward(x):
        return np.exp(x)

    op = jit_function(forward, lambda grad, x, y: grad * y, name="myexp")
    op.double_backward(lambda grad, x, y: grad * y)
    x = tensor([0.5])
    value = op(x)
    for _ in range(3):
        (value,) = jitgrad.autograd.grad(value.sum(), x, create_graph=True)
        np.testing.assert_allclose(value.item(), np.exp(0.5))


@pytest.mark.parametrize("way", ["backward", "grad"])
def test_a_second_derivative_without_a_rule_is_refused_both_ways(way):
    scan = make_scan()
    x = tensor([3.0])
    y = scan(x, 0.5)
    (g,) = jitgrad.autograd.grad((y * x).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match=r"scan can't be differentiated twice.*\n    @scan.double_backward"):
        if way == "grad":
            jitgrad.autograd.grad(g.sum(), x)
        else:
            g.sum().backward()


def test_create_graph_without_a_second_derivative_is_allowed():
    x = tensor([1.0, 2.0])
    make_scan()(x, 0.5).sum().backward(create_graph=True)
    assert x.grad.tolist() == [1.5, 1.0]


def test_both_engines_agree():
    scan, grads = make_scan(), []
    for hooked in (False, True):
        x = tensor([1.0, 2.0, 3.0])
        y = scan(x * 2.0, 0.5)
        if hooked:
            y.register_hook(lambda g: None)
        scan(y, 0.25).sum().backward()
        grads.append(x.grad.tolist())
    assert grads[0] == grads[1]


def test_a_second_backward_is_refused_and_retain_graph_allows_it():
    x = tensor([1.0, 2.0])
    y = make_scan()(x, 0.5).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [3.0, 2.0]
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()


@pytest.mark.parametrize("call", [1, 2])
def test_a_write_to_a_saved_input_is_noticed(call):
    product = make_product()
    for _ in range(call):
        x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0], grad=False)
        y = product(x, w)
    w.add_(1.0)
    with pytest.raises(
        RuntimeError,
        match=r"modified by an inplace operation: \[torch.DoubleTensor \[2\]\] is at version 1; expected version 0",
    ):
        y.sum().backward()


@pytest.mark.parametrize("call", [1, 2])
def test_a_write_to_a_saved_input_that_takes_no_gradient_is_noticed(call):
    def backward(grad, x, index, y):
        g = np.zeros_like(x)
        for i in range(index.size):
            g[index[i]] += grad[i]
        return g

    take = jit_function(lambda x, index: x[index], backward, name="take")
    for _ in range(call):
        x, index = tensor([1.0, 2.0]), jitgrad.tensor([1, 1])
        y = take(x, index)
    index.zero_()
    with pytest.raises(RuntimeError, match=r"\[torch.LongTensor \[2\]\] is at version 1; expected version 0"):
        y.sum().backward()


def test_layouts_of_integer_tensors_are_told_apart():
    take = jit_function(lambda x, index: x[index], name="take")
    x, index = tensor([1.0, 2.0, 3.0, 4.0], grad=False), jitgrad.tensor([0, 3, 1, 2])
    for _ in range(2):
        assert take(x, index).tolist() == [1.0, 4.0, 2.0, 3.0]
        assert take(x, index[::2]).tolist() == [1.0, 2.0]
        assert take(x[::2], index[:1]).tolist() == [1.0]
        assert take(x, index.int()).tolist() == [1.0, 4.0, 2.0, 3.0]


def test_a_gradient_that_is_not_given():
    op = jit_function(lambda a, b: a + b, lambda grad, a, b, out: (grad * 1.0, None), name="half")
    for _ in range(2):
        a, b = tensor([1.0]), tensor([1.0])
        op(a, b * 2.0).sum().backward()
        assert a.grad.tolist() == [1.0]
        assert b.grad is None
    b = tensor([1.0])
    seen = []
    c = b * 2.0
    c.register_hook(seen.append)
    op(a, c).sum().backward()
    assert seen == [None]  # as in torch: the nodes below run, and see that nothing came


def plain_helper(x):
    return deeper(x) + 1.0


def deeper(x):
    return 2.0 * x


def test_plain_functions_that_it_calls_are_compiled_too():
    op = jit_function(lambda x: plain_helper(x), lambda grad, x, y: deeper(grad), name="helped")
    x = tensor([1.0, 2.0])
    y = op(x)
    assert y.tolist() == [3.0, 5.0]
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_write_to_a_saved_result_is_noticed_and_to_an_unread_one_allowed():
    exp = jit_function(lambda x: np.exp(x), lambda grad, x, y: grad * y, name="myexp")
    x = tensor([1.0])
    y = exp(x)
    y.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    y = make_scan()(x, 0.5)  # its backward never reads y
    y.mul_(2.0)
    y.sum().backward()
    assert x.grad.tolist() == [2.0]


def test_saved_tensor_hooks_see_what_is_saved():
    packed = []

    def pack(tensor):
        packed.append(tensor.tolist())
        return len(packed) - 1

    x, w = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    with jitgrad.autograd.graph.saved_tensors_hooks(pack, lambda k: jitgrad.tensor(packed[k], dtype=jitgrad.float64)):
        y = make_product()(x, w)
    assert packed == [[1.0, 2.0], [3.0, 4.0]]
    packed[0] = [10.0, 20.0]
    y.sum().backward()
    assert w.grad.tolist() == [10.0, 20.0]


def test_inference_mode():
    with jitgrad.inference_mode():
        assert make_scan()(jitgrad.ones(3), 0.5).is_inference()


def test_nothing_keeps_a_graph_alive():
    gc.disable()
    try:
        x = tensor([1.0, 2.0])
        y = make_product()(x, x.detach())
        node = weakref.ref(y.grad_fn)
        y.sum().backward()
        del y
        assert node() is None
        exp = jit_function(lambda x: np.exp(x), lambda grad, x, y: grad * y, name="myexp")
        y = exp(x)  # saves its own result
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


# ---- inputs that are written to
def fill_forward(x, value):
    for i in range(x.size):
        x[i] = x[i] * value


def make_scale():
    return jit_function(fill_forward, lambda grad, x, value: grad * value, mutates=("x",), name="scale_")


def test_a_mutated_input_goes_on_like_after_an_in_place_op():
    x = tensor([1.0, 2.0])
    y = x * 1.0
    version = y._version
    z = make_scale()(y, 3.0)
    assert z is y
    assert y.tolist() == [3.0, 6.0]
    assert y._version == version + 1
    assert y.grad_fn.name() == "ScaleBackward"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_a_mutated_view_changes_its_base():
    x = tensor([1.0, 2.0, 3.0])
    base = x * 1.0
    make_scale()(base[1:], 3.0)
    assert base.tolist() == [1.0, 6.0, 9.0]
    base.sum().backward()
    assert x.grad.tolist() == [1.0, 3.0, 3.0]


def test_a_mutated_strided_view_is_written_back():
    base = tensor([1.0, 2.0, 3.0, 4.0], grad=False)
    make_scale()(base[::2], 10.0)
    assert base.tolist() == [10.0, 2.0, 30.0, 4.0]


def test_what_must_not_be_written_to():
    scale = make_scale()
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        scale(tensor([1.0]), 2.0)
    with pytest.raises(
        RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"
    ):
        scale(tensor([1.0], grad=False).expand(3), 2.0)
    with pytest.raises(TypeError, match="must be a Tensor, not ndarray"):
        scale(np.ones(3), 2.0)
    x = tensor([1.0], grad=False)
    add = jit_function(lambda x, y: x.__setitem__(0, y[0]) if False else None, mutates=("x",), name="add_")
    with pytest.raises(RuntimeError, match="which is also its argument 1"):
        add(x, x)


def test_a_value_saved_before_the_write_is_refused():
    x = tensor([1.0, 2.0])
    y = x * 1.0
    z = y * y
    make_scale()(y, 2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


# ---- what breaks the contract
def line(function, text):
    """The number of the line of a function that contains a text."""
    source = function.__code__.co_filename
    with open(source) as file:
        lines = file.read().splitlines()
    first = function.__code__.co_firstlineno
    return next(number for number in range(first, first + 30) if text in lines[number - 1])


def test_a_forward_that_writes_into_its_argument():
    def writes(x):
        x[0] = 1.0
        return x * 2.0

    with pytest.raises(KernelError, match="writes into an argument that it may only read") as caught:
        jit_function(writes)(tensor([1.0]))
    assert f'test_jit_function.py", line {line(writes, "x[0] = 1.0")}, in writes\n    x[0] = 1.0' in str(caught.value)


def test_a_backward_that_writes_into_a_saved_input():
    def backward(grad, x, decay, y):
        x[0] = 0.0
        return grad * 1.0

    x = tensor([1.0])
    y = jit_function(scan_forward, backward)(x, 0.5)
    with pytest.raises(KernelError, match="backward writes into an argument"):
        y.sum().backward()
    assert x.tolist() == [1.0]


def test_a_backward_may_write_into_its_gradient():
    def backward(grad, x, decay, y):
        grad *= 2.0
        return grad

    op = jit_function(scan_forward, backward)
    for _ in range(2):
        x, seed = tensor([1.0, 1.0]), tensor([1.0, 3.0], grad=False)
        op(x, 0.5).backward(seed)
        assert seed.tolist() == [1.0, 3.0]
        assert x.grad.tolist() == [2.0, 6.0]


def test_a_backward_that_returns_its_gradient_or_a_saved_input_shares_no_memory():
    x, seed = tensor([1.0, 2.0]), tensor([5.0, 7.0], grad=False)
    passes = jit_function(lambda x: x * 1.0, lambda grad, x, y: grad, name="passes")
    for _ in range(2):
        (g,) = jitgrad.autograd.grad(passes(x), x, seed)
        g.mul_(0.0)
        assert seed.tolist() == [5.0, 7.0]
    half = jit_function(lambda x: 0.5 * x * x, lambda grad, x, y: x, name="half_square")
    for _ in range(2):
        (g,) = jitgrad.autograd.grad(half(x), x, seed)
        g.mul_(0.0)
        assert x.tolist() == [1.0, 2.0]


def test_a_forward_that_returns_its_argument_or_a_part_of_it():
    x = tensor([1.0, 2.0, 3.0])
    for function in (lambda x: x, lambda x: x[1:], lambda x: x.reshape(-1)):
        op = jit_function(function, name="same")
        for _ in range(2):
            op(x).detach().zero_()
            assert x.tolist() == [1.0, 2.0, 3.0]


def test_outputs_and_scratch_of_any_layout():
    def forward(x):
        y = np.empty((x.shape[1], x.shape[0]))
        for i in range(x.shape[0]):
            for j in range(x.shape[1]):
                y[j, i] = 2.0 * x[i, j]
        return y.T, x.T, x[:, 0]

    def backward(grad, x, y, turned, column):
        return grad * 2.0 + 0.0 * turned.reshape(-1)[0] + column.reshape(-1)[0]

    op = jit_function(forward, backward)
    for _ in range(2):
        x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
        y = op(x)
        assert y.array.flags.c_contiguous
        assert y.tolist() == [[2.0, 4.0, 6.0], [8.0, 10.0, 12.0]]
        with jitgrad.no_grad():
            x.data.zero_() if hasattr(x, "data") else None
        y.sum().backward()
        assert x.grad.tolist() == [[3.0] * 3] * 2  # by the scratch as it was


def test_gradients_that_share_memory_are_told_apart():
    op = jit_function(lambda a, b: a + b, lambda grad, a, b, out: two(grad), name="sum2")
    for _ in range(2):
        a, b = tensor([1.0, 2.0]), tensor([1.0, 2.0])
        ga, gb = jitgrad.autograd.grad(op(a, b).sum(), (a, b))
        ga.zero_()
        assert gb.tolist() == [1.0, 1.0]
        op(a, b).sum().backward()
        a.grad.zero_()
        assert b.grad.tolist() == [1.0, 1.0]


@numba.njit
def two(grad):
    copy = grad.copy()
    return copy, copy


def test_outputs_that_share_memory_are_told_apart():
    y, z = jit_function(lambda x: two(x), outputs=2, name="pair")(tensor([1.0], grad=False))
    y.zero_()
    assert z.tolist() == [1.0]


@pytest.mark.parametrize(
    ("backward", "message"),
    [
        (
            lambda grad, x, decay, y: np.zeros(x.size + 1),
            r"returned a gradient of shape \[3\] for 'x', which has shape \[2\]",
        ),
        (lambda grad, x, decay, y: grad.astype(np.float32), "returned a float32 gradient for 'x', which is float64"),
        (lambda grad, x, decay, y: 1.0, "returned a value of type float64 as the gradient of 'x'"),
        (
            lambda grad, x, decay, y: (grad * 1.0, grad * 2.0),
            "returned 2 gradients, but the inputs that take one are x",
        ),
        (lambda grad, x, decay, y, z: grad * 1.0, "takes 5 arguments, but is called with 4"),
        pytest.param(lambda grad, x, decay, y: grad * nowhere, "can't be compiled", marks=compiled),  # noqa: F821
    ],
)
def test_a_wrong_backward_is_named_and_the_graph_stays_usable(backward, message):
    op = jit_function(scan_forward, backward, name="scan")
    x = tensor([1.0, 2.0])
    for _ in range(2):
        with pytest.raises(KernelError, match=message) as caught:
            op(x, 0.5).sum().backward()
        assert f'File "{__file__}", line ' in str(caught.value)
    op.backward(scan_backward)  # and the function is, too
    op(x, 0.5).sum().backward()
    assert x.grad.tolist() == [1.5, 1.0]


def test_a_shape_that_is_wrong_only_the_second_time():
    def backward(grad, x, decay, y):
        return np.zeros(2)

    op = jit_function(scan_forward, backward, name="scan")
    op(tensor([1.0, 2.0]), 0.5).sum().backward()
    op(tensor([1.0, 2.0]), 0.5).sum().backward()
    with pytest.raises(KernelError, match=r"returned a gradient of shape \[2\] for 'x', which has shape \[3\]"):
        op(tensor([1.0, 2.0, 3.0]), 0.5).sum().backward()


@pytest.mark.parametrize(
    ("forward", "message"),
    [
        (lambda x: None, "returned 0 values, but has 1 output"),
        (lambda x: [1.0], r"returned a value of type list.* as output 0"),
        (lambda x: x + 1j, "returned a value of type complex128 array as output 0"),
        pytest.param(lambda x: x.nothing(), "can't be compiled for x: float64", marks=compiled),
    ],
)
def test_a_wrong_forward_is_named(forward, message):
    with pytest.raises(KernelError, match=message):
        jit_function(forward, name="wrong")(tensor([1.0]))


def test_declarations_that_make_no_sense():
    with pytest.raises(TypeError, match=r"forward must be a Python function or one made by numba\.njit, not int"):
        jit_function(3)
    with pytest.raises(TypeError, match=r"takes a variable number of arguments \(\*xs\)"):
        jit_function(lambda *xs: xs)
    with pytest.raises(TypeError, match="takes 1 arguments, but a backward is called with"):
        jit_function(scan_forward, lambda grad: grad)
    with pytest.raises(ValueError, match="outputs must be at least 1"):
        make_scan(outputs=0)


def test_float16_is_refused_by_name():
    with pytest.raises(KernelError, match="argument 'x' of scan is float16"):
        make_scan()(tensor([1.0], dtype=jitgrad.float16), 0.5)


def test_an_exception_of_the_kernel_arrives_and_leaves_all_usable():
    def forward(x):
        if x[0] < 0:
            raise ValueError("negative")
        return np.sqrt(x)

    op = jit_function(forward, lambda grad, x, y: grad * 0.5 / y)
    with pytest.raises(ValueError, match="negative"):
        op(tensor([-1.0]))
    x = tensor([4.0])
    op(x).sum().backward()
    assert x.grad.tolist() == [0.25]
