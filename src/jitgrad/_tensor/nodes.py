"""The nodes that `invoke` records: one class per op, made from its declaration.

A node keeps arrays, never the output tensor, so no cycle exists. `_saved` maps a name to its array; `_counters` tells where to look
for writes to it: a version counter, or the edge that leads back to the tensor and will show the counter if one comes to be.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._core.dtypes import TENSOR_TYPE_NAME, from_numpy
from .._core.meta import Meta
from .._engine import fast, modes, versions
from .._engine.hooks import call_after
from .._engine.node import LEAF, RELEASED, SECOND_TIME, TOKEN, Node, Port, target
from .._engine.run import expandable
from .._engine.versions import Version
from .._ops.derived import cast
from .._ops.kinds import Dispatch, General
from .._ops.reductions import total, totals
from .base import own_rare, wrap
from .fields import Fields, TBackward0
from .saved import Packed, PackedValues, torch_name, unpacked

ndarray = np.ndarray
Array = np.ndarray[Any, Any]
RESULT = "result"
SELF: Final = object()  # in `_counters`: the node's own result (the node itself would be a circle)


def second_time() -> None:
    """Refuse a second backward, or the reading of a saved value after the first."""
    raise RuntimeError(SECOND_TIME)


def short_name(node: Node) -> str:
    """What torch's messages call a node: `Mul` for MulBackward0, `Pow1` for PowBackward1."""
    head, _, digit = node.name().rpartition("Backward")
    return node.name() if digit == "s" else head + ("" if digit == "0" else digit)


def modified(epoch: int, counter: Version, array: Array, maker: Any, own: bool = False) -> RuntimeError:
    """The error for a saved value that was written after `epoch`, when it was saved.

    `maker`: the node it came from and which output of that it is, None for a leaf; of an input torch names the node of its new history.
    `own`: the value is a result of the node that saved it.
    """
    of = ""
    if maker is not None:
        latest = None if own or counter.maker is None else counter.maker()
        is_view = not own and getattr(getattr(maker[0], "op", None), "is_view", False)
        node, index = maker if latest is None else target(latest)
        of = f", which is output {0 if is_view else index} of {'AsStrided' if is_view else short_name(node)},"
    hint = (
        "the backtrace further above shows the operation that failed to compute its gradient. The variable in question was changed in there or "
        "anywhere later. Good luck!"
        if modes.LOCAL.anomaly is not None
        else "enable anomaly detection to find the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True, "
        "check_nan=False)."
    )
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{TENSOR_TYPE_NAME[from_numpy(array.dtype)]} {list(array.shape)}]{of} is at version {counter.count}; expected version {counter.at(epoch)} "
        f"instead. Hint: {hint}"
    )


def sum_to_shape(array: Array, shape: tuple[int, ...]) -> Array:
    """Sum the axes along which `shape` was broadcast to the array's shape."""
    lead = array.ndim - len(shape)
    axes = tuple(range(lead)) + tuple(lead + k for k, n in enumerate(shape) if n == 1 != array.shape[lead + k])
    if not axes:
        return array.reshape(shape)
    if array.dtype.char not in "fd":
        summed: Array = array.sum(axes, keepdims=True).reshape(shape)
        return summed
    # NumPy adds the rows of a float32 array one after the other, and loses digits
    return (total(array, 1.0, None) if len(axes) == array.ndim else totals(contiguous(array), axes, True, 1.0, None)).reshape(shape)


def fit_array(grad: Array, meta: Meta, node: Node, index: int) -> Array:
    """The one place where a gradient, as an array, gets the shape and dtype of its input and memory of its own."""
    if grad.shape != meta.shape:
        if not expandable(meta.shape, grad.shape):
            raise RuntimeError(f"Function {node.name()} returned an invalid gradient at index {index} - got {list(grad.shape)} "
                               f"but expected shape compatible with {list(meta.shape)}")  # fmt: skip
        grad = sum_to_shape(grad, meta.shape)
    if grad.dtype != meta.dtype:
        grad = cast(grad, meta.dtype)
    if grad.base is not None or not grad.flags.c_contiguous:
        grad = np.array(grad, order="C", copy=True)
    return grad


