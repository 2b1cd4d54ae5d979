"""`save` and `load`: tensors, and dicts, lists and modules that hold them, in the zip files that torch writes and reads.

A file holds a pickle of the object, in which each piece of memory stands as a number, and the pieces themselves, uncompressed. Tensors that
share memory share it again after loading. Loading is safe by default: only tensors, numbers, strings and plain containers are made, and
any other class or function that a file names is refused, unless `add_safe_globals` has let it in.

>>> import io, jitgrad
>>> file = io.BytesIO()
>>> jitgrad.save({"weights": jitgrad.ones(2)}, file)
>>> _ = file.seek(0)
>>> jitgrad.load(file)
{'weights': tensor([1., 1.])}
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import pickletools
import sys
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, ClassVar, Final

import numpy as np

from ._core.devices import check_device, device
from ._core.dtypes import (
    ALL_DTYPES,
    bool_,
    dtype as Dtype,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from ._core.shapes import Size
from ._ops.views import flat_memory, memory_of, window
from ._tensor import Tensor
from ._tensor.creation import leaf
from .nn.parameter import Parameter

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]

Array = np.ndarray[Any, Any]
PREFIX: Final = "archive/"
PROTOCOL: Final = 2  # up to which names stand in a pickle as text, so that ours can be put as torch's


# ---------------------------------------------------------------- what a pickle names
class StorageKind:
    """What stands in a pickle for memory of one dtype."""

    kind: ClassVar[Dtype]

    def __init_subclass__(cls, kind: Dtype) -> None:
        cls.kind = kind


class FloatStorage(StorageKind, kind=float32):
    """float32."""


class DoubleStorage(StorageKind, kind=float64):
    """float64."""


class HalfStorage(StorageKind, kind=float16):
    """float16."""


class LongStorage(StorageKind, kind=int64):
    """int64."""


class IntStorage(StorageKind, kind=int32):
    """int32."""


class ShortStorage(StorageKind, kind=int16):
    """int16."""


class CharStorage(StorageKind, kind=int8):
    """int8."""


class ByteStorage(StorageKind, kind=uint8):
    """uint8."""


class BoolStorage(StorageKind, kind=bool_):
    """bool."""


def rebuild_tensor(storage: Array, start: int, size: Any, stride: Any, requires_grad: bool = False, hooks: Any = None, metadata: Any = None) -> Any:
    """A tensor over loaded memory. RuntimeError for places outside of it."""
    shape, steps = tuple(int(n) for n in size), tuple(int(n) for n in stride)
    if start < 0 or min((*shape, *steps, 0)) < 0 or len(shape) != len(steps):
        raise RuntimeError(f"a saved tensor has offset {start}, shape {list(shape)} and strides {list(steps)}: the file is damaged")
    kind = next(kind for kind in ALL_DTYPES if kind.numpy == storage.dtype)
    return leaf(window(storage, kind, int(start), shape, steps), bool(requires_grad))


def rebuild_parameter(data: Any, requires_grad: bool, hooks: Any = None) -> Parameter:
    """A parameter over a loaded tensor's memory."""
    return Parameter(data, requires_grad)


def rebuild_parameter_with_state(data: Any, requires_grad: bool, hooks: Any, state: Any) -> Parameter:
    """The same with attributes of its own."""
    parameter = Parameter(data, requires_grad)
    parameter.__dict__.update(state)
    return parameter


KINDS: Final = {cls.kind: cls for cls in (FloatStorage, DoubleStorage, HalfStorage, LongStorage, IntStorage, ShortStorage, CharStorage, ByteStorage,
                                          BoolStorage)}  # fmt: skip
