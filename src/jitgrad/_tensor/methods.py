"""`TensorMethods`: what a tensor does besides ops - gradients, hooks, conversion to Python and NumPy, copying, printing."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.hooks import RemovableHandle, warn_if_has_hooks
from .._core.late import LateModule
from .._core.meta import meta_of
from .._core.shapes import Size
from .._engine import hooks, modes, versions
from .._engine.extras import NodeExtras
from .._engine.node import LEAF, target
from .._engine.shown import show
from .._ops.views import memory_of, window
from . import backward as runs
from .base import COUNTED, AccumulateGrad, TensorBase, around, grad_fn_of, own_rare, settle, version_of, wrap
from .gradients import check_grad, hooks_of
from .indexing import assign, take
from .memory import MemoryMethods
from .views import edge_of

if TYPE_CHECKING:
    import copy  # noqa: I001
    from . import printing
else:
    copy, printing = LateModule("copy"), LateModule("jitgrad._tensor.printing")

_NON_LEAF = ("The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated during "
             "autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use .retain_grad() on the "
             "non-leaf Tensor. If you access the non-leaf Tensor by mistake, make sure you access the leaf Tensor instead. See "
             "github.com/pytorch/pytorch/pull/30531 for more information.")  # fmt: skip


class TensorMethods(MemoryMethods):
    """See the module's docstring."""

    __slots__ = ()

    # ---- gradients
    @property
    def grad(self) -> Any:
        """The accumulated gradient of a leaf (or of a tensor that retains it), or None."""
        fn = self.fn
        if type(fn) is AccumulateGrad:
            return fn.grad
        rare = self.rare
        if fn is not None and (rare is None or not rare.retains) and (rare is None or rare.grad is None):
            warnings.warn(_NON_LEAF, UserWarning, stacklevel=2)
        return None if rare is None else rare.grad

    @grad.setter
    def grad(self, value: Any) -> None:
        if value is not None:
            check_grad(self, value)
        self._set_grad_slot(value)

    @grad.deleter
    def grad(self) -> None:
        self._set_grad_slot(None)

    def _grad_slot(self) -> Any:
        fn = self.fn
        if type(fn) is AccumulateGrad:
            return fn.grad
        return None if self.rare is None else self.rare.grad

    def _set_grad_slot(self, value: Any) -> None:
        fn = self.fn
        if modes.SPECIAL and modes.LOCAL.tracer is not None:
            modes.LOCAL.tracer.grad_set(self, value)
        if type(fn) is AccumulateGrad:
            fn.grad = value
        elif value is not None or self.rare is not None:
            own_rare(self).grad = value

    @property
    def is_leaf(self) -> bool:
        """Whether it was made by the user, not by a recorded op."""
        edge = self.fn if self.rare is None else edge_of(self)
        return edge is None or edge.number == LEAF

    @property
    def grad_fn(self) -> Any:
        """The node that made the tensor, or None for a leaf."""
        if self.rare is not None:
            edge_of(self)
        return grad_fn_of(self)

    @property
    def _grad_fn(self) -> Any:
        return self.grad_fn

    @_grad_fn.deleter
    def _grad_fn(self) -> None:
        raise RuntimeError("Deletion of _grad_fn not allowed. Detach tensor instead!")

    def backward(self, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None) -> None:
        """Add this tensor's gradients to the `.grad` of the leaves it came from; see `autograd.backward`."""
        if create_graph or inputs is not None or not runs.backward_plain(self, gradient, bool(retain_graph)):
            runs.backward(self, gradient, retain_graph, create_graph, inputs=inputs)

    def register_hook(self, hook: Callable[[Any], Any]) -> RemovableHandle:
        """Call `hook(grad)` when the tensor's gradient is computed; what it returns, if not None, takes the gradient's place."""
        edge = edge_of(self)
        if edge is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        return hooks.on_tensor(*target(edge), hook)

    @property
    def _backward_hooks(self) -> Any:
        edge = edge_of(self)
        held = None if edge is not None or self.rare is None else self.rare.hooks
        return hooks_of(edge, "tensor") if held is None else held.tensor.get(0)

    @_backward_hooks.setter
    def _backward_hooks(self, table: Any) -> None:
        edge = edge_of(self)
        if edge is not None:
            hooks.set_table(*target(edge), table)
        elif table is not None or self.rare is not None:
            own_rare(self).hooks = held = NodeExtras()
            if table is not None:
                held.tensor[0] = table

    @_backward_hooks.deleter
    def _backward_hooks(self) -> None:
        raise RuntimeError("Deletion of _backwards_hooks not allowed!")

    @property
    def _post_accumulate_grad_hooks(self) -> Any:
        return hooks_of(self.fn, "accumulated") if self.is_leaf else None

    def register_post_accumulate_grad_hook(self, hook: Callable[[Any], None]) -> RemovableHandle:
        """Call `hook(tensor)` after a gradient was added to `.grad`; for leaves only."""
        if not self.requires_grad:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self.fn is None or self.fn.number != LEAF:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        return hooks.add(hooks.extras(self.fn).accumulated, hook)

    def retain_grad(self) -> None:
        """Let a tensor that is not a leaf keep its gradient in `.grad`."""
        edge = edge_of(self)
        if edge is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        if edge.number == LEAF or (self.rare is not None and self.rare.retains):
            return
        owner = weakref.ref(self)

        def take(grad: Any) -> None:
            tensor = owner()
            if tensor is not None and grad is not None:
                rare = own_rare(tensor)
                if rare.grad is not None:
                    rare.grad = rare.grad + grad
                else:
                    rare.grad = grad.clone() if modes.grad_enabled() else wrap(np.array(grad.array, order="C", copy=True))

        own_rare(self).retains = take
        hooks.retain(*target(edge), take)

    @property
    def retains_grad(self) -> bool:
        """Whether a tensor that is not a leaf keeps its gradient."""
        return self.rare is not None and self.rare.retains is not None

    # ---- the same memory, another history
    def detach(self) -> Any:
        """A tensor over the same memory that takes no gradient; writes to one are seen, and counted, by the other."""
        fn = self.fn
        if self.rare is None and not modes.SPECIAL:
            result = around(self.array, self.meta)
        else:
            observe(self, "")
            result = wrap(self.array)
            if self.rare is not None and self.rare.inference:
                own_rare(result).inference = modes.LOCAL.inference or COUNTED
                return result
        result.vc = self.vc or version_of(self)
        if fn is not None and fn.number != LEAF:
            result.vc.computed = True
        return result

    def _made_now(self) -> Any:
        """A tensor over the same memory that to autograd is no view: an inference tensor where one that is made now would be."""
        result = self.detach()
        inference = bool(modes.SPECIAL) and modes.LOCAL.inference
        if result.is_inference() is not inference:
            own_rare(result).inference = inference
            result.vc = None if inference else versions.Version()
        return result

    def detach_(self) -> Any:
        """Cut the tensor off its history, in place. Does nothing in inference mode, or to a tensor made there, which leave histories alone."""
        if (modes.SPECIAL and modes.LOCAL.inference) or (self.rare is not None and self.rare.inference):
            return self
        if self.rare is not None and self.rare.base is not None:
            raise RuntimeError("Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for training, and "
                               "gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() cannot be called on "
                               "these gradients. To fix this error, please refer to the Optimizer.zero_grad() function in "
                               "torch/optim/optimizer.py as a solution.")  # fmt: skip
        held = self._grad_slot()
        if self.rare is not None:
            self.rare.dual = None
        if self.fn is not None and self.fn.number != LEAF:
            versions.detach(self.fn)
        if type(self.fn) is AccumulateGrad:
            version_of(self)  # as where `requires_grad_(False)` cuts a leaf off
            self.fn.grad = None  # what a graph made before still sends here is lost
            if self.fn.rare is not None:
                own_rare(self).hooks = self.fn.rare
        self.fn = None
        self._set_grad_slot(held)
        return self

    @property
    def data(self) -> Any:
        """The same memory without history and with a version counter of its own."""
        observe(self, "")
        result = wrap(self.array)
        if self.rare is not None and self.rare.inference:
            own_rare(result).inference = modes.LOCAL.inference or COUNTED
        return result

    @data.setter
    def data(self, new: Any) -> None:
        if not isinstance(new, TensorBase):
            raise TypeError(f"Variable data has to be a tensor, but got {type(new).__name__}")
        if self.requires_grad and not new.meta.kind.is_floating_point:
            raise RuntimeError("data set to a tensor that requires gradients must be floating point or complex dtype")
        observe(self, "assignment to .data")
        self.array = new.array
        settle(self)

    @data.deleter
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    # ---- to Python and NumPy
    def item(self) -> Any:
        """The only element as a Python number. RuntimeError where there are more, or none."""
        if self.meta.numel != 1:
            raise RuntimeError(f"a Tensor with {self.meta.numel} elements cannot be converted to Scalar")
        observe(self, "item()")
        return self.array.item()

    def tolist(self) -> Any:
        """Nested lists of Python numbers."""
        observe(self, "tolist()")
        return self.array.tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray[Any, Any]:
        """The elements as a NumPy array over the same memory. RuntimeError if the tensor takes gradients, unless forced or under `no_grad`."""
        counter = self.vc
        if self.fn is None and self.rare is None and not modes.SPECIAL and (counter is None or not counter.computed):
            return self.array
        if self.requires_grad and not force and modes.grad_enabled():
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        observe(self, "numpy()")
        if (counter is not None and counter.computed) or (self.fn is not None and self.fn.number != LEAF):
            return show(self.array, version_of(self))
        return self.array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        array = self.numpy()
        return np.array(array, dtype=dtype, copy=copy) if dtype is not None or copy else array

    def __len__(self) -> int:
        if not self.meta.shape:
            raise TypeError("len() of a 0-d tensor")
        return self.meta.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.meta.shape:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))  # type: ignore[attr-defined]

    def __bool__(self) -> bool:
        if self.meta.numel != 1:
            if self.meta.numel == 0:
                raise RuntimeError("Boolean value of Tensor with no values is ambiguous")
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        observe(self, "bool()")
        return bool(self.array.item())

    def _only(self) -> Any:
        """The only element. ValueError in torch's words where there are more, or none."""
        if self.meta.numel != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return self.item()

    def __int__(self) -> int:
        return int(self._only())

    def __float__(self) -> float:
        return float(self._only())

    def __index__(self) -> int:
        if self.meta.kind.is_floating_point or self.meta.numel != 1:
            raise TypeError("only integer tensors of a single element can be converted to an index")
        observe(self, "use as an index")
        return int(self.array.item())

    def __complex__(self) -> complex:
        return complex(self._only())

    def __contains__(self, element: Any) -> bool:
        observe(self, "`in`")
        return bool((self.array == (element.array if isinstance(element, TensorBase) else element)).any())

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if not self.meta.shape else object.__format__(self, spec)

    # ---- indexing
    def __getitem__(self, index: Any) -> Any:
        return take(self, index)

    def __delitem__(self, index: Any) -> None:
        """TypeError: elements can't be taken out."""
        raise TypeError("Tensor does not support deleting items")

    def __setitem__(self, index: Any, value: Any) -> None:
        assign(self, index, value)

    # ---- copying and printing
    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) in memo:
            return memo[id(self)]
        observe(self, "copy.deepcopy")
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment.  If you were "
                               "attempting to deepcopy a module, this may be because of a torch.nn.utils.weight_norm usage, see "
                               "https://github.com/pytorch/pytorch/pull/103001")  # fmt: skip
        root = copy.deepcopy(memory_of(self.array), memo)  # tensors that share memory share it in the copy, too
        result = _rebuild(type(self), root, *self._place(), self.fn is not None, {})
        memo[id(self)] = result
        if self._grad_slot() is not None:
            result._set_grad_slot(copy.deepcopy(self._grad_slot(), memo))
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def _place(self) -> tuple[Any, int, tuple[int, ...], Any]:
        """Dtype, start, shape and strides in the memory that the tensor lies in."""
        return self.meta.kind, self.storage_offset(), self.meta.shape, self.stride()

    @staticmethod
    def _make_subclass(kind: type[Any], data: Any, requires_grad: bool = False) -> Any:
        """A leaf of a subclass over the memory of `data`."""
        result = object.__new__(kind)
        result.array = data.array
        result.vc = result.rare = result.fn = None
        settle(result)
        if data.is_inference():
            own_rare(result).inference = True
        if requires_grad and not result.meta.kind.is_floating_point:
            raise RuntimeError("Only Tensors of floating point and complex dtype can require gradients")
        return result.requires_grad_(requires_grad)

    def __reduce_ex__(self, protocol: Any) -> Any:
        observe(self, "pickling")
        warn_if_has_hooks(self)
        return _rebuild, (type(self), memory_of(self.array), *self._place(), self.requires_grad, self.__dict__)

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        observe(self, "printing")
        try:
            fn = self.grad_fn
            name = None if fn is None else fn.name().rpartition("::")[2]
        except RuntimeError:  # a view whose history can't be told
            name = "Invalid"
        tangent = modes.LOCAL.level.of(self) if modes.SPECIAL and modes.LOCAL.level is not None else None
        return printing.tensor_str(self.array, self.meta.kind, self.requires_grad, name, tangent=None if tangent is None else f"{tangent}")

    def __dir__(self) -> list[str]:
        return sorted({*object.__dir__(self)})


def observe(tensor: Any, what: str) -> None:
    """Tell the compiler, if it is looking on, that Python reads a tensor: its values (`what` says how), or only its memory ('')."""
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.observed(tensor, what)


def _rebuild(cls: type[Any], memory: np.ndarray[Any, Any], kind: Any, start: int, shape: tuple[int, ...], steps: tuple[int, ...],
             requires_grad: bool, attributes: dict[str, Any]) -> Any:  # fmt: skip
    result = object.__new__(cls)
    result.array = window(memory, kind, start, shape, steps)
    result.vc = result.rare = result.fn = None
    settle(result)
    result.__dict__.update(attributes)
    return result.requires_grad_() if requires_grad else result


__all__ = ["Size", "TensorMethods", "meta_of", "version_of"]
