"""The common case of an elementwise op: plain tensors of equal Meta, which straight-line code answers."""

from jitgrad._ops.derived import Map
from jitgrad._ops.maps import Elementwise

from .declarations import elementwise_ops, reference


def whole_map(op: Elementwise) -> Map:
    """The op's Map when all operands are tensors."""
    return op.map("t" * len(op.inputs))


def is_common(op: Elementwise) -> bool:
    """Whether straight-line code is written: one or two tensors and nothing else, the same dtype out as in."""
    if op.statics or len(op.inputs) > 2 or op.conditions or op.refuses or not op.floats:
        return False
    found = whole_map(op)
    return not found.is_condition and (len(op.inputs) == 1 or not any("result" in names for names in found.saves))


class CommonCase:
    """What the method and the node of one op must agree on: the kernels, by name, and the slots of what is saved.

    The slots are those of `jitgrad._tensor.fast_nodes`.
    """

    def __init__(self, op: Elementwise) -> None:
        self.op = op
        self.unary = len(op.inputs) == 1
        self.places = range(len(op.inputs))
        self.map = whole_map(op)
        self.kernel = op.name.upper()
        self.saved = [place for place in self.places if self.readers(place)]
        self.keeps_result = any("result" in names for names in self.map.saves)

    def readers(self, place: int) -> list[int]:
        """The inputs whose gradient reads the input at a place."""
        return [reader for reader, names in enumerate(self.map.saves) if self.op.inputs[place] in names]

    def needs(self) -> list[tuple[bool, ...]]:
        """All combinations of inputs that may need a gradient."""
        return [(True,)] if self.unary else [(True, False), (False, True), (True, True)]

    def moving(self, needs: tuple[bool, ...]) -> tuple[bool, ...]:
        """The needed inputs whose gradient is not simply the incoming one, so that a kernel must compute it."""
        return tuple(need and self.map.cotangents[place].op != "var" for place, need in enumerate(needs))

    def backward_kernel(self, moving: tuple[bool, ...]) -> str:
        """The name of the kernel's number for the gradients of some inputs."""
        return f"{self.kernel}_BACK_" + "".join("XY"[place] for place, moves in enumerate(moving) if moves)

    def reserve(self) -> str:
        """The line that reserves the number of the kernel; a `b` in its spec stands for one buffer."""
        return f'{self.kernel} = {reference(self.op)}.reserve("{"b" * (len(self.op.inputs) + 1)}")'

    def reserve_backward(self) -> list[str]:
        """The lines that reserve the numbers of the backward's kernels, each once."""
        lines = []
        for moving in dict.fromkeys(map(self.moving, self.needs())):
            if any(moving):
                spec = "b" * (1 + len(self.map.saved(moving)) + sum(moving))
                lines.append(f'{self.backward_kernel(moving)} = {reference(self.op)}.reserve("{spec}", {moving})')
        return lines


def common_cases() -> list[CommonCase]:
    """Those of all ops that have one, as declared."""
    return [CommonCase(op) for op in elementwise_ops() if is_common(op)]
