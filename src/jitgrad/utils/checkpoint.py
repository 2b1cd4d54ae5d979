"""Checkpoints: what a part of a model saves for its backward is dropped, and computed once more when the backward asks for it.

Two variants. The reentrant one is a custom Function: forward runs without recording, backward runs it once more with recording and
then a backward of its own. The other one records as usual, with hooks on saved tensors that keep a place instead of the tensor; the first
place that is asked for runs the function again, up to the last tensor that is needed, and fills them all.

Places belong to the innermost checkpoint only, and its inputs are saved tensors of the checkpoint around it: to fill a place all
checkpoints around it are run again, from the outside in, each once per backward. A tensor that was computed again is let go as soon
as it has been handed out, also where the graph is retained.
"""

from __future__ import annotations

import contextlib
import os
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from .._engine import modes
from .._engine.node import target
from .._tensor import Tensor
from .._tensor.random import fork_rng, get_rng_state, set_rng_state
from ..autograd import Function, backward, enable_grad
from ..autograd.function import FunctionCtx
from ..autograd.graph import saved_tensors_hooks

__all__ = [
    "CheckpointError",
    "CheckpointFunction",
    "check_backward_validity",
    "checkpoint",
    "checkpoint_sequential",
    "detach_variable",
    "noop_context_fn",
    "set_checkpoint_debug_enabled",
    "set_checkpoint_early_stop",
]

Contexts = tuple[AbstractContextManager[Any, bool | None], AbstractContextManager[Any, bool | None]]

_PACKAGE: Final = os.path.dirname(os.path.dirname(__file__)) + os.sep
_NOWHERE: Final = object()  # stands for the node that saves a checkpoint's inputs: there is none
_debug: bool | None = None
_early_stop: bool | None = None

