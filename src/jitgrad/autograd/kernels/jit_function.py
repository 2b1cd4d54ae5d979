"""`jit_function`: a pair of plain functions over NumPy arrays and numbers, compiled by Numba, as one differentiable op.

The call path is short because everything is decided once per signature (`plan.py`): a look-up by the arguments' Metas and types, the
compiled entry, a tensor and a node. What is out of the common way - views, other layouts, arrays, tuples, mutated inputs, modes -
goes through `general`.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from ..._engine import modes, versions
from ..._engine.node import next_number
from ..._kernels.captures import Read, all_reads, changed
from ..._kernels.user import Argument, forked
from ..._tensor.base import ODD, TensorBase, wrap
from ..._tensor.elementwise import recording
from ..._tensor.views import mark_inference
from .arguments import bind, prepare, signature_key
from .contract import Contract, Function, global_name, python_function
from .mutation import before_writing, write_back
from .outcome import apart, number
from .plan import Plan
from .recording import note, note_unlinked, record
from .tangents import call_dual

NUMBERS: Final = frozenset((float, int, bool, str, type(None), np.float64, np.float32, np.int64, np.bool_))
_LIMIT: Final = 10_000
_ALL: Final[weakref.WeakSet[JitFunction]] = weakref.WeakSet()


def _after_fork() -> None:
    """In a child: no lock is held by a thread that stayed behind, and what the parent compiled for several threads is compiled anew, for one."""
    for function in list(_ALL):
        function._guard = threading.RLock()
        if forked():
            function.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class JitFunction:
    """A user's kernel as an op; made by `jit_function`.

    Call it with tensors, NumPy arrays (constants), numbers, bools, strings and tuples of those. `py_func` is the forward as plain Python.
    """

    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        self._count = len(contract.names)
        self._plans: dict[tuple[Any, ...], Plan] = {}  # by Metas and types: calls seen before
        self._signatures: dict[tuple[Any, ...], Plan] = {}  # by dtypes, ranks and types: what is compiled
        self._watched: list[Read] | None = None
        self._guard = threading.RLock()
        _ALL.add(self)
        self.__name__ = self.name = contract.name
        self.__doc__ = contract.python.__doc__
        self.__module__ = contract.python.__module__
        self.__wrapped__ = self.py_func = contract.python

    def __repr__(self) -> str:
        return f"<jit_function {self.name}({', '.join(self._contract.names)})>"

    def __reduce__(self) -> str:
        return global_name(self)

    # ---- declaration
    def backward(self, function: Function) -> Function:
        """Decorator: the backward, called with the gradients of the outputs, the inputs, and all that forward returned."""
        self._contract.declare_backward(function)
        self.forget()
        return function

    def double_backward(self, function: Function) -> Function:
        """Decorator: the backward in jitgrad ops, called with tensors: gradients, inputs, outputs. Used where a graph of the backward is wanted."""
        if not callable(function):
            raise TypeError(f"double_backward must be a function, not {type(function).__name__}")
        self._contract.rule = function
        self.forget()
        return function

    def forget(self) -> None:
        """Drop everything compiled: the next call starts from the functions as they are then."""
        with self._guard:
            self._plans, self._signatures, self._watched = {}, {}, None

    # ---- calls
    def __call__(self, *args: Any, **named: Any) -> Any:
        """Call with arguments by position or name; returns the output, or a tuple of the mutated inputs and outputs."""
        if named or len(args) != self._count:
            args = bind(self._contract, args, named)
        plan = self._plans.get(
            tuple(
                [x.meta if isinstance(x, TensorBase) and (x.rare is None or x.rare is ODD) else type(x) for x in args]
            )
        )
        if plan is None or modes.SPECIAL or (self._watched and changed(self._watched)):
            return self.general(args)
        place = plan.only
        if place < 0:
            return self.several(plan, args)
        x = args[place]
        call = [*args]
        call[place] = x.array
        result = TensorBase.kind()
        result.array = out = plan.entry(*call)
        result.meta = m = plan.metas.get(out.shape) or plan.output_meta(out.shape)
        result.vc = result.rare = None
        edge = x.fn
        if edge is None or (modes.NO_GRAD and not modes.grad_enabled()):
            result.fn = None
            return result
        result.fn = node = plan.node()
        node.e0 = edge
        node.plan = plan
        node.values = (*call, out) if plan.blank is None else (*call, plan.blank)
        node.meta = m
        node.epoch = versions.WRITES
        node.number = next_number()
        node.buf = node.vc = node.rare = node.counters = None
        return result

    def several(self, plan: Plan, args: tuple[Any, ...]) -> Any:
        """A call seen before, with any number of plain tensors, or of outputs."""
        call = [*args]
        for place in plan.tensors:
            call[place] = args[place].array
        found = plan.entry(*call)
        kept = found if plan.forward.several else (found,)
        for place, given in plan.narrow:
            kept = (*kept[:place], number(kept[place], given), *kept[place + 1 :])
        if plan.many:
            kept = apart(kept)
        if plan.outs > 1:
            results = [wrap(plan.output(place, kept[place])) for place in range(plan.outs)]
            if recording():
                record(plan, args, call, kept, results)
            return tuple(results)
        out = np.array(kept[0], plan.dtype) if plan.number else kept[0]
        result = TensorBase.kind()
        result.array = out
        result.meta = plan.metas.get(out.shape) or plan.output_meta(out.shape)
        result.fn = result.vc = result.rare = None
        edges = [args[place].fn if type(args[place]) not in NUMBERS else None for place in plan.diff]
        if (modes.NO_GRAD and not modes.grad_enabled()) or all([edge is None for edge in edges]):  # noqa: C419  (faster than a generator)
            return result
        result.fn = node = plan.node()
        node.set_edges(edges)
        node.plan = plan
        node.values = plan.values(call, kept)
        node.counters = None
        node.meta = result.meta
        node.epoch = versions.WRITES
        node.number = next_number()
        node.buf = node.vc = node.rare = None
        for place in plan.loose:
            note(node, place, args[place])
        if None in edges:
            note_unlinked(node, args, edges)
        return result

    def general(self, args: tuple[Any, ...]) -> Any:
        """A call in full."""
        if modes.SPECIAL and modes.LOCAL.level is not None:
            return call_dual(self, args)
        call = [prepare(self._contract, x, place) for place, x in enumerate(args)]
        plan = self.plan(args, call)
        contract = self._contract
        for place in contract.mutates:
            before_writing(self.name, args, place)
            call[place] = np.array(args[place].array, order="C", copy=not args[place].array.flags.c_contiguous)
        outs, kept = plan.run(call)
        tracer = modes.tracer()
        noted = None if tracer is None else tracer.kernel_called(plan, args, call, outs, kept)
        for place in contract.mutates:
            write_back(args[place], call[place])
        results = [*(args[place] for place in contract.mutates), *(wrap(out) for out in outs)]
        if modes.SPECIAL and modes.LOCAL.inference:
            for result in results[len(contract.mutates) :]:
                mark_inference(result)
        elif recording():
            record(plan, args, call, kept, results)
        if noted is not None:
            tracer.kernel_linked(noted, results)
        return results[0] if len(results) == 1 else tuple(results) if results else None

    def plan(self, args: tuple[Any, ...], call: list[Any]) -> Plan:
        """The plan for these arguments, made and kept when there is none yet."""
        with self._guard:
            if self._watched and changed(self._watched):
                self.forget()
            if self._watched is None:
                back = (
                    [python_function(self._contract.backward, "backward")]
                    if self._contract.backward is not None
                    else []
                )
                self._watched = all_reads(self.py_func, *back)
            key = signature_key(args, call)
            plan = self._signatures.get(key)
            if plan is None:
                plan = self._signatures[key] = self.make(args, call)
            if plan.simple and all(type(x) in NUMBERS or is_plain(x) for x in args):
                if len(self._plans) >= _LIMIT:
                    self._plans.clear()
                self._plans[tuple([x.meta if isinstance(x, TensorBase) else type(x) for x in args])] = plan
            return plan

    def make(self, args: tuple[Any, ...], call: list[Any]) -> Plan:
        """Compile forward for these arguments."""
        names = self._contract.names
        arguments = tuple(
            Argument(name, x.dtype, x.ndim) if isinstance(x, np.ndarray) else Argument(name, value=x)
            for name, x in zip(names, call, strict=True)
        )
        floating = tuple(place for place, x in enumerate(call) if isinstance(x, np.ndarray) and x.dtype.kind == "f")
        tensors = tuple(place for place, x in enumerate(args) if isinstance(x, TensorBase))
        return Plan(self._contract, arguments, floating, tensors)


def is_plain(x: Any) -> bool:
    """Whether an argument is a C-contiguous tensor whose Meta says all that a call depends on."""
    return isinstance(x, TensorBase) and (x.rare is None or x.rare is ODD) and x.array.flags.c_contiguous


def jit_function(
    forward: Any = None,
    backward: Any = None,
    *,
    outputs: int | None = None,
    name: str | None = None,
    differentiable: Sequence[str] | None = None,
    mutates: Sequence[str] = (),
) -> Any:
    """Make a differentiable op of a function over NumPy arrays and numbers; as a decorator, or with its backward.

    forward: a plain function, or one made by `numba.njit`. It gets C-contiguous arrays, which it may not write to, and returns its output(s), then
    any values that backward wants back. backward: called with a gradient per floating-point output, the inputs, and all that
    forward returned; returns a gradient per floating-point array input, in order. Its gradients are C-contiguous and may be written to; a last
    parameter called `needs` receives a bool per gradient wanted. outputs: how many of the results are outputs (1). name: of the
    node. differentiable: the inputs that get a gradient, where not all floating-point arrays do. mutates: the inputs that forward
    writes to; they are returned first, and their history goes on as after an in-place op.

    Without a backward the op is forward-only. Raises KernelError with a line of the user's source for what can't be compiled
    or breaks the contract.

    >>> import numpy as np, jitgrad
    >>> @jitgrad.jit_function
    ... def scan(x, decay):
    ...     y = np.empty_like(x)
    ...     acc = 0.0
    ...     for i in range(x.size):
    ...         acc = decay * acc + x[i]
    ...         y[i] = acc
    ...     return y
    >>> @scan.backward
    ... def scan_backward(grad, x, decay, y):
    ...     g = np.empty_like(x)
    ...     acc = 0.0
    ...     for i in range(x.size - 1, -1, -1):
    ...         acc = decay * acc + grad[i]
    ...         g[i] = acc
    ...     return g
    >>> x = jitgrad.ones(3, requires_grad=True)
    >>> scan(x, 0.5).sum().backward()
    >>> x.grad
    tensor([1.7500, 1.5000, 1.0000])
    """

    def make(function: Any) -> JitFunction:
        made = JitFunction(Contract(function, outputs, name, differentiable, mutates))
        if backward is not None:
            made.backward(backward)
        return made

    return make if forward is None else make(forward)


__all__ = ["JitFunction", "jit_function"]
