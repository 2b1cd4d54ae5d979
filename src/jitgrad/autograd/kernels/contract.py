"""The contract of a `jit_function`: what is known of a pair of functions before they are called."""

from __future__ import annotations

import inspect
import sys
import types
from collections.abc import Callable, Sequence
from typing import Any

from ..._core.errors import KernelError
from ..._kernels.captures import parameters_read, plain_function
from ..._kernels.reasons import definition
from ..._ops.derived import RESULT
from ..._ops.kinds import camel

Function = Callable[..., Any]


def python_function(function: Any, role: str) -> Any:
    """The Python function behind what the user gave. TypeError for anything else, and for methods, whose `self` no kernel can read."""
    plain = plain_function(function)
    if plain is None:
        what = (
            f"the method {function.__qualname__}" if isinstance(function, types.MethodType) else type(function).__name__
        )
        raise TypeError(f"{role} must be a Python function or one made by numba.njit, not {what}")
    owner = plain.__qualname__.rpartition(".")[0]
    if owner and not owner.endswith("<locals>") and plain.__code__.co_varnames[:1] in (("self",), ("cls",)):
        raise TypeError(
            f"{role} must be a function, not the method {plain.__qualname__}: define it outside of the class, and hand over what it reads "
            f"of {plain.__code__.co_varnames[0]}{definition(plain)}"
        )
    return plain


def global_name(op: Any) -> str:
    """What an op is called in its module, by which pickle finds it again; its qualified name where the module has it under no name."""
    scope: dict[str, Any] = getattr(sys.modules.get(op.__module__), "__dict__", {})
    return next((name for name, value in scope.items() if value is op), op.__wrapped__.__qualname__)


def parameters_of(function: Any) -> tuple[inspect.Parameter, ...]:
    """The parameters of a kernel. TypeError where it takes a variable number of arguments."""
    parameters = tuple(inspect.signature(function).parameters.values())
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TypeError(
                f"{function.__name__} takes a variable number of arguments (*{parameter.name}): name them{definition(function)}"
            )
    return parameters


class Contract:
    """The declared side of a `jit_function`.

    `names` are the parameters of forward, `mutates` the positions it may write to, `differentiable` the positions that may get a
    gradient (None: all floating-point arrays), `outputs` how many of the results are outputs (None: one, or none beside mutated inputs).
    """

    def __init__(
        self,
        forward: Any,
        outputs: int | None,
        name: str | None,
        differentiable: Sequence[str] | None,
        mutates: Sequence[str],
    ) -> None:
        self.forward = forward
        self.python = python_function(forward, "forward")
        parameters = parameters_of(self.python)
        self.names = tuple(parameter.name for parameter in parameters)
        self.defaults = {
            parameter.name: parameter.default for parameter in parameters if parameter.default is not parameter.empty
        }
        self.name = name or self.python.__name__
        self.node = camel(self.name.strip("_<>")) + "Backward"
        self.mutates = self.positions(mutates, "mutates")
        self.differentiable = None if differentiable is None else self.positions(differentiable, "differentiable")
        if outputs is not None and outputs < (0 if mutates else 1):
            raise ValueError(f"outputs must be at least 1, got {outputs}")
        self.outputs = outputs
        self.backward: Any = None
        self.rule: Function | None = None
        self.wants_needs = False
        self.reads: frozenset[int] = frozenset()

    def positions(self, names: Sequence[str], option: str) -> tuple[int, ...]:
        """Positions of parameters. ValueError for a name that is none."""
        names = (names,) if isinstance(names, str) else tuple(names)
        for name in names:
            if name not in self.names:
                raise ValueError(
                    f"{option} names {name!r}, but the parameters of {self.name} are {', '.join(self.names)}"
                )
        return tuple(self.names.index(name) for name in names)

    def declare_backward(self, function: Any) -> None:
        """Take a backward: it must have a parameter per gradient, per input and per result, and may have `needs`."""
        plain = python_function(function, "backward")
        parameters = parameters_of(plain)
        self.wants_needs = bool(parameters) and parameters[-1].name == "needs"
        count = len(parameters) - self.wants_needs
        least = len(self.names) + (self.outputs or 1)
        if count < least:
            raise TypeError(
                f"{plain.__name__} takes {count} arguments, but a backward is called with the gradients of the outputs, then the inputs "
                f"({', '.join(self.names)}), then the results of {self.name}: at least {least + 1}{definition(plain)}"
            )
        self.backward = function

    def grads_first(self, grads: int, results: int) -> tuple[str, ...]:
        """The names of backward's parameters, `needs` apart. KernelError where their number does not fit what forward returned."""
        plain = python_function(self.backward, "backward")
        parameters = [parameter.name for parameter in parameters_of(plain)]
        if self.wants_needs:
            parameters.pop()
        expected = grads + len(self.names) + results
        if len(parameters) != expected:
            raise KernelError(
                f"{plain.__name__} takes {len(parameters)} arguments, but is called with {expected}: {grads} gradient{'s' * (grads != 1)}, "
                f"{len(self.names)} inputs ({', '.join(self.names)}) and {results} result{'s' * (results != 1)} of {self.name}"
                f"{definition(plain)}"
            )
        return tuple(parameters)

    def read_by_backward(self, grads: int, results: int) -> tuple[bool, ...]:
        """For each input and each result whether backward (or the rule for a recorded one) looks at it; the others are not saved."""
        count = len(self.names) + results
        if self.backward is None:
            return (False,) * count
        names = self.grads_first(grads, results)[grads:]
        found = parameters_read(python_function(self.backward, "backward"))
        read = [name in found for name in names]
        if self.rule is not None:  # called with tensors, whose scratch is left out
            read = [True] * count
        return tuple(read)

    def refusal(self) -> str:
        """What is said where a gradient is asked of a forward-only function."""
        return (
            f"{self.name} has no backward, so no gradient can flow through it. Give it one:\n"
            f"    @{self.name}.backward\n"
            f"    def {self.name}_backward(grad, {', '.join(self.names)}, {RESULT}): ...{definition(self.python)}"
        )

    def refusal_forward(self) -> str:
        """What is said where forward mode meets a kernel whose derivative is another kernel."""
        if self.mutates:
            return (
                f"Trying to use forward AD with {self.name} that does not support it because it writes to its inputs."
            )
        return (
            f"Trying to use forward AD with {self.name} that does not support it because its derivative is a kernel, which knows no tangents. Give "
            f"the backward in jitgrad ops as well (another jit_function is one), called with tensors:\n"
            f"    @{self.name}.double_backward\n"
            f"    def {self.name}_rule(grad, {', '.join(self.names)}, {RESULT}): ...{definition(self.python)}"
        )

    def refusal_twice(self) -> str:
        """What is said where a second derivative is asked of a backward that is a kernel."""
        return (
            f"{self.name} can't be differentiated twice: its backward is a kernel, which leaves no graph. Give the backward in jitgrad ops as well "
            f"(another jit_function is one), called with tensors:\n"
            f"    @{self.name}.double_backward\n"
            f"    def {self.name}_rule(grad, {', '.join(self.names)}, {RESULT}): ...{definition(self.python)}"
        )
