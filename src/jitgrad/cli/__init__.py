"""The command line, `python -m jitgrad demo|info|cache`, and the loader of the digits that the package ships."""

from .parser import main

__all__ = ["main"]
