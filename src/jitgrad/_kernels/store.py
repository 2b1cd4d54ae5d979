"""The content-addressed store of kernel sources, and the only place that runs generated code.

A source is written to `<cache>/<version>/<name>_<hash of its text>.py` and imported as a real module, so it can be read, stepped
through in a debugger, and cached by Numba's ordinary file cache right beside it. The text holds every constant, and its header the
digest of the functions it calls (`toolchain_digest`), so a stale hit is impossible: other text, other file. Where no folder can
be written the source is compiled from memory and Numba's cache is off; a single warning says so.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import linecache
import os
import shutil
import sys
import tempfile
import types
import warnings
from pathlib import Path

from .._core.settings import settings

_PACKAGE = Path(__file__).parent
_TOOLCHAIN = ("jit.py", "buffers.py", "blas.py", "philox.py", "program*.py", "tiles.py", "opaque.py", "vector*.py", "vector*/*.py")


@functools.cache
def toolchain_digest() -> str:
    """Digest of what a kernel module imports and is compiled by: those sources and the versions of Numba and llvmlite."""
    import llvmlite
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {llvmlite.__version__} {sys.version}".encode())
    for path in sorted(path for pattern in _TOOLCHAIN for path in _PACKAGE.glob(pattern)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def _candidates() -> list[Path]:
    if settings.cache_dir:
        return [Path(settings.cache_dir)]
    found = []
    if base := os.environ.get("XDG_CACHE_HOME"):
        found.append(Path(base) / "jitgrad")
    home = os.path.expanduser("~")
    if home != "~":
        found.append(Path(home) / ".cache" / "jitgrad")
    user = os.getuid() if hasattr(os, "getuid") else os.environ.get("USERNAME", "user")
    found.append(Path(tempfile.gettempdir()) / f"jitgrad-{user}")
    return found


def _usable(folder: Path) -> bool:
    """Whether the folder is ours and can be written; creates it, private to the user."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
            return False  # a folder of that name in the shared temporary directory that somebody else made
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


@functools.cache
def _folder() -> Path | None:
    for root in _candidates():
        if _usable(root):
            return root
    places = ", ".join(str(path) for path in _candidates())
    warnings.warn(f"jitgrad: no writable cache folder (tried {places}); kernels are compiled anew in each process. "
                  "Set JITGRAD_CACHE_DIR to a writable folder.", RuntimeWarning, stacklevel=2)  # fmt: skip
    return None


def cache_dir() -> Path | None:
    """The folder of the store, or None when no folder can be written."""
    return _folder()


def cache_size() -> tuple[int, int]:
    """Number of kernel sources in the store and the bytes of all files."""
    root = _folder()
    if root is None:
        return 0, 0
    files = [path for path in root.rglob("*") if path.is_file()]
    return sum(path.suffix == ".py" for path in files), sum(path.stat().st_size for path in files)


def clear() -> int:
    """Remove all stored kernels; returns the bytes freed. Kernels already loaded stay usable."""
    root = _folder()
    if root is None:
        return 0
    _, freed = cache_size()
    for path in root.iterdir():
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
    return freed


def module_name(name: str, text: str) -> str:
    """The name of the module that holds a source."""
    return f"jitgrad_{name}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def load(name: str, text: str) -> tuple[types.ModuleType, bool]:
    """Import a source as a module; returns it and whether it lies in a file, so that Numba may cache beside it."""
    full = module_name(name, text)
    module = sys.modules.get(full)
    if module is not None:
        return module, getattr(module, "__file__", None) is not None
    root = _folder()
    path = root and _write(root / f"k-{toolchain_digest()}", full, text)
    if path is None:
        return _load_from_memory(full, text), False
    spec = importlib.util.spec_from_file_location(full, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[full] = module  # Numba imports it by this name when it loads a cached function
    spec.loader.exec_module(module)
    return module, True


def _write(folder: Path, name: str, text: str) -> Path | None:
    """Put the text in place in one step, so that a reader never sees half a file; None where that fails."""
    path = folder / f"{name}.py"
    try:
        if path.exists() and path.read_text() == text:
            return path
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w") as file:
            file.write(text)
        os.replace(temporary, path)
    except OSError:
        return None
    return path


def _load_from_memory(name: str, text: str) -> types.ModuleType:
    """A module without a file; its lines are known to tracebacks and debuggers all the same."""
    filename = f"<{name}>"
    module = types.ModuleType(name)
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    sys.modules[name] = module
    exec(compile(text, filename, "exec"), module.__dict__)
    return module


def forget(module: types.ModuleType) -> None:
    """Remove what Numba cached for a module (after a damaged or half-written cache file)."""
    path = getattr(module, "__file__", None)
    if path is not None:
        for stale in Path(path).parent.glob(f"__pycache__/{Path(path).stem}.*.nb[ic]"):
            stale.unlink(missing_ok=True)
