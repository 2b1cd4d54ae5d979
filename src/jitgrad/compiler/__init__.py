"""The compiler: a function, its backward and its optimizer's update as one program.

Read in this order: `trace` (one run, recorded), `graph` (what is recorded), `lower` and `rearrange` (ops in the graph), `schedule` (loops), `layout`
(memory), `emit` (source), `program` (the whole), `guards`, `version` and `entry` (calls), `step` (`compile`).
"""

from .export import export
from .step import Compiled, compile

__all__ = ["Compiled", "compile", "export"]
