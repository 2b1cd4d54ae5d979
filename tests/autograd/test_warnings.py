"""Warnings of the backward, in torch's words."""

import subprocess
import sys
import warnings

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]

CIRCLE = """
import warnings
import jitgrad as torch
x = torch.ones(2, requires_grad=True)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    torch.autograd.grad((x * x).sum(), x, create_graph=True)
    for _ in range(3):
        (x * x).sum().backward(create_graph=True)
print(len(seen), seen[0].category.__name__, seen[0].message)
"""


def test_the_circle_of_leaf_and_gradient_is_told_once():
    out = subprocess.run([sys.executable, "-c", CIRCLE], check=True, capture_output=True, text=True).stdout
    assert out.startswith(
        "1 UserWarning Using backward() with create_graph=True will create a reference cycle between the"
    )


def test_the_gradient_of_a_tensor_that_keeps_none(lib):
    y = leaf(lib, 1.0) * 1
    with pytest.warns(
        UserWarning, match=r"The .grad attribute of a Tensor that is not a leaf .* See github.com/pytorch/"
    ):
        assert y.grad is None
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None
