"""Tests here run with both packages; see `tests/libraries.py`."""

from tests.forward import fw
from tests.libraries import lib

__all__ = ["fw", "lib"]
