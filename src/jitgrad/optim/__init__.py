"""Optimizers, most of them an update rule (`rules.py`) that is one fused kernel per parameter; learning rate schedules."""

from typing import TYPE_CHECKING, Any

from .._core.late import late_attribute as _late_attribute, late_dir as _late_dir
from . import lr_scheduler
from .adagrad import Adagrad
from .adam import Adam, AdamW
from .optimizer import Optimizer
from .rmsprop import RMSprop
from .sgd import SGD

if TYPE_CHECKING:
    from . import swa_utils
    from .by_rule import ASGD, Adadelta, Adamax, NAdam, RAdam, Rprop
    from .lbfgs import LBFGS

__all__ = [
    "ASGD",
    "LBFGS",
    "SGD",
    "Adadelta",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "NAdam",
    "Optimizer",
    "RAdam",
    "RMSprop",
    "Rprop",
    "lr_scheduler",
    "swa_utils",
]

_LATE_NAMES = dict.fromkeys(("ASGD", "Adadelta", "Adamax", "NAdam", "RAdam", "Rprop"), "by_rule") | {"LBFGS": "lbfgs"}


def __getattr__(name: str) -> Any:
    """Load the rarer optimizers at their first use."""
    return _late_attribute(__name__, name, _LATE_NAMES, ("swa_utils",))


def __dir__() -> list[str]:
    return _late_dir(__name__, _LATE_NAMES, ("swa_utils",))
