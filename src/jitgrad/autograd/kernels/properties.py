"""The properties that `opcheck` looks at. Each is a function of a case: silent where it holds, `Failure` with words where not, `Refusal` where
the function refuses what would be needed.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from ..._core.errors import KernelError
from ..._kernels.user import uncompiled
from ..._tensor.base import wrap
from .contract import python_function
from .jit_function import JitFunction
from .layouts import incoming, layouts
from .memory import growth
from .probing import Case, Failure, Refusal, close, difference, jumps, slopes

Property = Callable[[Case], None]
REFUSING: Final = (RuntimeError, IndexError, ValueError, TypeError, ZeroDivisionError)


def number(case: Case, index: int) -> Callable[[Any], float]:
    """The weighted sum of the outputs as a function of one floating argument."""

    def value(array: Any) -> float:
        args = list(case.args)
        args[case.floating[index]] = array
        loss = case.loss(case.outputs(case.tensors(args)))
        return 0.0 if loss is None else float(loss.item())

    return value


def between(case: Case, found: list[Any], value: Callable[[int], Callable[[Any], float]], what: str) -> None:
    """Compare gradients with the slopes to both sides: equal to them, or between them where there is a kink."""
    for index, gradient in enumerate(found):
        at = case.args[case.floating[index]]
        for k, left, right in slopes(value(index), at):
            got = float(gradient.flat[k])
            low, high = min(left, right), max(left, right)
            size = max(abs(low), abs(high))
            slack = 2e-4 * size + 2e-5
            fits = not (np.isfinite(low) and np.isfinite(high)) or low - slack <= got <= high + slack
            if not fits and not jumps(value(index), at, k, size):
                raise Failure(
                    f"{what} by argument {case.floating[index]} at element {k} is {got:.8g}; the slopes there are {left:.8g} and {right:.8g}"
                )


def gradient(case: Case) -> None:
    """The gradient agrees with finite differences."""
    case = case.cast(np.float64)
    found = case.gradients()
    for one, place in zip(found, case.floating, strict=True):
        if one.shape != case.args[place].shape:
            raise Failure(
                f"the gradient of argument {place} has shape {list(one.shape)} instead of {list(case.args[place].shape)}"
            )
    between(case, found, lambda index: number(case, index), "the gradient")


def second_derivative(case: Case) -> None:
    """The gradient of the gradient agrees with finite differences, or is refused."""
    case = case.cast(np.float64)
    given = case.tensors()
    firsts = case.take(case.loss(case.outputs(given)), given, create_graph=True)
    for which in range(len(firsts)):

        def first(index: int, array: Any, which: int = which) -> float:
            args = list(case.args)
            args[case.floating[index]] = array
            return float((case.gradients(args)[which] * mixed(case, which)).sum())

        if firsts[which].requires_grad:
            try:
                seconds = case.take((firsts[which] * wrap(mixed(case, which))).sum(), given, retain_graph=True)
            except RuntimeError as error:
                raise Refusal(str(error).partition("\n")[0]) from error
        else:
            seconds = case.take(None, given)
        found = [np.array(x.array) for x in seconds]
        between(case, found, functools.partial(functools.partial, first), f"the derivative of gradient {which}")


def mixed(case: Case, which: int) -> Any:
    """Weights for a gradient."""
    shape = case.args[case.floating[which]].shape
    return np.cos(np.arange(int(np.prod(shape)), dtype=float)).reshape(shape)


def float32(case: Case) -> None:
    """In float32 the results are float32 too, and near those of float64."""
    double, single = case.cast(np.float64), case.cast(np.float32)
    for what, one, other in (
        ("output", single.values(), double.values()),
        ("gradient", single.gradients(), double.gradients()),
    ):
        for index, (a, b) in enumerate(zip(one, other, strict=True)):
            if b.dtype == np.float64 and a.dtype != np.float32:
                raise Failure(f"{what} {index} is {a.dtype} where the arguments are float32")
            scale = np.abs(b[np.isfinite(b)]).max(initial=1.0)
            if not np.allclose(a, b, rtol=2e-3, atol=2e-4 * scale, equal_nan=True):
                raise Failure(
                    f"{what} {index} in float32 is not near that in float64: {difference([a.astype(float)], [b])}"
                )


def strides(case: Case) -> None:
    """Arguments of any layout give what contiguous ones give: Fortran order, negative and zero strides, offsets, unaligned rows."""
    for place in case.places:
        for name, arranged, plain in layouts(case.args[place]):
            args, reference = list(case.args), list(case.args)
            args[place], reference[place] = arranged, plain
            for what, run in (("value", case.values), ("gradient", case.gradients)):
                found, wanted = run(args), run(reference)
                if not close(found, wanted):
                    raise Failure(f"argument {place} in {name}: the {what} is {difference(found, wanted)}")


def incoming_gradients(case: Case) -> None:
    """A gradient of any layout gives what a contiguous one gives: expanded, transposed, sliced; also where the backward is recorded."""
    for name, shape, plain in incoming():
        reference = case.gradients(shape=plain)
        for recorded in (False, True):
            found = case.gradients(shape=shape, create_graph=recorded)
            if not close(found, reference):
                raise Failure(f"an incoming gradient that is {name}: the gradient is {difference(found, reference)}")


def empty(case: Case) -> None:
    """Size 0 gives gradients of size 0, and no element that does not exist is read."""
    if case.whole:
        raise Refusal("not tried: integer arguments may be positions")
    lengths = sorted({n for place in case.places for n in case.args[place].shape})
    for length in lengths:
        args = [
            np.zeros(tuple(0 if n == length else n for n in x.shape), x.dtype) if place in case.places else x
            for place, x in enumerate(case.args)
        ]
        shorter = case.having(args)
        plainly(shorter)
        refused(shorter.values)
        for place, one in zip(case.floating, case.gradients(args), strict=True):
            if one.shape != args[place].shape:
                raise Failure(
                    f"axes of length {length} cut to 0: the gradient of argument {place} has shape {list(one.shape)}"
                )


def zero_dim(case: Case) -> None:
    """0-d arguments are computed or refused; where computed, the gradient is right."""
    if case.whole:
        raise Refusal("not tried: integer arguments may be positions")
    scalar = case.having(
        [np.array(x.flat[0]) if place in case.places and x.size else x for place, x in enumerate(case.args)]
    )
    refused(scalar.values)
    refused(scalar.gradients, (KernelError,))
    gradient(scalar)


def refused(call: Callable[[], Any], kinds: tuple[type[Exception], ...] = REFUSING) -> None:
    """Make a call; `Refusal` where it raises what says that there is no meaning in it."""
    try:
        call()
    except kinds as error:
        raise Refusal(str(error).partition("\n")[0]) from error


def ties(case: Case) -> None:
    """Among equal elements the gradient lies between the slopes, and so does its sum: what moves all of them is not counted once for each."""
    equal = case.having(
        [np.full_like(x, 0.5) if place in case.floating else x for place, x in enumerate(case.args)]
    ).cast(np.float64)
    found = equal.gradients()
    between(equal, found, lambda index: number(equal, index), "the gradient among ties")

    def moved(shift: Any) -> float:
        args = [x + shift[0] if place in equal.floating else x for place, x in enumerate(equal.args)]
        loss = equal.loss(equal.outputs(equal.tensors(args)))
        return 0.0 if loss is None else float(loss.item())

    ((_, left, right),) = slopes(moved, np.zeros(1))
    low, high, total = min(left, right), max(left, right), sum(float(one.sum()) for one in found)
    slack = 2e-4 * max(abs(low), abs(high)) + 2e-5
    if np.isfinite(low) and np.isfinite(high) and not low - slack <= total <= high + slack:
        raise Failure(
            f"where all elements are equal and move together, gradients add up to {total:.8g}; the slopes there are {left:.8g} and {right:.8g}"
        )


def not_a_number(case: Case) -> None:
    """A NaN or an infinity is not swallowed where the result depends on the element, and does no harm elsewhere."""
    for index, place in enumerate(case.floating):
        if not case.args[place].size:
            continue
        slope = case.gradients()[index].ravel()
        for value in (np.nan, np.inf, -np.inf):
            args = [np.array(x) if p == place else x for p, x in enumerate(case.args)]
            args[place].flat[0] = value
            outs = [x for x in case.values(args) if x.dtype.kind == "f"]
            case.gradients(args)
            if np.isnan(value) and slope[0] != 0 and outs and not any(np.isnan(x).any() for x in outs):
                raise Failure(f"argument {place} with NaN at element 0, which the result depends on, gives no NaN")


def read_only(case: Case) -> None:
    """Arguments that can't be written to are enough."""
    args = list(case.args)
    for place in case.places:
        args[place] = args[place].copy()
        args[place].flags.writeable = False
    for what, run in (("value", case.values), ("gradient", case.gradients)):
        found, wanted = run(args), run()
        if not close(found, wanted):
            raise Failure(f"with read-only arguments the {what} is {difference(found, wanted)}")


