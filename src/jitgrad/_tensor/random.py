"""Generators, and tensors of random numbers. Everything here is a leaf."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

from .._core.devices import CPU, check_device, check_place, device as Device
from .._core.dtypes import dtype as Dtype, float32, iinfo, int64
from .._core.errors import argument_error
from .._core.shapes import parse_shape
from .._core.stream import DEFAULT, Stream, fresh_seed
from .._engine import modes
from .._ops import random as draws
from .base import TensorBase, wrap
from .convert import dtype_argument
from .creation import leaf, native, sizes

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
def seen(kind: str, array: np.ndarray[Any, Any], generator: Any, low: float = 0.0, span: float = 1.0) -> np.ndarray[Any, Any]:
    """Tell a trace what was drawn; returns the array."""
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.drawn(kind, array, draws.stream_of(generator), low, span)
    return array


def resets() -> None:
    """Tell a trace that a generator is being set."""
    if modes.SPECIAL and modes.LOCAL.tracer is not None:
        modes.LOCAL.tracer.reseeded()


def rand(*size: Any, generator: Any = None, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
         layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1); `rand(2, 3)` or `rand((2, 3))`."""
    check_place("rand", device, layout, pin_memory)
    shape, kind = sizes("rand", size, named), native("rand", dtype)
    draws.check_floating("check_uniform_bounds", dtype_argument("rand", dtype) or float32)
    return leaf(seen("uniform", draws.uniform_array(shape, kind, draws.stream_of(generator)), generator), requires_grad)


def randn(*size: Any, generator: Any = None, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
          layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and variance 1; `randn(2, 3)` or `randn((2, 3))`."""
    check_place("randn", device, layout, pin_memory)
    shape, kind = sizes("randn", size, named), native("randn", dtype)
    draws.check_floating("normal_kernel_cpu", dtype_argument("randn", dtype) or float32)
    return leaf(seen("normal", draws.normal_array(shape, kind, draws.stream_of(generator)), generator), requires_grad)


def randint(*args: Any, generator: Any = None, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
            layout: Any = None, pin_memory: bool = False, **named: Any) -> Tensor:  # fmt: skip
    """Integers: `randint(high, size)` in [0, high), `randint(low, high, size)` in [low, high); int64 unless `dtype` is given."""
    check_place("randint", device, layout, pin_memory)
    given = dict(zip(("low", "high", "size") if len(args) + len(named) > 2 else ("high", "size"), args, strict=False)) | named
    if "high" not in given or "size" not in given or set(given) - {"low", "high", "size"}:
        raise TypeError(f"randint() received an invalid combination of arguments - got ({', '.join(type(x).__name__ for x in args)})")
    shape = parse_shape((given["size"],), "randint")
    return leaf(bounded(shape, int(given.get("low", 0)), int(given["high"]), dtype_argument("randint", dtype) or int64, generator), requires_grad)


def bounded(shape: tuple[int, ...], low: int, high: int, kind: Dtype, generator: Any) -> np.ndarray[Any, Any]:
    """Integers in [low, high), in a dtype that must hold them."""
    draws.check_range(low, high)
    if kind.kind == "i":
        limits = iinfo(kind)
        for name, value in (("from", low), ("to - 1", high - 1)):
            if not limits.min <= value <= limits.max:
                raise RuntimeError(f"{name} is out of bounds for {kind.numpy.name}")
    found = draws.integer_array(shape, draws.stream_of(generator), low, high).astype(kind.numpy, copy=False)
    return seen("integers", found, generator, low, high - low)


def randperm(n: int, *, generator: Any = None, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
             layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """The integers from 0 to n - 1 in random order; int64 unless `dtype` is given."""
    check_place("randperm", device, layout, pin_memory)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    kind = dtype_argument("randperm", dtype) or int64
    if kind.kind == "i" and n - 1 > iinfo(kind).max:
        raise RuntimeError(f"value cannot be converted to type {kind.name}_t without overflow")
    found = draws.permutation_array(n, draws.stream_of(generator)).astype(kind.numpy, copy=False)
    return leaf(seen("permutation", found, generator), requires_grad)


def like(function: str, input: Any, dtype: Any, device: Any) -> tuple[tuple[int, ...], Dtype]:
    """Shape and dtype of what a `..._like` function makes."""
    check_device(device)
    if not isinstance(input, TensorBase):
        raise argument_error(function, "input", 1, "Tensor", input)
    return input.meta.shape, dtype_argument(function, dtype) or input.meta.kind


def rand_like(input: Tensor, *, generator: Any = None, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
              layout: Any = None, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Uniform numbers in [0, 1) of the input's shape and dtype."""
    check_place("rand_like", device, layout, False, memory_format)
    shape, kind = like("rand_like", input, dtype, device)
    draws.check_floating("check_uniform_bounds", kind)
    return leaf(seen("uniform", draws.uniform_array(shape, kind.numpy, draws.stream_of(generator)), generator), requires_grad)


def randn_like(input: Tensor, *, generator: Any = None, dtype: Dtype | None = None, device: Any = None, requires_grad: bool = False,
               layout: Any = None, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Normal numbers of mean 0 and variance 1, of the input's shape and dtype."""
    check_place("randn_like", device, layout, False, memory_format)
    shape, kind = like("randn_like", input, dtype, device)
    draws.check_floating("normal_kernel_cpu", kind)
    return leaf(seen("normal", draws.normal_array(shape, kind.numpy, draws.stream_of(generator)), generator), requires_grad)


def randint_like(input: Tensor, low: int, high: int | None = None, *, generator: Any = None, dtype: Dtype | None = None, device: Any = None,
                 requires_grad: bool = False, layout: Any = None, memory_format: Any = None) -> Tensor:  # fmt: skip
    """Integers in [0, low), or in [low, high), of the input's shape and dtype."""
    check_place("randint_like", device, layout, False, memory_format)
    shape, kind = like("randint_like", input, dtype, device)
    low, high = (0, low) if high is None else (low, high)
    return leaf(bounded(shape, low, high, kind, generator), requires_grad)


def normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, *, generator: Any = None, dtype: Dtype | None = None, device: Any = None,
           requires_grad: bool = False, layout: Any = None, pin_memory: bool = False) -> Tensor:  # fmt: skip
    """Normal numbers: of the given `size`, or around a tensor of means and with a tensor of deviations, which broadcast."""
    check_place("normal", device, layout, pin_memory)
    stream = draws.stream_of(generator)
    if size is not None:
        draws.check_std(std)
        draws.check_floating("normal_kernel_cpu", dtype_argument("randn", dtype) or float32)
        found = draws.normal_array(parse_shape((size,), "normal"), native("normal", dtype), stream, float(mean), float(std))
        return leaf(seen("normal", found, generator, float(mean), float(std)), requires_grad)
    tensor = mean if isinstance(mean, TensorBase) else std
    if not isinstance(tensor, TensorBase):
        raise TypeError(f"normal() received an invalid combination of arguments - got ({type(mean).__name__}, {type(std).__name__})")
    draws.check_floating("normal_kernel_cpu", tensor.meta.kind)
    if not isinstance(std, TensorBase):
        draws.check_std(std)
    elif bool((std.array < 0).any()):
        raise RuntimeError("normal expects all elements of std >= 0.0")
    mean, std = (x if isinstance(x, TensorBase) else wrap(np.asarray(x, tensor.meta.dtype)) for x in (mean, std))
    return draws.normal_around_op(mean, std, stream)
