"""Anomaly mode."""

import threading
import warnings

import pytest

from tests.libraries import function, leaf

ON = "Anomaly Detection has been enabled"


def failing(lib):
    def backward(ctx, grad):
        raise ValueError("broken on purpose")

    return function(lib, lambda ctx, x: x * 1, backward, "Failing")


def warned(call, error, message):
    """The texts of the warnings of a call that raises."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(error, match=message):
            call()
    return [str(one.message) for one in caught if ON not in str(one.message)]


def test_the_forward_call_is_shown(lib):
    def call():
        with lib.autograd.detect_anomaly():
            y = failing(lib).apply(leaf(lib, 1.0))  # this line
            y.backward()

    (text,) = warned(call, ValueError, "broken on purpose")
    assert text.startswith("Error detected in FailingBackward. Traceback of forward call that caused the error:")
    assert "y = failing(lib).apply(leaf(lib, 1.0))  # this line" in text


def test_without_the_mode_in_forward(lib):
    y = failing(lib).apply(leaf(lib, 1.0))

    def call():
        with lib.autograd.detect_anomaly():
            y.backward()

    (text,) = warned(call, ValueError, "broken on purpose")
    assert text.startswith("Error detected in FailingBackward. No forward pass information available.")


def test_nan(lib):
    made = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: grad * float("nan"), "Made")
    x = leaf(lib, 1.0)

    def call():
        with lib.autograd.detect_anomaly():
            made.apply(x).backward()

    texts = warned(call, RuntimeError, "Function 'MadeBackward' returned nan values in its 0th output.")
    assert len(texts) == 1
    with pytest.warns(UserWarning, match=ON), lib.autograd.detect_anomaly(check_nan=False):
        made.apply(x).backward()
    assert x.grad.isnan().all()


def test_builtin_ops(lib):
    def call():
        with lib.autograd.detect_anomaly():
            y = leaf(lib, 1.0) * 1
            z = y * y  # this line
            with lib.no_grad():
                y.add_(1)
            z.backward()

    (text,) = warned(call, RuntimeError, "Hint: the backtrace further above shows the operation that failed to compute its gradient")
    assert "z = y * y  # this line" in text


def test_the_calculation_before(lib):
    """An op called by a backward names the op whose backward that was."""
    fails = failing(lib)
    outer = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: fails.apply(grad), "Outer")

    def call():
        with lib.autograd.detect_anomaly():
            x = leaf(lib, 1.0)
            y = outer.apply(x) * x  # this line
            (first,) = lib.autograd.grad(y, x, create_graph=True)
            first.backward()

    texts = warned(call, ValueError, "broken on purpose")
    assert texts[0].startswith("Error detected in FailingBackward.")
    assert "Previous calculation was induced by OuterBackward" in texts[1]
    assert "y = outer.apply(x) * x  # this line" in texts[1]


def test_switches(lib):
    assert not lib.is_anomaly_enabled()
    with lib.autograd.set_detect_anomaly(True, check_nan=False):
        assert (lib.is_anomaly_enabled(), lib.is_anomaly_check_nan_enabled()) == (True, False)
        with lib.autograd.set_detect_anomaly(False):
            assert not lib.is_anomaly_enabled()
        assert lib.is_anomaly_enabled()
    assert not lib.is_anomaly_enabled()
    lib.autograd.set_detect_anomaly(True)
    assert lib.is_anomaly_enabled()
    lib.autograd.set_detect_anomaly(False)
    assert not lib.is_anomaly_enabled()


def test_the_mode_is_one_for_all_threads(lib):
    seen = []
    with lib.autograd.set_detect_anomaly(True):
        other = threading.Thread(target=lambda: seen.append(lib.is_anomaly_enabled()))
        other.start()
        other.join()
    other = threading.Thread(target=lambda: seen.append(lib.is_anomaly_enabled()))
    other.start()
    other.join()
    assert seen == [True, False]
