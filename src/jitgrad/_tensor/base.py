"""`TensorBase`: the slots of a tensor and what follows from them alone; the generated `Tensor` adds the ops.

- `array`: the elements, a NumPy array of any strides, aligned and in native byte order.
- `meta`: shape, dtype and layout, interned.
- `fn`: the edge others record: the node (or port) that made it, a leaf's `AccumulateGrad`, or None when it takes no gradient.
- `vc`: the version counter shared with all views, or None as long as nobody needed it.
- `rare`: None for a plain tensor. Not None is the slow path: views, inference tensors, dtypes other than float32 and
  float64, arrays that are not C-contiguous, a `.grad` on a tensor that takes none.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from .._core.dtypes import dtype as Dtype
from .._core.meta import Meta, is_dense, meta_of
from .._core.shapes import Size
from .._engine import modes
from .._engine.node import ACCUMULATE, LEAF, Node, Port, target
from .._engine.versions import MAKING, Version, bump
from .._ops.casts import copied


class Rare:
    """What few tensors have.

    `base` is the tensor this one is a view of; `replay` tells how the view was made, where that is noted; `creation` says how the
    view came about, which decides whether it may be written to; `seen` is the version at which `fn` was last right.
    """

    __slots__ = ("base", "creation", "dual", "grad", "hooks", "inference", "replay", "retains", "seen")

    def __init__(self) -> None:
        self.base: Any = None
        self.replay: Any = None
        self.dual: Any = None  # tangents of forward mode
        self.creation: str | None = None
        self.grad: Any = None
        self.hooks: Any = None  # extras with the hooks of a tensor that takes no gradient (any more, or yet)
        self.inference: bool | str = False  # COUNTED where writes are counted nonetheless
        self.retains: Any = None  # what takes the gradient of a tensor that retains it
        self.seen = 0


INFERENCE_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a normal tensor "
    "before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
)
COUNTED = "counted"  # the `inference` of what `.data` and `detach` give of an inference tensor outside of the mode
INFERENCE_LEAVES: list[bool] = []  # not empty once an inference tensor was asked to take a gradient
ODD = Rare()  # shared by all tensors whose only peculiarity is dtype or layout; never written to


class TensorBase:
    """See the module's docstring."""

    __slots__ = ("__dict__", "__weakref__", "array", "fn", "meta", "rare", "vc")
    array: np.ndarray[Any, Any]
    meta: Meta
    fn: Any
    vc: Version | None
    rare: Rare | None
    kind: ClassVar[Callable[[], Any]]  # makes what an op returns, a tensor with empty slots; calling the class makes a tensor as `torch.Tensor` does
    __array_priority__ = 1000

    def __init_subclass__(cls, public: bool = False, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        if public:
            TensorBase.kind = functools.partial(object.__new__, cls)

    # ---- what it is
    @property
    def shape(self) -> Size:
        """Lengths of the axes."""
        return Size(self.meta.shape)

    @property
    def dtype(self) -> Dtype:
        """The dtype of the elements."""
        return self.meta.kind

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.meta.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it (a view made without recording says what its base says)."""
        if self.fn is not None or self.rare is None:
            return self.fn is not None
        base = self.rare.base
        return base is not None and base.fn is not None

    @requires_grad.setter
    def requires_grad(self, on: bool) -> None:
        if not isinstance(on, bool):
            raise RuntimeError("requires_grad must be a bool")
        if on and not self.is_leaf:
            raise RuntimeError("you can only change requires_grad flags of leaf variables.")
        if on and not self.meta.kind.is_floating_point:
            raise RuntimeError("only Tensors of floating point and complex dtype can require gradients")
        self.requires_grad_(on)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    def requires_grad_(self, requires_grad: bool = True) -> Any:
        """Make a leaf take gradients, or stop doing so; in place.

        Raises RuntimeError for a dtype that is not floating point, or when switched off on a tensor that is not a leaf.
        """
        if not isinstance(requires_grad, bool):
            raise TypeError(f"requires_grad_(): argument 'requires_grad' (position 1) must be bool, not {type(requires_grad).__name__}")
        fn = self.fn
        if requires_grad and self.rare is not None and self.rare.inference and not modes.LOCAL.inference:
            raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")
        if requires_grad and fn is None:
            if not self.meta.kind.is_floating_point:
                raise RuntimeError("only Tensors of floating point dtype can require gradients")
            self.fn = AccumulateGrad(self)
            if self.rare is not None and self.rare.inference:
                INFERENCE_LEAVES[:] = [True]
            if modes.SPECIAL and modes.LOCAL.tracer is not None:
                modes.LOCAL.tracer.new_leaves.append(self.fn)
            if self.rare is not None and self.rare.grad is not None:
                self.fn.grad, self.rare.grad = self.rare.grad, None
            if self.rare is not None and self.rare.hooks is not None:
                self.fn.rare, self.rare.hooks = self.rare.hooks, None
        elif not requires_grad and fn is not None:
            if fn.number != LEAF:
                raise RuntimeError("you can only change requires_grad flags of leaf variables. If you want to use a computed variable "
                                   "in a subgraph that doesn't require differentiation use var_no_grad = var.detach().")  # fmt: skip
            version_of(self)  # shared with the node from now on, so that a graph made before sees writes to come
            held, fn.grad = fn.grad, None  # what a graph made before still sends here is lost
            self.fn = None
            if held is not None:
                own_rare(self).grad = held
            if fn.rare is not None:
                own_rare(self).hooks = fn.rare
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user, not by a recorded op."""
        return self.fn is None or self.fn.number == LEAF

    @property
    def output_nr(self) -> int:
        """Which output of `grad_fn` it is."""
        fn = self.fn
        return fn.index if type(fn) is Port else 0

    @property
    def _version(self) -> int:
        if self.rare is not None and self.rare.inference is True:
            raise RuntimeError("Inference tensors do not track version counter.")
        return version_of(self).count

    @property
    def _base(self) -> Any:
        return None if self.rare is None else self.rare.base

    def _is_view(self) -> bool:
        return self.rare is not None and self.rare.base is not None

    def is_inference(self) -> bool:
        """Whether it was made in inference mode."""
        return self.rare is not None and bool(self.rare.inference)

    def _bump(self) -> None:
        """Count a write to the elements."""
        bump(version_of(self))


def version_of(tensor: Any) -> Version:
    """The tensor's counter; made, and shown to the nodes that saved the tensor by way of its edge, when there is none yet."""
    counter: Version | None = tensor.vc
    if counter is None:
        with MAKING:  # two counters for one tensor would each miss the writes that the other sees
            fn = tensor.fn
            counter = tensor.vc or (fn.vc if fn is not None else None)
            if counter is None:
                counter = Version()
                if fn is not None:
                    fn.vc = counter
            tensor.vc = counter
    return counter


def own_rare(tensor: Any) -> Rare:
    """The tensor's own `rare`, to write to."""
    rare: Rare | None = tensor.rare
    if rare is None or rare is ODD:
        rare = tensor.rare = Rare()
    return rare


def settle(tensor: Any) -> Any:
    """Set `meta` and `rare` from the array (after the array was put in or exchanged)."""
    tensor.meta = meta = meta_of(tensor.array)
    if not meta.plain:
        tensor.rare = tensor.rare or ODD
    elif tensor.rare is ODD:
        tensor.rare = None
    if type(tensor.fn) is AccumulateGrad:
        tensor.fn.meta, tensor.fn.array = meta, tensor.array
    return tensor


def wrap(array: np.ndarray[Any, Any], fn: Any = None) -> Any:
    """A tensor around an array, which it then owns."""
    tensor = TensorBase.kind()
    tensor.array = array
    tensor.meta = meta = meta_of(array)
    tensor.fn = fn
    tensor.vc = None
    tensor.rare = None if meta.plain else ODD
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.wrapped(array)
    return tensor


def around(array: np.ndarray[Any, Any], meta: Meta) -> Any:
    """A tensor around an array whose Meta is known to be plain; nobody else refers to it, so no mode has to know of it."""
    tensor = TensorBase.kind()
    tensor.array = array
    tensor.meta = meta
    tensor.fn = tensor.vc = tensor.rare = None
    return tensor


class AccumulateGrad(Node):
    """The node at a leaf: adds what arrives to `.grad`, which it holds. The leaf owns its node; the node knows its leaf weakly."""

    __slots__ = ("array", "grad", "owner")
    arity = 0
    transient = False  # whether it is there for the time of a rule only
    array: np.ndarray[Any, Any]  # the leaf's, for a stand-in when the leaf is gone
    grad: Any

    def __init__(self, leaf: Any) -> None:
        self.owner = weakref.ref(leaf)
        self.array = leaf.array
        self.number = LEAF
        self.meta = leaf.meta
        self.buf = self.grad = self.rare = None
        self.vc = leaf.vc
        self.epoch = 0

    def edges(self) -> tuple[Node | None, ...]:
        return ()

    @property
    def variable(self) -> Any:
        """The leaf; a stand-in over the same memory with the same edge when the leaf itself is gone."""
        leaf = self.owner()
        if leaf is None:
            leaf = wrap(self.array, self)
            leaf.vc = self.vc
            self.owner = weakref.ref(leaf)
        return leaf

    def name(self) -> str:
        """As torch has it."""
        return "torch::autograd::AccumulateGrad"

    def call(self, grads: tuple[Any, ...], keep: bool, create_graph: bool) -> tuple[Any, ...]:
        if grads[0] is not None:
            self.accept_tensor(grads[0], create_graph)
        return ()

    def accept(self, grad: np.ndarray[Any, Any], alone: bool) -> None:
        """Add an array to `.grad`; it becomes `.grad` itself when nobody else can see it."""
        held = self.grad
        if held is None:
            meta = self.meta
            if not meta.plain:
                self.grad = self.laid_out(grad)
                return
            self.grad = t = TensorBase.kind()  # `around`, spelled out
            t.array = grad if alone else grad.copy()
            t.meta = meta
            t.vc = t.fn = t.rare = None
            return
        if held.rare is not None:
            self.check_held(held)
        np.add(held.array, grad, out=held.array)
        held._bump()

    def accept_tensor(self, grad: Any, create_graph: bool, alone: bool = False) -> None:
        """Add a tensor to `.grad`: in place, or as a recorded sum when a graph of the backward is wanted.

        It becomes `.grad` itself when nobody else can see it (`alone`).
        """
        with ACCUMULATE:
            held = self.grad
            if held is None:
                if create_graph:
                    self.grad = self.recorded_copy(grad)
                elif alone and self.can_take(grad):
                    self.grad = grad
                else:
                    self.grad = self.laid_out(grad.array)
            elif create_graph:
                self.grad = held + grad
            else:
                self.check_held(held)
                if modes.SPECIAL and modes.LOCAL.level is not None:
                    held.add_(grad)
                else:
                    np.add(held.array, grad.array, out=held.array)
                    held._bump()
            if modes.SPECIAL and modes.LOCAL.tracer is not None:
                modes.LOCAL.tracer.accumulated(self, held, grad)

    def can_take(self, grad: Any) -> bool:
        """Whether a gradient that nobody else refers to may become `.grad` as it is."""
        return (grad.meta is self.meta and grad.fn is None and grad.rare is None and grad.array.base is None
                and modes.tracer() is None)  # fmt: skip

    def recorded_copy(self, grad: Any) -> Any:
        """The same with the gradient's history going on."""
        result = copied(grad.detach(), grad)
        if not self.meta.plain:
            result.array = self.laid_out(result.array).array
            settle(result)
        return result

    def laid_out(self, grad: np.ndarray[Any, Any]) -> Any:
        """A copy of a gradient, laid out in memory as the leaf is; row by row where the leaf has gaps or overlaps itself."""
        array = np.empty_like(self.array, grad.dtype, "K" if is_dense(self.array) else "C")
        array[...] = grad
        return wrap(array)

    def check_held(self, held: Any) -> None:
        """RuntimeError if the user put an inference tensor into `.grad`."""
        if held.rare is not None and held.rare.inference and not modes.LOCAL.inference:
            raise RuntimeError(INFERENCE_WRITE)


def grad_fn_of(tensor: Any) -> Any:
    """The node that made a tensor, or None for a leaf."""
    fn = tensor.fn
    return None if fn is None or fn.number == LEAF else target(fn)[0].shown()


class Replaced(AccumulateGrad):
    """The node of a leaf until the leaf was given other memory by `set_`: what arrives still goes to the leaf's `.grad`."""

    __slots__ = ()

    def accept(self, grad: np.ndarray[Any, Any], alone: bool) -> None:
        self.variable.fn.accept(grad, alone)

    def accept_tensor(self, grad: Any, create_graph: bool, alone: bool = False) -> None:
        self.variable.fn.accept_tensor(grad, create_graph, alone)


def renew_leaf(tensor: Any) -> None:
    """Give a leaf that takes a gradient a new node: graphs made so far lead to the old one, as in torch after `set_`."""
    old = tensor.fn
    if type(old) is AccumulateGrad:
        new = tensor.fn = AccumulateGrad(tensor)
        new.grad, new.rare, new.vc = old.grad, old.rare, old.vc
        old.grad = None
        old.__class__ = Replaced
