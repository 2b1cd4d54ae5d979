"""Several backwards that share what was computed again."""

from __future__ import annotations

import threading
from types import TracebackType


class _Current(threading.local):
    group: GraphExecGroup | None = None


_CURRENT = _Current()


class GraphExecGroup:
    """Inside, a checkpoint that is not reentrant runs again at most once, however many backwards come to it.

    These have to use different parts of the graph: each tensor that is computed again is handed out once. RuntimeError where
    the contexts are nested.

    >>> import jitgrad
    >>> from jitgrad.utils import checkpoint
    >>> x, runs = jitgrad.ones(2, requires_grad=True), []
    >>> def twice(x):
    ...     runs.append(1)
    ...     y = x.exp()
    ...     return y, y.exp()
    >>> y, z = checkpoint.checkpoint(twice, x, use_reentrant=False)
    >>> with checkpoint.GraphExecGroup():
    ...     (grad,) = jitgrad.autograd.grad(z, y, jitgrad.ones(2))
    ...     (grad,) = jitgrad.autograd.grad(y, x, grad)
    >>> len(runs)
    2
    """

    def __enter__(self) -> GraphExecGroup:
        if _CURRENT.group is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_CURRENT.group}")
        _CURRENT.group = self
        return self

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        _CURRENT.group = None

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _CURRENT.group
