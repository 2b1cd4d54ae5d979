"""Clipping of gradients, and parameters as a vector."""

import math

import pytest

import jitgrad as torch
from jitgrad import nn
from jitgrad.nn import utils


def parameters(*gradients):
    made = []
    for gradient in gradients:
        made.append(nn.Parameter(torch.zeros(len(gradient))))
        made[-1].grad = torch.tensor(gradient)
    return made


def gradients(made):
    return [[round(value, 4) for value in p.grad.tolist()] for p in made]


def test_clip_norm():
    made = parameters([3.0], [0.0, 4.0])
    norm = utils.clip_grad_norm_(made, 1.0)
    assert norm.item() == 5
    assert norm.shape == ()
    assert gradients(made) == [[0.6], [0.0, 0.8]]
    assert utils.clip_grad_norm_(iter(made), 10.0).item() == pytest.approx(1, abs=1e-6)
    assert gradients(made) == [[0.6], [0.0, 0.8]]
    assert utils.clip_grad_norm_(made[1], 0.4).item() == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize(("kind", "norm"), [(1, 7), (math.inf, 4), ("inf", 4), (3.0, 91 ** (1 / 3))])
def test_other_norms(kind, norm):
    assert utils.clip_grad_norm_(parameters([3.0], [0.0, 4.0]), 1.0, kind).item() == pytest.approx(norm)


def test_nothing_to_clip():
    assert utils.clip_grad_norm_([nn.Parameter(torch.ones(2))], 1.0).item() == 0
    with pytest.warns(UserWarning, match="`parameters` is an empty generator"):
        utils.clip_grad_norm_((p for p in ()), 1.0)


def test_norm_that_is_not_finite():
    made = parameters([math.nan, 1.0])
    with pytest.raises(
        RuntimeError, match=r"The total norm of order 2\.0 for gradients from `parameters` is non-finite"
    ):
        utils.clip_grad_norm_(made, 1.0, error_if_nonfinite=True)
    assert made[0].grad[1].item() == 1
    assert math.isnan(utils.clip_grad_norm_(made, 1.0).item())


def test_the_two_halves():
    made = parameters([3.0], [0.0, 4.0])
    norm = utils.get_total_norm([p.grad for p in made])
    assert norm.item() == 5
    utils.clip_grads_with_norm_(made, 2.5, norm)
    assert gradients(made) == [[1.5], [0.0, 2.0]]


def test_clip_value():
    made = parameters([3.0], [-9.0, 0.5])
    utils.clip_grad_value_(made, 1.0)
    assert gradients(made) == [[1.0], [-1.0, 0.5]]


def test_vector():
    layer = nn.Linear(2, 1)
    vector = utils.parameters_to_vector(layer.parameters())
    assert vector.shape == (3,)
    vector.sum().backward()
    assert layer.weight.grad.tolist() == [[1, 1]]
    utils.vector_to_parameters(torch.tensor([1.0, 2.0, 3.0]), layer.parameters())
    assert layer.weight.tolist() == [[1, 2]]
    assert layer.bias.tolist() == [3]
    assert layer.weight.requires_grad
    with pytest.raises(TypeError, match=r"expected torch\.Tensor, but got"):
        utils.vector_to_parameters([1.0], layer.parameters())