_HERE: Final = __name__
# Names as Python's pickles have them, and as they stand in the file: torch's.
NAMES: Final = {
    (_HERE, "rebuild_tensor"): ("torch._utils", "_rebuild_tensor_v2"),
    (_HERE, "rebuild_parameter"): ("torch._utils", "_rebuild_parameter"),
    (_HERE, "rebuild_parameter_with_state"): ("torch._utils", "_rebuild_parameter_with_state"),
    (Size.__module__, "Size"): ("torch", "Size"),
    ("jitgrad", "device"): ("torch", "device"),
    **{(_HERE, cls.__name__): ("torch", cls.__name__) for cls in KINDS.values()},
    **{("jitgrad", kind.name): ("torch", kind.name) for kind in ALL_DTYPES},
}
MEANINGS: Final[dict[tuple[str, str], Any]] = {
    ("torch._utils", "_rebuild_tensor_v2"): rebuild_tensor,
    ("torch._utils", "_rebuild_parameter"): rebuild_parameter,
    ("torch._utils", "_rebuild_parameter_with_state"): rebuild_parameter_with_state,
    ("torch", "Size"): Size,
    ("torch", "device"): device,
    ("torch.storage", "UntypedStorage"): ByteStorage,
    ("collections", "OrderedDict"): OrderedDict,
    ("collections", "Counter"): Counter,
    ("builtins", "set"): set,
    ("builtins", "frozenset"): frozenset,
    ("builtins", "complex"): complex,
    ("builtins", "bytearray"): bytearray,
    ("__builtin__", "set"): set,
    ("__builtin__", "frozenset"): frozenset,
    ("__builtin__", "complex"): complex,
    ("__builtin__", "bytearray"): bytearray,
    ("_codecs", "encode"): lambda text, encoding: text.encode(encoding),  # how protocol 2 spells bytes
    **{("torch", cls.__name__): cls for cls in KINDS.values()},
    **{("torch", kind.name): kind for kind in ALL_DTYPES},
}
MEANINGS.update({ours: MEANINGS[theirs] for ours, theirs in NAMES.items()})
_SAFE: Final[dict[tuple[str, str], Any]] = {}  # what users have let in


def _name_of(item: Any) -> tuple[tuple[str, str], Any]:
    """The full name of a class or function; a pair gives it a name that stands in the file."""
    if isinstance(item, tuple):
        item, name = item
        module, _, last = name.rpartition(".")
        return (module, last), item
    return (item.__module__, item.__qualname__), item


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Let `load` make objects of these classes, and call these functions, when a file names them; (class, "its.name") for another name."""
    _SAFE.update(_name_of(item) for item in safe_globals)


def get_safe_globals() -> list[Any]:
    """What `add_safe_globals` has let in."""
    return list(_SAFE.values())


def clear_safe_globals() -> None:
    """Let nothing in any more."""
    _SAFE.clear()


@contextlib.contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """`add_safe_globals` for the length of a block."""
    before = dict(_SAFE)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _SAFE.clear()
        _SAFE.update(before)


# ---------------------------------------------------------------- writing
class Writer(pickle.Pickler):
    """Pickles an object; pieces of memory get numbers and are kept in `pieces`."""

    def __init__(self, file: Any, protocol: int) -> None:
        super().__init__(file, protocol)
        self.pieces: list[Array] = []
        self._numbers: dict[int, tuple[str, Dtype]] = {}

    def persistent_id(self, obj: Any) -> Any:
        """The number of a piece of memory, which comes as (array, dtype) in a `Piece`."""
        if not isinstance(obj, Piece):
            return None
        number, kind = self._numbers.get(obj.address, (None, obj.kind))
        if number is None:
            number = str(len(self.pieces))
            self._numbers[obj.address] = number, kind
            self.pieces.append(obj.elements)
        elif kind is not obj.kind:
            raise RuntimeError("Cannot save multiple tensors or storages that view the same data as different types")
        return ("storage", KINDS[obj.kind], number, "cpu", obj.elements.size)

    def reducer_override(self, obj: Any) -> Any:
        """How tensors, parameters, dtypes and shapes are written."""
        if isinstance(obj, Dtype):
            return obj.name
        if type(obj) is Size:
            return Size, (tuple(obj),)
        if type(obj) in (Tensor, Parameter):
            return _reduced(obj)
        return NotImplemented


class Piece:
    """Memory that tensors lie in, on its way into a file."""

    def __init__(self, array: Array, kind: Dtype) -> None:
        self.elements, self.kind = flat_memory(array, kind), kind
        self.address: int = memory_of(array).__array_interface__["data"][0] if array.size else id(array)


def _reduced(tensor: Any) -> Any:
    """A tensor as its rebuilding function and arguments; attributes are kept for parameters."""
    place = (tensor.storage_offset(), tuple(tensor.meta.shape), tuple(tensor.stride()))
    piece = Piece(tensor.array, tensor.meta.kind)
    if type(tensor) is not Parameter:
        return rebuild_tensor, (piece, *place, tensor.requires_grad, OrderedDict())
    data = tensor.detach()
    if tensor.__dict__:
        return rebuild_parameter_with_state, (data, tensor.requires_grad, OrderedDict(), dict(tensor.__dict__))
    return rebuild_parameter, (data, tensor.requires_grad, OrderedDict())


def _as_torch_names(pickled: bytes) -> bytes:
    """The pickle with our names replaced by torch's."""
    parts, done = [], 0
    found = [(argument, at) for opcode, argument, at in pickletools.genops(pickled) if opcode.name == "GLOBAL"]
    for argument, at in found:
        module, _, name = str(argument).partition(" ")
        new = NAMES.get((module, name))
        if new is not None:
            assert at is not None
            parts += [pickled[done : at + 1], f"{new[0]}\n{new[1]}\n".encode()]
            done = at + 1 + len(f"{module}\n{name}\n".encode())
    return b"".join([*parts, pickled[done:]])


