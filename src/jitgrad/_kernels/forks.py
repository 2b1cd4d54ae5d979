"""Forks wait for a compilation to end. To be imported before Numba is.

`logging`, which Numba imports, holds its own lock at forks, and locks registered later are waited for earlier. So ours are registered
once more, after that: else a fork would hold `logging`'s lock and wait for a compilation that waits for it.
"""

import logging  # noqa: F401

from .._core.locks import hold_at_forks

hold_at_forks()
