"""The way into a compiled version: a generated Python function that checks, calls and hands out, in straight lines.

It is source text in the store like any kernel, because a loop over lists of guards would cost more than a small program runs. `MISS` is what it
gives back when something is not as it was in the trace; nothing has happened then.
"""

from __future__ import annotations

from typing import Any, Final

MISS: Final = object()  # the call does not fit this version
AGAIN: Final = object()  # the version has a new entry
FAILED: Final = object()  # the program refused, before it wrote anything

SPELLED: Final = 12  # items of a list that are compared one by one; more of them in a loop

HEAD = '''"""The way into a compiled function, written by jitgrad."""

from __future__ import annotations

from operator import is_
from sys import getrefcount as refs

import numpy as np

from jitgrad._engine import modes, versions
from jitgrad._engine.node import next_number
from jitgrad._kernels.captures import changed
from jitgrad._tensor.base import ODD, AccumulateGrad, TensorBase
from jitgrad.compiler.entry import AGAIN, MISS
from jitgrad.compiler.history import hooks_of

empty = np.empty
Tensor = TensorBase.kind


def make(version):
    kernel, table, numbers, lock = version.kernel, version.table, version.numbers, version.lock
    draw = version.draw
    renew, failed, dropped = version.renew, version.failed, version.dropped
    group, counting = version.group, versions.GUARD
    wrote, made = group.history.append, version.results.made
    watched, hooks = version.guards.reads, version.hooks
'''


def unpack(names: list[str], attribute: str) -> str:
    """A line that spreads a list of the version over local variables."""
    return f"    {', '.join(names)}, = version.{attribute}\n" if names else ""


def entry_source(version: Any) -> str:
    """The source of `make(version)`, which gives the entry function."""
    count, captured, grads, hyper = (
        version.argument_count,
        len(version.captured),
        len(version.leaves),
        len(version.hyper),
    )
    text = HEAD
    text += unpack([f"m{k}" for k in range(count)], "argument_metas")
    text += unpack([f"(t{k}, a{k}, f{k}, h{k})" for k in range(captured)], "captured")
    text += unpack([f"(g{k}, b{k}, n{k})" for k in range(grads)], "grad_tensors")
    text += unpack([f"(r{k}, d{k})" for k in range(hyper)], "hyper")
    text += "    last = version.hyper_last\n" if hyper else ""
    results = version.results
    text += "".join(f"    s{k}, e{k} = made[{k}].meta, made[{k}].node\n" for k in range(len(results.made)))
    text += unpack([f"z{k}" for k in range(len(results.objects))], "results.objects")
    text += unpack([f"(j{k}, v{k})" for k in range(len(version.guards.entries))], "guard_entries")
    text += unpack([f"c{k}" for k in range(len(version.guards.sizes))], "guard_sizes")
    text += unpack([f"(w{k}, u{k})" for k in range(len(version.guards.held))], "guard_held")
    for k, held in enumerate(version.guards.held):
        if held.flat and 0 < len(held.value) <= SPELLED:
            text += f"    {''.join(f'u{k}_{place}, ' for place in range(len(held.value)))}= u{k}\n"
    text += unpack([f"i{k}" for k in range(len(version.cleared))], "cleared")
    text += unpack([f"l{k}" for k in range(len(version.bumped))], "bumped")
    arguments = ", ".join(f"x{k}" for k in range(count))
    text += f"\n    def enter({arguments}):\n"
    text += (
        "        if modes.SPECIAL or modes.NO_GRAD and not modes.LOCAL.grad:\n            return MISS\n        try:\n"
    )
    tests = argument_tests(version)
    tests += [f"t{k}.array is not a{k} or t{k}.fn is not f{k}" for k in range(captured)]
    tests += [f"f{k}.rare is not h{k}" for k, (_, _, fn, _) in enumerate(version.captured) if fn is not None]
    tests += [f"hooks_of(h{k}) != hooks[{k}]" for k, hooks in enumerate(version.hooks) if hooks is not None]
    tests += guard_tests(version)
    tests += version.grad_tests()
    text += (
        "            if (\n                "
        + "\n                or ".join(tests)
        + "\n            ):\n                return MISS\n"
    )
    text += "        except (AttributeError, KeyError, ValueError):\n            return MISS\n"
    text += body_source(version, count, grads, hyper)
    text += (
        "\n    def counts():\n        return ("
        + "".join(f"refs(g{k}), refs(b{k}), " for k in range(grads))
        + ")\n\n    def hang(nodes):\n"
    )
    text += (
        "".join(f"        nodes[{k}].grad = g{k}\n" for k in range(grads))
        + "        return None\n\n    return enter, counts, hang\n"
    )
    return text


