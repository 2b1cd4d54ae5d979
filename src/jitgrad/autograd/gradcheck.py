"""`gradcheck` and `gradgradcheck`: gradients against finite differences, with a report of what differs.

The slow mode compares whole Jacobians, the fast mode one product of them with random vectors from both sides.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.late import LateModule
from .._tensor.backward import grad
from .._tensor.base import TensorBase, wrap
from ._jacobians import (
    GradcheckError,
    analyse,
    analytical_jacobians,
    as_tuple,
    differentiable,
    directional,
    is_float,
    numerical_jacobian,
    numerical_jacobians,
    tensors_in,
)

if TYPE_CHECKING:
    from . import _forward_checks, _undefined_checks
else:
    _forward_checks = LateModule("jitgrad.autograd._forward_checks")
    _undefined_checks = LateModule("jitgrad.autograd._undefined_checks")

__all__ = [
    "GradcheckError",
    "get_analytical_jacobian",
    "get_numerical_jacobian",
    "get_numerical_jacobian_wrt_specific_input",
    "gradcheck",
    "gradgradcheck",
]

Array = np.ndarray[Any, Any]
Inputs = tuple[Any, ...]

_SLOW_OK = (
    "Fast gradcheck failed but element-wise differences are small. This means that the test might've passed in slow_mode!\n\n"
    "Call gradcheck or gradgradcheck with `fast_mode=False` as a keyword argument."
)
_SLOW_MODE = (
    "\nThe above quantities relating the numerical and analytical jacobians are computed \nin fast mode. Below, we recompute numerical and "
    "analytical jacobians in slow mode:\n\nNumerical:\n {}\nAnalytical:\n{}\n\nThe max per-element difference (slow mode) is: {}.\n"
)
_DEPRECATED = (
    "`{}` was part of PyTorch's private API and not meant to be exposed. We are deprecating it and it will be removed in a future version. "
    "Use `gradcheck` instead."
)


class Tolerance:
    """`rtol` and `atol`, and the step of the differences."""

    def __init__(self, eps: float, atol: float, rtol: float) -> None:
        self.eps, self.atol, self.rtol = eps, atol, rtol

    def close(self, a: Any, b: Any, scale: float = 1.0) -> bool:
        """Whether the elements of two arrays agree; `scale` multiplies `atol`."""
        return bool(np.allclose(a, b, self.rtol, self.atol * scale))


def gradcheck(func: Callable[..., Any], inputs: Any, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3, raise_exception: bool = True,
              nondet_tol: float = 0.0, check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
              check_batched_forward_grad: bool = False, check_forward_ad: bool = False, check_backward_ad: bool = True,
              fast_mode: bool = False, masked: bool | None = None) -> bool:  # fmt: skip
    """Whether the gradients of `func(*inputs)` agree with finite differences, for all inputs that take a gradient (float64, as a rule).

    `eps` is the step, `atol` and `rtol` say what agrees. Beside the values it checks that a backward gives the same result twice, that it
    is zero for a zero gradient, and that outputs without gradient are handled. Returns True, or raises `GradcheckError` with the two
    Jacobians that differ (returns False with `raise_exception=False`).

    >>> import jitgrad
    >>> x = jitgrad.tensor([0.5, 2.0], dtype=jitgrad.float64, requires_grad=True)
    >>> jitgrad.autograd.gradcheck(lambda x: x.exp() * x, x)
    True
    """
    assert check_forward_ad or check_backward_ad, "Expected at least one of check_forward_ad or check_backward_ad to be True"
    assert not check_batched_grad or check_backward_ad, "Setting check_batched_grad=True requires check_backward_ad to be True"
    assert not check_batched_forward_grad or check_forward_ad, "Setting check_batched_forward_grad=True requires check_forward_ad to be True"
    tolerance = Tolerance(eps, atol, rtol)
    try:
        tupled = as_tuple(inputs)
        check_inputs(tupled)
        result = func(*tupled)
        outputs = differentiable(result)
        if not outputs:
            check_constant(func, tupled, as_tuple(result), tolerance)
        elif check_backward_ad:
            (fast if fast_mode else slow)(func, tupled, as_tuple(result), tolerance, nondet_tol, check_grad_dtypes)
        if check_forward_ad:
            check_forward(func, tupled, as_tuple(result), tolerance, fast_mode, check_undefined_grad)
        if check_batched_forward_grad:
            _forward_checks.check_batched(func, tupled)
        if check_batched_grad:
            for place, output in enumerate(outputs):
                check_batched(tupled, output, place)
        if outputs and check_backward_ad:
            check_zero(outputs, tupled, bool(masked))
            if check_undefined_grad:
                _undefined_checks.check_undefined(func, tupled)
    except GradcheckError:
        if raise_exception:
            raise
        return False
    return True


# ---- what is checked
def check_inputs(inputs: Inputs) -> None:
    """ValueError if nothing takes a gradient, RuntimeError for overlapping memory; a warning for less than double precision."""
    found = False
    for place, x in enumerate(inputs):
        if not (isinstance(x, TensorBase) and x.requires_grad):
            continue
        found = True
        if x.array.dtype != np.float64:
            warnings.warn(f"Input #{place} requires gradient and is not a double precision floating point or complex. This check will likely fail if "
                          "all the inputs are not of double precision floating point or complex. ", stacklevel=3)  # fmt: skip
        if any(step == 0 and size > 1 for step, size in zip(x.array.strides, x.array.shape, strict=True)):
            raise RuntimeError(f"The {place}th input has a dimension with stride 0. gradcheck only supports inputs that are non-overlapping to be "
                               "able to compute the numerical gradients correctly. You should call .contiguous on the input before passing it to "
                               "gradcheck.")  # fmt: skip
    if not found:
        raise ValueError("gradcheck expects at least one input tensor to require gradient, but none of them have requires_grad=True.")


def mismatch(analytical: Any, numerical: Any, output: int, input: int, mode: str = "") -> str:
    """The report of two Jacobians, or products of them."""
    return f"Jacobian {mode}mismatch for output {output:d} with respect to input {input:d},\nnumerical:{numerical}\nanalytical:{analytical}\n"


def slow(func: Callable[..., Any], inputs: Inputs, results: Inputs, tolerance: Tolerance, nondet_tol: float, check_dtypes: bool) -> None:
    """Compare whole Jacobians."""
    floats = [x for x in results if is_float(x)]
    by_input = numerical_jacobians(func, inputs, results, eps=tolerance.eps)
    for place, output in enumerate(differentiable(results)):
        column = next(k for k, x in enumerate(floats) if x is output)
        for which, analytical in enumerate(analytical_jacobians(inputs, output, nondet_tol, check_dtypes)):
            numerical = by_input[which][column]
            if not tolerance.close(analytical.array, numerical.array):
                raise GradcheckError(mismatch(analytical, numerical, place, which))


def unit_vector(tensor: Any, random: np.random.Generator) -> Array:
    """A random vector of length 1 with non-negative elements, one per element of a tensor."""
    vector = random.random(tensor.array.size)
    found: Array = (vector / (np.linalg.norm(vector) or 1.0)).astype(tensor.array.dtype)
    return found


def fast(func: Callable[..., Any], inputs: Inputs, results: Inputs, tolerance: Tolerance, nondet_tol: float, check_dtypes: bool) -> None:
    """Compare `v J u` for random u and v: J u by finite differences, v J by one backward."""
    random = np.random.default_rng(0)
    targets = list(tensors_in(inputs, True))
    outputs = differentiable(results)
    us = [unit_vector(x, random) for x in targets]
    vs = [unit_vector(x, random) for x in outputs]
    pushed = [directional(func, inputs, x, u, tolerance.eps) for x, u in zip(targets, us, strict=True)]
    for place, (output, v) in enumerate(zip(outputs, vs, strict=True)):
        column = next(k for k, x in enumerate(results) if x is output)
        pulled = analytical_jacobians(inputs, output, nondet_tol, check_dtypes, v.reshape(output.array.shape))
        for which, u in enumerate(us):
            analytical = np.asarray(pulled[which].array[:, 0] @ u)
            numerical = np.asarray(v @ pushed[which][column])
            if not tolerance.close(analytical, numerical, float(u.sum() * v.sum())):
                report = mismatch(wrap(analytical), wrap(numerical), place, which)
                raise GradcheckError(report + in_slow_mode(func, inputs, results, output, which, tolerance))


def check_forward(func: Callable[..., Any], inputs: Inputs, results: Inputs, tolerance: Tolerance, fast_mode: bool, undefined: bool) -> None:
    """Compare the Jacobians of forward mode, in fast mode their products with random vectors, with finite differences."""
    random = np.random.default_rng(0)
    targets = list(tensors_in(inputs, True))
    us = [unit_vector(x, random) for x in targets]
    floats = [x for x in results if is_float(x)]
    pushed = _forward_checks.pushed_jacobians(func, inputs, results, us if fast_mode else None)
    for which, (x, u) in enumerate(zip(targets, us, strict=True)):
        if fast_mode:
            stepped = directional(func, inputs, x, u, tolerance.eps)
            numerical = [wrap(column) for column, y in zip(stepped, results, strict=True) if is_float(y)]
        else:
            numerical = list(numerical_jacobian(func, inputs, x, results, tolerance.eps))
        place = 0
        for column, output in enumerate(floats):
            if not output.requires_grad:
                continue
            analytical = pushed[which][column][0] if fast_mode else pushed[which][column]
            if not tolerance.close(analytical, numerical[column].array, float(u.sum()) if fast_mode else 1.0):
                report = mismatch(wrap(analytical), numerical[column], place, which, "computed with forward mode ")
                raise GradcheckError(report + (forward_in_slow_mode(func, inputs, results, column, which, tolerance) if fast_mode else ""))
            place += 1
    if undefined:
        _forward_checks.check_missing(func, inputs, us)


def forward_in_slow_mode(func: Callable[..., Any], inputs: Inputs, results: Inputs, column: int, which: int, tolerance: Tolerance) -> str:
    """The Jacobians themselves, for the report of the fast mode."""
    numerical = numerical_jacobian(func, inputs, list(tensors_in(inputs, True))[which], results, tolerance.eps)[column]
    return slow_report(numerical, wrap(_forward_checks.pushed_jacobians(func, inputs, results)[which][column]), tolerance)


def in_slow_mode(func: Callable[..., Any], inputs: Inputs, results: Inputs, output: Any, which: int, tolerance: Tolerance) -> str:
    """The Jacobians themselves, for the report of the fast mode."""
    target = list(tensors_in(inputs, True))[which]
    column = next(k for k, x in enumerate([x for x in results if is_float(x)]) if x is output)
    numerical = numerical_jacobian(func, inputs, target, results, tolerance.eps)[column]
    return slow_report(numerical, analytical_jacobians(inputs, output, float("inf"), False)[which], tolerance)


def slow_report(numerical: Any, analytical: Any, tolerance: Tolerance) -> str:
    """Both Jacobians and how far they are apart."""
    difference = np.abs(numerical.array - analytical.array)
    report = _SLOW_MODE.format(numerical, analytical, difference.max() if difference.size else 0.0)
    return report + (_SLOW_OK if tolerance.close(analytical.array, numerical.array) else "")


def check_constant(func: Callable[..., Any], inputs: Inputs, results: Inputs, tolerance: Tolerance) -> None:
    """Where no output takes a gradient, nothing may depend on the inputs."""
    for jacobians in numerical_jacobians(func, inputs, results, eps=tolerance.eps):
        if any(jacobian.array.any() for jacobian in jacobians):
            raise GradcheckError("Numerical gradient for function expected to be zero")


def check_zero(outputs: Inputs, inputs: Inputs, masked: bool) -> None:
    """A gradient of zero must give zeros, of the right dtype and shape."""
    targets = list(tensors_in(inputs, True))
    zeros = [wrap(np.zeros(x.array.shape, x.array.dtype)) for x in outputs]
    for found, x in zip(grad(outputs, targets, zeros, retain_graph=True, allow_unused=True), targets, strict=True):
        if found is None:
            continue
        if not (np.allclose(found.array, 0) if masked else (found.array == 0).all()):
            raise GradcheckError("backward not multiplied by grad_output")
        if found.dtype != x.dtype:
            raise GradcheckError("grad is incorrect type")
        if found.shape != x.shape:
            raise GradcheckError("grad is incorrect size")


def check_batched(inputs: Inputs, output: Any, place: int) -> None:
    """Gradients sent together must come back as they do one by one."""
    targets = list(tensors_in(inputs, True))
    random = np.random.default_rng(0)
    seeds = random.standard_normal((2, *output.array.shape)).astype(output.array.dtype)
    together = grad(output, targets, wrap(seeds), retain_graph=True, allow_unused=True, is_grads_batched=True)
    for which, found in enumerate(together):
        alone = [grad(output, targets, wrap(seed.copy()), retain_graph=True, allow_unused=True)[which] for seed in seeds]
        if found is not None and not all(np.allclose(part.array, one.array) for part, one in zip(found, alone, strict=True)):
            raise GradcheckError(f"For output {place} and input {which}:\n\n"
                                 "gradcheck or gradgradcheck failed while testing batched gradient computation.")  # fmt: skip


# ---- second derivatives
def gradgradcheck(func: Callable[..., Any], inputs: Any, grad_outputs: Any = None, *, eps: float = 1e-6, atol: float = 1e-5, rtol: float = 1e-3,
                  gen_non_contig_grad_outputs: bool = False, raise_exception: bool = True, nondet_tol: float = 0.0,
                  check_undefined_grad: bool = True, check_grad_dtypes: bool = False, check_batched_grad: bool = False,
                  check_fwd_over_rev: bool = False, check_rev_over_rev: bool = True, fast_mode: bool = False,
                  masked: bool = False) -> bool:  # fmt: skip
    """`gradcheck` of the backward of `func`, as a function of its inputs and of the gradients of its outputs (by default random ones)."""
    assert check_fwd_over_rev or check_rev_over_rev, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"
    assert not check_undefined_grad or check_rev_over_rev, "Setting check_undefined_grad=True requires check_rev_over_rev to be True"
    assert not check_batched_grad or check_rev_over_rev, "Setting check_batched_grad=True requires check_rev_over_rev to be True"
    tupled = as_tuple(inputs)
    if grad_outputs is None:
        seeds = tuple(random_gradient(x, gen_non_contig_grad_outputs) for x in differentiable(func(*tupled)))
    else:
        seeds = as_tuple(grad_outputs)
    needed = [isinstance(x, TensorBase) and x.requires_grad for x in (*tupled, *seeds)]

    def backward(*args: Any) -> Inputs:
        given = [x.requires_grad_() if need else x for x, need in zip(args, needed, strict=True)]
        first, last = given[: len(tupled)], given[len(tupled) :]
        targets = [x for x, need in zip(first, needed, strict=False) if need]
        found = grad(differentiable(func(*first)), targets, last, create_graph=True, allow_unused=True)
        return tuple(part for part in found if part is not None)

    return gradcheck(backward, (*tupled, *seeds), eps=eps, atol=atol, rtol=rtol, raise_exception=raise_exception, nondet_tol=nondet_tol,
                     check_undefined_grad=check_undefined_grad, check_grad_dtypes=check_grad_dtypes, check_batched_grad=check_batched_grad,
                     fast_mode=fast_mode, check_forward_ad=check_fwd_over_rev, check_backward_ad=check_rev_over_rev, masked=masked)  # fmt: skip


def random_gradient(output: Any, spread: bool) -> Any:
    """A leaf of an output's shape with elements between -1 and 1, on request not contiguous."""
    values = np.random.default_rng(0).uniform(-1, 1, output.array.shape).astype(output.array.dtype)
    if spread and values.size > 1:
        values = np.repeat(values[..., None], 2, -1)[..., 0]
    return wrap(values).requires_grad_()