def save(obj: Any, f: Any, pickle_module: Any = pickle, pickle_protocol: int = PROTOCOL, _use_new_zipfile_serialization: bool = True) -> None:
    """Write an object to a file: a path, or a file object open for writing.

    Anything that can be pickled will do; what `load` takes without being told to trust the file are tensors, parameters, numbers, strings,
    dtypes and dicts, lists, tuples and sets of them, such as a `state_dict()`. Memory is written once however many tensors lie in it, and as
    a whole. torch can read the file, unless it holds classes of this package.

    AttributeError for what is no file; RuntimeError where one piece of memory is seen as two dtypes.
    """
    if pickle_module is not pickle:
        raise NotImplementedError("save() writes with Python's own pickle module only")
    if not (isinstance(f, (str, os.PathLike)) or hasattr(f, "write")):
        raise AttributeError("expected 'f' to be string, path, or a file-like object with a 'write' attribute")
    buffer = io.BytesIO()
    writer = Writer(buffer, max(pickle_protocol, 1))  # protocol 0 can't tell memory from text
    writer.dump(obj)
    pickled = buffer.getvalue()
    with zipfile.ZipFile(f, "w", zipfile.ZIP_STORED) as file:
        file.writestr(PREFIX + "data.pkl", _as_torch_names(pickled) if pickle_protocol <= PROTOCOL else pickled)
        file.writestr(PREFIX + "byteorder", sys.byteorder)
        for number, elements in enumerate(writer.pieces):
            with file.open(f"{PREFIX}data/{number}", "w", force_zip64=True) as entry:
                entry.write(elements.view(np.uint8).data)
        file.writestr(PREFIX + "version", "3\n")


# ---------------------------------------------------------------- reading
_REFUSED: Final = (
    "Weights only load failed. This file can still be loaded, to do so you have two options, do those steps only if you trust the source of the "
    "checkpoint. \n\t(1) Re-running `load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code execution. "
    "Do it only if you got the file from a trusted source.\n\t(2) Alternatively, to load with `weights_only=True` please check the recommended "
    "steps in the following error message.\n\tUnsupported global: GLOBAL {name} was not an allowed global by default. Please use "
    "`serialization.add_safe_globals([{name}])` or the `serialization.safe_globals([{name}])` context manager to allowlist this global if you trust "
    "this class/function."
)


