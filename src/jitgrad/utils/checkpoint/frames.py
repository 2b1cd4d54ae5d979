"""The variant that is not reentrant: hooks on saved tensors keep a place instead of the tensor, and the first place that is asked for runs the
function again and fills them all.

Places belong to the innermost checkpoint only, and its inputs are saved tensors of the checkpoint around it: to fill a place all
checkpoints around it are run again, from the outside in, each once per backward. A tensor that was computed again is let go as soon
as it has been handed out, also where the graph is retained.
"""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any, Final

from ..._engine import modes
from ..._tensor import Tensor
from ...autograd import enable_grad
from ...autograd.function import FunctionCtx
from ...autograd.graph import saved_tensors_hooks
from .groups import GraphExecGroup
from .logs import RunLog, told
from .settings import CheckpointError

_NOWHERE: Final = object()  # stands for the node that saves a checkpoint's inputs: there is none

_TIP: Final = (
    "\nTip: To see a more detailed error message, either pass `debug=True` to\n`torch.utils.checkpoint.checkpoint(...)` or wrap the code block\n"
    "with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to\nenable checkpoint-debug mode globally.\n"
)
_OVERLAP: Final = (
    "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute gradients) is not allowed while under "
    "the torch.utils.checkpoint.GraphExecGroup context. "
)


class _Enough(Exception):  # not an error: ends a recomputation
    """All tensors that are needed have been computed again."""


class _Place:
    """What the graph holds instead of a saved tensor."""

    __slots__ = ("__weakref__",)


class _Recomputation:
    """Tensors computed again for one backward, by place, as far as they have not been handed out."""

    def __init__(self) -> None:
        self.tensors: weakref.WeakKeyDictionary[_Place, Tensor] = weakref.WeakKeyDictionary()
        self.count = 0
        self.inside_forward = False  # the forward was not over, and this run of the function went further than that one had got


class Checkpoint:
    """One call of the function. Held by the graph through the hooks, and holds the places weakly: what dies with the graph is forgotten."""

    def __init__(self, again: Callable[..., Any], args: tuple[Any, ...], describe: Callable[[Any], Any], early_stop: bool,
                 logs: tuple[RunLog, RunLog] | None) -> None:  # fmt: skip
        self.again, self.describe, self.early_stop, self.logs = again, describe, early_stop, logs
        self.args = [None if isinstance(x, Tensor) else x for x in args]
        self.tensor_args = [place for place, x in enumerate(args) if isinstance(x, Tensor)]
        self.saved = FunctionCtx()  # checks versions, and sends the inputs through the hooks of a checkpoint around this one
        self.saved.save_for_backward(*[args[place] for place in self.tensor_args])
        self.saved._keep(_NOWHERE)
        self.places: list[weakref.ref[_Place]] = []
        self.descriptions: list[Any] = []
        self.completed = False
        self.runs: weakref.WeakKeyDictionary[Any, _Recomputation] = weakref.WeakKeyDictionary()

    def pack(self, tensor: Tensor) -> _Place:
        """A place for a tensor that the forward saves."""
        place = _Place()
        self.places.append(weakref.ref(place))
        self.descriptions.append(self.describe(tensor))
        if self.logs is not None:
            self.logs[0].save(tensor)
        return place

    def unpack(self, place: _Place) -> Tensor:
        """The tensor of a place. Outside of a backward everything is computed again for it alone."""
        group = GraphExecGroup._get_current_group()
        run = modes.LOCAL.run if group is None else group
        known = None if run is None else self.runs.get(run)
        if known is None:
            known = self.recompute()
            if run is not None:
                self.runs[run] = known
        if place not in known.tensors:
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
                f"{'' if group is None else _OVERLAP}If you are calling "
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
            if self.logs is None:
                raise
            raise CheckpointError(told(*self.logs, error)) from error
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
        if self.logs is not None:
            self.logs[1].save(tensor)
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
