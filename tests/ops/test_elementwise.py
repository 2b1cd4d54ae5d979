"""What holds of all elementwise ops: node names, saved values, derivatives, layouts, dtypes, plans."""

import math

import numpy as np
import pytest

import jitgrad
from jitgrad import tensor
from jitgrad._kernels import registry
from jitgrad._ops import activations, arithmetic, selection

X = np.array([0.3, 0.7, 1.4, 2.2])
Y = np.array([0.9, 0.5, 1.1, 1.9])


def leaf(array):
    return tensor(np.array(array), requires_grad=True)


# name, call, node, which of x, y and the result must not be written before the backward
UNARY = [
    ("abs", lambda x: x.abs(), "AbsBackward0", "x"),
    ("neg", lambda x: -x, "NegBackward0", ""),
    ("square", lambda x: x.square(), "PowBackward0", "x"),
    ("cube", lambda x: x**3, "PowBackward0", "x"),
    ("power", lambda x: x**1.7, "PowBackward0", "x"),
    ("base", lambda x: 2**x, "PowBackward2", "xr"),
    ("sqrt", lambda x: x.sqrt(), "SqrtBackward0", "r"),
    ("rsqrt", lambda x: x.rsqrt(), "RsqrtBackward0", "r"),
    ("reciprocal", lambda x: x.reciprocal(), "ReciprocalBackward0", "r"),
    ("exp", lambda x: x.exp(), "ExpBackward0", "r"),
    ("exp2", lambda x: x.exp2(), "Exp2Backward0", "r"),
    ("expm1", lambda x: x.expm1(), "Expm1Backward0", "r"),
    ("log", lambda x: x.log(), "LogBackward0", "x"),
    ("log1p", lambda x: x.log1p(), "Log1PBackward0", "x"),
    ("log2", lambda x: x.log2(), "Log2Backward0", "x"),
    ("log10", lambda x: x.log10(), "Log10Backward0", "x"),
    ("sin", lambda x: x.sin(), "SinBackward0", "x"),
    ("cos", lambda x: x.cos(), "CosBackward0", "x"),
    ("tan", lambda x: x.tan(), "TanBackward0", "r"),
    ("sinh", lambda x: x.sinh(), "SinhBackward0", "x"),
    ("cosh", lambda x: x.cosh(), "CoshBackward0", "x"),
    ("tanh", lambda x: x.tanh(), "TanhBackward0", "r"),
    ("asinh", lambda x: x.asinh(), "AsinhBackward0", "x"),
    ("atan", lambda x: x.atan(), "AtanBackward0", "x"),
    ("asin", lambda x: (x / 3).asin(), "AsinBackward0", None),
    ("acos", lambda x: (x / 3).acos(), "AcosBackward0", None),
    ("atanh", lambda x: (x / 3).atanh(), "AtanhBackward0", None),
    ("acosh", lambda x: (x + 1).acosh(), "AcoshBackward0", None),
    ("sigmoid", lambda x: x.sigmoid(), "SigmoidBackward0", "r"),
    ("logit", lambda x: jitgrad.logit(x / 3), "LogitBackward0", None),
    ("sinc", lambda x: x.sinc(), "SincBackward0", "x"),
    ("erf", lambda x: x.erf(), "ErfBackward0", "x"),
    ("erfc", lambda x: x.erfc(), "ErfcBackward0", "x"),
    ("frac", lambda x: x.frac(), "FracBackward0", ""),
    ("clamp", lambda x: x.clamp(0.5, 1.6), "ClampBackward1", "x"),
    ("clamp_min", lambda x: x.clamp_min(0.5), "ClampMinBackward0", "x"),
    ("clamp_max", lambda x: x.clamp_max(0.5), "ClampMaxBackward0", "x"),
    ("nan_to_num", lambda x: x.nan_to_num(), "NanToNumBackward0", "x"),
    ("plus", lambda x: x + 2, "AddBackward0", ""),
    ("minus", lambda x: x - 2, "SubBackward0", ""),
    ("from", lambda x: 2 - x, "RsubBackward1", ""),
    ("times", lambda x: 3 * x, "MulBackward0", ""),
    ("over", lambda x: x / 3, "DivBackward0", ""),
    ("remainder", lambda x: x % 0.4, "RemainderBackward0", ""),
    ("fmod", lambda x: x.fmod(0.4), "FmodBackward0", ""),
    ("relu", lambda x: (x - 1).relu(), "ReluBackward0", "r"),
    ("leaky_relu", lambda x: jitgrad.leaky_relu(x, 0.1), "LeakyReluBackward0", "x"),
    ("elu", lambda x: jitgrad.elu(x - 1, 1.5), "EluBackward0", None),
    ("selu", lambda x: jitgrad.selu(x - 1), "EluBackward0", None),
    ("celu", lambda x: jitgrad.celu(x - 1, 1.3), "CeluBackward0", None),
    ("gelu", jitgrad.gelu, "GeluBackward0", "x"),
    ("gelu tanh", lambda x: jitgrad.gelu(x, approximate="tanh"), "GeluBackward0", "x"),
    ("silu", jitgrad.silu, "SiluBackward0", "x"),
    ("mish", jitgrad.mish, "MishBackward0", "x"),
    ("softplus", lambda x: jitgrad.softplus(x, 2.0), "SoftplusBackward0", "x"),
    ("logsigmoid", jitgrad.logsigmoid, "LogSigmoidBackward0", "x"),
    ("hardtanh", jitgrad.hardtanh, "HardtanhBackward0", "x"),
    ("hardsigmoid", jitgrad.hardsigmoid, "HardsigmoidBackward0", "x"),
    ("hardswish", jitgrad.hardswish, "HardswishBackward0", "x"),
    ("softsign", jitgrad.softsign, "DivBackward0", None),
    ("hardshrink", jitgrad.hardshrink, "HardshrinkBackward0", "x"),
    ("softshrink", jitgrad.softshrink, "SoftshrinkBackward0", "x"),
    ("threshold", lambda x: jitgrad.threshold(x, 1.0, 9.0), "ThresholdBackward0", "x"),
]
BINARY = [
    ("add", lambda x, y: x + y, "AddBackward0", ""),
    ("sub", lambda x, y: x - y, "SubBackward0", ""),
    ("add alpha", lambda x, y: x.add(y, alpha=3), "AddBackward0", ""),
    ("rsub", jitgrad.rsub, "RsubBackward0", ""),
    ("mul", lambda x, y: x * y, "MulBackward0", "xy"),
    ("div", lambda x, y: x / y, "DivBackward0", "xy"),
    ("pow", lambda x, y: x**y, "PowBackward1", "xyr"),
    ("atan2", lambda x, y: x.atan2(y), "Atan2Backward0", "xy"),
    ("hypot", lambda x, y: x.hypot(y), "HypotBackward0", "xyr"),
    ("logaddexp", lambda x, y: x.logaddexp(y), "LogaddexpBackward0", "xy"),
    ("xlogy", lambda x, y: x.xlogy(y), "XlogyBackward0", "xy"),
    ("copysign", lambda x, y: x.copysign(y), "CopysignBackward0", None),
    ("maximum", lambda x, y: x.maximum(y), "MaximumBackward0", "xy"),
    ("minimum", lambda x, y: x.minimum(y), "MinimumBackward0", "xy"),
    ("fmax", lambda x, y: x.fmax(y), "FmaxBackward0", "xy"),
    ("fmod", lambda x, y: x.fmod(y), "FmodBackward1", "xy"),
    ("remainder", lambda x, y: x % y, "RemainderBackward1", "xy"),
    ("lerp", lambda x, y: x.lerp(y, 0.3), "LerpBackward0", ""),
    ("addcmul", lambda x, y: x.addcmul(x, y, value=2.0), "AddcmulBackward0", None),
    ("addcdiv", lambda x, y: x.addcdiv(x, y, value=2.0), "AddcdivBackward0", None),
    ("where", lambda x, y: jitgrad.where(tensor([True, False, True, False]), x, y), "WhereBackward0", ""),
    ("clamp", lambda x, y: x.clamp(y, y + 1), "ClampBackward0", None),
    ("clamp one", lambda x, y: x.clamp(max=y), "ClampBackward0", "xy"),
    ("prelu", lambda x, y: jitgrad.prelu(-x, y[:1]), "PreluKernelBackward0", None),
]
ALL = [pytest.param(call, 1, node, saved, id=name) for name, call, node, saved in UNARY]
ALL += [pytest.param(call, 2, node, saved, id=name) for name, call, node, saved in BINARY]


