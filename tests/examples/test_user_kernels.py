"""The examples with kernels of one's own: their checks pass, what they learn is learnt, and soft-DTW keeps to its time."""

import re

import pytest

from tests.examples.test_scripts import EXAMPLES, run


def numbers(text, pattern):
    """The figures that a line of output has in the places of a pattern's groups."""
    found = re.search(pattern, text)
    assert found, text
    return [float(one.replace(",", "")) for one in found.groups()]


def test_soft_dtw():
    output = run("soft_dtw.py")
    assert "value and gradient equal the sum over all alignments (0.612606); opcheck passes" in output
    start, end = numbers(output, r"distance (-?[\d.]+) for the mean, (-?[\d.]+) after")
    assert end < start
    (ratio,) = numbers(output, r"ratio ([\d.]+)")
    assert ratio <= 1.3


def test_crf_tagger():
    output = run("crf_tagger.py")
    assert "check: loss and gradient equal the sum over all tag sequences, -inf included; opcheck passes" in output
    right, apart = numbers(output, r"held-out source: ([\d.]+)% of characters, ([\d.]+)% without the chain")
    assert right > 85
    assert right > apart + 5


def test_pendulum():
    output = run("pendulum.py")
    assert "check: a small swing is a cosine, derivatives pass opcheck" in output
    stiffness, damping = numbers(output, r"stiffness ([\d.]+) \(9\), damping ([\d.]+)")
    assert abs(stiffness - 9) < 0.05
    assert abs(damping - 0.25) < 0.02


def test_lennard_jones():
    output = run("lennard_jones.py")
    assert "check: forces equal those written by hand, second derivatives equal finite differences" in output
    epsilon, sigma = numbers(output, r"epsilon ([\d.]+) \(0.8\), sigma ([\d.]+)")
    assert abs(epsilon - 0.8) < 0.01
    assert abs(sigma - 1.05) < 0.005


def test_soft_knn():
    output = run("soft_knn.py")
    assert "check: weights, neighbours and gradients equal those of tensor ops; opcheck passes" in output
    before, after = numbers(output, r"in ([\d.]+)% before, ([\d.]+)% after")
    assert after > before + 5


def test_straight_through_sign():
    output = run("straight_through_sign.py")
    assert "check: values are signs, gradients those of a clamp" in output
    (right,) = numbers(output, r"held-out accuracy ([\d.]+)%")
    assert right > 75


@pytest.mark.parametrize(
    "name", ["soft_dtw", "crf_tagger", "pendulum", "lennard_jones", "soft_knn", "straight_through_sign"]
)
def test_each_prints_its_check_and_its_time(name):
    source = (EXAMPLES / f"{name}.py").read_text()
    assert 'print(f"time: ' in source
    assert "check: " in source
