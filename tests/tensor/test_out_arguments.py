"""`out=`: results written into tensors that the caller gives."""

import re

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]

CALLS = {
    "add": lambda t, x, out: t.add(x, 2, alpha=3, out=out),
    "mul": lambda t, x, out: t.mul(x, x, out=out),
    "multiply": lambda t, x, out: t.multiply(x, x, out=out),
    "sin": lambda t, x, out: t.sin(x, out=out),
    "matmul": lambda t, x, out: t.matmul(x, x, out=out),
    "cumsum": lambda t, x, out: t.cumsum(x, 0, out=out),
    "where": lambda t, x, out: t.where(x > 2, x, x, out=out),
    "clamp": lambda t, x, out: t.clamp(x, 0, 2, out=out),
    "tril": lambda t, x, out: t.tril(x, out=out),
}


@pytest.mark.parametrize("name", CALLS)
def test_the_tensor_given_is_written_and_returned(lib, name):
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    out = lib.zeros(2, 2)
    assert CALLS[name](lib, x, out) is out
    assert out._version == 1
    assert lib.allclose(out, CALLS[name](lib, x, None))


@pytest.mark.parametrize("name", ["add", "mul", "sin", "matmul"])
def test_gradients_are_refused(lib, name):
    x, out = lib.ones(2, 2), lib.zeros(2, 2)
    words = rf"{name}\(\): functions with out=... arguments don't support automatic differentiation, but one of the arguments requires grad"
    with pytest.raises(RuntimeError, match=words):
        CALLS[name](lib, x.clone().requires_grad_(), out)
    with pytest.raises(RuntimeError, match=words):
        CALLS[name](lib, x, out.clone().requires_grad_())
    with lib.no_grad():
        taking = out.clone().requires_grad_()
        assert CALLS[name](lib, x.clone().requires_grad_(), taking) is taking
    assert taking.requires_grad
    assert taking._version == 1


def test_an_operand_may_be_written_but_not_a_part_of_one(lib):
    x = lib.arange(4.0)
    assert lib.add(x, x, out=x) is x
    assert x.tolist() == [0, 2, 4, 6]
    with pytest.raises(
        RuntimeError, match="unsupported operation: some elements of the input tensor and the written-to tensor"
    ):
        lib.mul(x[1:], 2, out=x[:-1])
    with pytest.raises(RuntimeError, match="unsupported operation: more than one element of the written-to tensor"):
        lib.add(x, 1, out=lib.zeros(1).expand(4))


def test_another_shape_is_resized(lib):
    x, empty, short = lib.arange(3.0), lib.zeros(0), lib.zeros(2)
    assert lib.neg(x, out=empty).tolist() == [0, -1, -2]
    with pytest.warns(
        UserWarning,
        match=r"An output with one or more elements was resized since it had shape \[2\], which does not match the",
    ):
        lib.neg(x, out=short)
    assert short.shape == (3,)


def test_dtypes(lib):
    x = lib.arange(3.0)
    assert lib.add(x, 1, out=lib.zeros(3, dtype=lib.float64)).dtype == lib.float64
    with pytest.raises(RuntimeError, match="result type Float can't be cast to the desired output type Long"):
        lib.add(x, 1, out=lib.zeros(3, dtype=lib.int64))


def test_several_results(lib):
    values, places = lib.zeros(2), lib.zeros(2, dtype=lib.int64)
    found = lib.max(lib.tensor([[1.0, 4.0], [3.0, 2.0]]), 0, out=(values, places))
    assert found[0] is values
    assert values.tolist() == [3, 4]
    assert places.tolist() == [1, 0]
    with pytest.raises(TypeError, match="argument 'out' must be Tensor, not tuple"):
        lib.add(values, 1, out=(values,))
    with pytest.raises(TypeError):
        lib.max(lib.ones(2, 2), 0, out=values)


def test_views_and_inference_tensors(lib):
    y = leaf(lib, 1.0, 2.0) * 1
    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        lib.neg(lib.ones(1), out=y[:1])
    base = lib.zeros(2, 4)
    lib.neg(lib.ones(2, 2), out=base[:, ::2])
    assert base.tolist() == [[-1, 0, -1, 0]] * 2
    with lib.inference_mode():
        made = lib.ones(2)
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode is not allowed"):
        lib.neg(lib.ones(2), out=made)


# name: call, dtype of what is given, words
OTHER_DTYPES = {
    "abs": (lambda t, x, out: t.abs(x, out=out), "float64", "Found dtype Double but expected Float"),
    "mm": (lambda t, x, out: t.mm(x, x, out=out), "float64", "Expected out tensor to have dtype float, but got double instead"),
    "softmax": (lambda t, x, out: t.softmax(x, 0, out=out), "int64", "Expected out tensor to have dtype float, but got long int instead"),
    "gather": (lambda t, x, out: t.gather(x, 0, x.long() % 2, out=out), "float64", "Expected out tensor to have dtype float, but got double instead"),
    "argmax": (lambda t, x, out: t.argmax(x, 0, out=out), "float32", "Expected out tensor to have dtype long int, but got float instead"),
    "where": (lambda t, x, out: t.where(x > 2, x, x, out=out), "float64", "Expected out type to be Float but got Double"),
    "amax": (lambda t, x, out: t.amax(x, 0, out=out), "float64", "Expected the dtype for input and out to match, but got Float for input's dtype"),
    "dot": (lambda t, x, out: t.dot(x[0], x[1], out=out), "float64", "result dtype Double does not match input dtype Float"),
    "index_select": (lambda t, x, out: t.index_select(x, 0, t.tensor([0]), out=out), "float64",
                     "index_select(): self and result must have the same scalar type"),
    "take": (lambda t, x, out: t.take(x, t.tensor([0]), out=out), "float64",
             "take(): self and out expected to have the same dtype, but got self.dtype = Float and out.dtype = Double"),
    "signbit": (lambda t, x, out: t.signbit(x, out=out), "float32", "signbit does not support non-boolean outputs."),
    "float_power": (lambda t, x, out: t.float_power(x, 2, out=out), "float32", "the output given to float_power has dtype Float but"),
    "searchsorted": (lambda t, x, out: t.searchsorted(x[0], x, out=out), "float32", "torch.searchsorted(): output tensor's dtype is wrong"),
    "nonzero": (lambda t, x, out: t.nonzero(x, out=out), "float32", "nonzero: Expected out tensor to have scalar type Long but got scalar type"),
    "view_copy": (lambda t, x, out: t.view_copy(x, (4,), out=out), "float64", "Expected out tensor to have dtype float, but got double instead"),
}  # fmt: skip


@pytest.mark.parametrize("name", OTHER_DTYPES)
def test_functions_that_do_not_cast_their_result(lib, name):
    call, dtype, words = OTHER_DTYPES[name]
    x = lib.tensor([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match=re.escape(words)):
        call(lib, x, lib.empty(0, dtype=getattr(lib, dtype)))


def test_joining_casts_to_wider_dtypes_alone(lib):
    x = lib.ones(2)
    for join in (lib.cat, lib.stack, lib.hstack, lib.vstack):
        assert join([x, x], out=lib.empty(0, dtype=lib.float64)).dtype == lib.float64
        with pytest.raises(TypeError, match=r"torch\.cat\(\): input types can't be cast to the desired output type Long"):
            join([x, x], out=lib.empty(0, dtype=lib.int64))
