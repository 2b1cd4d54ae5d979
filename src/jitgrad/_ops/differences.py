"""Differences and sums of neighbours along an axis: `diff`, `gradient`, the trapezoidal rule."""

from __future__ import annotations

from typing import Any

from .._core.dtypes import bool_, int64
from .._core.shapes import wrap_dim
from .joining import cat
from .kinds import Tensor, composite

NUMBERS = (int, float)


# ---------------------------------------------------------------- differences
@composite
def diff(input: Tensor, n: int = 1, dim: int = -1, prepend: Tensor | None = None, append: Tensor | None = None) -> Tensor:
    """The n-th differences of neighbours along `dim`, of `prepend`, the input and `append` joined; of bools whether they differ."""
    if not input.ndim:
        raise RuntimeError("diff expects input to be at least one-dimensional")
    at = wrap_dim(dim, input.ndim)
    parts = [part for part in (prepend, input, append) if part is not None]
    for part in parts:
        check_joinable(input, part, at)
    if n < 0:
        raise RuntimeError(f"order must be non-negative but got {n}")
    if n == 0:
        return input.clone()
    result = cat(parts, at) if len(parts) > 1 else input
    for _ in range(min(n, result.meta.shape[at])):
        length = max(result.meta.shape[at] - 1, 0)
        later, earlier = result.narrow(at, min(1, result.meta.shape[at]), length), result.narrow(at, 0, length)
        result = later.logical_xor(earlier) if result.meta.kind is bool_ else later - earlier
    return result


def check_joinable(input: Tensor, part: Tensor, dim: int) -> None:
    """RuntimeError unless all other axes agree."""
    if part.ndim != input.ndim:
        raise RuntimeError("diff expects prepend or append to be the same dimension as input")
    for axis, (n, m) in enumerate(zip(input.meta.shape, part.meta.shape, strict=True)):
        if axis != dim and n != m:
            raise RuntimeError("diff expects the shape of tensor to prepend or append to match that of input except along the differencing "
                               f"dimension; input.size({axis}) = {n}, but got tensor.size({axis}) = {m}")  # fmt: skip


# ---------------------------------------------------------------- derivatives on a grid
def gradient_dims(input: Tensor, dim: Any) -> list[int]:
    """The axes to take derivatives along."""
    if dim is None:
        return list(range(input.ndim))
    dims = [wrap_dim(d, input.ndim) for d in ([dim] if isinstance(dim, int) else dim)]
    for d in dims:
        if dims.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return dims


def gradient_steps(input: Tensor, spacing: Any, dims: list[int], named: bool) -> list[Any]:
    """A number, or a tensor of coordinates, for each axis."""
    if spacing is None or isinstance(spacing, NUMBERS):
        return [1.0 if spacing is None else spacing] * len(dims)
    steps = list(spacing) if not hasattr(spacing, "meta") else [spacing]
    if len(steps) != len(dims):
        wanted = f"'dim' = {len(dims)}, since dim argument was given" if named else f"'self.dim() = {input.ndim}', since dim argument was not given"
        raise RuntimeError(f"torch.gradient expected spacing to be unspecified, a scalar, or a list of length equal to {wanted}, but got a list of "
                           f"length {len(steps)}")  # fmt: skip
    for step, d in zip(steps, dims, strict=True):
        if hasattr(step, "meta") and step.meta.shape != (input.meta.shape[d],):
            raise RuntimeError("torch.gradient expected each element of spacing to have the same length as the corresponding dimension of self")
    return steps


def along(input: Tensor, dim: int, first: int, count: int) -> Tensor:
    """A range of an axis; `first` may count from the end."""
    return input.narrow(dim, first % input.meta.shape[dim], count)


def evenly_spaced(input: Tensor, dim: int, step: float, order: int) -> Tensor:
    """Central differences inside, one-sided ones of an order at the ends, for neighbours `step` apart."""
    n = input.meta.shape[dim]
    inner = (along(input, dim, 2, n - 2) - along(input, dim, 0, n - 2)) / (2 * step) if n > 2 else input.narrow(dim, 0, 0) / step

    def end(places: tuple[int, ...], sign: float) -> Tensor:
        points = [along(input, dim, place, 1) for place in places]
        if order == 1:
            return (points[1] - points[0]) * (sign / step)
        return (points[0] * -1.5 + points[1] * 2 - points[2] * 0.5) * (sign / step)

    return cat([end((0, 1, 2)[: order + 1], 1.0), inner, end((-1, -2, -3)[: order + 1], -1.0)], dim)


def at_coordinates(input: Tensor, dim: int, at: Tensor, order: int) -> Tensor:
    """The same for neighbours at given coordinates, weighted by their distances."""
    n, shape = input.meta.shape[dim], (-1,) + (1,) * (input.ndim - dim - 1)
    steps = (at.narrow(0, 1, n - 1) - at.narrow(0, 0, n - 1)).reshape(shape)
    slopes = (along(input, dim, 1, n - 1) - along(input, dim, 0, n - 1)) / steps
    if n < 3:
        return cat([slopes, slopes], dim)
    before, after = steps.narrow(0, 0, n - 2), steps.narrow(0, 1, n - 2)
    first, second = along(slopes, dim, 0, n - 2), along(slopes, dim, 1, n - 2)
    inner = (first * after + second * before) / (before + after)

    def end(near: int, far: int) -> Tensor:
        slope = along(slopes, dim, near, 1)
        if order == 1:
            return slope
        a, b = (steps.narrow(0, place % (n - 1), 1) for place in (near, far))
        return slope + (slope - along(slopes, dim, far, 1)) * a / (a + b)

    return cat([end(0, 1), inner, end(-1, -2)], dim)


