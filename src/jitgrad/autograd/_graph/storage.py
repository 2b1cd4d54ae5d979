"""`save_on_disk` and `save_compressed`: where saved tensors wait for their backward, if not in memory as they are.

Both take a copy at the time of saving, so a later write to the tensor does no harm, and give back the same bits. What a graph
saves several times is kept once. It goes with the graph: a file is removed when the last node that refers to it lets go.
"""

from __future__ import annotations

import errno
import os
import tempfile
import weakref
import zlib
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..._core.dtypes import from_numpy
from ..._tensor.base import wrap
from ..._tensor.saved import count_of
from ..graph import saved_tensors_hooks

__all__ = ["save_compressed", "save_on_disk"]

Array = np.ndarray[Any, Any]


def bytes_of(array: Array) -> Array:
    """The elements of a C-contiguous array as a vector of bytes, over the same memory."""
    return array.reshape(-1).view(np.uint8)


class Stored:
    """A tensor that was put away; `load` gives its elements back. `nbytes`: what is left of it in memory."""

    __slots__ = ("__weakref__", "checksum", "count", "dtype", "shape", "source")
    nbytes: int = 0

    def __init__(self, array: Array, source: Array, count: int, checksum: int) -> None:
        self.shape, self.dtype = array.shape, array.dtype
        self.source, self.count, self.checksum = weakref.ref(source), count, checksum

    def load(self) -> Array:
        """The elements, in new memory. RuntimeError where they are not what was put away."""
        array = np.empty(self.shape, self.dtype)
        self.fill(bytes_of(array))
        if zlib.crc32(bytes_of(array).data) != self.checksum:
            raise RuntimeError(f"{self.words()} was changed since it was saved: its checksum differs")
        return array

    def fill(self, target: Array) -> None:
        """Write the bytes to `target`."""
        raise NotImplementedError

    def words(self) -> str:
        """What messages call it."""
        return f"a saved tensor of shape {list(self.shape)} and dtype {from_numpy(self.dtype)}"


class Kept(Stored):
    """In memory as it is: small, or not to be made smaller."""

    __slots__ = ("array",)

    def __init__(self, array: Array, *rest: Any) -> None:
        super().__init__(array, *rest)
        self.array = array.copy()

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Bytes in memory."""
        return self.array.nbytes

    def fill(self, target: Array) -> None:
        """Write the bytes to `target`."""
        target[:] = bytes_of(self.array)


class Compressed(Stored):
    """In memory, compressed by zlib: the first bytes of all elements, then the second and so on, since exponents mostly agree."""

    __slots__ = ("data",)

    def __init__(self, array: Array, data: bytes, *rest: Any) -> None:
        super().__init__(array, *rest)
        self.data = data

    @property
    def nbytes(self) -> int:  # type: ignore[override]
        """Bytes in memory."""
        return len(self.data)

    def fill(self, target: Array) -> None:
        """Write the bytes to `target`."""
        planes = np.frombuffer(zlib.decompress(self.data), np.uint8)
        target[:] = planes.reshape(self.dtype.itemsize, -1).T.reshape(-1)


class OnDisk(Stored):
    """In a file, which is removed when this object dies, at the latest at the end of the process that wrote it."""

    __slots__ = ("_finalizer", "path")

    def __init__(self, array: Array, path: str, *rest: Any) -> None:
        super().__init__(array, *rest)
        self.path = path
        self._finalizer = weakref.finalize(self, remove, path, os.getpid())

    def fill(self, target: Array) -> None:
        """Write the bytes to `target`. RuntimeError where the file is gone, cut short or can't be read."""
        try:
            with open(self.path, "rb") as file:
                count = file.readinto(target.data) if target.size else 0
                whole = count == target.size and not file.read(1)
        except OSError as error:
            raise RuntimeError(
                f"save_on_disk: {self.words()} can't be read back from {self.path}: {error.strerror}"
            ) from error
        if not whole:
            raise RuntimeError(
                f"save_on_disk: {self.path}, which holds {self.words()}, should be {target.size} bytes long, but is not"
            )


def remove(path: str, process: int) -> None:
    """Remove a file; a child process leaves its parent's files alone."""
    if os.getpid() == process:
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass


