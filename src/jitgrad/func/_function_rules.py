"""Custom Functions under `vmap`: where `F.apply` itself is mapped, F's own rule is what is called."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from .._tensor import Tensor
from ..autograd.function import Function
from ._trees import flatten, spread, unflatten

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


class VmapInfo(NamedTuple):
    """The first argument of a Function's `vmap`."""

    batch_size: int
    randomness: str


def function_of(func: Any) -> Any:
    """The Function whose `apply` it is, or None. RuntimeError for one that can't be mapped."""
    owner = getattr(func, "__self__", None)
    if not (isinstance(owner, type) and issubclass(owner, Function) and getattr(func, "__name__", "") == "apply"):
        return None
    own = owner.vmap is not Function.vmap
    if owner.generate_vmap_rule:
        if own:
            raise RuntimeError(f"You tried to vmap over {owner.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
                               "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid "
                               "ambiguity. " + _MORE)  # fmt: skip
        return None
    if not own:
        raise RuntimeError(f"You tried to vmap over {owner.__name__}, but it does not have vmap support. Please override and implement the vmap "
                           "staticmethod or set generate_vmap_rule=True. " + _MORE)  # fmt: skip
    return owner


def call_rule(function: Any, args: tuple[Any, ...], dims: list[int | None], info: VmapInfo, place: Callable[[Any, Any], Any]) -> Any:
    """What the Function's rule returns for the whole batch; `place` moves the batch axis of a result to where it is wanted."""
    output, out_dims = function.vmap(info, tuple(dims), *args)
    leaves, structure = flatten(output)
    found = spread(out_dims, structure)
    if found is None:
        raise RuntimeError(f"The vmap staticmethod of {function.__name__} returned out_dims {out_dims}, which don't go with its output")
    return unflatten([place(x, dim) for x, dim in zip(leaves, found, strict=True)], structure)


def moved(x: Any, dim: int | None, to: int, count: int) -> Any:
    """A result with its batch axis at `to`; one without gets it by repetition."""
    if not isinstance(x, Tensor):
        return x
    if dim is None:
        return x.unsqueeze(to).expand([*x.shape[: to % (x.ndim + 1)], count, *x.shape[to % (x.ndim + 1) :]])
    return x.movedim(dim, to)


__all__ = ["VmapInfo", "call_rule", "function_of", "moved"]