class Reader(pickle.Unpickler):
    """Unpickles an object; what stands for memory becomes arrays by way of `piece`."""

    def __init__(self, file: Any, piece: Callable[[str, Dtype, int], Array], trusted: bool, **rest: Any) -> None:
        super().__init__(file, **rest)
        self._piece, self._trusted = piece, trusted

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for. UnpicklingError for one that is not known to be harmless, unless the file is trusted."""
        found = _SAFE.get((module, name)) or MEANINGS.get((module, name))
        if found is not None:
            return found
        if module == "torch" and name.endswith("Storage"):
            raise pickle.UnpicklingError(f"the file holds a torch.{name}, a dtype that tensors can't have here")
        if not self._trusted:
            raise pickle.UnpicklingError(_REFUSED.format(name=f"{module}.{name}"))
        return super().find_class(module, name)

    def persistent_load(self, pid: Any) -> Any:
        """The memory of a number."""
        if not isinstance(pid, tuple) or len(pid) != 5 or pid[0] != "storage" or not issubclass(pid[1], StorageKind):
            raise pickle.UnpicklingError(f"Unknown typename for persistent_load, expected 'storage' but got '{pid}'")
        return self._piece(str(pid[2]), pid[1].kind, int(pid[4]))


def _check_location(map_location: Any) -> None:
    """Accept whatever leaves everything on the CPU."""
    if map_location is None or callable(map_location):
        return
    for where in map_location.values() if isinstance(map_location, dict) else [map_location]:
        check_device(where, "load")


def load(f: Any, map_location: Any = None, pickle_module: Any = None, *, weights_only: bool | None = None, mmap: bool | None = None,
         **pickle_load_args: Any) -> Any:  # fmt: skip
    """What `save`, or `torch.save`, has written to a file: a path, or a file object that can seek.

    map_location: None or the CPU. weights_only: False to trust the file, which may then run any code; otherwise a class or function that isn't
    known to be harmless raises UnpicklingError. mmap: accepted; the file is read at once.

    FileNotFoundError, EOFError or UnpicklingError for what is no such file, AttributeError for what is no file at all.
    """
    if pickle_module not in (None, pickle):
        raise NotImplementedError("load() reads with Python's own pickle module only")
    _check_location(map_location)
    if not isinstance(f, (str, os.PathLike)) and not hasattr(f, "seek"):
        raise AttributeError(f"'{type(f).__name__}' object has no attribute 'seek'. You can only torch.load from a file that is seekable. Please "
                             "pre-load the data into a buffer like io.BytesIO and try to load from it instead.")  # fmt: skip
    with contextlib.ExitStack() as stack:
        source = stack.enter_context(open(f, "rb")) if isinstance(f, (str, os.PathLike)) else f
        if not source.read(1):
            raise EOFError("Ran out of input: the file is empty")
        source.seek(-1, io.SEEK_CUR)
        try:
            file = stack.enter_context(zipfile.ZipFile(source))
        except zipfile.BadZipFile:
            raise pickle.UnpicklingError("Weights only load failed. The file is none that save() writes: no zip archive") from None
        return _read(file, weights_only is False, pickle_load_args)


def _read(file: zipfile.ZipFile, trusted: bool, options: dict[str, Any]) -> Any:
    """The object in an archive."""
    names = set(file.namelist())
    record = next((name for name in names if name.endswith("/data.pkl") and name.count("/") == 1), None)
    if record is None:
        raise pickle.UnpicklingError("Weights only load failed. The archive has no data.pkl: it is none that save() writes")
    prefix = record.removesuffix("data.pkl")
    if prefix + "byteorder" in names and file.read(prefix + "byteorder").decode() != sys.byteorder:
        raise pickle.UnpicklingError("the file was written on a machine with the other byte order")
    pieces: dict[str, Array] = {}

    def piece(number: str, kind: Dtype, count: int) -> Array:
        found = pieces.get(number)
        if found is None:
            found = pieces[number] = _elements(file, f"{prefix}data/{number}", kind, count)
        return found

    return Reader(io.BytesIO(file.read(record)), piece, trusted, **options).load()


def _elements(file: zipfile.ZipFile, name: str, kind: Dtype, count: int) -> Array:
    """A piece of memory. UnpicklingError where it is missing, or has another length than the pickle says."""
    try:
        size = file.getinfo(name).file_size
    except KeyError:
        raise pickle.UnpicklingError(f"the file lacks the memory {name}") from None
    if size != count * kind.itemsize:
        raise pickle.UnpicklingError(f"the memory {name} has {size} bytes where {count} elements of {kind.name} are expected: the file is damaged")
    elements = np.empty(count, kind.numpy)
    with file.open(name) as entry:
        if count:
            entry.readinto(elements.view(np.uint8))  # type: ignore[attr-defined]
    return elements
