"""Inference mode: what it makes, and what is refused of that afterwards."""

import pytest

from tests.libraries import function, leaf

SAVED = "Inference tensors cannot be saved for backward"
WRITE = "Inplace update to inference tensor outside InferenceMode is not allowed"


@pytest.fixture
def made(lib):
    with lib.inference_mode():
        return lib.ones(2)


def test_mode(lib):
    with lib.inference_mode():
        assert lib.is_inference_mode_enabled()
        assert not lib.is_grad_enabled()
        with lib.inference_mode(False):
            assert not lib.is_inference_mode_enabled()
            assert lib.is_grad_enabled()
            assert not lib.ones(1).is_inference()
        with lib.enable_grad():
            assert not (leaf(lib, 1.0) * 2).requires_grad
    assert not lib.is_inference_mode_enabled()


def test_decorator(lib):
    @lib.inference_mode()
    def called():
        return lib.is_inference_mode_enabled()

    @lib.inference_mode
    def bare():
        return lib.is_inference_mode_enabled()

    @lib.inference_mode(mode=False)
    def off():
        return lib.is_inference_mode_enabled()

    assert [called(), bare(), off()] == [True, True, False]


def test_results(lib):
    x = leaf(lib, 1.0, 2.0)
    with lib.inference_mode():
        y = x * 2
        assert y.is_inference()
        assert not y.requires_grad
        assert y.clone().is_inference()
        assert y.view(2, 1).is_inference()
        assert not y.view(2, 1)._is_view()
        y.add_(1)  # allowed inside
        assert not x.view(2, 1).is_inference()
        assert x.view(2, 1)._is_view()
    assert not (y * 2).is_inference()
    assert not y.clone().is_inference()
    assert y.detach().is_inference()
    assert y[0].is_inference()
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        y._version


def test_not_saved_for_backward(lib, made):
    x = leaf(lib, 1.0, 2.0)
    (x + made).sum().backward()  # saves nothing
    assert x.grad.tolist() == [1.0, 1.0]
    with pytest.raises(RuntimeError, match=SAVED):
        x * made
    with lib.no_grad():
        assert (x * made).tolist() == [1.0, 2.0]
    assert (x * made.clone()).requires_grad


def test_not_saved_by_a_function(lib, made):
    def forward(ctx, x):
        ctx.save_for_backward(made)
        return x * 2

    with pytest.raises(RuntimeError, match=SAVED):
        function(lib, forward, lambda ctx, grad: grad).apply(leaf(lib, 1.0, 2.0))


def test_not_written_to_outside(lib, made):
    for write in (lambda: made.add_(1), lambda: made.copy_(lib.ones(2)), lambda: made.__setitem__(0, 3.0), lambda: made.view(2, 1).mul_(2)):
        with pytest.raises(RuntimeError, match=WRITE):
            write()
    with lib.no_grad(), pytest.raises(RuntimeError, match=WRITE):
        made.zero_()


def test_takes_no_gradient_outside(lib, made):
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        made.requires_grad_()
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode is not allowed"):
        lib.nn.Parameter(made)
    with lib.inference_mode():
        assert lib.ones(1, requires_grad=True).requires_grad


def test_normal_tensors_may_be_written_to_inside(lib):
    normal = lib.ones(2)
    with lib.inference_mode():
        normal.add_(1)
        view = normal.view(2, 1)
        view.mul_(3)
    assert normal.tolist() == [6.0, 6.0]
    assert not normal.is_inference()
    assert normal._version == 2


def test_views_of_normal_tensors_made_inside(lib):
    base = leaf(lib, 1.0, 2.0) * 1
    with lib.inference_mode():
        view = base.view(2, 1)
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace in normal mode"):
        view.add_(1)


def test_accumulation_into_one_is_refused(lib, made):
    x = leaf(lib, 1.0, 2.0)
    x.grad = made
    with pytest.raises(RuntimeError, match=WRITE):
        (x * 2).sum().backward()


@pytest.mark.parametrize("given", ["detach", "data", "detach twice"])
def test_without_history_outside(lib, made, given):
    kinds = {"detach": made.detach, "data": lambda: made.data, "detach twice": lambda: made.detach().detach()}
    other = kinds[given]()
    assert other.is_inference()
    assert other._version == 0
    other.mul_(3)  # counts its writes, and so may be written to
    assert other._version == 1
    assert made.tolist() == [3, 3]


def test_detach_within(lib, made):
    with lib.inference_mode():
        other = made.detach()
    with pytest.raises(RuntimeError, match="do not track version"):
        _ = other._version
    with pytest.raises(RuntimeError, match=WRITE):
        other.mul_(3)


def test_cut_off_outside(lib):
    with lib.inference_mode():
        x = lib.ones(2, requires_grad=True)
        view = x[:1]
    x.detach_()
    view.detach_()
    assert x.requires_grad  # made where histories are left alone
