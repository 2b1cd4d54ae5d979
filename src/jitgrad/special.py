"""Special functions under the names that `torch.special` and SciPy have for them.

>>> import jitgrad
>>> jitgrad.special.expit(jitgrad.tensor(0.0))
tensor(0.5000)
"""

from ._tensor._functions import (
    erf,
    erfc,
    exp2,
    expm1,
    log1p,
    log_softmax,
    logit,
    logsumexp,
    round,
    sigmoid as expit,
    sinc,
    softmax,
    xlogy,
)

__all__ = [
    "erf",
    "erfc",
    "exp2",
    "expit",
    "expm1",
    "log1p",
    "log_softmax",
    "logit",
    "logsumexp",
    "round",
    "sinc",
    "softmax",
    "xlogy",
]
