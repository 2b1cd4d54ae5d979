"""Arithmetic, rounding and bits: what is refused, integers, and values at edges."""

import math

import numpy as np
import pytest

import jitgrad
from jitgrad import tensor

INF, NAN = math.inf, math.nan
INT = tensor([1, -2, 3])
B = tensor([True, False, True])
F = tensor([1.0, -2.0, 3.0])


def same(result, expected):
    np.testing.assert_array_equal(np.asarray(result.tolist(), float), np.asarray(expected, float))


# ---------------------------------------------------------------- refusals
@pytest.mark.parametrize(
    ("call", "kind", "words"),
    [
        (lambda: B - B, RuntimeError, "with two bool tensors is not supported"),
        (lambda: B - 1, RuntimeError, "with a bool tensor is not supported"),
        (lambda: 1 - B, RuntimeError, "with a bool tensor is not supported"),
        (lambda: -B, RuntimeError, "Negation, the `-` operator, on a bool tensor"),
        (lambda: +B, RuntimeError, "The `\\+` operator, on a bool tensor"),
        (B.abs, NotImplementedError, "\"abs_cpu\" not implemented for 'Bool'"),
        (lambda: B // B, NotImplementedError, "\"div_floor_cpu\" not implemented for 'Bool'"),
        (lambda: B.pow(B), NotImplementedError, "\"pow\" not implemented for 'Bool'"),
        (lambda: INT**-1, RuntimeError, "Integers to negative integer powers are not allowed"),
        (lambda: INT // 0, RuntimeError, "ZeroDivisionError"),
        (lambda: INT % 0, RuntimeError, "ZeroDivisionError"),
        (lambda: INT.fmod(0), RuntimeError, "ZeroDivisionError"),
        (lambda: jitgrad.div(INT, 0, rounding_mode="trunc"), RuntimeError, "ZeroDivisionError"),
        (lambda: jitgrad.div(F, 2, rounding_mode="up"), RuntimeError, "div expected rounding_mode to be one of None"),
        (lambda: jitgrad.add(INT, INT, alpha=0.5), RuntimeError, "For integral input tensors, argument alpha must not be"),
        (lambda: jitgrad.add(INT, INT, alpha=1.0), RuntimeError, "For integral input tensors, argument alpha must not be"),
        (lambda: jitgrad.add(F, F, alpha=True), RuntimeError, "Boolean alpha only supported for Boolean results"),
        (lambda: jitgrad.addcdiv(INT, INT, INT), RuntimeError, "Integer division with addcdiv is no longer supported"),
        (lambda: INT.round(decimals=1), NotImplementedError, "\"round_cpu\" not implemented for 'Long'"),
        (lambda: F & F, NotImplementedError, "\"bitwise_and_cpu\" not implemented for 'Float'"),
        (lambda: ~F, TypeError, "only implemented on integer and Boolean-type tensors"),
        (lambda: F + "a", TypeError, "unsupported operand"),
        (lambda: F + None, TypeError, "unsupported operand"),
        (lambda: jitgrad.pow(2, 3), TypeError, "invalid combination of arguments"),
        (lambda: jitgrad.atan2(F, 2.0), TypeError, r"argument 'other' \(position 2\) must be Tensor, not float"),
        (lambda: jitgrad.sin(2.0), TypeError, r"argument 'input' \(position 1\) must be Tensor, not float"),
    ],
)
def test_refusals(call, kind, words):
    with pytest.raises(kind, match=words):
        call()


# ---------------------------------------------------------------- integers
def test_integers_wrap_and_stay_integers():
    small = tensor(np.array([100, 200], np.uint8))
    assert (small + small).tolist() == [200, 144]
    assert (small * -1).tolist() == [156, 56]
    assert (small + 300).dtype is jitgrad.uint8


def test_rounding_of_integer_quotients():
    a, b = tensor([7, -7, 7, -7]), tensor([2, 2, -2, -2])
    assert (a // b).tolist() == [3, -4, -4, 3]
    assert jitgrad.div(a, b, rounding_mode="trunc").tolist() == [3, -3, -3, 3]
    assert (a % b).tolist() == [1, 1, -1, -1]
    assert a.fmod(b).tolist() == [1, -1, 1, -1]
    large = tensor([2**62 + 1])
    assert jitgrad.div(large, 3, rounding_mode="trunc").tolist() == [(2**62 + 1) // 3]


def test_integer_powers():
    assert (tensor([2, -3]) ** 3).tolist() == [8, -27]
    assert jitgrad.pow(tensor([1, -1, 2, 0]), tensor([-1, -3, -1, -2])).tolist()[:3] == [1, -1, 0]
    assert (2 ** tensor([0, 3])).tolist() == [1, 8]
    assert (tensor([4]) ** 0.5).dtype is jitgrad.float32


def test_bits():
    assert (tensor([12, 10]) & tensor([10, 6])).tolist() == [8, 2]
    assert (tensor([12]) | 3).tolist() == [15]
    assert (5 ^ tensor([1])).tolist() == [4]
    assert (~tensor([0, 5])).tolist() == [-1, -6]
    assert (tensor([1, 2]) << 3).tolist() == [8, 16]
    assert (tensor([-8]) >> 1).tolist() == [-4]
    assert (~B).tolist() == [False, True, False]
    assert (B & tensor([True, True, False])).tolist() == [True, False, False]


# ---------------------------------------------------------------- floats at edges
def test_powers_at_edges():
    x = tensor([0.0, -0.0, INF, -INF, NAN, -2.0])
    same(x**0, [1, 1, 1, 1, 1, 1])
    same(x**0.5, [0, 0, INF, NAN, NAN, NAN])
    same((x**-1).sign(), [1, -1, 0, 0, 0, -1])
    same(x**2, [0, 0, INF, INF, NAN, 4])
    same(jitgrad.pow(0.0, tensor([0.0, 1.0, -1.0])), [1, 0, INF])


@pytest.mark.parametrize(("exponent", "expected"), [(0, [0, 0]), (1, [1, 1]), (2, [0, 4]), (0.5, [INF, 0.5 / 2**0.5]), (3, [0, 12])])
def test_gradient_of_a_power_at_zero(exponent, expected):
    x = tensor([0.0, 2.0], dtype=jitgrad.float64, requires_grad=True)
    (x**exponent).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_gradient_by_an_exponent():
    base = tensor([0.0, 0.0, 2.0], dtype=jitgrad.float64)
    y = tensor([0.0, 2.0, 3.0], dtype=jitgrad.float64, requires_grad=True)
    (base**y).sum().backward()
    np.testing.assert_allclose(y.grad.numpy(), [0, 0, 8 * math.log(2)])


def test_remainders_of_floats():
    x, y = tensor([5.5, -5.5, 5.5, -5.5, INF, 1.0]), tensor([2.0, 2.0, -2.0, -2.0, 2.0, 0.0])
    same(x % y, [1.5, 0.5, -0.5, -1.5, NAN, NAN])
    same(x.fmod(y), [1.5, -1.5, 1.5, -1.5, NAN, NAN])
    same((x // y)[:4], [2, -3, -3, 2])
    same(tensor([1.0, -1.0, 0.0]) // 0, [INF, -INF, NAN])


def test_rounding():
    x = tensor([0.5, 1.5, 2.5, -0.5, -1.5, INF])
    same(x.round(), [0, 2, 2, -0.0, -2, INF])
    same(x.floor(), [0, 1, 2, -1, -2, INF])
    same(x.ceil(), [1, 2, 3, -0.0, -1, INF])
    same(x.trunc(), [0, 1, 2, -0.0, -1, INF])
    np.testing.assert_allclose(tensor([1.2345, 1555.0]).round(decimals=2).numpy(), [1.23, 1555.0], rtol=1e-6)
    np.testing.assert_allclose(tensor([1234.0, 1555.0]).round(decimals=-2).numpy(), [1200, 1600])
    y = tensor([0.5, 1.7], requires_grad=True)
    y.round().sum().backward()
    assert y.grad.tolist() == [0, 0]


def test_signs():
    x = tensor([-3.0, -0.0, 0.0, 2.0, NAN])
    same(x.sign(), [-1, 0, 0, 1, 0])
    y = tensor([-3.0, 0.0, 2.0], requires_grad=True)
    y.abs().sum().backward()
    assert y.grad.tolist() == [-1, 0, 1]
    assert jitgrad.copysign(tensor([1.0, 2.0]), tensor([-0.0, 0.0])).tolist() == [-1, 2]


def test_a_floor_division_has_no_derivative():
    x = tensor([5.0], requires_grad=True)
    result = x // 2
    assert result.requires_grad
    with pytest.raises(RuntimeError, match="derivative for aten::floor_divide is not implemented"):
        result.backward()


def test_alpha_and_value():
    assert jitgrad.add(F, F, alpha=2).tolist() == [3, -6, 9]
    assert jitgrad.sub(INT, INT, alpha=3).tolist() == [-2, 4, -6]
    assert jitgrad.rsub(F, 1, alpha=2).tolist() == [-1, 5, -5]
    assert jitgrad.add(B, B, alpha=2).tolist() == [True, False, True]
    assert jitgrad.addcmul(INT, INT, INT, value=2.7).tolist() == [3, 6, 21]
    assert jitgrad.add(2, F).tolist() == [3, 0, 5]


def test_positive_is_the_tensor_itself():
    assert +F is F


def test_a_number_over_a_tensor_goes_by_the_reciprocal():
    result = 2 / tensor([4.0], requires_grad=True)
    assert type(result.grad_fn).__name__ == "MulBackward0"
    assert type(result.grad_fn.next_functions[0][0]).__name__ == "ReciprocalBackward0"


def test_operands_that_are_numbers_have_an_edge_without_a_node():
    x = tensor([1.0], requires_grad=True)
    assert (x + 1).grad_fn.next_functions[1] == (None, 0)
    assert (1 * x).grad_fn.next_functions[1] == (None, 0)
    assert jitgrad.mul(1, x).grad_fn.next_functions[0] == (None, 0)
    assert len((1 - x).grad_fn.next_functions) == 1
    assert len((x**2).grad_fn.next_functions) == 1
    assert len(x.clamp(max=tensor([2.0])).grad_fn.next_functions) == 3


# ---------------------------------------------------------------- in place
def test_augmented_assignment_writes_into_the_tensor():
    x = y = tensor([8.0, 4.0])
    memory = x.data_ptr()
    for step in (1, 2):
        x += step
        x -= 1
        x *= 2
        x /= 2
        x **= 2
        x //= 1
        x %= 7
    assert x is y
    assert x.data_ptr() == memory
    assert x._version == 14
    bits = tensor([6])
    bits &= 3
    bits |= 4
    bits ^= 1
    bits <<= 2
    bits >>= 1
    assert bits.tolist() == [14]


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("other", [2.0, None])
def test_in_place_is_the_op_itself(record, other):
    for name in ("add", "sub", "mul", "div", "pow", "remainder", "fmod", "floor_divide"):
        start = np.array([3.5, 1.25, 6.0])
        operand = tensor([2.0, 0.5, 3.0], dtype=jitgrad.float64) if other is None else other
        for _ in range(2):  # the second call is one seen before
            expected = getattr(tensor(start), name)(operand)
            x = tensor(start, requires_grad=record)
            target = x * 1
            assert getattr(target, name + "_")(operand) is target
            assert target.tolist() == expected.tolist()
            assert target._version == 1


def test_in_place_refusals():
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        tensor([1]).add_(1.5)
    with pytest.raises(RuntimeError, match=r"output with shape \[1\] doesn't match the broadcast shape \[2\]"):
        tensor([1.0]).add_(tensor([1.0, 2.0]))
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        tensor([1.0], requires_grad=True).mul_(2)


def test_in_place_on_a_float16_tensor_and_on_a_view():
    half = tensor(np.array([1.0, 2.0], np.float16))
    half.mul_(3).add_(half)
    assert half.tolist() == [6, 12]
    whole = tensor([1.0, 2.0, 3.0, 4.0])
    whole[::2].mul_(10)
    whole[1:].add_(1)
    assert whole.tolist() == [10, 3, 31, 5]


def test_writing_what_is_also_read_elsewhere():
    x = tensor([1.0, 2.0])
    x.add_(x, alpha=2).mul_(x)
    assert x.tolist() == [9, 36]
    w = tensor([1.0, 2.0], requires_grad=True)
    y = w * 1
    y.mul_(w)
    y.add_(1)
    y.sum().backward()
    assert w.grad.tolist() == [2, 4]


def test_a_leaf_is_written_without_recording():
    p = tensor([1.0, 2.0], requires_grad=True)
    (p * p).sum().backward()
    for _ in range(2):
        with jitgrad.no_grad():
            p.sub_(p.grad, alpha=0.5)
            p -= 0.25 * p.grad
    assert p.tolist() == [1 - 3, 2 - 6]
    assert p.requires_grad
    assert p.is_leaf
    assert p._version == 4
