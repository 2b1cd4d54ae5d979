"""What a piece of code does, counted without a clock."""

import sys
from typing import NamedTuple

ALLOCATING = {
    "empty",
    "empty_like",
    "zeros",
    "zeros_like",
    "ones",
    "full",
    "array",
    "ascontiguousarray",
    "copy",
    "astype",
}


class Counts(NamedTuple):
    """Calls of Python functions, calls of compiled kernels, NumPy arrays made."""

    python: int
    kernels: int
    arrays: int

    def __sub__(self, other):
        return Counts(*(a - b for a, b in zip(self, other, strict=True)))


def counts(action, warm=3):
    """Counts of one `action()`, itself not counted, after some that compile and fill tables."""
    for _ in range(warm):
        action()
    events = []

    def note(frame, event, argument):
        if event == "call":
            events.append(frame.f_code.co_name)
        elif event == "c_call":
            events.append(argument)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return Counts(
        python=sum(isinstance(event, str) for event in events) - 1,
        kernels=sum(is_kernel(event) for event in events),
        arrays=sum(makes_array(event) for event in events),
    )


def is_kernel(event):
    """Whether a built-in function is the entry point of something that Numba compiled."""
    return type(getattr(event, "__self__", None)).__name__ == "_Closure"


def makes_array(event):
    owner = getattr(event, "__self__", None)
    ours = getattr(event, "__module__", None) == "numpy" or type(owner).__name__ == "ndarray"
    return not isinstance(event, str) and ours and event.__name__ in ALLOCATING
