"""The node of an elementwise op with a common case: its backward, spelled out for each combination of edges."""

from typing import Final

from .common_case import CommonCase
from .declarations import reference
from .templates import render

NODE: Final = """
    class {node}(FastNode):
        __slots__ = ({slots},)
        arity = {arity}
        op = {op}
        kept = ({kept})

        def apply(self, grad: Any, keep: bool) -> Any:
            {early}
            {read}
            {meta}
            {answer}
"""

EARLY: Final = """
    if self.e1 is None:
        {answer}
"""

READ: Final = """
    {load}
    if {first} is RELEASED:
        second_time()
    if self.epoch != versions.WRITES:
        self.check()
    if not keep:
        {slots} = RELEASED
"""

BINARY: Final = """
    if self.e1 is None:
        {first}
    if self.e0 is None:
        {second}
    {both}
"""


LATER: Final = """
    if self.e0 is None:
        {second}
    {both}
"""


def node_class(case: CommonCase) -> str:
    """The class of the op's nodes."""
    kept = saved_slots(case)
    edges = [f"e{place}" for place in case.places]
    versions = [] if case.unary else [f"c{place}" for place in case.saved]
    early = bool(kept) and reads_nothing(case)
    return render(
        NODE,
        early=render(EARLY, answer=gradients(case, (True, False))) if early else "",
        node=case.op.node,
        slots=", ".join(map(repr, sorted([*edges, *versions, *kept]))),
        arity=str(len(case.op.inputs)),
        op=reference(case.op),
        kept="".join(f"{slot!r}, " for slot in kept),
        read=read(kept),
        meta="m = self.meta" if case.reserve_backward() else "",
        answer=answer(case, early),
    )


def reads_nothing(case: CommonCase) -> bool:
    """Whether the gradient of the first operand alone reads no saved value: there is then nothing to check or to let go of."""
    return not case.unary and not any(case.moving((True, False)))


def saved_slots(case: CommonCase) -> dict[str, str]:
    """The slots of saved arrays, each with the local variable it is read into."""
    operands = {f"s{place}": "ab"[place] for place in case.saved}
    return operands | {"r": "r"} if case.keeps_result else operands


def read(kept: dict[str, str]) -> str:
    """The lines that read what was saved, check it and let go of it."""
    if not kept:
        return ""
    load = "\n".join(f"{local} = self.{slot}" for slot, local in kept.items())
    slots = " = ".join(f"self.{slot}" for slot in kept)
    return render(READ, load=load, first=next(iter(kept.values())), slots=slots)


def answer(case: CommonCase, early: bool) -> str:
    """The lines that compute and return the gradients, by which edges there are; without the first case if that was answered early."""
    answers = [gradients(case, needs) for needs in case.needs()]
    if case.unary:
        return answers[0]
    return render(LATER if early else BINARY, first=answers[0], second=answers[1], both=answers[2])


def gradients(case: CommonCase, needs: tuple[bool, ...]) -> str:
    """The lines for one combination of edges.

    The first gradient goes into the incoming one's memory where nobody else has that and it isn't itself an answer.
    """
    moving = case.moving(needs)
    computed = [place for place in case.places if moving[place]]
    targets = {place: f"g{'xy'[place]}" for place in computed}
    lines = [f"{name} = empty(m.shape, m.dtype)" for name in targets.values()]
    if computed:
        if moving == needs:
            lines[0] = lines[0].replace("= ", "= grad if getrefcount(grad) <= ALONE else ")
        lines.append(kernel_call(case, moving, list(targets.values())))
    values = [targets.get(place, "grad") if need else "None" for place, need in enumerate(needs)]
    return "\n".join([*lines, f"return {', '.join(values)}"])


def kernel_call(case: CommonCase, moving: tuple[bool, ...], targets: list[str]) -> str:
    """The call of a backward kernel: incoming gradient, saved arrays, the gradients it writes."""
    local = {"result": "r"} | {name: "ab"[place] for place, name in enumerate(case.op.inputs)}
    saved = [local[name] for name in case.map.saved(moving)]
    return f"m.k[{case.backward_kernel(moving)}]({', '.join(['grad', *saved, *targets])})"
