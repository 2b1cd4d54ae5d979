"""What can be typed after `python -m jitgrad`, and which function answers it."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from .. import __version__
from . import cache, demo, info

_EPILOG = """\
examples:
  python -m jitgrad demo                    train an MLP on handwritten digits, look at what it misreads
  python -m jitgrad demo --epochs 5 --out results
  python -m jitgrad info                    versions, threads, BLAS, cache
  python -m jitgrad cache clear             remove the compiled kernels; they are compiled again when needed

exit status: 0 when all went well, 1 when something could not be done, 2 when the command line was wrong
"""


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {number}")
    return number


def _natural(text: str) -> int:
    number = int(text)
    if number < 0:
        raise argparse.ArgumentTypeError(f"must not be negative, got {number}")
    return number


def build() -> argparse.ArgumentParser:
    """The parser; each command leaves the function that answers it in `run`."""
    parser = argparse.ArgumentParser(
        prog="python -m jitgrad",
        description="jitgrad: automatic differentiation with PyTorch's semantics, compiled by Numba.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"jitgrad {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="{demo,info,cache}", required=True)
    _add_demo(commands)
    sub = commands.add_parser("info", help="say versions, threads, BLAS, cache folder and its size")
    sub.set_defaults(run=lambda _: info.run())
    sub = commands.add_parser("cache", help="say where compiled kernels are kept, or remove them")
    actions = sub.add_subparsers(title="actions", metavar="{info,clear}", required=True)
    action = actions.add_parser("info", help="say the folder, the number of kernels and their size")
    action.set_defaults(run=lambda _: cache.info())
    action = actions.add_parser("clear", help="remove all compiled kernels")
    action.set_defaults(run=lambda _: cache.clear())
    return parser


def _add_demo(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    sub = commands.add_parser(
        "demo",
        help="train an MLP on handwritten digits",
        description="Trains a 64-128-64-10 MLP on 1,797 scans of handwritten digits, a fifth of them held out; saves "
        "the weights and, where matplotlib is installed, a picture of the curves and of the misread digits.",
    )
    sub.add_argument("--epochs", type=_positive, default=30, metavar="N", help="passes over the data (default: 30)")
    sub.add_argument("--seed", type=_natural, default=0, metavar="N", help="of weights and shuffling (default: 0)")
    sub.add_argument(
        "--out",
        type=Path,
        default=Path("jitgrad-demo"),
        metavar="DIR",
        help="folder for the results (default: jitgrad-demo)",
    )
    sub.set_defaults(run=lambda options: demo.run(options.epochs, options.seed, options.out))


def main(arguments: Sequence[str] | None = None) -> int:
    """Answer a command line (default: the process's own); returns the exit status."""
    options = build().parse_args(arguments)
    try:
        return int(options.run(options))
    except KeyboardInterrupt:
        print("\nstopped")
        return 1