@pytest.mark.parametrize(("call", "count", "node", "saved"), ALL)
class TestEach:
    def test_node(self, call, count, node, saved):
        assert type(call(*[leaf(a) for a in (X, Y)[:count]]).grad_fn).__name__ == node

    def test_gradient_is_that_of_finite_differences(self, call, count, node, saved):
        arrays, step = (X, Y)[:count], 1e-6
        inputs = [leaf(a) for a in arrays]
        grads = jitgrad.autograd.grad(call(*inputs).sum(), inputs)
        for k, grad in enumerate(grads):
            for place in range(X.size):
                moved = [[a.copy() for a in arrays] for _ in range(2)]
                moved[0][k][place] += step
                moved[1][k][place] -= step
                up, down = (call(*[tensor(a) for a in m]).sum().item() for m in moved)
                assert grad[place].item() == pytest.approx((up - down) / (2 * step), rel=1e-5, abs=1e-7)

    def test_second_derivative_is_that_of_finite_differences(self, call, count, node, saved):
        inputs, step = [leaf(a) for a in (X, Y)[:count]], 1e-6

        def slope(arrays):
            inner = [leaf(a) for a in arrays]
            return jitgrad.autograd.grad(call(*inner).sum(), inner, allow_unused=True)[0].sum().item()

        first = jitgrad.autograd.grad(call(*inputs).sum(), inputs, create_graph=True)[0].sum()
        if not first.requires_grad:
            assert slope([a + step for a in (X, Y)[:count]]) == pytest.approx(first.item(), abs=1e-9)
            return
        second = jitgrad.autograd.grad(first, inputs, allow_unused=True)[0]
        for place in range(X.size):
            moved = [[a.copy() for a in (X, Y)[:count]] for _ in range(2)]
            moved[0][0][place] += step
            moved[1][0][place] -= step
            expected = (slope(moved[0]) - slope(moved[1])) / (2 * step)
            found = 0.0 if second is None else second[place].item()
            assert found == pytest.approx(expected, rel=1e-4, abs=1e-6)

    def test_dtypes_agree(self, call, count, node, saved):
        expected = call(*[tensor(a) for a in (X, Y)[:count]])
        for kind, tolerance in ((np.float32, 2e-5), (np.float16, 4e-3)):
            inputs = [leaf(a.astype(kind)) for a in (X, Y)[:count]]
            result = call(*inputs)
            assert result.dtype is inputs[0].dtype
            np.testing.assert_allclose(result.detach().numpy().astype(float), expected.numpy(), rtol=tolerance, atol=tolerance)
            result.sum().backward()
            assert inputs[0].grad.dtype is inputs[0].dtype