def aliasing(case: Case) -> None:
    """No output, and no gradient, shares memory with an argument or with another of its kind, unless it is a view and known as one."""
    given = case.tensors()
    outs = case.outputs(given)
    found = case.take(case.loss(outs), given)
    named = [(f"argument {place}", given[place]) for place in case.places] + [
        (f"output {k}", x) for k, x in enumerate(outs)
    ]
    named += [(f"gradient {k}", x) for k, x in enumerate(found)]
    for later, (name, x) in enumerate(named):
        for other, y in named[:later]:
            known = x is y or x._is_view() or (x.vc is not None and x.vc is y.vc)
            if (
                not known
                and not (name.startswith("argument") and other.startswith("argument"))
                and np.may_share_memory(x.array, y.array)
            ):
                raise Failure(f"{name} shares memory with {other}")


def writes(case: Case) -> None:
    """Neither forward nor backward writes into an argument or into the incoming gradient."""
    given = case.tensors()
    before = [given[place].array.copy() for place in case.places]
    outs = case.outputs(given)
    mutated = getattr(getattr(case.function, "_contract", None), "mutates", ())
    for stage in ("forward", "backward"):
        if stage == "backward":
            for out in outs:
                if out.requires_grad:
                    seed = wrap(np.ones(out.meta.shape, out.meta.dtype))
                    out.backward(seed, retain_graph=True)
                    if not bool((seed.array == 1).all()):
                        raise Failure("backward writes into the gradient that it is handed")
        for place, kept in zip(case.places, before, strict=True):
            if place not in mutated and given[place].array.tobytes() != kept.tobytes():
                raise Failure(f"{stage} writes into argument {place}")


