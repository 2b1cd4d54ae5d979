"""Numba's file cache for functions of users, under names that hold all that the machine code depends on.

Numba's own index looks at the file of the outermost function only; here the file is named by `digests.digest`, which covers callees
and globals, and by the signature. One signature per index file, so two processes that write at once write the same.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile

from . import store


class _Stored(CompileResultCacheImpl):  # type: ignore[misc,unused-ignore]
    """How a compiled function is written and read back: Numba's way; whether it may be, decided without a warning."""

    def __init__(self) -> None:
        pass

    def check_cachable(self, cres: Any) -> bool:
        if cres.fndesc.global_dict is not None:
            return False  # the function's module can't be imported by name: Numba would write down all of its globals
        return not cres.library.has_dynamic_globals and all(lifted.can_cache for lifted in cres.lifted)


class UserCache(FunctionCache):  # type: ignore[misc,unused-ignore]
    """The cache of one signature of one function; `name` is its digest."""

    def __init__(self, function: Any, folder: Path, name: str) -> None:
        self._name = repr(function)
        self._py_func = function
        self._impl = _Stored()
        self._folder = folder
        self._cache_path = str(folder)
        self._cache_file = IndexDataCacheFile(
            cache_path=self._cache_path, filename_base=f"{function.__name__}_{name}", source_stamp=name
        )
        self.enable()

    def _save_overload(self, sig: Any, data: Any) -> None:
        if not self._enabled or not self._impl.check_cachable(data):
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cache_file.save(self._index_key(sig, data.codegen), self._impl.reduce(data))

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        return sig, codegen.magic_tuple()

    def _guard_against_spurious_io_errors(self) -> Any:
        return _Quiet()


class _Quiet:
    """A cache that can't be read or written is no cache: the function is compiled."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, value: Any, trace: Any) -> bool:
        return isinstance(value, Exception)


def user_cache(function: Any, digest: str, signature: str) -> UserCache | None:
    """The cache for a function and a signature, or None where no folder can be written."""
    root = store.cache_dir()
    if root is None:
        return None
    name = hashlib.sha256(f"{digest} {signature}".encode()).hexdigest()[:24]
    return UserCache(function, root / f"u-{store.toolchain_digest()}", name)
