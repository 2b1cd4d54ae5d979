"""`python -m jitgrad cache info|clear`: the folder of compiled kernels."""

from __future__ import annotations

from .._kernels import store


def size(count: int) -> str:
    """A number of bytes as people read it.

    >>> size(512), size(45_000), size(7_340_032)
    ('512 B', '43.9 KiB', '7.0 MiB')
    """
    amount, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            break
        amount /= 1024
    return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"


def summary() -> str:
    """Where the kernels are and how many, in a line."""
    folder = store.cache_dir()
    if folder is None:
        return "in memory only: no folder could be written"
    kernels, total = store.cache_size()
    return f"{folder} ({kernels} kernel{'' if kernels == 1 else 's'}, {size(total)})"


def info() -> int:
    """Print where compiled kernels are kept."""
    folder = store.cache_dir()
    if folder is None:
        print("cache    in memory only: no folder could be written; set JITGRAD_CACHE_DIR to one that can")
        return 0
    kernels, total = store.cache_size()
    print(f"folder   {folder}\nkernels  {kernels}\nsize     {size(total)}")
    return 0


def clear() -> int:
    """Remove the compiled kernels; 1 when some could not be removed."""
    folder = store.cache_dir()
    if folder is None:
        print("nothing to remove: kernels are in memory only")
        return 0
    kernels, _ = store.cache_size()
    freed = store.clear()
    left, _ = store.cache_size()
    if left:
        print(f"{left} of {kernels} kernels in {folder} could not be removed")
        return 1
    print(f"removed {kernels} kernel{'' if kernels == 1 else 's'}, {size(freed)}, from {folder}")
    return 0
