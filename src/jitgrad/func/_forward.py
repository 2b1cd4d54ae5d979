"""Transforms by forward mode: `jvp`, `jacfwd`, `hessian`, `linearize`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._tensor import dual
from .._tensor.base import wrap
from ..autograd import forward_ad
from ._arguments import Argnums, check_inputs, check_outputs, chosen, replaced, with_aux
from ._reverse import jacrev, joined
from ._trees import flatten, unflatten
from ._vmap import Randomness

Function = Callable[..., Any]
_NAME = "jvp(f, primals, tangents)"


def jvp(func: Function, primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """The output of `func(*primals)` and its derivative in the direction of `tangents`, a tuple of the same structure.

    `strict` refuses an output that does not depend on the primals, for which otherwise zeros are returned. With `has_aux`, `func` returns a
    pair, whose second part is returned third. RuntimeError for other structures, or a function that returns anything but tensors.

    >>> import jitgrad
    >>> jitgrad.func.jvp(jitgrad.sin, (jitgrad.tensor(0.0),), (jitgrad.tensor(2.0),))
    (tensor(0.), tensor(2.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(f"{_NAME}: Expected primals to be a tuple. E.g. it should be valid to call f(*primals).")
    output, tangent, aux = pushed(func, primals, tangents, tuple(range(len(primals))), strict, has_aux)
    return (output, tangent, aux) if has_aux else (output, tangent)


def pushed(func: Function, args: tuple[Any, ...], tangents: Any, places: tuple[int, ...], strict: bool, has_aux: bool) -> tuple[Any, Any, Any]:
    """Output, tangent and auxiliary value, for tangents of the arguments at `places`."""
    leaves, structure = flatten(tuple(args[place] for place in places))
    given, other = flatten(tangents)
    if structure != other:
        raise RuntimeError(f"{_NAME}: Expected primals and tangents to have the same python structure. For example, if primals is a tuple of 3 "
                           f"tensors, tangents also must be. Got primals with structure {structure} and tangents with structure {other}")  # fmt: skip
    check_inputs(leaves, _NAME, "primals")
    check_inputs(given, _NAME, "tangents")
    with forward_ad.entered() as level:
        duals = [with_tangent(level, x, tangent) for x, tangent in zip(leaves, given, strict=True)]
        output = func(*replaced(args, unflatten(duals, structure), places))
        aux = None
        if has_aux:
            output, aux = with_aux(output, _NAME)
        outputs, shape = flatten(output)
        check_outputs(outputs, _NAME)
        found = [tangent_of(level, x, strict) for x in outputs]
    return output, unflatten(found, shape), aux


def with_tangent(level: dual.Level, x: Any, tangent: Any) -> Any:
    """A view of a tensor with a tangent at a level."""
    dual.check_size(x, tangent)
    result = dual.alias(x)
    for outside in level.outwards():
        outside.give(result, tangent)
        break
    return result


def tangent_of(level: dual.Level, x: Any, strict: bool) -> Any:
    """The tangent of an output; zeros, or an error, where there is none."""
    found = level.of(x)
    if found is None and strict:
        raise RuntimeError("jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not allowed with "
                           "strict=True.")  # fmt: skip
    return wrap(np.zeros(x.meta.shape, x.meta.dtype)) if found is None else found


def jacfwd(func: Function, argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error") -> Function:
    """A function that returns the Jacobian of `func`, computed column by column by forward mode: `func` is called once per element.

    Shapes and structure are those of `jacrev`. `randomness` says what happens to random numbers, as in `vmap`.

    >>> import jitgrad
    >>> jitgrad.func.jacfwd(lambda x: x**2)(jitgrad.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """

    @functools.wraps(func)
    def transformed(*args: Any) -> Any:
        places = chosen(args, argnums)
        leaves, structure = flatten(tuple(args[place] for place in places))
        check_inputs(leaves, _NAME, "primals")
        rng = Randomness(randomness)
        outputs: list[Any] = []
        shape: Any = None
        aux: Any = None
        found: list[list[Any]] = []  # for each input the Jacobians of all outputs
        for which, x in enumerate(leaves):
            columns: list[list[Any]] = []
            for place in range(x.meta.numel):
                tangents = [wrap(np.zeros(y.meta.shape, y.meta.dtype)) for y in leaves]
                tangents[which].array.reshape(-1)[place] = 1
                with rng:
                    output, tangent, aux = pushed(func, args, unflatten(tangents, structure), places, False, has_aux)
                outputs, shape = flatten(output)
                columns.append(flatten(tangent)[0])
            if shape is None:
                output = func(*args)
                outputs, shape = flatten(output[0] if has_aux else output)
            found.append([joined([column[k] for column in columns], (*y.meta.shape, *x.meta.shape), y, -1) for k, y in enumerate(outputs)])
        rows = [unflatten([column[k] for column in found], structure) for k in range(len(outputs))]
        result = unflatten([row[0] if isinstance(argnums, int) else row for row in rows], shape)
        return (result, aux) if has_aux else result

    return transformed


def hessian(func: Function, argnums: Argnums = 0) -> Function:
    """A function that returns the second derivatives of `func`: `jacfwd(jacrev(func))`.

    >>> import jitgrad
    >>> jitgrad.func.hessian(lambda x: (x**3).sum())(jitgrad.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)


def linearize(func: Function, *primals: Any) -> tuple[Any, Function]:
    """The output of `func(*primals)`, and a function from tangents of the primals to that of the output.

    That function calls `func` again each time. RuntimeError for tangents of another structure, shape or dtype.
    """
    output = func(*primals)
    leaves, structure = flatten(primals)
    metas = [x.meta for x in leaves]

    def push(*tangents: Any) -> Any:
        given, other = flatten(tangents)
        if other != structure:
            raise RuntimeError(f"Expected the tangents {other} to have the same argspec as the primals {structure}")
        for place, (t, meta) in enumerate(zip(given, metas, strict=True)):
            for what, one, two in (("shape", t.shape, type(t.shape)(meta.shape)), ("dtype", t.dtype, meta.kind)):
                if one != two:
                    raise RuntimeError(f"tangent:{place} with {what} {one} in flattened pytree doesn't match the {what} {two} of the corresponding "
                                       "primal.")  # fmt: skip
        return pushed(func, primals, tangents, tuple(range(len(primals))), False, False)[1]

    return output, push


__all__ = ["hessian", "jacfwd", "jvp", "linearize"]