@composite(method=False)
def gradient(input: Tensor, *, spacing: Any = None, dim: Any = None, edge_order: int = 1) -> Any:
    """Derivatives along axes by central differences, one-sided at the ends: a tuple with a tensor per axis.

    `spacing` is the distance of neighbours, a number for all axes or a list of numbers, or of vectors of coordinates, one per axis.
    RuntimeError where an axis is too short.
    """
    dims = gradient_dims(input, dim)
    steps = gradient_steps(input, spacing, dims, dim is not None)
    if edge_order not in (1, 2):
        raise RuntimeError("torch.gradient only supports edge_order=1 and edge_order=2.")
    for d in dims:
        if input.meta.shape[d] < edge_order + 1:
            raise RuntimeError("torch.gradient expected each dimension size to be at least edge_order+1")
    pairs = zip(dims, steps, strict=True)
    return tuple(at_coordinates(input, d, h, edge_order) if hasattr(h, "meta") else evenly_spaced(input, d, h, edge_order) for d, h in pairs)


# ---------------------------------------------------------------- the trapezoidal rule
def check_samples(function: str, y: Tensor, x: Tensor | None, dx: Any) -> None:
    """RuntimeError for bools, TypeError for a step that is no number."""
    if y.meta.kind is bool_:
        raise RuntimeError(f"{function}: received a bool input for `y`, but bool is not supported")
    if x is not None and x.meta.kind is bool_:
        raise RuntimeError(f"{function}: received a bool input for `x` or `y`, but bool is not supported")
    if x is not None and dx is not None:
        raise TypeError(f"{function}() received an invalid combination of arguments: x and dx")
    if dx is not None and not isinstance(dx, NUMBERS):
        raise TypeError(f"{function}() received an invalid combination of arguments - got (Tensor, dx={type(dx).__name__})")


def panels(function: str, y: Tensor, x: Tensor | None, dx: Any, dim: int) -> Tensor:
    """The area between neighbouring samples along an axis, doubled unless there are coordinates."""
    n = y.meta.shape[dim]
    pairs = y.narrow(dim, min(1, n), max(n - 1, 0)) + y.narrow(dim, 0, max(n - 1, 0))
    if x is None:
        return pairs
    if x.ndim == 1:
        if x.meta.shape[0] != n:
            raise RuntimeError(f"{function}: There must be one `x` value for each sample point")
        x = x.reshape((-1,) + (1,) * (y.ndim - dim - 1))
    axis = dim - y.ndim
    m = x.meta.shape[axis]
    return pairs * (x.narrow(axis, min(1, m), max(m - 1, 0)) - x.narrow(axis, 0, max(m - 1, 0)))


@composite(method=False, aliases=("trapz",))
def trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integral of samples along `dim` by the trapezoidal rule, at coordinates `x` or `dx` apart. RuntimeError for bools."""
    check_samples("trapezoid", y, x, dx)
    if not y.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    at = wrap_dim(dim, y.ndim)
    if y.meta.shape[at] == 0:
        return y.sum(at) * 0.0
    return panels("trapezoid", y, x, dx, at).sum(at) * ((1 if dx is None else dx) / 2.0)


@composite(method=False)
def cumulative_trapezoid(y: Tensor, x: Tensor | None = None, *, dx: Any = None, dim: int = -1) -> Tensor:
    """The integrals up to each sample but the first along `dim` by the trapezoidal rule."""
    check_samples("cumulative_trapezoid", y, x, dx)
    at = wrap_dim(dim, y.ndim)
    return (panels("cumulative_trapezoid", y, x, dx, at) * ((1 if dx is None else dx) / 2.0)).cumsum(at)


# ---------------------------------------------------------------- powers side by side
@composite(method=False)
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix of powers of a vector's elements: columns from the (N-1)-th power down to 1, or up with `increasing`."""
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = x.meta.shape[0] if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    powers = linalg_powers(x, n)
    return powers if increasing else powers.flip(-1)


def linalg_powers(x: Tensor, n: int) -> Tensor:
    """1, x, x**2 ... in a new last axis, as running products; integers in int64."""
    if not x.meta.kind.is_floating_point:
        x = x.to(int64)
    if n == 0:
        return x.new_empty((*x.meta.shape, 0))
    one = x.new_ones((*x.meta.shape, 1))
    return cat([one, x.unsqueeze(-1).expand(*x.meta.shape, n - 1).cumprod(-1)], -1) if n > 1 else one


@composite(method=False)
def linalg_vander(x: Tensor, *, N: int | None = None) -> Tensor:
    """The powers 0 .. N-1 of each element in a new last axis; N is the length of the last axis by default."""
    x = x if x.ndim else x.reshape(1)
    n = x.meta.shape[-1] if N is None else N
    if n <= 1:
        raise RuntimeError(f"N must be greater than 1, but got {n}")
    return linalg_powers(x, n)
