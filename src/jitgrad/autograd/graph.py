"""The graph, seen and touched: nodes, edges, hooks over several gradients, hooks on saved tensors."""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .._core.hooks import RemovableHandle
from .._core.late import late_attribute, late_dir
from .._engine import modes, node as nodes
from .._engine.node import target
from .._tensor.base import TensorBase
from .._tensor.edges import GradientEdge, get_gradient_edge
from .._tensor.saved import pop_hooks, push_hooks
from .._tensor.views import edge_of
from ._abstract import Node
from ._mutation import allow_mutation_on_saved_tensors

if TYPE_CHECKING:
    from ._graph.draw import draw
    from ._graph.memory import saved_memory
    from ._graph.storage import save_compressed, save_on_disk
    from ._graph.trace import trace_backward

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "draw",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_compressed",
    "save_on_cpu",
    "save_on_disk",
    "saved_memory",
    "saved_tensors_hooks",
    "set_warn_on_accumulate_grad_stream_mismatch",
    "trace_backward",
]

# Beyond torch: imported when first asked for.
_LATE = {
    "draw": "_graph.draw",
    "save_compressed": "_graph.storage",
    "save_on_disk": "_graph.storage",
    "saved_memory": "_graph.memory",
    "trace_backward": "_graph.trace",
}


def __getattr__(name: str) -> Any:
    """Import one of the tools at its first use."""
    return late_attribute(__name__, name, _LATE)


def __dir__() -> list[str]:
    return late_dir(__name__, _LATE)


def increment_version(tensor: Any) -> None:
    """Count a write to a tensor, or to each of several, that the library did not see. Inference tensors have no count."""
    one = isinstance(tensor, TensorBase)
    if not one and not isinstance(tensor, Iterable):
        raise RuntimeError("increment_version expect a Iterable[Tensor] as input")
    for x in (tensor,) if one else tensor:
        if not x.is_inference():
            x._bump()


def set_warn_on_accumulate_grad_stream_mismatch(enabled: bool) -> None:
    """Accepted for compatibility: there are no streams."""


class saved_tensors_hooks:
    """What ops in the block save goes through `pack_hook`; their backward gets it back through `unpack_hook`.

    The innermost pair counts. `unpack_hook(pack_hook(x))` must have the value, shape and dtype of x; a pack hook must not write to x.

    >>> import jitgrad
    >>> x = jitgrad.ones(2, requires_grad=True)
    >>> with jitgrad.autograd.graph.saved_tensors_hooks(lambda t: t.numpy(force=True), jitgrad.from_numpy):
    ...     y = (x * x).sum()
    >>> y.backward()
    >>> x.grad
    tensor([2., 2.])
    """

    def __init__(self, pack_hook: Callable[[Any], Any], unpack_hook: Callable[[Any], Any]) -> None:
        self.pack_hook = pack_hook
        self.unpack_hook = unpack_hook

    def __enter__(self) -> None:
        push_hooks(self.pack_hook, self.unpack_hook)

    def __exit__(self, *args: object) -> None:
        pop_hooks()


class save_on_cpu(saved_tensors_hooks):
    """Accepted for compatibility: all tensors are on the CPU already."""

    def __init__(self, pin_memory: bool = False, device_type: str = "cuda") -> None:
        super().__init__(lambda tensor: (tensor.device, tensor.cpu()), lambda packed: packed[1].to(packed[0]))


@contextlib.contextmanager
def disable_saved_tensors_hooks(error_message: str) -> Iterator[None]:
    """Inside, setting hooks on saved tensors is a RuntimeError with this message."""
    if modes.LOCAL.saved_hooks:
        raise RuntimeError(error_message)
    before, modes.LOCAL.saved_hooks_disabled = modes.LOCAL.saved_hooks_disabled, error_message
    try:
        yield
    finally:
        modes.LOCAL.saved_hooks_disabled = before


class _MultiHandle(RemovableHandle):
    """Removes several hooks."""

    def __init__(self, handles: tuple[RemovableHandle, ...]) -> None:
        self.handles = handles

    def remove(self) -> None:
        """Remove them all."""
        for handle in self.handles:
            handle.remove()

    def __getstate__(self) -> Any:
        return self.handles

    def __setstate__(self, state: Any) -> None:
        self.handles = state


def register_multi_grad_hook(tensors: Sequence[Any], fn: Callable[[Any], Any], *, mode: str = "all") -> RemovableHandle:
    """Call `fn(grads)` in a backward once the gradients of all tensors are there, or with `mode="any"` `fn(grad)` at the first.

    Tensors that the backward does not come to are not waited for; their place is None.
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    if mode == "any":
        first = _First(fn)
        hook = functools.wraps(fn)(functools.partial(first))
        return _MultiHandle(tuple(x.register_hook(hook) for x in tensors if x.requires_grad))
    edges = [edge_of(x) for x in tensors]
    if any(edge is None for edge in edges):
        raise AssertionError("Expected gradient function to be set")
    together = _Together([target(edge)[0] for edge in edges], fn)
    return _MultiHandle(tuple(x.register_hook(functools.partial(together, place)) for place, x in enumerate(tensors)))


def _get_grad_fn_or_grad_acc(t: Any) -> nodes.Node:
    """The node that a tensor's gradient comes to: `grad_fn`, or that of a leaf. AssertionError where there is none."""
    edge = edge_of(t)
    if edge is None:
        raise AssertionError("Expected gradient function to be set")
    return target(edge)[0].shown()


class _First:
    """Calls a hook once per backward."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        self.function = function
        self.seen: weakref.WeakSet[Any] = weakref.WeakSet()  # several threads may run a backward at once
        self.guard = threading.Lock()

    def __call__(self, grad: Any) -> None:
        run = modes.LOCAL.run
        with self.guard:
            again = run in self.seen
            self.seen.add(run)
        if not again:
            self.function(grad)


class _Together:
    """Collects gradients per backward and calls a hook with all of them."""

    def __init__(self, nodes: list[nodes.Node], function: Callable[[Any], Any]) -> None:
        self.nodes, self.function = nodes, function
        self.runs: weakref.WeakKeyDictionary[Any, tuple[int, list[Any]]] = weakref.WeakKeyDictionary()
        self.guard = threading.Lock()

    def __call__(self, place: int, grad: Any) -> None:
        run = modes.LOCAL.run
        with self.guard:
            if run not in self.runs:
                self.runs[run] = (sum(node in run.waiting and run.executes(node) for node in self.nodes), [None] * len(self.nodes))
            missing, grads = self.runs[run]
            grads[place] = grad
            self.runs[run] = (missing - 1, grads)
            if missing == 1:
                del self.runs[run]
        if missing == 1:
            self.function(grads)