# those whose own operands are x and y
SAVING = [case for case in ALL if case.values[3] is not None]
# those without an operand of fixed shape
SHAPELESS = [case for case in ALL if case.values[2] not in ("WhereBackward0", "PreluKernelBackward0")]


@pytest.mark.parametrize(("call", "count", "node", "saved"), SAVING)
def test_saved_values(call, count, node, saved):
    for letter in "xyr"[: count + 1] if count == 2 else "xr":
        inputs = [leaf(a) * 1 for a in (X, Y)[:count]]
        result = call(*inputs)
        {"x": inputs[0], "y": inputs[-1], "r": result}[letter].detach().add_(1)
        if letter in saved:
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                result.sum().backward()
        else:
            result.sum().backward()


@pytest.mark.parametrize(("call", "count", "node", "saved"), SHAPELESS)
def test_scalars_and_nothing(call, count, node, saved):
    for shape in ((), (0,), (3, 0, 2)):
        inputs = [leaf(np.full(shape, a[0])) for a in (X, Y)[:count]]
        result = call(*inputs)
        assert result.shape == shape
        result.backward(jitgrad.ones_like(result))
        assert inputs[0].grad.shape == shape


@pytest.mark.parametrize(("call", "count", "node", "saved"), ALL[::8])
def test_strided_operands(call, count, node, saved):
    expected = call(*[tensor(a) for a in (X, Y)[:count]])
    gaps = [leaf(np.stack([a, np.full(a.size, np.nan)], 1)) for a in (X, Y)[:count]]
    strided = [x[:, 0] for x in gaps]
    assert not strided[0].is_contiguous()
    result = call(*strided)
    np.testing.assert_allclose(result.detach().numpy(), expected.numpy(), rtol=1e-12)
    result.sum().backward()
    plain = [leaf(a) for a in (X, Y)[:count]]
    call(*plain).sum().backward()
    for x, y in zip(gaps, plain, strict=True):
        np.testing.assert_allclose(x.grad[:, 0].numpy(), y.grad.numpy(), rtol=1e-12)
        assert x.grad[:, 1].tolist() == [0, 0, 0, 0]


