"""The node of elementwise ops other than the ones spelled out in `_nodes.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from .._engine import fast, modes
from .._engine.node import RELEASED
from .._expr import free_params
from .._ops.derived import Map, Recipe, compute
from .._ops.kinds import Dispatch
from .fields import as_tensor
from .nodes import RESULT, Recorded
from .saved import PackedValues, torch_name

TAKES_NUMBERS: Final = frozenset(("PowBackward2", "XlogyBackward1", "XlogyBackward2"))  # nodes of torch's ops on numbers


class MapNode(Recorded):
    """An elementwise op of any shapes and dtypes, with params in `statics`. `same`: the inputs' Metas are the result's."""

    __slots__ = ("recipe", "same")
    recipe: Recipe
    same: bool

    @property
    def map(self) -> Map:
        """The op's expression for these operands."""
        return self.recipe.map

    @property
    def needs(self) -> tuple[bool, ...]:
        """Which inputs take a gradient."""
        return self.recipe.needs

    def apply(self, grad: Any, keep: bool) -> list[Any]:
        if not self.same:
            return super().apply(grad, keep)
        packed = type(self._saved) is PackedValues
        if packed and modes.LOCAL.run is None:
            fast.enter(keep)  # hooks run in the mode of the backward
        done = self.direct(grad)
        if not keep:
            self.release()
        return self.called_after(done) if packed and self.rare is not None else done

    def direct(self, grad: Any) -> list[Any]:
        """The gradients where all Metas are the result's."""
        saved, recipe, m = self.saved(), self.recipe, self.meta
        done: list[Any] = [None] * len(self._edges)
        if recipe.passes:
            for slot in recipe.targets:
                done[slot] = grad
        else:
            outs = [np.empty(m.shape, m.dtype) for _ in recipe.targets]
            m.k[recipe.index](grad, *saved.values(), *self.statics, *outs)
            for slot, out in zip(recipe.targets, outs, strict=True):
                done[slot] = out
        return done

    def release(self) -> None:
        if self._saved or self.recipe.reads_operand:
            self._saved = RELEASED

    def pull(self, grads: list[Any]) -> Sequence[Any]:
        if self.same:
            return self.direct(grads[0])
        grad, recipe = grads[0], self.recipe
        saved = self.saved()
        done: list[Any] = [None] * len(self._edges)
        if recipe.passes:  # sums: the gradient itself
            outs = [grad] * len(recipe.targets)
        elif len(recipe.targets) == 1 or all(array.shape[-1:] == grad.shape[-1:] for array in saved.values()):
            outs = compute(recipe.pair, (grad, *saved.values()), self.statics, grad.shape, [grad.dtype] * len(recipe.targets))
        else:
            outs = self.pull_apart(grad, saved)
        for slot, out in zip(recipe.targets, outs, strict=True):
            done[slot] = out
        return done

    def pull_apart(self, grad: Any, saved: dict[str, Any]) -> list[Any]:
        """The gradients one by one: where a last axis is broadcast, a kernel of two inputs runs in vectors, one of more does not."""
        outs = []
        for single in self.recipe.singles:
            given = (grad, *[saved[name] for name, _, _ in single.saving])
            if len(given) > 2:
                given = tuple([np.ascontiguousarray(np.broadcast_to(array, grad.shape)) for array in given])
            outs.append(grad if single.passes else compute(single.pair, given, self.statics, grad.shape, [grad.dtype])[0])
        return outs

    def pull_recorded(self, grads: list[Any]) -> Sequence[Any]:
        grad, found = grads[0], self.map
        tensors = {name: self.unpack(name, array, True) for name, array in self.saved().items()}
        done: list[Any] = [None] * len(self._edges)
        for k, need in enumerate(self.needs):
            if need:
                part, slot = found.partial(k), found.slots[found.differentiable[k]]
                if part.output.op == "var":
                    done[slot] = grad
                else:
                    done[slot] = Dispatch.invoke(part, (grad, *(tensors[name] for name in found.saves[k])), self.statics)
        return done

    def saved_names(self) -> dict[str, str]:
        found = self.map
        return {torch_name(name): name for name in found.saved((True,) * len(found.differentiable))}

    def static_values(self) -> dict[str, Any]:
        found = self.map
        read = {"alpha", *(name for kept in found.keeps.values() for name in kept), *(() if found.refuses else free_params(*found.partials))}
        given = {name: value for name, value in zip(found.params, self.statics, strict=True) if name in read}
        wrapped = () if found.node in TAKES_NUMBERS else ("input", "other")  # numbers that torch saves as tensors
        return {torch_name(name): as_tensor(value) if name in wrapped else value for name, value in (given | found.known).items()}

    def edge_of_saved(self, name: str) -> Any:
        if name == RESULT:
            return self
        slot = self.map.slots[self.map.inputs.index(name)]
        return None if slot < 0 else self._edges[slot]
