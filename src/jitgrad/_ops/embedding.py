"""Look-up of rows in a table."""

from __future__ import annotations

import numpy as np

from .._core.dtypes import int32, int64
from .._core.meta import Meta
from .._kernels import embedding as kernels
from .axes import COMPILED, DOUBLE, LONG
from .kinds import Array, Index, Tensor, composite, general, linear


def flat_index(indices: Array) -> Array:
    """The indices C-contiguous in int64."""
    return np.asarray(indices, LONG, order="C")


@general(node="EmbeddingBackward0", saves=("indices",), name="_embedding")
def embedding_op(weight: Array, indices: Index, padding_idx: int, by_frequency: bool) -> Array:
    return looked_up(weight, flat_index(indices))


def looked_up(table: Array, index: Array) -> Array:
    """Rows of the table: shape (*index.shape, width). IndexError for an index that is out of range."""
    out = np.empty((*index.shape, table.shape[1]), table.dtype)
    if table.dtype.char in COMPILED:
        bad = kernels.gather_rows[table.dtype](np.ascontiguousarray(table), index, out)
        if bad >= 0:
            raise IndexError("index out of range in self")
    else:
        if index.size and not 0 <= index.min() <= index.max() < len(table):
            raise IndexError("index out of range in self")
        np.take(table, index, axis=0, out=out)
    return out


@embedding_op.rule
def _(grad: Tensor, indices: Tensor, like: tuple[Meta, Meta], padding_idx: int, by_frequency: bool) -> Tensor:
    return collect_op(grad, indices, like[0].shape[0], padding_idx, by_frequency)


@embedding_op.fused
def _(grad: Array, indices: Array, like: tuple[Meta, Meta], padding_idx: int, by_frequency: bool) -> Array:
    return collected(grad, flat_index(indices), like[0].shape[0], padding_idx, by_frequency)


def collected(grad: Array, index: Array, rows: int, padding_idx: int, by_frequency: bool) -> Array:
    """The sum of the rows that have the same index, or their mean; none for `padding_idx`."""
    out = np.empty((rows, grad.shape[-1]), grad.dtype)
    counts = np.bincount(index.reshape(-1), minlength=rows).astype(DOUBLE) if by_frequency else np.empty(0)
    if grad.dtype.char in COMPILED:
        kernels.add_rows[grad.dtype](np.ascontiguousarray(grad), index, padding_idx, counts, int(by_frequency), out)
        return out
    out.fill(0)
    places = index.reshape(-1)
    kept = places != padding_idx
    parts = grad.reshape(len(places), -1)[kept]
    np.add.at(out, places[kept], (parts / counts[places[kept], None]).astype(grad.dtype) if by_frequency else parts)
    return out


@linear(node="EmbeddingDenseBackward0", name="_collect_rows")
def collect_op(input: Array, indices: Index, rows: int, padding_idx: int, by_frequency: bool) -> Array:
    return collected(input, flat_index(indices), rows, padding_idx, by_frequency)


@collect_op.adjoint
def _(grad: Array, indices: Array, rows: int, padding_idx: int, by_frequency: bool) -> Array:
    index = flat_index(indices)
    result = looked_up(grad, index)
    if by_frequency:
        result /= np.bincount(index.reshape(-1), minlength=rows)[index][..., None].astype(grad.dtype)
    result[index == padding_idx] = 0
    return result


@composite(method=False)
def embedding(weight: Tensor, indices: Tensor, padding_idx: int = -1, scale_grad_by_freq: bool = False, sparse: bool = False) -> Tensor:
    """Rows of `weight` (count, width) that `indices` (any shape, int64 or int32) names: shape (*indices.shape, width).

    The row `padding_idx` gets no gradient; with `scale_grad_by_freq` a row's gradient is divided by how often it is used. IndexError for
    an index that is out of range.
    """
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    kind = indices.meta.kind
    if kind is not int64 and kind is not int32:
        raise RuntimeError(f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
                           f"torch.{kind.scalar_name}Tensor instead (while checking arguments for embedding)")  # fmt: skip
    return embedding_op(weight, indices, padding_idx, bool(scale_grad_by_freq))


