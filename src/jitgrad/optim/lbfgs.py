"""L-BFGS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._core.meta import meta_of
from .._engine import modes
from .._engine.versions import bump
from .._kernels.quasi_newton import two_loops
from .._tensor import Tensor
from .._tensor.base import version_of
from .._tensor.creation import from_numpy
from ..autograd import enable_grad
from ._line_search import Point, strong_wolfe
from ._update import check_rate
from .optimizer import Group, Optimizer, Params

__all__ = ["LBFGS"]

Array = np.ndarray[Any, Any]


class LBFGS(Optimizer):
    """Quasi-Newton steps by the curvature seen in the last `history_size` steps, several in each call of `step`.

    The direction is `-H g`, where `H` stands for the inverse of the Hessian. With `s` a step of earlier and `y` the change of the gradient
    in it, `H` is updated from `(s.y / y.y) I` by every pair kept, `H <- (I - s y' / s.y) H (I - y s' / s.y) + s s' / s.y`, without ever being
    written out (the two-loop recursion: Nocedal and Wright, Numerical Optimization, 2nd edition, algorithms 7.4 and 7.5). Pairs with
    `s.y <= 1e-10` are not kept. The step is `lr` times the direction (the very first one at most `lr / sum|g|`), or what a line search that
    starts from there finds (section 3.5 of the same book).

    All parameters form one vector, and one group. State, with the first parameter: `n_iter` and `func_evals`, how many iterations and
    evaluations there were; `old_dirs` (the `y`), `old_stps` (the `s`), `ro` (`1 / s.y`); `H_diag`, `d`, `t` and `al`, the scale, direction, step
    and coefficients of the last iteration; `prev_flat_grad` and `prev_loss`.

    Args:
        params: parameters, all in one group.
        lr: the step, or the one that the line search tries first.
        max_iter: iterations per call of `step`.
        max_eval: evaluations per call of `step` after which no iteration begins, `max_iter * 5 // 4` by default.
        tolerance_grad: a gradient with no larger component ends the step.
        tolerance_change: so do a change of all parameters, a change of the loss and a slope that are no larger.
        history_size: how many pairs are kept, each as large as two copies of the parameters.
        line_search_fn: None, or "strong_wolfe".

    Raises ValueError for a negative learning rate or several groups; RuntimeError, in `step`, for another line search.

    >>> import jitgrad as torch
    >>> w = torch.tensor([-1.0, 2.0], requires_grad=True)
    >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe", max_iter=100)
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - w[0]) ** 2 + 100 * (w[1] - w[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item()
    104.0
    >>> torch.allclose(w, torch.ones(2), atol=1e-3)
    True
    """

    _memory: _Memory | None = None

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_rate(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any]) -> Any:  # type: ignore[override]
        """Make up to `max_iter` iterations; returns the loss before them.

        `closure` computes loss and gradients anew. AssertionError if a group was added.
        """
        if len(self.param_groups) != 1:
            raise AssertionError(f"Expected exactly one param_group, but got {len(self.param_groups)}")
        tracer = modes.tracer()
        if tracer is not None and tracer.active():
            tracer.give_up("LBFGS has its own update, which is not made of ops")
        (group,) = self.param_groups
        state = self.state[group["params"][0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)
        with enable_grad():
            first = closure()
        state["func_evals"] += 1
        here = float(first), _gradient(group["params"])
        if not _largest(here[1]) <= group["tolerance_grad"]:
            memory = self._memory
            if memory is None or not memory.holds(state, group["history_size"]):
                memory = self._memory = _Memory(state, group["history_size"], here[1])
            _Search(group, state, memory, closure).run(*here)
            memory.save(state)
        return first


class _Search:
    """One call of `step`."""

    def __init__(self, group: Group, state: dict[str, Any], memory: _Memory, closure: Callable[[], Any]) -> None:
        self.group = group
        self.params: list[Tensor] = group["params"]
        self.state = state
        self.memory = memory
        self.closure = closure

    def run(self, loss: float, gradient: Array) -> None:
        """Iterations, from a loss and its gradient, until one of the criteria holds."""
        group, state, memory = self.group, self.state, self.memory
        tolerance, longest, most = group["tolerance_change"], group["max_iter"], group["max_eval"]
        evaluations = 1
        for count in range(1, longest + 1):
            state["n_iter"] += 1
            step = float(group["lr"])
            if state["n_iter"] == 1:
                direction = memory.steepest(gradient)
                step *= _share(gradient)
            else:
                direction = memory.direction(gradient)
            memory.gradient, memory.loss, memory.step = gradient, loss, step
            slope = _slope(gradient, direction)
            if slope > -tolerance:
                return
            if group["line_search_fn"] is not None:
                found, calls = self.search(Point(0.0, loss, slope, gradient), direction, step, most - evaluations)
                memory.step, loss, gradient = found.step, found.value, found.gradient
            elif count < longest:
                self.move(direction, step)
                (loss, gradient), calls = self.evaluate(), 1
            else:  # what comes of the last step is seen in the next call
                self.move(direction, step)
                calls = 0
            evaluations += calls
            state["func_evals"] += calls
            if evaluations >= most or _largest(gradient) <= group["tolerance_grad"]:
                return
            if _largest(direction) * memory.step <= tolerance or abs(loss - memory.loss) < tolerance:
                return

    def evaluate(self) -> tuple[float, Array]:
        """Loss and gradient where the parameters are."""
        with enable_grad():
            loss = float(self.closure())
        return loss, _gradient(self.params)

    def search(self, start: Point, direction: Array, first: float, trials: int) -> tuple[Point, int]:
        """The point where the line search ends, to which the parameters go, and the number of evaluations."""
        if self.group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origins = [p.array.copy() for p in self.params]

        def at(step: float) -> Point:
            self.move(direction, step, origins)
            loss, gradient = self.evaluate()
            return Point(step, loss, _slope(gradient, direction), gradient)

        found, calls = strong_wolfe(at, start, first, float(_largest(direction)), self.group["tolerance_change"], trials)
        self.move(direction, found.step, origins)
        return found, calls

    @np.errstate(over="ignore", invalid="ignore")
    def move(self, direction: Array, step: float, origins: Sequence[Array] | None = None) -> None:
        """Set the parameters to a point on the line through themselves, or through `origins`."""
        place, way = 0, direction.dtype.type(step) * direction
        for k, p in enumerate(self.params):
            array = p.array
            part = way[place : place + array.size].reshape(array.shape)
            np.add(array if origins is None else origins[k], part, out=array, casting="same_kind")
            bump(p.vc or version_of(p))
            place += array.size


class _Memory:
    """The pairs of steps and changes of the gradient, and the last iteration.

    The pairs are rows of two matrices, the oldest of which is overwritten; the tensors of the state are those rows, made once for all steps.
    """

    def __init__(self, state: dict[str, Any], size: int, like: Array) -> None:
        self.size = size
        rows = size + 1  # the newest pair is looked at before the oldest one goes
        self.changes, self.steps = np.empty((rows, like.size), like.dtype), np.empty((rows, like.size), like.dtype)
        self.inverses, self.shares = np.empty(rows, like.dtype), np.empty(rows, like.dtype)
        self.tensors: tuple[list[Tensor], ...] = [], [], [], []
        self.kernel = meta_of(like).k[two_loops.index]
        held = [state.get(name) or [] for name in ("old_dirs", "old_stps", "ro")]
        self.pairs = held[0]
        self.first, self.count = 0, len(self.pairs)
        for to, values in zip((self.changes, self.steps, self.inverses), held, strict=True):
            for row, value in enumerate(values):
                to[row] = _plain(value)
        self.scale = float(state.get("H_diag") or 1)
        self.step = float(state.get("t") or 0)
        self.way, self.gradient = _plain(state.get("d")), _plain(state.get("prev_flat_grad"))
        self.loss = state.get("prev_loss")

    def holds(self, state: dict[str, Any], size: int) -> bool:
        """Whether this is what the state has."""
        return size == self.size and state.get("old_dirs") is self.pairs

    def steepest(self, gradient: Array) -> Array:
        """The direction of the first iteration of all."""
        self.first = self.count = 0
        self.scale = 1.0
        self.way = way = -gradient
        return way

    @np.errstate(over="ignore", invalid="ignore")
    def direction(self, gradient: Array) -> Array:
        """Take in the last step, and give the direction of the next."""
        rows = len(self.inverses)
        row = (self.first + self.count) % rows
        change = np.subtract(gradient, self.gradient, out=self.changes[row])
        step = np.multiply(self.way, gradient.dtype.type(self.step), out=self.steps[row])
        product = float(change.dot(step))
        if product > 1e-10:
            if self.count == self.size:
                self.first = (self.first + 1) % rows
            else:
                self.count += 1
            self.inverses[row] = 1.0 / product
            self.scale = product / float(change.dot(change))
        self.way = way = -gradient
        self.kernel(self.changes, self.steps, self.inverses, self.shares, self.first, self.count, self.scale, way)
        return way

    def save(self, state: dict[str, Any]) -> None:
        """Put all into the state."""
        names = "d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss"
        if not state["n_iter"]:
            state.update(dict.fromkeys(names))
            return
        rows = len(self.inverses)
        for row in range(len(self.tensors[0]), min(self.first + self.count, rows)):
            for made, of in zip(self.tensors, (self.changes, self.steps, self.inverses, self.shares), strict=True):
                made.append(from_numpy(of[row, ...]))
        order = [(self.first + k) % rows for k in range(self.count)]
        changes, steps, inverses = ([made[row] for row in order] for made in self.tensors[:3])
        if state["n_iter"] > 1:
            state["al"] = self.tensors[3][: self.count] + [None] * (self.size - self.count)
        scale = from_numpy(np.array(self.scale, self.inverses.dtype)) if self.count else 1
        values = from_numpy(self.way), self.step, changes, steps, inverses, scale, from_numpy(self.gradient), self.loss
        state.update(zip(names, values, strict=True))
        self.pairs = changes


def _plain(value: Any) -> Any:
    """A value of a state without its tensor."""
    return value.array if isinstance(value, Tensor) else value


def _gradient(params: Sequence[Tensor]) -> Array:
    """All gradients as one vector that nothing else writes to; zeros for those that are missing."""
    parts = []
    for p in params:
        g = p.grad
        parts.append(np.zeros(p.array.size, p.array.dtype) if g is None else g.array.ravel())
    return np.concatenate(parts)


@np.errstate(over="ignore", invalid="ignore")
def _share(gradient: Array) -> float:
    """What the first step of all is shortened to where the gradient is large."""
    size = float(np.abs(gradient).sum())
    return min(1.0, 1.0 / size) if size else 1.0


@np.errstate(over="ignore", invalid="ignore")
def _slope(gradient: Array, direction: Array) -> float:
    return float(gradient.dot(direction))


def _largest(vector: Array) -> float:
    return float(np.abs(vector).max())