_TIP: Final = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to\n`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
    "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable checkpoint-debug mode globally.\n"
)
_LOGS: Final = (
    "An error happened while unpacking tensors; dumping logs of latest computation\n"
    "because you passed `debug=True` to `torch.utils.checkpoint.checkpoint()`.\n\n"
    "Tensors saved during the original forward:\n\n{forward}\n\nTensors saved during recomputation:\n\n{again}\n\n"
    "ERROR: Detected non-determinism while running activation checkpointing\n\n{error}"
)


class CheckpointError(RuntimeError):
    """The function did something else when it was run again, or a tensor was asked for twice."""


class _Enough(Exception):  # not an error: ends a recomputation
    """All tensors that are needed have been computed again."""


def noop_context_fn() -> Contexts:
    """Two contexts that do nothing."""
    return contextlib.nullcontext(), contextlib.nullcontext()


@contextlib.contextmanager
def set_checkpoint_early_stop(enable: bool) -> Iterator[None]:
    """Checkpoints whose forward runs inside do, or don't, stop running again once they have all that is needed."""
    global _early_stop
    before, _early_stop = _early_stop, enable
    try:
        yield
    finally:
        _early_stop = before


@contextlib.contextmanager
def set_checkpoint_debug_enabled(enabled: bool | None) -> Iterator[None]:
    """Overrules the argument `debug` of checkpoints inside; with None it does not."""
    global _debug
    before, _debug = _debug, enabled
    try:
        yield
    finally:
        _debug = before


@contextlib.contextmanager
def _rewound(state: Tensor | None) -> Iterator[None]:
    """Inside, the default generator goes on from `state`, and afterwards from where it was; with None it is left alone."""
    with fork_rng(enabled=state is not None):
        if state is not None:
            set_rng_state(state)
        yield


# ---- reentrant
def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Tensors without their history, taking a gradient where they did; other values as they are. RuntimeError unless it is a tuple."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    return tuple(x.detach().requires_grad_(x.requires_grad) if isinstance(x, Tensor) else x for x in inputs)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no tensor among the inputs takes a gradient."""
    if not any(x.requires_grad for x in inputs if isinstance(x, Tensor)):
        warnings.warn("None of the inputs have requires_grad=True. Gradients will be None", stacklevel=2)


class CheckpointFunction(Function):
    """The reentrant variant; called by `checkpoint`."""

    @staticmethod
    def forward(ctx: Any, run_function: Callable[..., Any], preserve_rng_state: bool, *args: Any) -> Any:
        """Run without recording; keep the arguments and the generator's state."""
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.rng_state = get_rng_state() if preserve_rng_state else None
        ctx.inputs = [None if isinstance(x, Tensor) else x for x in args]
        ctx.tensor_indices = [place for place, x in enumerate(args) if isinstance(x, Tensor)]
        ctx.save_for_backward(*[x for x in args if isinstance(x, Tensor)])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        """Run again with recording, and send the gradients through that."""
        run = modes.LOCAL.run  # None in the accelerated run, which is always one of the whole graph
        if run is not None and run.needed is not None:
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an `inputs` parameter to .backward()."
                " To resolve this error, you can either set use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        inputs = list(ctx.inputs)
        for place, x in zip(ctx.tensor_indices, ctx.saved_tensors, strict=True):
            inputs[place] = x
        with _rewound(ctx.rng_state), enable_grad():
            detached = detach_variable(tuple(inputs))
            outputs = ctx.run_function(*detached)
        if isinstance(outputs, Tensor):
            outputs = (outputs,)
        pairs = [(x, grad) for x, grad in zip(outputs, grads, strict=True) if isinstance(x, Tensor) and x.requires_grad]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        backward([x for x, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *[x.grad if isinstance(x, Tensor) else None for x in detached])


# ---- not reentrant
class _Place:
    """What the graph holds instead of a saved tensor."""

    __slots__ = ("__weakref__",)


class _Recomputation:
    """Tensors computed again for one backward, by place, as far as they have not been handed out."""

    def __init__(self) -> None:
        self.tensors: weakref.WeakKeyDictionary[_Place, Tensor] = weakref.WeakKeyDictionary()
        self.count = 0
        self.log: list[str] = []
        self.inside_forward = False  # the forward was not over, and this run of the function went further than that one had got


class _Checkpoint:
    """One call of the function. Held by the graph through the hooks, and holds the places weakly: what dies with the graph is forgotten."""

    def __init__(self, again: Callable[..., Any], args: tuple[Any, ...], describe: Callable[[Any], Any], early_stop: bool, debug: bool) -> None:
        self.again, self.describe, self.early_stop, self.debug = again, describe, early_stop, debug
        self.args = [None if isinstance(x, Tensor) else x for x in args]
        self.tensor_args = [place for place, x in enumerate(args) if isinstance(x, Tensor)]
        self.saved = FunctionCtx()  # checks versions, and sends the inputs through the hooks of a checkpoint around this one
        self.saved.save_for_backward(*[args[place] for place in self.tensor_args])
        self.saved._keep(_NOWHERE)
        self.places: list[weakref.ref[_Place]] = []
        self.descriptions: list[Any] = []
        self.log: list[str] = []
        self.completed = False
        self.runs: weakref.WeakKeyDictionary[Any, _Recomputation] = weakref.WeakKeyDictionary()

    def pack(self, tensor: Tensor) -> _Place:
        """A place for a tensor that the forward saves."""
        place = _Place()
        self.places.append(weakref.ref(place))
        self.descriptions.append(self.describe(tensor))
        if self.debug:
            self.log.append(_note(tensor))
        return place

    def unpack(self, place: _Place) -> Tensor:
        """The tensor of a place. Outside of a backward everything is computed again for it alone."""
        run = modes.LOCAL.run
        known = None if run is None else self.runs.get(run)
        if known is None:
            known = self.recompute()
            if run is not None:
                self.runs[run] = known
        if place not in known.tensors:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. If you are calling "
                "ctx.saved_tensors in backward, make sure to do so only once. Otherwise please open an issue with details on your use case."
            )
        return known.tensors.pop(place)

    def recompute(self) -> _Recomputation:
        """Run the function again and check that it saved the same."""
        new = _Recomputation()
        args = list(self.args)
        for index, tensor in zip(self.tensor_args, self.saved.saved_tensors, strict=True):
            args[index] = tensor
        try:
            with (
                saved_tensors_hooks(lambda tensor: self.refill(new, tensor), lambda tensor: tensor),
                enable_grad(),
                contextlib.suppress(_Enough),
            ):
                self.again(*args)
            self.check(new)
        except CheckpointError as error:
            if not self.debug:
                raise
            logs = _LOGS.format(forward="\n".join(self.log), again="\n".join(new.log), error=error)
            raise CheckpointError(logs) from error
        return new

    def refill(self, new: _Recomputation, tensor: Tensor) -> Tensor:
        """Note a tensor that is saved again. It is returned: a backward in the function may go through the new graph."""
        found: Tensor = tensor.detach() if tensor.requires_grad else tensor
        index = new.count
        if index >= len(self.places):
            if self.early_stop:
                raise _Enough
            if not self.completed:
                new.inside_forward = True
                return found
            raise CheckpointError(
                f"torch.utils.checkpoint: trying to save more tensors during recomputation than during the original forward pass.\n{_TIP}"
            )
        new.count += 1
        if self.debug:
            new.log.append(_note(tensor))
        place = self.places[index]()
        if place is not None:  # else that part of the graph is gone
            new.tensors[place] = found
        if self.early_stop and new.count == len(self.places):
            raise _Enough
        return found

    def check(self, new: _Recomputation) -> None:
        """Raise CheckpointError unless as many tensors were saved, of the same shapes and dtypes."""
        if new.inside_forward:
            return
        if new.count != len(self.places):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and recomputation.\n"
                f"Number of tensors saved during forward: {len(self.places)}\nNumber of tensors saved during recomputation: {new.count}.\n{_TIP}"
            )
        different = ""
        for index, (reference, before) in enumerate(zip(self.places, self.descriptions, strict=True)):
            place = reference()
            if place is not None and before != (now := self.describe(new.tensors[place])):
                different += f"tensor at position {index}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than during the forward pass.\n"
                f"{different}.\n{_TIP}"
            )


def _note(tensor: Tensor) -> str:
    """A saved tensor and the lines of the user's program that had it saved."""
    lines = [f"  {x.filename}:{x.lineno}:{x.name}" for x in traceback.extract_stack() if not x.filename.startswith(_PACKAGE)]
    return "\n".join([f"{tensor.dtype} {tuple(tensor.shape)}", *lines])


_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "default": lambda x: {"shape": x.shape, "dtype": x.dtype, "device": x.device},
    "none": lambda _: None,
}


def _record(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], preserve: bool, context_fn: Callable[[], Contexts],
            determinism_check: str, debug: bool, early_stop: bool) -> Any:  # fmt: skip
    """Run the function with places instead of saved tensors."""
    debug = debug if _debug is None else _debug
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    forward_context, again_context = context_fn()
    state = get_rng_state() if preserve else None
    if not modes.grad_enabled():
        return function(*args, **named)

    def again(*args: Any) -> None:
        with _rewound(state), again_context:
            function(*args, **named)

    this = _Checkpoint(again, args, _CHECKS[determinism_check], early_stop if _early_stop is None else _early_stop, debug)
    with saved_tensors_hooks(this.pack, this.unpack), forward_context:
        result = function(*args, **named)
        this.completed = True
        _show_run(result)
        return result
    raise RuntimeError(
        "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception raised during the checkpointed forward. "
        "This is not supported because checkpoint cannot return a value for a failed forward."
    )


def _show_run(result: Any) -> None:
    """Let no accelerated run go below the results: it would not say which backward it is, and a custom Function's node lets it pass."""
    for x in result if isinstance(result, tuple | list) else (result,):
        if isinstance(x, Tensor) and x.fn is not None and not x.is_leaf:
            target(x.fn)[0]._extras()


# ---- both
def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, context_fn: Callable[[], Contexts] = noop_context_fn,
               determinism_check: str = "default", debug: bool = False, early_stop: bool = True, preserve_rng_state: bool = True,
               **kwargs: Any) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, saving its inputs alone; the rest is computed once more in the backward.

    Random numbers are the same the second time, unless `preserve_rng_state` is False. `use_reentrant` should be given, and be False: the
    reentrant variant takes no keyword arguments, works in a `backward()` of the whole graph only, and needs an input that takes a
    gradient. The other arguments are for the variant that is not reentrant: `context_fn()` returns contexts for the first and the
    second run, `determinism_check` is "default" (shapes and dtypes are compared) or "none", with `debug` an error shows what was
    saved where, with `early_stop` the second run ends with the last tensor that is needed.

    Raises CheckpointError in the backward if the second run saved something else.

    >>> import jitgrad
    >>> x = jitgrad.ones(2, requires_grad=True)
    >>> jitgrad.utils.checkpoint.checkpoint(lambda x: x.exp().log(), x, use_reentrant=False).sum().backward()
    >>> x.grad
    tensor([1., 1.])
    """
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in PyTorch 2.9, calling checkpoint "
            "without use_reentrant will raise an exception. use_reentrant=False is recommended, but if you need to preserve the current default "
            "behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if not use_reentrant:
        return _record(function, args, kwargs, preserve_rng_state, context_fn, determinism_check, debug, early_stop)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    if context_fn is not noop_context_fn or debug is not False:
        raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
    return CheckpointFunction.apply(function, preserve_rng_state, *args)


def checkpoint_sequential(functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, preserve_rng_state: bool = True,
                          **kwargs: Any) -> Any:  # fmt: skip
    """Call functions (or the modules of a `Sequential`) one after the other, in `segments` checkpoints; the last one is run as usual."""
    if use_reentrant is None:
        warnings.warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed explicitly. In version 2.9 we will raise "
            "an exception if use_reentrant is not passed. use_reentrant=False is recommended, but if you need to preserve the current default "
            "behavior, you can pass use_reentrant=True. Refer to docs for more details on the differences between the two variants.",
            stacklevel=2,
        )
        use_reentrant = True
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    functions = list(functions)
    length = len(functions) // segments
    end = 0
    for start in range(0, length * (segments - 1), length):
        end = start + length
        part = _chain(functions[start:end])
        input = checkpoint(part, input, use_reentrant=use_reentrant, preserve_rng_state=preserve_rng_state)
    return _chain(functions[end:])(input)


def _chain(functions: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def run(input: Any) -> Any:
        for function in functions:
            input = function(input)
        return input

    return run
