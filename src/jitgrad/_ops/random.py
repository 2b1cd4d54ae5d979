"""Random numbers: draws into new arrays, fills in place, dropout.

An op holds the generator's stream and takes its share of it when it runs; what it has drawn and the backward needs, it saves.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .._core.dtypes import default_dtype, iinfo
from .._core.meta import Meta
from .._core.stream import DEFAULT, Stream
from .._kernels import random as kernels
from .axes import DOUBLE, HALF, LONG, SINGLE, Shape
from .kinds import Array, Tensor, composite, general, linear

MANTISSA: Final = {HALF: 11, SINGLE: 24, DOUBLE: 53}


def stream_of(generator: Any) -> Stream:
    """The stream of a `generator=` argument; the default one for None. TypeError for what is no generator."""
    if generator is None:
        return DEFAULT
    stream = getattr(generator, "stream", None)
    if not isinstance(stream, Stream):
        raise TypeError(f"argument 'generator' must be torch.Generator, not {type(generator).__name__}")
    return stream


# ---------------------------------------------------------------- draws
def room() -> Array:
    """Where a kernel puts the words it is working on."""
    return np.empty(kernels.CHUNK, np.uint64)


def uniform_array(shape: Shape, kind: Any, stream: Stream, low: float = 0.0, high: float = 1.0) -> Array:
    """Uniform numbers in [low, high) of a floating dtype."""
    if kind == HALF:  # 11 bits, so that none is rounded up to `high`
        unit = np.floor(uniform_array(shape, SINGLE, stream) * SINGLE.type(2048)) / SINGLE.type(2048)
        return np.asarray(unit * SINGLE.type(high - low) + SINGLE.type(low), HALF)
    out = np.empty(shape, kind)
    single = kind == SINGLE
    seed, start = stream.take(-(-out.size * (1 if single else 2) // 4))
    (kernels.uniform_single if single else kernels.uniform_double)[kind](out, seed, start, low, high - low, room())
    return out


def normal_array(shape: Shape, kind: Any, stream: Stream, mean: float = 0.0, std: float = 1.0) -> Array:
    """Normal numbers of a floating dtype."""
    if kind == HALF:
        return normal_array(shape, SINGLE, stream, mean, std).astype(HALF)
    out = np.empty(shape, kind)
    kernels.normal_pairs[kind](uniform_array((out.size + out.size % 2,), kind, stream), mean, std, out)
    return out


def exponential_array(shape: Shape, kind: Any, stream: Stream, rate: float = 1.0) -> Array:
    """Exponential numbers of a floating dtype."""
    wide = SINGLE if kind == HALF else np.dtype(kind)
    return np.asarray(np.log1p(-uniform_array(shape, wide, stream)) * wide.type(-1 / rate), kind)


def integer_array(shape: Shape, stream: Stream, low: int, high: int) -> Array:
    """Integers in [low, high) as int64."""
    out = np.empty(shape, LONG)
    span = high - low
    per = 1 if span <= 1 << 32 else 2
    seed, start = stream.take(-(-out.size * per // 4))
    kernels.integers[LONG](out, seed, start, low, span % (1 << 64), room())
    return out


def permutation_array(count: int, stream: Stream) -> Array:
    """A random order of 0 .. count - 1 as int64."""
    out = np.empty(count, LONG)
    seed, start = stream.take(-(-count // 4))
    kernels.permutation[LONG](out, seed, start, room())
    return out


def bernoulli_array(p: Any, shape: Shape, stream: Stream) -> Array:
    """Whether a uniform number lies under `p`, a number or an array that broadcasts to the shape."""
    return np.asarray(np.less(uniform_array(shape, DOUBLE if np.asarray(p).dtype == DOUBLE else SINGLE, stream), p))


def check_floating(kernel: str, kind: Any) -> None:
    """NotImplementedError for a dtype that has no such distribution; `kernel` is torch's name of the loop."""
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{kind.scalar_name}'")


# ---------------------------------------------------------------- fills: new values, so no gradient passes
@linear(node="UniformBackward0", name="_uniform")
def uniform_op(input: Array, low: float, high: float, stream: Any) -> Array:
    return uniform_array(input.shape, input.dtype, stream, low, high)


@linear(node="NormalBackward0", name="_normal")
def normal_op(input: Array, mean: float, std: float, stream: Any) -> Array:
    return normal_array(input.shape, input.dtype, stream, mean, std)


