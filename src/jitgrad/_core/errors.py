"""Wording of error messages that more than one module needs."""

from __future__ import annotations


def argument_error(function: str, argument: str, position: int, expected: str, got: object) -> TypeError:
    """The exception for an argument of a wrong type, in the words of torch's argument parser."""
    return TypeError(
        f"{function}(): argument '{argument}' (position {position}) must be {expected}, not {type(got).__name__}"
    )


def bracketed(shape: tuple[int, ...]) -> str:
    """`[2, 3]`, the way shapes appear inside messages (also for one dimension: `[2]`)."""
    return str(list(map(int, shape)))


class KernelError(RuntimeError):
    """A user's kernel that can't be compiled, or did what its contract does not allow. The message ends with its own source line."""
