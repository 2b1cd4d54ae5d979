"""The update rules: each kernel beside its rule by interpretation, in every combination of flags."""

import itertools

import numpy as np
import pytest

from jitgrad._core.meta import meta_of
from jitgrad._core.settings import settings
from jitgrad.optim import more_rules, rules
from jitgrad.optim.rules import Rule

RULES = [value for module in (rules, more_rules) for value in module.__dict__.values() if isinstance(value, Rule)]
VALUES = {"lr": 0.1, "eps": 1e-3, "weight_decay": 0.2, "momentum": 0.9, "share": 0.7, "shrink": 0.95, "rest1": 0.1,
          "beta2": 0.99, "rest2": 0.01, "root": 0.3, "alpha": 0.8, "rest": 0.2,
          "rho": 0.8, "rate": 0.1, "ahead": 0.2, "rectified": 0.6, "plain": 0.3, "eta": 0.1, "mu": 0.4, "less": 0.5, "more": 1.2,
          "low": 0.2, "high": 1.6}  # fmt: skip
CASES = [(rule, flags) for rule in RULES for flags in itertools.product([False, True], repeat=len(rule.flags))]


def arguments(rule, dtype, size=37):
    rng = np.random.default_rng(len(rule.name))
    arrays = [rng.standard_normal(size) for _ in rule.arrays[:2]]
    arrays += [(9 if "sq" in name else 1) + rng.random(size) for name in rule.arrays[2:]]  # variances stay positive
    return [array.astype(dtype) for array in arrays], [VALUES[name] for name in rule.params]


def run(rule, flags, arrays, numbers):
    entry = meta_of(arrays[0]).k[rule.numbers[flags]]
    entry(*arrays, *numbers)


@pytest.mark.parametrize(("rule", "flags"), CASES, ids=lambda value: getattr(value, "name", None))
def test_kernel_and_rule_agree(rule, flags):
    arrays, numbers = arguments(rule, np.float64)
    expected = rule.evaluate(flags, arrays, numbers)
    gradient = arrays[1].copy()
    run(rule, flags, arrays, numbers)
    for place, value in zip(rule.places, expected, strict=True):
        np.testing.assert_allclose(arrays[place], value, rtol=1e-12)
    assert np.array_equal(arrays[1], gradient)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_float32_keeps_its_precision(rule):
    flags = (False,) * len(rule.flags)
    arrays, numbers = arguments(rule, np.float32)
    expected = rule.evaluate(flags, [array.astype(np.float64) for array in arrays], numbers)
    run(rule, flags, arrays, numbers)
    for place, value in zip(rule.places, expected, strict=True):
        assert arrays[place].dtype == np.float32
        np.testing.assert_allclose(arrays[place], value, rtol=3e-6, atol=1e-6)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_nan_and_nothing(rule):
    flags = (False,) * len(rule.flags)
    arrays, numbers = arguments(rule, np.float32, size=3)
    arrays[1][1] = np.nan
    run(rule, flags, arrays, numbers)
    moves = rule is not more_rules.rprop  # the sign of NaN is zero
    assert np.isnan(arrays[0]).tolist() == [False, moves, False]
    arrays, numbers = arguments(rule, np.float32, size=0)
    run(rule, flags, arrays, numbers)


def test_a_weight_that_does_not_decay_is_not_multiplied():
    arrays = [np.array([np.inf]), np.array([0.0])]
    run(rules.sgd, (False, False), arrays, [0.1, 0.0])
    assert arrays[0][0] == np.inf


def test_one_kernel_per_combination():
    assert rules.sgd.numbers[True, False] == rules.sgd.numbers[True, False]
    assert rules.sgd.numbers[True, False] != rules.sgd.numbers[False, False]
    assert repr(rules.sgd) == "<rule sgd(p, g, lr, weight_decay)>"


@pytest.mark.skipif(not settings.jit, reason="reads compiled source")
def test_the_source_can_be_read():
    source = rules.sgd.kernel((False, True)).source(np.dtype("f4"))
    assert "def update_sgd_decay(b_p, b_g, s_lr, s_weight_decay):" in source
    assert "p_g[k] =" not in source