@linear(node="ExponentialBackward0", name="_exponential")
def exponential_op(input: Array, rate: float, stream: Any) -> Array:
    return exponential_array(input.shape, input.dtype, stream, rate)


@linear(node="BernoulliBackward2", name="_bernoulli_fill")
def bernoulli_fill_op(input: Array, p: Any, stream: Any) -> Array:
    return bernoulli_array(p, input.shape, stream).astype(input.dtype)


@linear(node="BernoulliBackward0", name="_bernoulli")
def bernoulli_op(input: Array, stream: Any) -> Array:
    return bernoulli_array(input, input.shape, stream).astype(input.dtype)


def random_general(number: int) -> Any:
    """The op under one of torch's names for it: by how many of the bounds are given."""

    @linear(node=f"RandomBackward{2 - number}", name=f"_random_{number}")
    def op(input: Array, low: int, high: int, stream: Any) -> Array:
        return integer_array(input.shape, stream, low, high).astype(input.dtype)

    return op


random_ops = [random_general(number) for number in range(3)]

for _op in (uniform_op, normal_op, exponential_op, bernoulli_fill_op, bernoulli_op, *random_ops):

    @_op.adjoint
    def _(grad: Array, like: Meta) -> Array:
        return np.zeros(like.shape, grad.dtype)


@composite(inplace="only", public=False)
def uniform(input: Tensor, from_: float = 0.0, to: float = 1.0, *, generator: Any = None) -> Tensor:
    """Uniform numbers in [from_, to)."""
    check_floating("check_uniform_bounds", input.meta.kind)
    if from_ > to:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={from_:g} > to={to:g}")
    return uniform_op(input, float(from_), float(to), stream_of(generator))


@composite(inplace="only", public=False)
def normal(input: Tensor, mean: float = 0.0, std: float = 1.0, *, generator: Any = None) -> Tensor:
    """Normal numbers."""
    check_std(std)
    check_floating("normal_kernel_cpu", input.meta.kind)
    return normal_op(input, float(mean), float(std), stream_of(generator))


def check_std(std: float) -> None:
    """RuntimeError for a negative standard deviation."""
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")


@composite(inplace="only", public=False)
def exponential(input: Tensor, lambd: float = 1.0, *, generator: Any = None) -> Tensor:
    """Exponential numbers of rate `lambd`."""
    check_floating("exponential_kernel_cpu", input.meta.kind)
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    return exponential_op(input, float(lambd), stream_of(generator))


