"""`opcheck` finds each fault by its own name, with a small input, and lets what is right pass."""

import numpy as np
import pytest

import jitgrad
from jitgrad.autograd.kernels import OpcheckError, jit_function, opcheck
from jitgrad.autograd.kernels.probing import Case, Failure
from jitgrad.autograd.kernels.properties import PROPERTIES, incoming_gradients
from tests.kernels_user.cases import make_product, make_scan, scan_backward, scan_forward, tensor

X = np.array([0.5, -1.0, 2.0, 0.25])


def x():
    return tensor(X)


def only(*names):
    return tuple(set(PROPERTIES) - set(names))


def failing(function, *args, skip=()):
    report = opcheck(function, *args, skip=skip, raise_exception=False)
    return {found.property: found for found in report.failures}


def test_a_right_op_passes_every_property():
    report = opcheck(make_product(), x(), x())
    assert {found.property for found in report.findings} == set(PROPERTIES)
    assert {found.property for found in report.findings if found.verdict == "refused"} == {"second derivative"}


def test_a_wrong_gradient():
    op = jit_function(scan_forward, lambda grad, x, decay, y: 1.1 * scan_backward(grad, x, decay, y), name="scan")
    found = failing(op, x(), 0.5, skip=only("gradient"))["gradient"]
    assert found.input == "float64[1] [0.5], 0.5"
    assert "by argument 0 at element 0 is" in found.words
    with pytest.raises(OpcheckError, match=r"scan fails \d+ of \d+ properties\n  gradient: fails"):
        opcheck(op, x(), 0.5, skip=only("gradient"))


def test_positions_are_not_cut_off():
    op = jit_function(lambda x, k: x[k], lambda grad, x, k, y: np.ones_like(x), name="take")
    found = failing(op, x(), jitgrad.tensor([3, 0]), skip=only("gradient", "size 0"))
    assert found["gradient"].input == "float64[4] [ 0.5 , -1.  ,  2.  ,  0.25], int64[2] [3, 0]"
    assert "size 0" not in found


def test_a_wrong_second_derivative():
    op = make_scan()
    op.double_backward(lambda grad, x, decay, y: grad * x)  # the value of a first gradient does not come from here
    assert "second derivative" in failing(op, x(), 0.5, skip=only("second derivative"))


def test_float64_where_float32_is_expected():
    op = jit_function(lambda x: x * np.float64(2.0), lambda grad, x, y: (grad * 2.0).astype(x.dtype), name="widens")
    assert (
        "output 0 is float64 where the arguments are float32" in failing(op, x(), skip=only("float32"))["float32"].words
    )


def memory_order(x):
    return (x * 1.0) + jitgrad.from_numpy(np.array(x.detach().numpy().ravel(order="K")).reshape(x.shape)) * 1.0


def test_a_function_that_reads_memory_as_if_it_were_contiguous():
    found = failing(memory_order, tensor(np.arange(6.0).reshape(2, 3)), skip=only("layouts of arguments"))
    assert "argument 0 in Fortran order: the value is" in found["layouts of arguments"].words


def test_a_gradient_read_as_if_it_were_contiguous():
    calls = []

    def moody(x):
        calls.append(1)
        return x * (2.0 + len(calls) % 2)

    with pytest.raises(Failure, match=r"an incoming gradient that is expanded \(stride 0\)"):
        incoming_gradients(Case(moody, [x()]))


