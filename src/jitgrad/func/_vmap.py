"""`vmap`: a function of one sample made a function of a batch.

The function is called once for each entry of the batch, and the results are stacked: values, shapes and derivatives are those of torch's
vectorised calls, the time is that of a loop.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NoReturn

from .._ops import joining, views
from .._tensor import Tensor
from .._tensor.random import get_rng_state, set_rng_state
from ._function_rules import VmapInfo, call_rule, function_of, moved
from ._trees import Structure, flatten, spread, unflatten

Function = Callable[..., Any]
_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' or 'different' randomness flags on vmap or perform "
    "the randomness operation out of vmap"
)


class Randomness:
    """What happens to random numbers in calls that belong together: "error" refuses them, "same" starts each call from the same state.

    A context manager, entered for each call.
    """

    def __init__(self, mode: str) -> None:
        if mode not in ("error", "different", "same"):
            raise RuntimeError(f"Only allowed values for randomness are 'error', 'different', or 'same'. Got {mode}")
        self.mode = mode
        self.state: Any = None

    def __enter__(self) -> None:
        if self.mode == "different":
            return
        if self.state is None:
            self.state = get_rng_state()
        elif self.mode == "same":
            set_rng_state(self.state)

    def __exit__(self, kind: Any, *rest: object) -> None:
        if self.mode == "error" and kind is None and not bool((get_rng_state() == self.state).all()):
            set_rng_state(self.state)
            raise RuntimeError(_RANDOM)


def name_of(func: Any) -> str:
    """What messages call a function."""
    if isinstance(func, functools.partial):
        return f"functools.partial({name_of(func.func)}, ...)"
    return str(getattr(func, "__name__", None) or repr(func))


def vmap(func: Function, in_dims: Any = 0, out_dims: Any = 0, randomness: str = "error", *, chunk_size: int | None = None) -> Function:
    """A function that maps `func` over an axis of its tensor arguments and stacks the results.

    `in_dims` names the axis for each argument (nested as the arguments are, None for one that all calls get whole), `out_dims` that of each
    result. `randomness`: "error", "same" (all calls draw the same numbers) or "different". Keyword arguments are handed on whole; `chunk_size` is
    accepted as torch does and changes nothing. Raises ValueError for axes that don't fit, or results that are no tensors.

    >>> import jitgrad
    >>> jitgrad.func.vmap(jitgrad.dot)(jitgrad.ones(3, 2), jitgrad.ones(3, 2))
    tensor([2., 2., 2.])
    """
    if randomness not in ("error", "different", "same"):
        Randomness(randomness)
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError(f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")

    @functools.wraps(func)
    def transformed(*args: Any, **named: Any) -> Any:
        check_out_dims(func, out_dims)
        leaves, structure = flatten(args)
        dims = dims_of(func, in_dims, args, leaves, structure)
        count = batch_size(leaves, dims)
        rng = Randomness(randomness)
        function = function_of(func)
        if function is not None and isinstance(out_dims, int):
            info = VmapInfo(count, randomness)
            return call_rule(function, args, dims, info, lambda x, dim: moved(x, dim, out_dims, count))
        results = []
        for place in range(max(count, 1)):
            sample = [sliced(x, dim, place, count) for x, dim in zip(leaves, dims, strict=True)]
            with rng:
                results.append(func(*unflatten(sample, structure), **named))
        return stacked(func, results, out_dims, count)

    return transformed


def sliced(x: Any, dim: int | None, place: int, count: int) -> Any:
    """One entry of a batch; of an empty batch one of zeros, for its shape."""
    if dim is None:
        return x
    if not count:
        return x.new_zeros([n for axis, n in enumerate(x.shape) if axis != dim])
    return views.select_op(x, dim, place)


def dims_of(func: Function, in_dims: Any, args: tuple[Any, ...], leaves: list[Any], structure: Structure) -> list[int | None]:
    """The axis of each leaf of the arguments, not negative. ValueError where they don't fit."""
    name = name_of(func)
    if not isinstance(in_dims, (int, tuple)):
        raise ValueError(f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): expected `in_dims` to be int or a (potentially nested) tuple matching "
                         f"the structure of inputs, got: {type(in_dims)}.")  # fmt: skip
    if not args:
        raise ValueError(f"vmap({name})(<inputs>): got no inputs. Maybe you forgot to add inputs, or you are trying to vmap over a function with no "
                         "inputs. The latter is unsupported.")  # fmt: skip
    found = spread(in_dims, structure)
    where = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if found is None:
        raise ValueError(f"{where}in_dims is not compatible with the structure of `inputs`. in_dims has structure {flatten(in_dims)[1]} but inputs "
                         f"has structure {structure}.")  # fmt: skip
    for place, (x, dim) in enumerate(zip(leaves, found, strict=True)):
        if dim is None:
            continue
        if not isinstance(dim, int):
            raise ValueError(f"{where}Got in_dim={dim} for an input but in_dim must be either an integer dimension or None.")
        if not isinstance(x, Tensor):
            raise ValueError(f"{where}Got in_dim={dim} for an input but the input is of type {type(x)}. We cannot vmap over non-Tensor arguments, "
                             "please use None as the respective in_dim")  # fmt: skip
        if not -x.ndim <= dim < x.ndim:
            raise ValueError(f"{where}Got in_dim={dim} for some input, but that input is a Tensor of dimensionality {x.ndim} so expected in_dim to "
                             f"satisfy -{x.ndim} <= in_dim < {x.ndim}.")  # fmt: skip
        found[place] = dim % x.ndim
    return found