def test_third_derivatives():
    x = leaf([0.3, 0.9])
    y = x.exp() + x.tanh() + x.sigmoid() * x**3
    for _ in range(3):
        (y,) = jitgrad.autograd.grad(y.sum(), x, create_graph=True)
    step = 1e-4

    def second(v):
        w = leaf(v)
        z = w.exp() + w.tanh() + w.sigmoid() * w**3
        for _ in range(2):
            (z,) = jitgrad.autograd.grad(z.sum(), w, create_graph=True)
        return z.detach().numpy()

    v = np.array([0.3, 0.9])
    np.testing.assert_allclose(y.detach().numpy(), (second(v + step) - second(v - step)) / (2 * step), rtol=1e-6)


# ---------------------------------------------------------------- broadcasting
def test_an_axis_of_length_zero_broadcasts_and_its_gradient_is_zero():
    a, b = leaf(np.zeros((4, 0))), leaf([1.0, 2.0, 3.0, 4.0])
    (a + b[:, None]).sum().backward()
    assert a.grad.shape == (4, 0)
    assert b.grad.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("shapes", [((2, 3), (3,)), ((2, 1, 3), (4, 1)), ((), (2, 2)), ((1,), (5,)), ((3, 1), (1, 3))])
def test_broadcast_gradients_are_summed(shapes):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=shape) for shape in shapes)
    a, b = leaf(x), leaf(y)
    cotangent = rng.normal(size=np.broadcast_shapes(*shapes))
    (a * b).backward(tensor(cotangent))
    for found, other, shape in ((a.grad, y, shapes[0]), (b.grad, x, shapes[1])):
        full = cotangent * other
        lead = tuple(range(full.ndim - len(shape)))
        summed = full.sum(lead)
        axes = tuple(k for k, n in enumerate(shape) if n == 1)
        np.testing.assert_allclose(found.numpy(), summed.sum(axes, keepdims=True).reshape(shape))


def test_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match=r"The size of tensor a \(3\) must match the size of tensor b \(4\) at non-singleton dimension 0"):
        tensor([1.0, 2.0, 3.0]) + tensor([1.0, 2.0, 3.0, 4.0])


# ---------------------------------------------------------------- dtypes
def test_each_gradient_has_the_dtype_of_its_operand():
    a, b = leaf(np.ones(3, np.float32)), leaf(np.ones(3))
    result = a * b
    result.sum().backward()
    assert result.dtype is jitgrad.float64
    assert a.grad.dtype is jitgrad.float32
    assert b.grad.dtype is jitgrad.float64


def test_numbers_do_not_widen():
    x = leaf(np.ones(3, np.float32))
    for result in (x * 0.5, 2 + x, x**2, x / 3, 1 - x, x.clamp(0.1, 0.2), jitgrad.where(x > 0, x, 1.0)):
        assert result.dtype is jitgrad.float32
        x.grad = None
        result.sum().backward()
        assert x.grad.dtype is jitgrad.float32


def test_integers_become_the_default_float():
    assert (tensor([1, 2]) / 2).dtype is jitgrad.float32
    assert tensor([1, 2]).exp().dtype is jitgrad.float32
    assert (tensor([1, 2]) * 0.5).dtype is jitgrad.float32
    assert (tensor([1, 2]) * 2).dtype is jitgrad.int64


# ---------------------------------------------------------------- no poison from masked branches
def test_a_branch_that_is_not_taken_gives_no_nan():
    x = leaf([-1.0, -4.0])
    jitgrad.where(x > 0, x.sqrt(), x).sum().backward()
    assert x.grad.tolist() == [1, 1]
    x = leaf(np.float32(100.0))
    jitgrad.where(x <= 0, x.exp(), 1 + x).backward()
    assert x.grad.item() == 1
    x = leaf([1.0, 1.0])
    (x / tensor([0.0, 1.0]))[tensor([False, True])].sum().backward()
    assert x.grad.tolist() == [0, 1]


