"""Emission: what the lines look like. Their values are tested with the kernels."""

import math

import pytest

from jitgrad._expr import param, scalar as s, var
from jitgrad._expr.emit import emit_body, spelling

X, Y = var("x"), var("y")


def test_shared_nodes_are_computed_once():
    body = emit_body([s.exp(X) * s.exp(X) + s.exp(X), s.exp(X)])
    assert [line for line in body.statements if "exp(" in line] == ["t0 = exp(x)"]
    assert body.results == ["t2", "t0"]


def test_constants_carry_the_kernels_dtype():
    body = emit_body([X * 2 + 0.5, s.where(X > 0, math.inf, -math.inf), s.maximum(X, math.nan)])
    text = "\n".join(body.statements)
    for literal in ("real(2.0)", "real(0.5)", "real(np.inf)", "real(-np.inf)", "real(np.nan)"):
        assert literal in text


def test_conditions_and_numbers_are_converted_where_they_meet():
    assert emit_body([(X > 0) * Y]).statements[1] == "t1 = where(t0, real(1.0), real(0.0)) * y"
    assert emit_body([s.where(X, Y, 1.0)]).statements == ["t0 = where((x != real(0.0)), y, real(1.0))"]
    assert emit_body([s.where(X, Y, 1.0)], masks={"x"}).statements == ["t0 = where(x, y, real(1.0))"]
    assert emit_body([X], masks={"x"}, gives="r").results == ["where(x, real(1.0), real(0.0))"]
    assert emit_body([X], gives="c").results == ["(x != real(0.0))"]


def test_constant_powers_are_products():
    assert emit_body([X**2]).statements == ["t0 = x * x"]
    assert emit_body([X**0.5]).statements == ["t0 = sqrt(x)"]
    assert emit_body([X**2.5]).statements == ["t0 = pow_(x, real(2.5))"]


def test_names_that_the_kernel_uses_itself_are_spelled_otherwise():
    for name in ("exp", "real", "k", "t3", "q0", "in_x", "base_x", "lambda", "far"):
        assert spelling(name) == name + "_"
    for name in ("x", "grad", "result", "t", "x1", "alpha"):
        assert spelling(name) == name
    assert spelling("k_") != spelling("k")
    with pytest.raises(ValueError, match="cannot name"):
        spelling("a b")


def test_params_are_names_and_functions_are_known():
    body = emit_body([s.tanh(X * param("alpha")) ** 2.5])
    assert body.statements[0] == "t0 = x * alpha"
    assert body.functions == {"tanh", "pow_", "real"}