# ---- kept for programs that use them
def get_numerical_jacobian(fn: Callable[[Any], Any], inputs: Any, target: Any = None, eps: float = 1e-3, grad_out: float = 1.0) -> Inputs:
    """The Jacobian of the first output of `fn(inputs)` with respect to each input (or target) that takes a gradient."""
    warnings.warn(_DEPRECATED.format("get_numerical_jacobian"), FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_numerical_jacobian no longer supports values of grad_out != 1.0.")
    given = as_tuple(inputs)
    outputs = as_tuple(fn(given))
    return tuple(jacobians[0] for jacobians in numerical_jacobians(lambda *args: fn(args), given, outputs, target, eps))


def get_numerical_jacobian_wrt_specific_input(fn: Callable[..., Any], input_idx: int, inputs: Inputs, outputs: Inputs, eps: float, input: Any = None,
                                              is_forward_ad: bool = False) -> Inputs:  # fmt: skip
    """The Jacobians of all floating-point outputs of `fn(*inputs)` with respect to one input."""
    return numerical_jacobian(fn, inputs, inputs[input_idx] if input is None else input, outputs, eps)


def get_analytical_jacobian(inputs: Any, output: Any, nondet_tol: float = 0.0, grad_out: float = 1.0) -> tuple[Inputs, bool, bool, bool]:
    """The Jacobians of an output by backward; whether a second backward gave the same, shapes were right, dtypes were right."""
    warnings.warn(_DEPRECATED.format("get_analytical_jacobian"), FutureWarning, stacklevel=2)
    if grad_out != 1.0:
        raise ValueError("Expected grad_out to be 1.0. get_analytical_jacobian no longer supports values of grad_out != 1.0.")
    found, reentrant, sizes_ok, types_ok = analyse(inputs, output, nondet_tol)
    return tuple(found), reentrant, sizes_ok, types_ok