class _Storing(saved_tensors_hooks):
    """Hooks that put copies away. `min_bytes`: smaller tensors stay in memory."""

    name: ClassVar[str]

    def __init__(self, min_bytes: int) -> None:
        if isinstance(min_bytes, bool) or not isinstance(min_bytes, int) or min_bytes < 0:
            raise ValueError(f"{self.name}: min_bytes should be a number of bytes, 0 or more, not {min_bytes!r}")
        self.min_bytes = min_bytes
        self._known: weakref.WeakValueDictionary[int, Stored] = weakref.WeakValueDictionary()  # by the id of the array

    def pack_hook(self, tensor: Any) -> Stored:
        """A copy of a tensor, put away; the one there is already where nothing was written since."""
        source = tensor.array
        array = np.ascontiguousarray(source).reshape(source.shape)
        found = count_of(tensor), zlib.crc32(bytes_of(array).data)
        known = self._known.get(id(source))
        if known is not None and known.source() is source and (known.count, known.checksum) == found:
            return known
        stored = Kept(array, source, *found) if array.nbytes < self.min_bytes else self._store(array, source, *found)
        self._known[id(source)] = stored
        return stored

    def unpack_hook(self, stored: Stored) -> Any:
        """The copy as a tensor."""
        return wrap(stored.load())

    def _store(self, array: Array, *rest: Any) -> Stored:
        raise NotImplementedError


class save_on_disk(_Storing):
    """What ops in the block save waits for its backward in files of the folder `dir`, tensors of fewer than `min_bytes` bytes in memory.

    A file is removed when the graph lets go of the tensor: after its backward, or when the last output dies. Values come back bit
    by bit the same. FileNotFoundError or NotADirectoryError where `dir` is no folder, OSError with the folder and the size where a
    file can't be written (a full disk, say); at backward RuntimeError where a file is gone or was changed.

    >>> import os, tempfile, jitgrad
    >>> x = jitgrad.ones(1000, requires_grad=True)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with jitgrad.autograd.graph.save_on_disk(folder):
    ...         y = x.exp().sum()
    ...     waiting = len(os.listdir(folder))
    ...     y.backward()
    ...     waiting, len(os.listdir(folder))
    (1, 0)
    """

    name = "save_on_disk"

    def __init__(self, dir: str | os.PathLike[str], *, min_bytes: int = 0) -> None:
        self.folder = Path(dir).absolute()
        if not self.folder.exists():
            raise FileNotFoundError(errno.ENOENT, "save_on_disk: there is no such folder", str(self.folder))
        if not self.folder.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, "save_on_disk: this is not a folder", str(self.folder))
        super().__init__(min_bytes)

    def _store(self, array: Array, *rest: Any) -> Stored:
        path = None
        try:
            number, path = tempfile.mkstemp(".saved", "jitgrad-", self.folder)
            with open(number, "wb") as file:
                file.write(bytes_of(array).data)
        except OSError as error:
            if path is not None:
                remove(path, os.getpid())
            what = f"save_on_disk: a saved tensor of shape {list(array.shape)}, {array.nbytes} bytes, can't be written: {error.strerror}"
            raise type(error)(error.errno, what, str(self.folder)) from error
        return OnDisk(array, path, *rest)


class save_compressed(_Storing):
    """What ops in the block save is compressed by zlib until its backward; tensors of fewer than `min_bytes` bytes stay as they are.

    `level`: 1 (fast) to 9 (small), 0 for none, -1 for zlib's own choice. Nothing is lost: values come back bit by bit the same, and
    what compression would not make smaller is kept as it is. Results of `relu` and other values with many equal ones gain most.
    ValueError for another level.

    >>> import jitgrad
    >>> x = jitgrad.ones(10_000, requires_grad=True)
    >>> with jitgrad.autograd.graph.save_compressed():
    ...     y = x.exp().sum()
    >>> jitgrad.autograd.graph.saved_memory(y).total < 1000
    True
    """

    name = "save_compressed"

    def __init__(self, level: int = 1, *, min_bytes: int = 1024) -> None:
        if isinstance(level, bool) or not isinstance(level, int) or not -1 <= level <= 9:
            raise ValueError(f"save_compressed: level should be 0 to 9, or -1, not {level!r}")
        self.level = level
        super().__init__(min_bytes)

    def _store(self, array: Array, *rest: Any) -> Stored:
        planes = np.ascontiguousarray(bytes_of(array).reshape(-1, array.dtype.itemsize).T)
        data = zlib.compress(planes.data, self.level)
        return Compressed(array, data, *rest) if len(data) < array.nbytes else Kept(array, *rest)