def guard_tests(version: Any) -> list[str]:
    """What must not be true of what the function reads."""
    tests = []
    for k, item in enumerate(version.guards.entries):
        tests.append(
            f"j{k}.cell_contents is not v{k}"
            if item.key is None or hasattr(item.holder, "cell_contents")
            else f"j{k}[{item.key!r}] is not v{k}"
        )
    tests += ["changed(watched)"] if version.guards.reads else []
    tests += [f"len(c{k}) != {count}" for k, (_, count, _) in enumerate(version.guards.sizes)]
    for k, held in enumerate(version.guards.held):
        count = len(held.value) if held.flat else 0
        if not held.flat:
            tests.append(f"not w{k}.holds()")
        elif count > SPELLED:
            tests.append(f"len(w{k}) != {count} or not all(map(is_, w{k}, u{k}))")
        else:
            tests += [f"len(w{k}) != {count}", *(f"w{k}[{place}] is not u{k}_{place}" for place in range(count))]
    return tests


def argument_tests(version: Any) -> list[str]:
    """What must not be true of the arguments."""
    tests = []
    for k in range(version.argument_count):
        tests.append(f"x{k}.meta is not m{k}")
        if version.argument_strides[k] is not None:
            tests.append(f"x{k}.array.strides != {version.argument_strides[k]}")
        if version.derivative is not None and version.argument_leaf[k]:
            tests.append(f"x{k}.fn is None")
        elif version.argument_leaf[k]:
            tests.append(f"type(x{k}.fn) is not AccumulateGrad or x{k}.fn.rare is not None or x{k}.rare is not None")
        else:
            tests.append(f"x{k}.fn is not None or x{k}.rare is not None and x{k}.rare is not ODD and version.odd(x{k})")
        tests += [f"x{k} is {'not ' if same else ''}x{j}" for j, same in version.argument_same[k]]
    return tests


def body_source(version: Any, count: int, grads: int, hyper: int) -> str:
    """The call itself: numbers, gradients, program, results."""
    text = ""
    for k in range(hyper):
        text += f"        if r{k}(d{k}) != last[{k}] and not version.read_hyper():\n            return MISS\n"
    text += "        lock.acquire()\n        try:\n"
    owners = [version.leaf_name(leaf.node) for leaf in version.leaves]
    if grads:
        shared = " or ".join(
            f"{owner}.grad is not g{k} or refs(g{k}) != n{k}[0] or refs(b{k}) != n{k}[1]"
            for k, owner in enumerate(owners)
        )
        text += (
            f"            if {shared}:\n                again = renew(({''.join(f'{owner}, ' for owner in owners)}))\n"
        )
        text += "                if again:\n                    return AGAIN\n"
    results = version.results
    outs = range(len(results.made))
    for k, made in enumerate(results.made):
        text += f"            o{k} = empty({made.shape!r}, s{k}.dtype)\n"
    handed = ["table", "numbers", *(f"x{k}.array" for k in version.handed), *(f"o{k}" for k in outs)]
    if version.program.drawn:
        text += "            draw()\n"
    given, nodes = "".join(f"x{k}, " for k in range(count)), "".join(f"{owner}, " for owner in owners)
    call = f"status = kernel({', '.join(handed)})\n"
    text += f"            {call}"
    if version.program.calls:  # user code may raise
        text = text.removesuffix(f"            {call}") + f"            try:\n                {call}"
        text += f"            except BaseException:\n                dropped(({nodes}))\n                raise\n"
    text += f"            if status != -1:\n                return failed(status, ({given}), ({nodes}))\n"
    text += "".join(f"            i{k}.grad = None\n" for k in range(len(version.cleared)))
    text += "".join(f"            x{k}.fn.grad = None\n" for k in version.cleared_arguments)
    if version.bumped:
        text += "            with counting:\n                epoch = versions.WRITES = versions.WRITES + 1\n"
        text += "                group.count += 1\n                wrote(epoch)\n"
        text += f"                {' = '.join(f'l{k}.last' for k in range(len(version.bumped)))} = epoch\n"
    text += "".join(f"            version.bump(x{k})\n" for k in version.bumped_arguments)
    text += "        finally:\n            lock.release()\n"
    for k, made in enumerate(results.made):
        array = f"o{k}" if made.axes is None else f"o{k}.transpose({made.axes!r})"
        text += f"        y{k} = Tensor()\n        y{k}.array = {array}\n        y{k}.meta = s{k}\n        y{k}.vc = None\n"
        text += f"        y{k}.rare = {'None' if made.meta.plain else 'ODD'}\n"
        if made.node is None:
            text += f"        y{k}.fn = None\n"
        else:
            text += f"        y{k}.fn = n = e{k}()\n        n.meta = s{k}\n        n.epoch = versions.WRITES\n        n.number = next_number()\n"
            text += "        n.buf = n.vc = n.rare = None\n"
    if results.live:
        text += f"        version.attach(({''.join(f'x{k}, ' for k in range(count))}), ({''.join(f'y{k}, ' for k in results.live)}))\n"
    return text + f"        return {results.text}\n"