_BY_HAND: Final = frozenset(("CopyBackwards", "CopySlices", "NotImplemented"))  # nodes that torch wrote by hand have another kind of name


class Recorded(Fields, Node):
    """What all recorded nodes share: edges, saved values, the check of versions, release."""

    __slots__ = ("_counters", "_edges", "_saved", "_tensors", "gathered", "metas", "outputs", "statics")
    _saved: Any
    _edges: tuple[Node | None, ...]
    _counters: tuple[Any, ...]
    gathered: list[Any]
    metas: tuple[Meta, ...]  # of the outputs, where there are several
    statics: tuple[Any, ...]

    def name(self) -> str:
        kind = type(self).__name__
        return kind if kind not in _BY_HAND else "torch::autograd::" + kind

    def edges(self) -> Sequence[Node | None]:
        return self._edges

    def set_edges(self, edges: Sequence[Node | None]) -> None:
        """Let the inputs' gradients go elsewhere."""
        self._edges = tuple(edges)

    def saved(self) -> dict[str, Any]:
        """The saved arrays, after the check that nobody wrote to them."""
        saved: Any = self._saved
        if saved is RELEASED:
            second_time()
        if self.epoch != versions.WRITES:
            self.check(saved)
        return saved if type(saved) is dict else unpacked(saved)

    def check(self, saved: dict[str, Any]) -> None:
        """Something was written since; was it one of ours?"""
        for place, (name, array) in zip(self._counters, saved.items(), strict=True):
            if type(array) is Packed:
                continue
            if place is not SELF:
                versions.check_attached(self.edge_of_saved(name))
            if place is None:
                continue
            edge = self if place is SELF else place
            counter = edge if type(edge) is Version else edge.vc
            if counter is not None and counter.last > self.epoch:
                edge = self.edge_of_saved(name) if edge is counter else edge
                raise modified(self.epoch, counter, array, None if edge is None or edge.number == LEAF else target(edge), place is SELF)

    def release(self) -> None:
        if self._saved:
            self._saved = RELEASED

    def get_saved(self, name: str) -> Any:
        return RELEASED if self._saved is RELEASED else self._saved.get(name)

    def put_saved(self, name: str, value: Any) -> None:
        self._saved = PackedValues(self._saved | {name: value})

    def check_saved(self) -> None:
        if self.epoch != versions.WRITES and self._saved is not RELEASED:
            self.check(self._saved)

    def forget(self) -> None:
        self.buf = None
        self.gathered = [None] * self.outputs

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        if self._saved is RELEASED:
            return [(name, RELEASED, None) for name in self.saved_names()]
        return [(torch_name(name), value, self.edge_of_saved(name)) for name, value in self._saved.items() if value is not None]

    def _collect(self, grad: Any) -> list[Any]:
        """The gradients of all outputs; a node of one output is handed its own."""
        if grad is not TOKEN:
            return [grad]
        grads, self.gathered = self.gathered, [None] * self.outputs
        return grads

    def apply(self, grad: Any, keep: bool) -> list[Any]:
        packed = type(self._saved) is PackedValues
        if packed and modes.LOCAL.run is None:
            fast.enter(keep)  # hooks run in the mode of the backward
        grads = self._collect(grad)
        grad = None
        results = self.pull(grads)
        if not keep:
            self.release()
        done: list[Any] = []
        for part, edge in zip(results, self._edges, strict=True):
            if part is None or edge is None:
                done.append(None)
                continue
            meta = edge.meta
            fits = part.shape == meta.shape and part.dtype is meta.dtype and part.base is None and part.flags.c_contiguous
            if not fits or type(part) is not ndarray:  # NumPy makes a number of an array without axes, and a kernel would read it as an array
                part = fit_array(np.asarray(part), meta, self, len(done))
            done.append(part)
        return self.called_after(done) if packed and self.rare is not None else done

    def called_after(self, done: list[Any]) -> list[Any]:
        """The results after the hooks that the unpacking of a saved value put on this very node."""
        assert self.rare is not None
        results = call_after(self.rare, [None if array is None else wrap(array) for array in done], ())
        return [None if part is None else part.array for part in results]

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> Sequence[Any]:
        if all(grad is None for grad in grads):
            return (None,) * len(self._edges)
        if create_graph or modes.followed():
            return self.pull_recorded(list(grads))
        arrays = [None if grad is None else contiguous(grad.array) for grad in grads]
        return [None if part is None else wrap(np.asarray(part)) for part in self.pull(arrays)]

    def pull(self, grads: list[Any]) -> Sequence[Any]:
        """Arrays of the outputs' gradients (None where there is none) to arrays of the inputs'."""
        raise NotImplementedError

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        """The same on tensors, recorded."""
        raise NotImplementedError

    def unpack(self, name: str, array: Array | None, recorded: bool) -> Any:
        """A saved array as a tensor: with its edge, so that a second derivative finds its way."""
        if array is None:
            return None
        edge = self.edge_of_saved(name) if recorded else None
        tensor = wrap(array, edge)
        if edge is not None:
            tensor.vc = edge.vc
        if self.rare is not None and name in self.rare.duals:
            own_rare(tensor).dual = self.rare.duals[name]
        return tensor

    def output_meta(self, index: int) -> Meta | None:
        return self.meta if self.outputs == 1 else self.metas[index]