def test_an_element_read_that_does_not_exist():
    def shifted(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = x[i] + x[i + 1]
        return y

    op = jit_function(shifted, lambda grad, x, y: grad * 1.0)
    assert "index 1 is out of bounds for axis 0 with size 1" in failing(op, x(), skip=only("bounds"))["bounds"].words


def test_size_0():
    def first(x):
        y = x * 1.0
        y[:] += x[0]
        return y

    op = jit_function(first, lambda grad, x, y: grad * 1.0)
    assert "reads or writes out of bounds" in failing(op, x(), skip=only("size 0"))["size 0"].words
    wide = jit_function(lambda x: x * 1.0, lambda grad, x, y: np.zeros(max(x.size, 1)), name="wide")
    assert "returned a gradient of shape [1]" in failing(wide, x(), skip=only("size 0"))["size 0"].words


def test_0d():
    def odd(x):
        return x * 2.0 if x.ndim else x + (x * 2.0).detach()

    assert "the gradient by argument 0 at element 0 is 1" in failing(odd, x(), skip=only("0-d"))["0-d"].words


def test_ties():
    class Greedy(jitgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.amax()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return grad * 2.0 * (x == x.amax()).to(x.dtype) - grad * (x == x.amax()).to(x.dtype) * (
                0.0 if (x == x.amax()).sum() > 1 else 1.0
            )

    found = failing(Greedy.apply, x())
    assert "ties" in found
    assert "gradient" not in found


def test_a_swallowed_nan():
    def relu(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = x[i] if x[i] > 0 else 0.0
        return y

    op = jit_function(relu, lambda grad, x, y: np.where(x > 0, grad, np.zeros_like(grad)))
    found = failing(op, tensor([1.0, -2.0, 3.0]))
    assert (
        "argument 0 with NaN at element 0, which the result depends on, gives no NaN" in found["NaN and infinity"].words
    )
    assert set(found) == {"NaN and infinity"}


def test_writes_aliases_and_read_only_arguments():
    def writer(x):
        x.detach().numpy()[...] += 0.0 if not x.numel() else 1.0
        return x * 1.0

    found = failing(writer, x(), skip=only("writes into arguments", "read-only arguments"))
    assert "forward writes into argument 0" in found["writes into arguments"].words
    assert "raises ValueError" in found["read-only arguments"].words
    alias = failing(Same.apply, x(), skip=only("aliasing"))
    assert "output 0 shares memory with argument 0" in alias["aliasing"].words
    assert "aliasing" not in failing(lambda x: x[1:], x(), skip=only("aliasing"))  # a view, and known as one


class Same(jitgrad.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return jitgrad.from_numpy(x.detach().numpy())

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_gradient_that_is_written_to():
    class Doubles(jitgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2.0

        @staticmethod
        def backward(ctx, grad):
            grad.mul_(2.0)
            return grad.clone()

    found = failing(Doubles.apply, x(), skip=only("writes into arguments"))
    assert found["writes into arguments"].words == "backward writes into the gradient that it is handed"


def test_a_result_that_depends_on_the_call():
    calls = []

    def counting(x):
        calls.append(1)
        return x * float(len(calls))

    assert "determinism" in failing(counting, x(), skip=only("determinism"))


def test_a_buffer_that_is_used_again():
    buffer = np.zeros(4)

    def reuses(x):
        buffer[...] = 2.0 * x.detach().numpy()
        return jitgrad.from_numpy(buffer)

    assert (
        failing(reuses, x(), skip=only("saved values"))["saved values"].words
        == "a second call changes the output of the first"
    )

    class Scratch(jitgrad.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.scratch = x.detach().clone()
            return x * x

        @staticmethod
        def backward(ctx, grad):
            ctx.scratch.mul_(2.0)
            return grad * ctx.scratch

    assert (
        "a second backward of one call" in failing(Scratch.apply, x(), skip=only("saved values"))["saved values"].words
    )


def test_a_leak():
    kept = []

    def hoards(x):
        y = x * 2.0
        kept.append(y)
        return y

    found = failing(hoards, x(), skip=only("leaks"))["leaks"]
    assert "alive after its outputs are gone" in found.words
    slow = []

    def collects(x):
        slow.append([x.detach()])
        return x * 2.0

    assert "calls leave" in failing(collects, x(), skip=only("leaks"))["leaks"].words


def test_what_it_is_called_with():
    with pytest.raises(ValueError, match="unknown property 'speed'; there are bounds, gradient"):
        opcheck(make_scan(), x(), 0.5, skip=("speed",))
    with pytest.raises(TypeError, match="needs at least one tensor"):
        opcheck(make_scan(), 1.0)


def test_the_report_reads_well():
    report = opcheck(make_scan(), x(), 0.5, raise_exception=False)
    assert str(report).startswith(
        "opcheck of scan\n  bounds: holds\n  gradient: holds\n  second derivative: refused - scan can't be"
    )
    assert report
