"""`checkpoint` and `checkpoint_sequential`: arguments, contexts, the choice of a variant."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any, Final

from ..._engine import modes
from ..._engine.node import target
from ..._tensor import Tensor
from ..._tensor.random import get_rng_state
from ...autograd.graph import saved_tensors_hooks
from .frames import Checkpoint
from .logs import RunLog
from .reentrant import CheckpointFunction
from .settings import Contexts, debug_or, early_stop_or, noop_context_fn, rewound

_CHECKS: Final[dict[str, Callable[[Any], Any]]] = {
    "default": lambda x: {"shape": x.shape, "dtype": x.dtype, "device": x.device},
    "none": lambda _: None,
}


def _record(function: Callable[..., Any], args: tuple[Any, ...], named: dict[str, Any], preserve: bool, context_fn: Callable[[], Contexts],
            determinism_check: str, debug: bool, early_stop: bool) -> Any:  # fmt: skip
    """Run the function with places instead of saved tensors."""
    debug = debug_or(debug)
    if debug and context_fn is not noop_context_fn:
        raise ValueError("debug=True is incompatible with non-default context_fn")
    if determinism_check not in _CHECKS:
        raise ValueError(f"determinism_check should be one of {list(_CHECKS)}, but got {determinism_check}")
    logs = (RunLog(), RunLog()) if debug else None
    forward_context, again_context = context_fn() if logs is None else logs
    state = get_rng_state() if preserve else None
    if not modes.grad_enabled():
        return function(*args, **named)

    def again(*args: Any) -> None:
        with rewound(state), again_context:
            function(*args, **named)

    this = Checkpoint(again, args, _CHECKS[determinism_check], early_stop_or(early_stop), logs)
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


def checkpoint(function: Callable[..., Any], *args: Any, use_reentrant: bool | None = None, context_fn: Callable[[], Contexts] = noop_context_fn,
               determinism_check: str = "default", debug: bool = False, early_stop: bool = True, preserve_rng_state: bool = True,
               **kwargs: Any) -> Any:  # fmt: skip
    """`function(*args, **kwargs)`, saving its inputs alone; the rest is computed once more in the backward.

    Random numbers are the same the second time, unless `preserve_rng_state` is False. `use_reentrant` should be given, and be False: the
    reentrant variant takes no keyword arguments, works in a `backward()` of the whole graph only, and needs an input that takes a
    gradient. The other arguments are for the variant that is not reentrant: `context_fn()` returns contexts for the first and the
    second run, `determinism_check` is "default" (shapes and dtypes are compared) or "none", with `debug` an error shows the ops
    of both runs and what was saved where, with `early_stop` the second run ends with the last tensor that is needed.

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
