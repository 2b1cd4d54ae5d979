"""Generators, and tensors of random numbers. Everything here is a leaf."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .._core.devices import CPU, blank_like, check_device, device as Device
from .._core.dtypes import dtype as Dtype, float32, iinfo, int64
from .._core.shapes import parse_shape
from .._core.stream import DEFAULT, Stream, fresh_seed
from .._engine import modes
from .._ops import random as draws
from .base import TensorBase, wrap
from .creation import check_out, factory, factory_like, native, sizes, written

Array = np.ndarray[Any, Any]
Tensor = Any
STATE_BYTES: Final = 16


# ---------------------------------------------------------------- generators
class Generator:
    """A source of random numbers: Philox 4x32-10 under a seed, so its whole state is the seed and how far it has got."""

    def __init__(self, device: Any = None) -> None:
        check_device(device)
        self.stream = Stream()

    @property
    def device(self) -> Device:
        """Where it works."""
        return CPU

    def manual_seed(self, seed: int) -> Generator:
        """Begin again under a seed, an int from -2**63 to 2**64 - 1. ValueError for any other."""
        seed = int(seed)
        if not -(1 << 63) <= seed < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        resets()
        self.stream.restart(seed)
        return self

    def seed(self) -> int:
        """Begin again under a seed from the operating system, which is returned."""
        resets()
        self.stream.restart(fresh_seed())
        return self.stream.initial

    def initial_seed(self) -> int:
        """The seed it last began with."""
        return self.stream.initial

    def get_state(self) -> Tensor:
        """The state as a uint8 tensor: seed and offset, 8 bytes each."""
        return wrap(np.array(self.stream.state, "<u8").view(np.uint8))

    def set_state(self, new_state: Tensor) -> Generator:
        """Go on from a state that `get_state` gave. TypeError or RuntimeError for anything else."""
        if not isinstance(new_state, TensorBase) or new_state.meta.dtype != np.uint8:
            raise TypeError("RNG state must be a torch.ByteTensor")
        if new_state.meta.numel != STATE_BYTES:
            raise RuntimeError(f"Expected a CPUGeneratorImplState of size {STATE_BYTES} but found the input RNG state size to be "
                               f"{new_state.meta.numel}")  # fmt: skip
        seed, offset = np.ascontiguousarray(new_state.array).reshape(-1).view("<u8").tolist()
        resets()
        self.stream.state = seed, offset
        return self

    def clone_state(self) -> Generator:
        """Another generator in the same state."""
        other = Generator()
        other.stream.restart(self.stream.initial)
        other.stream.state = self.stream.state
        return other

    def __reduce__(self) -> Any:
        return _generator, (self.stream.initial, self.stream.state)


def _generator(initial: int, state: tuple[int, int]) -> Generator:
    made = Generator()
    made.stream.restart(initial)
    made.stream.state = state
    return made


default_generator: Final = Generator()
default_generator.stream = DEFAULT


def manual_seed(seed: int) -> Generator:
    """Begin the default generator again under a seed; returns it."""
    return default_generator.manual_seed(seed)


def seed() -> int:
    """Begin the default generator again under a seed from the operating system, which is returned."""
    return default_generator.seed()


def initial_seed() -> int:
    """The seed the default generator last began with."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The default generator's state as a uint8 tensor."""
    return default_generator.get_state()