def determinism(case: Case) -> None:
    """The same call gives the same bits."""
    for what, run in (("value", case.values), ("gradient", case.gradients)):
        first, second = run(), run()
        if [x.tobytes() for x in first] != [x.tobytes() for x in second]:
            raise Failure(f"the {what} of a second call is {difference(second, first)}")


def saved_values(case: Case) -> None:
    """What one call saved and returned stays as it is through another call, and through its own backward."""
    given = case.tensors()
    outs = case.outputs(given)
    kept = [x.array.copy() for x in outs]
    loss = case.loss(outs)
    first = [np.array(x.array) for x in case.take(loss, given, retain_graph=True)]
    case.gradients([x * 0.5 + 0.25 if place in case.floating else x for place, x in enumerate(case.args)])
    if not close([x.array for x in outs], kept, 0.0):
        raise Failure("a second call changes the output of the first")
    again = [np.array(x.array) for x in case.take(loss, given)]
    if not close(again, first, 0.0):
        raise Failure(f"a second backward of one call, after another call, gives {difference(again, first)}")


def leaks(case: Case) -> None:
    """1,000 calls with their backwards leave nothing behind, the collector being off."""
    given = case.tensors()
    outs = case.outputs(given)
    nodes = [weakref.ref(x.grad_fn) for x in outs if x.grad_fn is not None]
    del outs
    gc.collect()
    if any(node() is not None for node in nodes):
        raise Failure("the graph of a call is alive after its outputs are gone")
    count = 1000 if case.size <= 10_000 else 50
    objects, arrays = growth(case.gradients, count)
    if objects > count // 2:
        raise Failure(f"{count} calls leave {objects} objects behind")
    if arrays > count // 2:
        raise Failure(f"{count} calls leave {arrays} arrays of compiled code behind")


def plainly(case: Case) -> None:
    """Forward and backward as plain Python on the same arguments, where every index is checked."""
    function = case.function
    if not isinstance(function, JitFunction) or function._contract.mutates:
        return
    contract = function._contract
    given = [np.ascontiguousarray(x) if isinstance(x, np.ndarray) and x.ndim else x for x in case.args]
    try:
        found = uncompiled(function.py_func, [], frozenset())(*given)
        results = found if isinstance(found, tuple) else (found,)
        if contract.backward is not None:
            outs = [np.asarray(x) for x in results[: contract.outputs or 1]]
            grads = [np.ones_like(x)[()] for x in outs if x.dtype.kind == "f"]
            needs = [(True,) * len(case.floating)] if contract.wants_needs else []
            plain = python_function(contract.backward, "backward")
            uncompiled(plain, [], frozenset())(*grads, *given, *results, *needs)
    except IndexError as error:
        raise Failure(f"{function.name} reads or writes out of bounds: {error}") from error
    except (TypeError, AttributeError, ValueError, ZeroDivisionError):
        return  # what only compiled code can do


def bounds(case: Case) -> None:
    """No index out of bounds, as far as plain Python can tell."""
    if case.size <= 4096:
        plainly(case)


PROPERTIES: Final[dict[str, Property]] = {
    "bounds": bounds,
    "gradient": gradient,
    "second derivative": second_derivative,
    "float32": float32,
    "layouts of arguments": strides,
    "layouts of gradients": incoming_gradients,
    "size 0": empty,
    "0-d": zero_dim,
    "ties": ties,
    "NaN and infinity": not_a_number,
    "read-only arguments": read_only,
    "aliasing": aliasing,
    "writes into arguments": writes,
    "determinism": determinism,
    "saved values": saved_values,
    "leaks": leaks,
}