def contiguous(array: Array) -> Array:
    """C-contiguous, copied only when it is not."""
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


class OpNode(Recorded):
    """A general op: the fused backward on arrays where there is one, else the rule on tensors without a graph."""

    __slots__ = ("likes", "needs")
    op: General
    likes: tuple[Meta | None, ...]
    needs: tuple[bool, ...]

    def arguments(self, names: Sequence[str], grads: list[Any], saved: dict[str, Any]) -> list[Any]:
        """The values that a rule or an accelerator asks for, by name."""
        found: list[Any] = []
        for name in names:
            if name == "grad":
                found.append(grads[0])
            elif name in saved:
                found.append(saved[name])
            elif name == "like":
                found.append(self.likes[0] if len(self.likes) == 1 and not self.op.variadic else self.likes)
            elif name == "needs":
                found.append(self.needs)
            else:
                found.append(grads if name == "grads" else self.statics[self.op.places[name]])
        return found

    def pull(self, grads: list[Any]) -> Sequence[Any]:
        saved = self.saved()
        accelerator = self.op.accelerator
        if accelerator is not None:
            return self.spread(accelerator.function(*self.arguments(accelerator.names, grads, saved)))
        tensors = [None if grad is None else wrap(grad) for grad in grads]
        parts = self.rule(tensors, {name: self.unpack(name, array, False) for name, array in saved.items()})
        return [None if part is None else part.array for part in parts]

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        return self.rule(grads, {name: self.unpack(name, array, True) for name, array in self.saved().items()})

    def rule(self, grads: list[Any], saved: dict[str, Any]) -> Sequence[Any]:
        """The op's rule on tensors."""
        rule = self.op.backward
        if rule is None:
            raise NotImplementedError(f"the derivative for '{self.op.name}' is not implemented.")
        return self.spread(rule.function(*self.arguments(rule.names, grads, saved)))

    def spread(self, results: Any) -> Sequence[Any]:
        """Results per differentiable input, as a list, also where there is one."""
        return list(results) if self.op.variadic or isinstance(results, (tuple, list)) else [results]

    def before_shown(self) -> None:
        if self.op.name == "_linear" and self._edges[2] is not None:
            self._edges = (*self._edges[:2], TBackward0(self, self._edges[2]))

    def edge_of_saved(self, name: str) -> Any:
        if name in self.op.inputs:
            place = self.op.inputs.index(name)
            return self._edges[self.op.differentiable.index(place)] if place in self.op.differentiable else None
        if not name.startswith(RESULT):
            return None
        index = int(name[len(RESULT) :] or 0)
        return self if self.outputs == 1 else Port(self, index, self.metas[index])

    def saved_names(self) -> dict[str, str]:
        return {torch_name(name): name for name, _ in self.op.saves}

    def static_values(self) -> dict[str, Any]:
        sizes = {} if not self.likes or self.likes[0] is None else {"self_sym_sizes": self.likes[0].shape}
        return sizes | {torch_name(name): value for name, value in zip(self.op.statics, self.statics, strict=False)}


