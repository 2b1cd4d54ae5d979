"""The in-place twins as methods: straight-line code for plain tensors where nothing is recorded, the rest by way of `inplace`."""

from typing import Final

from jitgrad._ops.kinds import Face
from jitgrad._ops.maps import Elementwise

from .common_case import CommonCase, is_common
from .declarations import Item, elementwise_ops, reference
from .signatures import Signature, by_old_order, signature
from .templates import docstring, listed, render

INPLACE: Final = """
    def {name}_({head}) -> Tensor:
        {doc}
        {by_old_order}
        {common}
        return {how}({op}, "{name}_", self, ({operands}), {mapping})
"""

UNARY: Final = """
    if self.rare is None and not modes.SPECIAL and (self.fn is None or (modes.NO_GRAD and not modes.grad_enabled())):
        a = self.array
        self.meta.k[{kernel}](a, a)
        versions.bump(self.vc or version_of(self))
        return self
"""

BINARY: Final = """
    if (
        type({y}) is Tensor and self.meta is {y}.meta and self.rare is None and {y}.rare is None and {defaults}not modes.SPECIAL
        and ((self.fn is None and {y}.fn is None) or (modes.NO_GRAD and not modes.grad_enabled()))
    ):  # fmt: skip
        a = self.array
        self.meta.k[{kernel}](a, {y}.array, a)
        versions.bump(self.vc or version_of(self))
        return self
"""

DEFAULTS: Final = {
    "alpha": "alpha == 1",
    "rounding_mode": "rounding_mode is None",
}  # where the face comes down to the operator's op


def inplace_method(item: Item) -> str:
    """The in-place twin."""
    found = signature(item).as_method()
    return render(
        INPLACE,
        name=item.name,
        head=found.head,
        doc=docstring(f"In-place `{item.name}`."),
        by_old_order=by_old_order(item, f"{item.name}_", f"Tensor.{item.name}_", found),
        common=common_case(item, found),
        how="inplace_view" if item.inplace == "view" else "inplace",
        op=reference(item),
        operands=listed(found.positional[1:]),
        mapping=found.mapping,
    )


def common_case(item: Item, found: Signature) -> str:
    """The lines that answer a call on plain tensors, where the op has such a case."""
    op = operator_of(item) if isinstance(item, Face) else item
    if op is None or not is_common(op) or not DEFAULTS.keys() >= set(found.named):
        return ""
    case = CommonCase(op)
    if case.unary:
        return render(UNARY, kernel=case.kernel)
    defaults = "".join(f"{DEFAULTS[name]} and " for name in found.named)
    return render(BINARY, y=found.positional[1], kernel=case.kernel, defaults=defaults)


def operator_of(face: Face) -> Elementwise | None:
    """The op of the operator whose augmented assignment a face's twin is."""
    return next((op for op in elementwise_ops() if face.augments and op.operator == face.augments), None)