@composite(name="bernoulli", inplace="only", public=False)
def bernoulli_fill(input: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    """One with probability `p` (a number, or a tensor that broadcasts), else zero."""
    if hasattr(p, "meta"):
        check_probabilities(p)
        return bernoulli_fill_op(input, p.array, stream_of(generator))
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    return bernoulli_fill_op(input, float(p), stream_of(generator))


@composite
def bernoulli(input: Tensor, p: Any = None, *, generator: Any = None) -> Tensor:
    """One with the probability each element gives, or with probability `p`, else zero; of the input's dtype."""
    if p is not None:
        return bernoulli_fill(input, p, generator=generator)
    check_floating("bernoulli_tensor_cpu_p_", input.meta.kind)
    check_probabilities(input)
    return bernoulli_op(input, stream_of(generator))


def check_probabilities(p: Tensor) -> None:
    """RuntimeError unless all elements lie in [0, 1]."""
    if not bool(np.all((p.array >= 0) & (p.array <= 1))):
        raise RuntimeError("Expected p_in >= 0 && p_in <= 1 to be true, but got false.")


@composite(inplace="only", public=False)
def random(input: Tensor, from_: Any = None, to: Any = None, *, generator: Any = None) -> Tensor:
    """Integers in [from_, to); from 0 on if one bound is given, and up to what the dtype holds exactly if none is."""
    kind = input.meta.kind
    low, high = (0, from_) if to is None else (from_ or 0, to)
    if high is None:
        high = 2 ** MANTISSA[kind.numpy] + 1 if kind.is_floating_point else 2 if kind.kind == "b" else iinfo(kind).max + 1
    check_range(low, high)
    given = (from_ is not None) + (to is not None)
    return random_ops[given](input, int(low), int(high), stream_of(generator))


def check_range(low: int, high: int) -> None:
    """RuntimeError for an empty range of integers."""
    if low >= high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")


# ---------------------------------------------------------------- dropout
@general(node="MulBackward0", saves=("mask",), extras=("mask",), name="_dropout")
def dropout_op(input: Array, p: float, stream: Any) -> tuple[Array, Array]:
    """input / (1 - p) where a mask is set, input * 0 elsewhere; and the mask."""
    if input.dtype == HALF:
        out, mask = dropout_op.function(input.astype(SINGLE), p, stream)
        return out.astype(HALF), mask
    input = np.asarray(input, order="C")
    out, mask = np.empty(input.shape, input.dtype), np.empty(input.shape, np.bool_)
    seed, start = stream.take(-(-out.size // 4))
    kernels.dropout[input.dtype](input, seed, start, round((1 - p) * 2**32), kept_scale(p), out, mask, room())
    return out, mask


def kept_scale(p: float) -> float:
    """What kept elements are multiplied by."""
    return 1 / (1 - p) if p < 1 else 0.0


@dropout_op.rule
def _(grad: Tensor, mask: Tensor, p: float) -> Tensor:
    return grad * mask * kept_scale(p)


@dropout_op.fused
def _(grad: Array, mask: Array, p: float) -> Array:
    if grad.dtype == HALF:
        return grad * mask * HALF.type(kept_scale(p))
    out = np.empty(grad.shape, grad.dtype)
    kernels.dropout_backward[grad.dtype](grad, mask, kept_scale(p), out)
    return out


@composite(method=False, inplace="write")
def dropout(input: Tensor, p: float = 0.5, train: bool = True) -> Tensor:
    """In training each element is zero with probability `p`, else divided by 1 - p; otherwise the input itself."""
    if not 0 <= p <= 1:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p:g}")
    if p == 0 or not train or input.meta.numel == 0:
        return input
    if not input.meta.kind.is_floating_point:
        raise RuntimeError(f"result type {default_dtype().scalar_name} can't be cast to the desired output type {input.meta.kind.scalar_name}")
    return dropout_op(input, float(p), DEFAULT)


# ---------------------------------------------------------------- choices
@general(differentiable=(), name="_multinomial")
def multinomial_op(input: Array, count: int, replacement: bool, stream: Any) -> Array:
    rows = input.reshape(-1, input.shape[-1]).astype(np.float64)
    if replacement:
        ends = np.cumsum(rows, axis=1)
        points = uniform_array((len(rows), count), DOUBLE, stream) * ends[:, -1:]
        found = np.stack([np.searchsorted(end, point, "right") for end, point in zip(ends, points, strict=True)])
        found = np.minimum(found, [[np.flatnonzero(row)[-1]] for row in rows])
    else:  # a race: the smallest of exponential numbers of rate p is element k with probability p[k]
        with np.errstate(divide="ignore"):
            times = exponential_array(rows.shape, DOUBLE, stream) / rows
        found = np.argsort(times, axis=1, kind="stable")[:, :count]
    return np.ascontiguousarray(found.astype(LONG).reshape(*input.shape[:-1], count))


@composite
def multinomial(input: Tensor, num_samples: int, replacement: bool = False, *, generator: Any = None) -> Tensor:
    """Indices drawn with the probabilities (up to a factor) in each row of a vector or matrix: shape (..., num_samples), int64."""
    if not input.meta.kind.is_floating_point:
        raise RuntimeError(f"multinomial only supports floating-point dtypes for input, got: {input.meta.kind.scalar_name}")
    if input.ndim not in (1, 2):
        raise RuntimeError("prob_dist must be 1 or 2 dim")
    if num_samples <= 0:
        raise RuntimeError("cannot sample n_sample <= 0 samples")
    if not replacement and num_samples > input.shape[-1]:
        raise RuntimeError("cannot sample n_sample > prob_dist.size(-1) samples without replacement")
    if not bool(np.all(np.isfinite(input.array) & (input.array >= 0))):
        raise RuntimeError("probability tensor contains either `inf`, `nan` or element < 0")
    if bool(np.any(input.array.sum(-1) <= 0)):
        raise RuntimeError("invalid multinomial distribution (sum of probabilities <= 0)")
    return multinomial_op(input, num_samples, bool(replacement), stream_of(generator))


# ---------------------------------------------------------------- around tensors
@general(node="NormalBackward3", saves=(), name="_normal_around")
def normal_around_op(mean: Array, std: Array, stream: Any) -> Array:
    shape, kind = np.broadcast_shapes(mean.shape, std.shape), np.result_type(mean, std)
    return np.asarray(normal_array(shape, kind, stream) * std + mean)


@normal_around_op.rule
def _(grad: Tensor) -> tuple[Tensor, Tensor]:
    return grad * 0, grad * 0
