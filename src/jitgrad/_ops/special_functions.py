"""Special functions: the gamma family, error functions, Bessel functions, zeta. Each derivative is written in functions of the family."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.dtypes import default_dtype, float16
from . import special_values as values
from .checks import check_tensors
from .kinds import Array, Tensor, composite, general
from .number_parts import promoted

ROOT_PI = math.sqrt(math.pi)


def unary(node: str, name: str, compute: Callable[[Array], Array], saves: tuple[str, ...] = ("input",)) -> Any:
    """An op of one tensor whose values are computed in float64."""

    @general(node=node, name=name, saves=saves)
    def op(input: Array) -> Array:
        return np.asarray(compute(input.astype(np.float64)), input.dtype, order="C")

    return op


def floating(input: Tensor, refused: str = "") -> Tensor:
    """The tensor, integers and bools in the default dtype. NotImplementedError for float16 where torch has no kernel for it."""
    if refused and input.meta.kind is float16:
        raise NotImplementedError(f"\"{refused}_cpu\" not implemented for 'Half'")
    return input if input.meta.kind.is_floating_point else input.to(default_dtype())


# ---------------------------------------------------------------- the gamma family
lgamma_op = unary("LgammaBackward0", "_lgamma", values.lgamma)
digamma_op = unary("DigammaBackward0", "_digamma", values.digamma)


@lgamma_op.rule
def _(grad: Tensor, input: Tensor) -> Tensor:
    return grad * digamma_op(input)


@digamma_op.rule
def _(grad: Tensor, input: Tensor) -> Tensor:
    return grad * polygamma_op(input, 1)


@general(node="PolygammaBackward0", saves=("input",), name="_polygamma")
def polygamma_op(input: Array, n: int) -> Array:
    return np.asarray(values.polygamma(n, input.astype(np.float64)), input.dtype, order="C")


@polygamma_op.rule
def _(grad: Tensor, input: Tensor, n: int) -> Tensor:
    return grad * polygamma_op(input, n + 1)


@composite(inplace="write")
def lgamma(input: Tensor) -> Tensor:
    """The logarithm of the magnitude of the gamma function; inf at 0, -1, -2 ..."""
    return lgamma_op(floating(input))


@composite(inplace="write")
def digamma(input: Tensor) -> Tensor:
    """The derivative of `lgamma`; -inf at 0, NaN at -1, -2 ..."""
    return digamma_op(floating(input))


def check_order(n: Any) -> int:
    """The order of a derivative. TypeError unless an int, RuntimeError for a negative one."""
    if isinstance(n, bool) or not isinstance(n, int):
        raise TypeError(f"polygamma(): argument 'n' (position 1) must be int, not {type(n).__name__}")
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")
    return n


@composite(method=False)
def polygamma(n: int, input: Tensor) -> Tensor:
    """The n-th derivative of `digamma`."""
    return polygamma_op(floating(input), check_order(n))


@composite(name="polygamma", public=False, inplace="write")
def polygamma_method(input: Tensor, n: int) -> Tensor:
    """The n-th derivative of `digamma`."""
    return polygamma_op(floating(input), check_order(n))


@general(node="MvlgammaBackward0", saves=("input",), name="_mvlgamma")
def mvlgamma_op(input: Array, p: int) -> Array:
    wide = input.astype(np.float64)[..., None] - np.arange(p) / 2
    return np.asarray(values.lgamma(wide).sum(-1) + p * (p - 1) / 4 * math.log(math.pi), input.dtype, order="C")


@mvlgamma_op.rule
def _(grad: Tensor, input: Tensor, p: int) -> Tensor:
    return grad * digamma_op(input.unsqueeze(-1) - input.new_tensor(np.arange(p) / 2)).sum(-1)


@composite(inplace="write")
def mvlgamma(input: Tensor, p: int) -> Tensor:
    """The logarithm of the multivariate gamma function of dimension p >= 1."""
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return mvlgamma_op(floating(input), p)


def incomplete(name: str, upper: bool) -> Any:
    """The op of `igamma` or `igammac`, which has a derivative by its second operand alone."""

    @general(node=name.capitalize() + "Backward0", name="_" + name, saves={"input": ("input", "other"), "other": ("input", "other")})
    def op(input: Array, other: Array) -> Array:
        found = values.gammainc(input.astype(np.float64), other.astype(np.float64), upper)
        return np.asarray(found, input.dtype, order="C")

    @op.rule
    def _(grad: Tensor, input: Tensor, other: Tensor, needs: tuple[bool, bool]) -> tuple[None, Tensor]:
        if needs[0]:
            raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")
        density = ((input - 1) * other.log() - other - lgamma_op(input)).exp()
        return None, grad * (-density if upper else density)

    return op


igamma_op, igammac_op = incomplete("igamma", False), incomplete("igammac", True)


def incomplete_pair(function: str, input: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """Both operands in one floating dtype. NotImplementedError for integers."""
    check_tensors(function, input=input, other=other)
    kind = promoted(input, other)
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"{function}_cpu\" not implemented for '{kind.scalar_name}'")
    return input.to(kind), other.to(kind)


@composite(inplace="write")
def igamma(input: Tensor, other: Tensor) -> Tensor:
    """The regularised lower incomplete gamma function of order `input` up to `other`; both floating, not negative. No gradient by the order."""
    return igamma_op(*incomplete_pair("igamma", input, other))


@composite(inplace="write")
def igammac(input: Tensor, other: Tensor) -> Tensor:
    """1 - igamma, accurate where that is small."""
    return igammac_op(*incomplete_pair("igammac", input, other))


# ---------------------------------------------------------------- error functions
erfinv_op = unary("ErfinvBackward0", "_erfinv", values.erfinv)
ndtri_op = unary("SpecialNdtriBackward0", "_ndtri", values.ndtri, ("result",))
erfcx_op = unary("SpecialErfcxBackward0", "_erfcx", values.erfcx, ("input", "result"))


@erfinv_op.rule
def _(grad: Tensor, input: Tensor) -> Tensor:
    return grad * (erfinv_op(input).square().exp() * (ROOT_PI / 2))


@ndtri_op.rule
def _(grad: Tensor, result: Tensor) -> Tensor:
    return grad * ((result.square() * 0.5).exp() * math.sqrt(2 * math.pi))


@erfcx_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
    return (input * result * 2 - 2 / ROOT_PI) * grad


@composite(inplace="write")
def erfinv(input: Tensor) -> Tensor:
    """The inverse of `erf` on [-1, 1]; NaN outside."""
    return erfinv_op(floating(input))


@composite(method=False)
def special_ndtri(input: Tensor) -> Tensor:
    """The inverse of `special.ndtr` on [0, 1]; NaN outside."""
    return ndtri_op(floating(input, "ndtri"))


@composite(method=False)
def special_erfcx(input: Tensor) -> Tensor:
    """exp(input ** 2) * erfc(input), without overflow."""
    return erfcx_op(floating(input, "erfcx"))


@composite(method=False)
def special_ndtr(input: Tensor) -> Tensor:
    """The distribution function of the normal distribution."""
    return ((floating(input) * math.sqrt(0.5)).erf() + 1) * 0.5


def log_ndtr_values(x: Array) -> Array:
    """log of the distribution function, by erfcx where that is small."""
    with np.errstate(all="ignore"):
        t = x * math.sqrt(0.5)
        return np.asarray(np.where(x < -1, np.log(values.erfcx(-t) / 2) - t * t, np.log1p(-values.erfc(t) / 2)))


log_ndtr_op = unary("SpecialLogNdtrBackward0", "_log_ndtr", log_ndtr_values, ("input", "result"))


@log_ndtr_op.rule
def _(grad: Tensor, input: Tensor) -> Tensor:
    return grad / erfcx_op(input * -math.sqrt(0.5)) * math.sqrt(2 / math.pi)


@composite(method=False)
def special_log_ndtr(input: Tensor) -> Tensor:
    """log(special.ndtr(input)), accurate in the tail."""
    return log_ndtr_op(floating(input, "log_ndtr"))


# ---------------------------------------------------------------- modified Bessel functions
i0_op = unary("I0Backward0", "_i0", lambda x: values.bessel(0, x))
i1_op = unary("SpecialI1Backward0", "_i1", lambda x: values.bessel(1, x), ("input", "result"))
i0e_op = unary("SpecialI0EBackward0", "_i0e", lambda x: values.scaled_bessel(0, x), ("input", "result"))
i1e_op = unary("SpecialI1EBackward0", "_i1e", lambda x: values.scaled_bessel(1, x), ("input", "result"))


@i0_op.rule
def _(grad: Tensor, input: Tensor) -> Tensor:
    return grad * i1_op(input)


@i1_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
    zero = input == 0
    quotient = (result / input.masked_fill(zero, 1.0)).masked_fill(zero, 0.5)  # I1(x) / x at 0
    return grad * (i0_op(input) - quotient)


@i0e_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
    return grad * (i1e_op(input) - input.sgn() * result)


@i1e_op.rule
def _(grad: Tensor, input: Tensor, result: Tensor) -> Tensor:
    zero = input == 0
    quotient = (result / input.masked_fill(zero, 1.0)).masked_fill(zero, 0.5)
    return grad * (i0e_op(input) - quotient - input.sgn() * result)


@composite(inplace="write")
def i0(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return i0_op(floating(input))


@composite(method=False)
def special_i0e(input: Tensor) -> Tensor:
    """exp(-abs(input)) * i0(input)."""
    return i0e_op(floating(input))


@composite(method=False)
def special_i1(input: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return i1_op(floating(input))


@composite(method=False)
def special_i1e(input: Tensor) -> Tensor:
    """exp(-abs(input)) * special.i1(input)."""
    return i1e_op(floating(input))


# ---------------------------------------------------------------- zeta
def zeta_general(number: int) -> Any:
    """The op under one of torch's names for it: by which of the operands are tensors."""

    @general(node=f"SpecialZetaBackward{number}", name=f"_zeta_{number}", saves=("input", "other"))
    def op(input: Array, other: Array) -> Array:
        return np.asarray(values.zeta(input.astype(np.float64), other.astype(np.float64)), input.dtype, order="C")

    @op.rule
    def _(grad: Tensor, input: Tensor, other: Tensor, needs: tuple[bool, bool]) -> tuple[None, Tensor]:
        if needs[0]:
            raise NotImplementedError("the derivative for 'zeta' is not implemented.")
        return None, grad * -input * op(input + 1, other)

    return op


zeta_ops = [zeta_general(number) for number in range(3)]


@composite(method=False)
def special_zeta(input: Any, other: Any) -> Tensor:
    """Hurwitz's zeta function: the sum of (other + k) ** -input over k = 0, 1, ... One of the two may be a number. No gradient by `input`."""
    tensors = [hasattr(x, "meta") for x in (input, other)]
    if not any(tensors):
        raise TypeError(f"special_zeta() received an invalid combination of arguments - got ({type(input).__name__}, {type(other).__name__})")
    kind = promoted(input, other) if all(tensors) else (input if tensors[0] else other).meta.kind
    kind = kind if kind.is_floating_point else default_dtype()
    known = input if tensors[0] else other
    first, second = (x.to(kind) if hasattr(x, "meta") else known.new_tensor(x, dtype=kind) for x in (input, other))
    return zeta_ops[0 if all(tensors) else 2 if tensors[0] else 1](first, second)