def batch_size(leaves: list[Any], dims: list[int | None]) -> int:
    """The length of the mapped axes. ValueError where there is none, or they differ."""
    sizes = [x.shape[dim] for x, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise ValueError("vmap: Expected at least one Tensor to vmap over")
    if any(size != sizes[0] for size in sizes):
        raise ValueError(f"vmap: Expected all tensors to have the same size in the mapped dimension, got sizes {sizes} for the mapped dimension")
    return int(sizes[0])


def check_out_dims(func: Function, out_dims: Any) -> None:
    """ValueError for what names no axes."""
    for dim in flatten(out_dims)[0]:
        if dim is not None and not isinstance(dim, int):
            raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims}): `out_dims` must be an int, None or a python collection of ints "
                             "representing where in the outputs the vmapped dimension should appear.")  # fmt: skip


def stacked(func: Function, results: list[Any], out_dims: Any, count: int) -> Any:
    """The results of all calls put together."""
    structure = flatten(results[0])[1]
    if structure.kind is None and isinstance(out_dims, tuple) and len(out_dims) == 1:
        dims: list[Any] | None = list(out_dims)
    else:
        dims = spread(out_dims, structure)
    if dims is None:
        incompatible(func, out_dims, structure)
    columns = zip(*[flatten(result)[0] for result in results], strict=True)
    return unflatten([put_together(func, column, dim, count) for column, dim in zip(columns, dims, strict=True)], structure)


def incompatible(func: Function, out_dims: Any, structure: Structure) -> NoReturn:
    """The error for axes that don't go with the results."""
    raise ValueError(f"vmap({name_of(func)}, ..., out_dims={out_dims})(<inputs>): out_dims is not compatible with the structure of `outputs`. "
                     f"out_dims has structure {flatten(out_dims)[1]} but outputs has structure {structure}.")  # fmt: skip


def put_together(func: Function, column: tuple[Any, ...], dim: int | None, count: int) -> Any:
    """One result of all calls: stacked, or, where no axis is named, the one that all of them returned."""
    name, first = name_of(func), column[0]
    if dim is None:
        if any(isinstance(x, Tensor) and x is not first and not bool((x == first).all()) for x in column):
            raise ValueError(f"vmap({name}, ...): `{name}` can not return a BatchedTensor when out_dim is None")
        return first
    if not isinstance(first, Tensor):
        raise ValueError(f"vmap({name}, ...): `{name}` must only return Tensors, got type {type(first)}. Did you mean to set out_dims= to None for "
                         "output?")  # fmt: skip
    whole = joining.stack(column, dim)
    return whole if count else whole.narrow(dim, 0, 0)
