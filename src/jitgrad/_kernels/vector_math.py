"""The scalar functions of the kernel language, compiled: twins of `scalar_fallback`, imported by kernel modules only.

Each is a Numba intrinsic that writes straight-line LLVM instructions (`vector/`) into the calling kernel and asks for
512-bit vectors there, where the processor has them (LLVM's own choice, 256 bits, costs up to 1.45x). Calls into the C
library remain for the float64 forms of erfc, tan, asin, acos, atan, atan2, sinh, cosh, asinh, acosh, atanh, log10, pow
and hypot, for fmod, and for the angle functions that take any angle (sin_far).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from numba import types
from numba.extending import intrinsic

from .scalar_fallback import NAMES
from .vector import angle, exponential, logarithm, special
from .vector.access import load, step, store  # noqa: F401  (exported through NAMES)
from .vector.lane import Lane

__all__ = ["NAMES", *NAMES]  # noqa: PLE0604  (a tuple of strings; load, step and store are among them)

Formula = Callable[..., Lane]
# a raw attribute: llvmlite knows the enumerated ones only, and prints this as it is
_WIDE: Final = '"prefer-vector-width"="512"'


def _common(typing: Any, kinds: tuple[Any, ...]) -> Any:
    """The number type that all arguments are converted to, or None if there is none."""
    kind = kinds[0] if len(kinds) == 1 else typing.unify_types(*kinds)
    return types.unliteral(kind) if kind is not None else None


def _define(formula: Formula, arity: int, *, integers: bool = False, boolean: bool = False, bare: int = 0) -> Any:
    """The intrinsic for a formula over lanes.

    integers: whether it also takes integers, otherwise they become float64. boolean: whether it gives a truth value.
    bare: how many leading arguments are truth values.
    """

    def typed(typing: Any, *kinds: Any) -> Any:
        kind = _common(typing, kinds[bare:])
        if not isinstance(kind, types.Float):
            if not isinstance(kind, (types.Integer, types.Boolean)):
                return None
            kind = kind if integers and isinstance(kind, types.Integer) else types.float64
        result = types.boolean if boolean else kind
        wanted = (types.boolean,) * bare + (kind,) * (arity - bare)

        def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
            set.add(builder.function.attributes, _WIDE)
            lanes = [
                Lane(builder, context.cast(builder, value, given, kind))
                for value, given, kind in zip(arguments, signature.args, wanted, strict=True)
            ]
            return formula(*lanes).value

        return result(*kinds), generate

    if arity == 1:
        return intrinsic(lambda typing, x: typed(typing, x))  # noqa: PLW0108  (Numba reads the number of parameters)
    if arity == 2:
        return intrinsic(lambda typing, x, y: typed(typing, x, y))  # noqa: PLW0108
    return intrinsic(lambda typing, x, y, z: typed(typing, x, y, z))  # noqa: PLW0108


def _rounding(name: str) -> Any:
    return _define(lambda x: x.intrinsic(name) if x.is_float else x, 1, integers=True)


exp = _define(exponential.exp, 1)
exp2 = _define(exponential.exp2, 1)
expm1 = _define(exponential.expm1, 1)
tanh = _define(exponential.tanh, 1)
sigmoid = _define(exponential.sigmoid, 1)
sinh = _define(exponential.sinh, 1)
cosh = _define(exponential.cosh, 1)

log = _define(logarithm.log, 1)
log2 = _define(logarithm.log2, 1)
log10 = _define(logarithm.log10, 1)
log1p = _define(logarithm.log1p, 1)
softplus = _define(logarithm.softplus, 1)
logsigmoid = _define(logarithm.logsigmoid, 1)
logaddexp = _define(logarithm.logaddexp, 2)
xlogy = _define(logarithm.xlogy, 2)
asinh = _define(logarithm.asinh, 1)
acosh = _define(logarithm.acosh, 1)
atanh = _define(logarithm.atanh, 1)
pow_ = _define(logarithm.pow_, 2)

sin = _define(angle.sin, 1)
cos = _define(angle.cos, 1)
tan = _define(angle.tan, 1)
sin_far = _define(lambda x: x.library("sin"), 1)
cos_far = _define(lambda x: x.library("cos"), 1)
tan_far = _define(lambda x: x.library("tan"), 1)
asin = _define(angle.asin, 1)
acos = _define(angle.acos, 1)
atan = _define(angle.atan, 1)
atan2 = _define(angle.atan2, 2)

erf = _define(special.erf, 1)
erfc = _define(special.erfc, 1)
hypot = _define(special.hypot, 2)

sqrt = _define(Lane.sqrt, 1)
rsqrt = _define(special.rsqrt, 1)
copysign = _define(Lane.copysign, 2)
fma = _define(Lane.fma, 3)
floor = _rounding("floor")
ceil = _rounding("ceil")
trunc = _rounding("trunc")
rint = _rounding("rint")
fmod = _define(special.fmod, 2)
remainder = _define(special.remainder, 2)
floor_divide = _define(special.floor_divide, 2)

sign = _define(special.sign, 1, integers=True)
maximum = _define(special.maximum, 2, integers=True)
minimum = _define(special.minimum, 2, integers=True)
zmul = _define(special.zmul, 2, integers=True)
where = _define(Lane.select, 3, integers=True, bare=1)

isnan = _define(special.isnan, 1, integers=True, boolean=True)
isinf = _define(special.isinf, 1, integers=True, boolean=True)
isfinite = _define(special.isfinite, 1, integers=True, boolean=True)