def set_rng_state(new_state: Tensor) -> None:
    """Let the default generator go on from a state that `get_rng_state` gave."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices: Any = None, enabled: bool = True) -> Iterator[None]:
    """What is drawn inside leaves the default generator as it was."""
    before = DEFAULT.state
    try:
        yield
    finally:
        if enabled:
            resets()
            DEFAULT.state = before


# ---------------------------------------------------------------- tensors
def seen(kind: str, array: Array, generator: Any, low: float = 0.0, span: float = 1.0) -> Array:
    """Tell a trace what was drawn; returns the array."""
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.drawn(kind, array, draws.stream_of(generator), low, span)
    return array


def resets() -> None:
    """Tell a trace that a generator is being set."""
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.reseeded()


@factory
def rand(kind: Dtype | None, *size: Any, generator: Any = None, **named: Any) -> Array:
    """Uniform numbers in [0, 1); `rand(2, 3)` or `rand((2, 3))`."""
    shape = sizes("rand", size, named)
    draws.check_floating("check_uniform_bounds", kind or float32)
    return seen("uniform", draws.uniform_array(shape, native(kind), draws.stream_of(generator)), generator)


@factory
def randn(kind: Dtype | None, *size: Any, generator: Any = None, **named: Any) -> Array:
    """Normal numbers of mean 0 and variance 1; `randn(2, 3)` or `randn((2, 3))`."""
    shape = sizes("randn", size, named)
    draws.check_floating("normal_kernel_cpu", kind or float32)
    return seen("normal", draws.normal_array(shape, native(kind), draws.stream_of(generator)), generator)


@factory
def randint(kind: Dtype | None, *args: Any, generator: Any = None, **named: Any) -> Array:
    """Integers: `randint(high, size)` in [0, high), `randint(low, high, size)` in [low, high); int64 unless `dtype` is given."""
    given = dict(zip(("low", "high", "size") if len(args) + len(named) > 2 else ("high", "size"), args, strict=False)) | named
    if "high" not in given or "size" not in given or set(given) - {"low", "high", "size"}:
        raise TypeError(f"randint() received an invalid combination of arguments - got ({', '.join(type(x).__name__ for x in args)})")
    shape = parse_shape((given["size"],), "randint")
    return bounded(shape, int(given.get("low", 0)), int(given["high"]), kind or int64, generator)


def bounded(shape: tuple[int, ...], low: int, high: int, kind: Dtype, generator: Any) -> Array:
    """Integers in [low, high), in a dtype that must hold them."""
    draws.check_range(low, high)
    if kind.kind == "i":
        limits = iinfo(kind)
        for name, value in (("from", low), ("to - 1", high - 1)):
            if not limits.min <= value <= limits.max:
                raise RuntimeError(f"{name} is out of bounds for {kind.numpy.name}")
    found = draws.integer_array(shape, draws.stream_of(generator), low, high).astype(kind.numpy, copy=False)
    return seen("integers", found, generator, low, high - low)


@factory
def randperm(kind: Dtype | None, n: int, *, generator: Any = None) -> Array:
    """The integers from 0 to n - 1 in random order; int64 unless `dtype` is given."""
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    kind = kind or int64
    if kind.kind == "i" and n - 1 > iinfo(kind).max:
        raise RuntimeError(f"value cannot be converted to type {kind.name}_t without overflow")
    found = draws.permutation_array(n, draws.stream_of(generator)).astype(kind.numpy, copy=False)
    return seen("permutation", found, generator)


def laid(found: Array, like: Array, order: Any) -> Array:
    """What was drawn, in the order in memory of another array or in the one asked for."""
    if order is None and like.flags.c_contiguous:
        return found
    made = blank_like(like, found.dtype, order)
    made[...] = found
    return made


@factory_like
def rand_like(array: Array, kind: Dtype, order: Any, *, generator: Any = None) -> Array:
    """Uniform numbers in [0, 1) of the input's shape and dtype."""
    draws.check_floating("check_uniform_bounds", kind)
    found = seen("uniform", draws.uniform_array(array.shape, kind.numpy, draws.stream_of(generator)), generator)
    return laid(found, array, order)


@factory_like
def randn_like(array: Array, kind: Dtype, order: Any, *, generator: Any = None) -> Array:
    """Normal numbers of mean 0 and variance 1, of the input's shape and dtype."""
    draws.check_floating("normal_kernel_cpu", kind)
    found = seen("normal", draws.normal_array(array.shape, kind.numpy, draws.stream_of(generator)), generator)
    return laid(found, array, order)


@factory_like
def randint_like(array: Array, kind: Dtype, order: Any, low: int, high: int | None = None, *, generator: Any = None) -> Array:
    """Integers in [0, low), or in [low, high), of the input's shape and dtype."""
    low, high = (0, low) if high is None else (low, high)
    return laid(bounded(array.shape, low, high, kind, generator), array, order)


@factory
def normal_of_size(kind: Dtype | None, mean: Any, std: Any, size: Any, generator: Any) -> Array:
    """Normal numbers in a given shape."""
    draws.check_std(std)
    draws.check_floating("normal_kernel_cpu", kind or float32)
    found = draws.normal_array(parse_shape((size,), "normal"), native(kind), draws.stream_of(generator), float(mean), float(std))
    return seen("normal", found, generator, float(mean), float(std))


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, out: Any = None, **how: Any) -> Tensor:
    """Normal numbers: of the given `size`, or around a tensor of means and with a tensor of deviations, which broadcast.

    With a size, `dtype`, `layout`, `device`, `pin_memory` and `requires_grad` can be given.
    """
    if size is not None:
        return normal_of_size(mean, std, size, generator, out=out, **how)
    if out is not None:
        check_out("normal", out, None)
        return written(out, normal(mean, std, generator=generator))
    tensor = mean if isinstance(mean, TensorBase) else std
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"normal() received an invalid combination of arguments - got ({type(mean).__name__}, {type(std).__name__})")
    draws.check_floating("normal_kernel_cpu", tensor.meta.kind)
    if not isinstance(std, TensorBase):
        draws.check_std(std)
    elif bool((std.array < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    mean, std = (x if isinstance(x, TensorBase) else wrap(np.asarray(x, tensor.meta.dtype)) for x in (mean, std))
    return draws.normal_around_op(mean, std, draws.stream_of(generator))
