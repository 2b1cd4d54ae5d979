"""Tests here run with both packages; see `tests/libraries.py`."""

from tests.libraries import lib

__all__ = ["lib"]