def test_a_gradient_that_does_not_pass_is_zero_whatever_it_was():
    x = leaf([-1.0, 2.0])
    x.relu().backward(tensor([math.nan, 1.0]))
    assert x.grad.tolist() == [0, 1]
    x = leaf([-1.0, 2.0])
    x.clamp(0.0, 5.0).backward(tensor([math.inf, 1.0]))
    assert x.grad.tolist() == [0, 1]
    x = leaf([-1.0, 2.0])
    x.masked_fill(tensor([True, False]), 0.0).backward(tensor([math.nan, 1.0]))
    assert x.grad.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("call", "depends"),
    [
        (lambda x: x.clamp(0.5, 1.0), False),
        (lambda x: x.clamp_min(0.5), False),
        (lambda x: x.maximum(x * 2), False),
        (lambda x: x.nan_to_num(), False),
        (lambda x: x.relu(), True),
        (lambda x: x.abs(), True),
    ],
)
def test_a_gradient_by_masks_alone_takes_no_gradient(call, depends):
    x = leaf(X)
    (grad,) = jitgrad.autograd.grad(call(x).sum(), x, create_graph=True)
    assert grad.requires_grad is depends


# ---------------------------------------------------------------- calls seen before
def test_a_number_is_no_part_of_the_kernel():
    x = leaf(X)
    (x * 3.25).sum().backward()
    before = len(registry.COMPILED)
    for number in (1.5, 2, -7.0, True):
        (x * number).sum().backward()
    x.clamp(0.25, 0.75)
    middle = len(registry.COMPILED)
    x.clamp(0.5, 2.5)
    assert middle <= before + 1
    assert len(registry.COMPILED) == middle


def test_the_second_call_is_like_the_first():
    rng = np.random.default_rng(1)
    for op, operands in ((arithmetic.mul, (True, 2.0)), (arithmetic.pow, (True, 2)), (arithmetic.pow, (2, True)),
                         (selection.where_op, (None, True, 0.5)), (arithmetic.div_op, (True, True)), (activations.elu_op, (True,))):  # fmt: skip
        op.plans.clear()
        statics = (1.5, 1.0) if op is activations.elu_op else ()
        array = rng.uniform(0.5, 2, (3, 2))
        results = []
        for _ in range(2):
            x = leaf(array)
            given = [x if o is True else tensor(array > 1) if o is None else o for o in operands]
            result = jitgrad._ops.kinds.Dispatch.invoke(op, tuple(given), statics)
            result.sum().backward()
            results.append((type(result.grad_fn).__name__, result.tolist(), x.grad.tolist(), result.shape, result.dtype))
            assert op.plans
        assert results[0] == results[1]


def test_the_same_number_of_another_type_is_another_call():
    x = tensor([1.0, 2.0])
    assert (x - 1).tolist() == (x - 1.0).tolist() == [0, 1]
    with pytest.raises(RuntimeError, match="bool tensor is not supported"):
        x - True
    assert (x * np.float32(2)).tolist() == [2, 4]


def test_bools_do_not_take_the_place_of_constants():
    x = tensor([2.0, 3.0])
    assert (x**True).tolist() == (x**1).tolist() == [2, 3]
    assert (x**False).tolist() == (x**0).tolist() == [1, 1]


@pytest.mark.parametrize("shapes", [((3, 4), (3, 1)), ((3, 4), (4,)), ((3, 4), ()), ((1, 4), (3, 1))])
@pytest.mark.parametrize("call", [lambda x, y: x / y, lambda x, y: x * y, lambda x, y: x.hypot(y), lambda x, y: x.lerp(y, 0.3)])
def test_gradients_of_broadcast_operands_are_those_of_repeated_ones(call, shapes):
    rng = np.random.default_rng(2)
    arrays = [rng.uniform(0.5, 2, shape) for shape in shapes]
    full = np.broadcast_shapes(*shapes)
    cotangent = tensor(rng.normal(size=full))
    narrow, wide = [leaf(a) for a in arrays], [leaf(np.broadcast_to(a, full)) for a in arrays]
    call(*narrow).backward(cotangent)
    call(*wide).backward(cotangent)
    for x, y in zip(narrow, wide, strict=True):
        np.testing.assert_allclose(x.grad.numpy(), y.grad.sum_to_size(*x.shape).numpy())


def test_a_bias_gradient_of_float32_keeps_its_digits():
    x, bias = leaf(np.zeros((100_000, 2), np.float32)), leaf(np.zeros(2, np.float32))
    cotangent = np.full((100_000, 2), 0.1, np.float32)
    (x + bias).backward(tensor(cotangent))
    np.testing.assert_allclose(bias.grad.numpy(), cotangent.astype(float).sum(0), rtol=1e-6)
