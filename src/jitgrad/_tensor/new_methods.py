"""`x.new_zeros(...)` and the like: new leaves that take their dtype from a tensor."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from .._core.devices import check_place
from .._core.dtypes import dtype as Dtype
from .._core.errors import argument_error
from .._core.late import LateModule
from .._ops.views import alias_op
from . import creation
from .base import TensorBase
from .convert import data_array, dtype_argument
from .creation import filled, leaf, sizes
from .placement import PlacementMethods

if TYPE_CHECKING:
    from . import legacy
else:
    legacy = LateModule("jitgrad._tensor.legacy")  # few programs make tensors that way

Tensor = Any


class NewMethods(PlacementMethods):
    """See the module's docstring."""

    __slots__ = ()

    def new_tensor(self, data: Any, *, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
                   layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
        """A leaf with a copy of `data`, by default of this tensor's dtype."""
        check_place("new_tensor", device, layout, pin_memory)
        if isinstance(data, TensorBase):
            warnings.warn(creation.COPY_WARNING.format("tensor.new_tensor"), UserWarning, stacklevel=2)
        return leaf(data_array(data, dtype_argument("new_tensor", dtype) or self.meta.kind), requires_grad)

    def new_zeros(self, *size: Any, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
                  layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
        """Zeros of a given shape, by default of this tensor's dtype."""
        check_place("new_zeros", device, layout, pin_memory)
        shape = sizes("new_zeros", size, named)
        return creation.zeros(shape, dtype=dtype or self.meta.kind, device=device, requires_grad=requires_grad)

    def new_ones(self, *size: Any, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
                 layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
        """Ones of a given shape, by default of this tensor's dtype."""
        check_place("new_ones", device, layout, pin_memory)
        shape = sizes("new_ones", size, named)
        return creation.ones(shape, dtype=dtype or self.meta.kind, device=device, requires_grad=requires_grad)

    def new_empty(self, *size: Any, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
                  layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
        """Uninitialised memory of a given shape, by default of this tensor's dtype."""
        check_place("new_empty", device, layout, pin_memory)
        shape = sizes("new_empty", size, named)
        return creation.empty(shape, dtype=dtype or self.meta.kind, device=device, requires_grad=requires_grad)

    def new_full(self, size: Any, fill_value: Any, *, dtype: Dtype | None = None, device: Any = None,
                 requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
        """One value in a given shape, by default of this tensor's dtype."""
        check_place("new_full", device, layout, pin_memory)
        if not isinstance(size, (tuple, list)):
            raise argument_error("new_full", "size", 1, "tuple of ints", size)
        kind = dtype_argument("new_full", dtype) or self.meta.kind
        return leaf(filled("new_full", sizes("new_full", (size,), {}), fill_value, kind), requires_grad)

    def new_empty_strided(self, size: Any, stride: Any, *, dtype: Dtype | None = None, device: Any = None,
                          requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
        """Uninitialised memory of given shape and strides, by default of this tensor's dtype."""
        check_place("new_empty_strided", device, layout, pin_memory)
        return creation.empty_strided(
            size, stride, dtype=dtype or self.meta.kind, device=device, requires_grad=requires_grad
        )

    def __new__(cls, *args: Any, **named: Any) -> Any:
        """`Tensor(2, 3)`, `Tensor([1, 2])`, `Tensor(other)`: see `legacy_tensor`. A subclass gets a tensor of its own class."""
        made = legacy.legacy_tensor(args, named, None)
        return made if type(made) is cls else recast(made, cls)

    def new(self, *args: Any, **named: Any) -> Tensor:
        """`x.new(2, 3)`, `x.new([1, 2])`: a tensor of this one's dtype as the old constructors make it; see `legacy_tensor`."""
        return legacy.legacy_tensor(args, named, self.meta.kind)

    def as_subclass(self, cls: Any) -> Any:
        """The same memory and history as a tensor of a subclass. TypeError for any other class."""
        if not (isinstance(cls, type) and issubclass(cls, TensorBase)):
            raise TypeError("Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure your class "
                            "inherits from Tensor.")  # fmt: skip
        return recast(alias_op(self), cls)


def recast(made: Tensor, cls: type[Any]) -> Any:
    """A tensor that nobody else has as one of another class."""
    result = object.__new__(cls)
    result.array, result.meta, result.fn, result.vc, result.rare = made.array, made.meta, made.fn, made.vc, made.rare
    return result
