"""Wording of error messages that more than one module needs."""

from __future__ import annotations


def argument_error(function: str, argument: str, position: int, expected: str, got: object) -> TypeError:
    """The exception for an argument of a wrong type, in the words of torch's argument parser."""
    return TypeError(
        f"{function}(): argument '{argument}' (position {position}) must be {expected}, not {type(got).__name__}"
    )


def combination_error(function: str, given: tuple[object, ...], named: dict[str, object], signatures: str) -> TypeError:
    """The exception for arguments that fit none of several signatures, in the words of torch's argument parser."""
    types = [type(x).__name__ for x in given] + [f"{name}={type(x).__name__}" for name, x in named.items()]
    return TypeError(f"{function}() received an invalid combination of arguments - got ({', '.join(types)}), but expected one of:\n{signatures}")


def bracketed(shape: tuple[int, ...]) -> str:
    """`[2, 3]`, the way shapes appear inside messages (also for one dimension: `[2]`)."""
    return str(list(map(int, shape)))


class KernelError(RuntimeError):
    """A user's kernel that can't be compiled, or did what its contract does not allow. The message ends with its own source line."""