class LinearNode(OpNode):
    """A linear op: its transpose, as a recorded op where a graph of the backward is wanted."""

    __slots__ = ()

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        arrays = self.saved()
        op: Any = self.op
        statics = self.statics
        if "key" in arrays:  # it went through hooks
            arrays, place = dict(arrays), op.places["key"]
            statics = (*statics[:place], arrays.pop("key"), *statics[place + 1 :])
        saved = {name: self.unpack(name, array, False) for name, array in arrays.items()}
        call = AdjointCall(op, self.likes, self.needs, statics, saved, tuple(grad is not None for grad in grads))
        results = iter(Dispatch.invoke(op.transposed, tuple(grad for grad in grads if grad is not None), (call,)))
        return [next(results) if need else None for need in self.needs]


class AdjointCall:
    """One call of a linear op's transpose: what the op was called with, and which gradients there are."""

    __slots__ = ("given", "likes", "needs", "op", "saved", "statics")

    def __init__(self, op: Any, likes: tuple[Meta | None, ...], needs: tuple[bool, ...], statics: tuple[Any, ...],
                 saved: dict[str, Any], given: tuple[bool, ...]) -> None:  # fmt: skip
        self.op, self.likes, self.needs, self.statics, self.saved, self.given = op, likes, needs, statics, saved, given

    def forward(self, arrays: Sequence[Array]) -> list[Array]:
        """The transpose on arrays: the gradients of the needed inputs."""
        found = iter(arrays)
        grads = [next(found) if given else None for given in self.given]
        likes = self.likes
        values = dict(zip(self.op.statics, self.statics, strict=True))
        values |= {name: None if tensor is None else tensor.array for name, tensor in self.saved.items()}
        values |= {"grad": grads[0], "grads": grads, "needs": self.needs, "like": likes[0] if len(likes) == 1 and not self.op.variadic else likes}
        results = self.op.transposed.transpose(values)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        return [np.asarray(part) for part, need in zip(results, self.needs, strict=True) if need]

    def back(self, grads: Sequence[Any], zeros: Any) -> Sequence[Any]:
        """The transpose of the transpose: the op itself, on the gradients of the needed inputs (zeros where there is none)."""
        found = iter(grads)
        places = range(len(self.likes)) if self.op.variadic else self.op.differentiable
        inputs: list[Any] = [self.saved.get(name) for name in self.op.inputs] if not self.op.variadic else [None] * len(self.likes)
        for place, need in zip(places, self.needs, strict=True):
            part = next(found) if need else None
            inputs[place] = zeros(self.likes[place]) if part is None else part
        results = Dispatch.invoke(self.op, tuple(inputs), self.statics)
        results = results if isinstance(results, (tuple, list)) else (results,)
        return [result for result, given in zip(results, self.given, strict=True) if given]


class AdjointNode(Recorded):
    """The transpose of a linear op, itself differentiable."""

    __slots__ = ("call_of",)
    call_of: AdjointCall

    def kept_values(self) -> list[tuple[str, Any, Node | None]]:
        return [(torch_name(name), x.array, x.fn) for name, x in self.call_of.saved.items() if x is not None]

    def pull(self, grads: list[Any]) -> Sequence[Any]:
        parts = self.pull_recorded([None if grad is None else wrap(grad) for grad in grads])
        return [part.array for part in parts]

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        return self.call_of.back(grads, lambda meta: wrap(np.zeros(meta.shape, meta.dtype)))


@functools.cache
def node_class(name: str, base: type[Recorded], op: Any) -> type[Any]:
    """The node class of an op: torch's name, the op's behaviour."""
    return type(name, (base,), {"__slots__": (), "op": op, "__module__": "jitgrad.autograd"})
