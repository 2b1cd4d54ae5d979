"""Selective checkpoints: a policy says op by op what is kept and what is computed again.

Two contexts that share a store. In the first run each call asks the policy and notes the arrays of what is to be kept, under the op's name
and the number of the call; in the second run such a call takes them from there, and everything about it but the computation happens again.
"""

from __future__ import annotations

import enum
from collections import defaultdict
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Final

from ..._engine.versions import Version
from ..._tensor.aten import OpOverload, OpOverloadPacket, overload_for
from ..._tensor.base import version_of
from ..._tensor.interception import Interceptor, call_and_show, intercept, is_replayable, replay
from ..._tensor.invoke import run_op
from .settings import Contexts

Policy = Callable[..., Any]
_RECOMPUTE: Final = object()
_CONSUMED: Final = object()
_MISMATCH: Final = (
    "This can happen if the operations in the checkpointed region are nondeterministic or depend on global state that changed between forward and "
    "backward."
)


class CheckpointPolicy(enum.Enum):
    """What a policy says of a call: keep its result, or compute it again. `MUST` and `PREFER`, and where it is kept, make no difference here."""

    MUST_SAVE = 0
    PREFER_SAVE = 1
    MUST_RECOMPUTE = 2
    PREFER_RECOMPUTE = 3
    MUST_CPU_OFFLOAD = 4
    PREFER_CPU_OFFLOAD = 5


_KEPT: Final = (CheckpointPolicy.MUST_SAVE, CheckpointPolicy.PREFER_SAVE, CheckpointPolicy.MUST_CPU_OFFLOAD, CheckpointPolicy.PREFER_CPU_OFFLOAD)


class SelectiveCheckpointContext:
    """What a policy is told besides the call: `op_output`, its result. `is_recompute` is False: policies are asked in the first run only."""

    def __init__(self, *, is_recompute: bool, op_output: Any = None) -> None:
        self.is_recompute = is_recompute
        self.op_output = op_output


class _Kept:
    """The arrays of a call, and the counters of writes to them."""

    def __init__(self, outs: Any, result: Any) -> None:
        self.outs = outs
        results = result if isinstance(result, tuple | list) else (result,)
        self.versions: list[tuple[Version, int]] = []
        for x in results:
            version = version_of(x)
            self.versions.append((version, version.count))

    def written_to(self) -> bool:
        return any(version.count != count for version, count in self.versions)


Store = dict[OpOverload, dict[int, Any]]


class _Interception(AbstractContextManager[None]):
    """Numbers the calls of each op; nested in another one, it alone is asked."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.counts: defaultdict[OpOverload, int] = defaultdict(int)
        self.outer: Interceptor | None = None

    def __enter__(self) -> None:
        self.counts.clear()
        self.outer = intercept(self.call)

    def __exit__(self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None) -> None:
        intercept(self.outer)
        self.outer = None

    def next_index(self, overload: OpOverload) -> int:
        self.counts[overload] += 1
        return self.counts[overload] - 1

    def call(self, op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        raise NotImplementedError


class _First(_Interception):
    """Asks the policy and keeps."""

    def __init__(self, store: Store, policy: Policy) -> None:
        super().__init__(store)
        self.policy = policy

    def call(self, op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        if not is_replayable(op):
            return run_op(op, inputs, statics)
        result, outs = call_and_show(op, inputs, statics)
        overload = overload_for(op, inputs)
        outer = intercept(None)  # ops that the policy calls are its own
        try:
            decision = self.policy(SelectiveCheckpointContext(is_recompute=False, op_output=result), overload, *inputs, *statics)
        finally:
            intercept(outer)
        keep = decision if isinstance(decision, bool) else decision in _KEPT
        self.store.setdefault(overload, {})[self.next_index(overload)] = _Kept(outs, result) if keep else _RECOMPUTE
        return result


class _Second(_Interception):
    """Takes what was kept."""

    def __init__(self, store: Store, allow_mutation: bool) -> None:
        super().__init__(store)
        self.allow_mutation = allow_mutation

    def call(self, op: Any, inputs: tuple[Any, ...], statics: tuple[Any, ...]) -> Any:
        if not is_replayable(op):
            return run_op(op, inputs, statics)
        overload = overload_for(op, inputs)
        index = self.next_index(overload)
        entries = self.store.get(overload)
        if entries is None:
            raise RuntimeError(f"{overload} encountered during backward but not found in storage. {_MISMATCH}")
        entry = entries.get(index)
        if entry is None:
            raise RuntimeError(f"{overload} invocation index {index} encountered during backward but not found in storage. {_MISMATCH}")
        if entry is _CONSUMED:
            raise RuntimeError(
                "Trying to backward an extra time. You are only allowed to backward once on any region computed under selective activation "
                "checkpoint."
            )
        if entry is _RECOMPUTE:
            return run_op(op, inputs, statics)
        entries[index] = _CONSUMED
        if not self.allow_mutation and entry.written_to():
            raise RuntimeError("Tensor cached during selective activation checkpoint has been mutated")
        return replay(op, inputs, statics, entry.outs)


def create_selective_checkpoint_contexts(policy_fn_or_list: Policy | list[Any], allow_cache_entry_mutation: bool = False) -> Contexts:
    """Contexts for the two runs of a checkpoint in which some results are kept; `functools.partial` of it is a `context_fn`.

    The policy is called as `policy(ctx, op, *args)` after each call of an op (`jitgrad.ops.aten.mm.default` and so on), and says by a
    `CheckpointPolicy`, or True for keeping, what becomes of its result; a list names the ops whose results are kept. Views are always
    made anew. A kept result that was written to is an error in the backward unless `allow_cache_entry_mutation`, and a second backward
    through the region is one too.

    Raises ValueError for a list with something else than ops, TypeError for what is neither.

    >>> import functools, jitgrad
    >>> from jitgrad.utils.checkpoint import checkpoint
    >>> keep = functools.partial(create_selective_checkpoint_contexts, [jitgrad.ops.aten.mm.default])
    >>> x = jitgrad.ones(2, 2, requires_grad=True)
    >>> checkpoint(lambda x: x.mm(x).exp().sum(), x, use_reentrant=False, context_fn=keep).backward()
    """
    if isinstance(policy_fn_or_list, list):
        listed = [_checked(op) for op in policy_fn_or_list]

        def policy(ctx: SelectiveCheckpointContext, op: OpOverload, *args: Any) -> CheckpointPolicy:
            return CheckpointPolicy.MUST_SAVE if op in listed else CheckpointPolicy.PREFER_RECOMPUTE

    elif callable(policy_fn_or_list):
        policy = policy_fn_or_list
    else:
        raise TypeError("policy_fn_or_list must be either a function or a list of ops.")
    store: Store = {}
    return _First(store, policy), _Second(store, allow_cache_entry_mutation)


def _checked(op: Any) -> OpOverload:
    if isinstance(op, OpOverload):
        return op
    more = ""
    if isinstance(op, OpOverloadPacket):
        more = (
            "Please update the OpOverloadPacket to a specific OpOverload. For example, if you have `torch.ops.aten.mm`, change it to "
            "`torch.ops.aten.mm.default`."
        )
    raise ValueError(f"Expected op in `op_list` to be an OpOverload but got: {op} of type {type(op)}. {more}")


__all__ = ["CheckpointPolicy", "SelectiveCheckpointContext", "create_selective_checkpoint_contexts"]
