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


# ---------------------------------------------------------------- of functions that make tensors
MAKERS = {
    "zeros": (lambda t, **k: t.zeros(2, 3, **k), [[0, 0, 0]] * 2),
    "ones": (lambda t, **k: t.ones((2, 3), **k), [[1, 1, 1]] * 2),
    "full": (lambda t, **k: t.full((2,), 5, **k), [5, 5]),
    "eye": (lambda t, **k: t.eye(2, **k), [[1, 0], [0, 1]]),
    "arange": (lambda t, **k: t.arange(1, 7, 2, **k), [1, 3, 5]),
    "linspace": (lambda t, **k: t.linspace(0, 8, 3, **k), [0, 4, 8]),
    "logspace": (lambda t, **k: t.logspace(0, 2, 3, base=3, **k), [1, 3, 9]),
    "randperm": (lambda t, **k: t.randperm(1, **k), [0]),
    "randint": (lambda t, **k: t.randint(4, 5, (2,), **k), [4, 4]),
}
DRAWN = {
    "rand": lambda t, **k: t.rand(2, 3, **k),
    "randn": lambda t, **k: t.randn(2, 3, **k),
    "normal": lambda t, **k: t.normal(0.0, 1.0, (2, 3), **k),
    "empty": lambda t, **k: t.empty(2, 3, **k),
}


@pytest.mark.parametrize("name", MAKERS)
def test_makers_write_in_the_dtype_of_out(lib, name):
    make, values = MAKERS[name]
    for kind in (lib.float32, lib.float64, lib.int64, lib.int16):
        out = lib.empty(0, dtype=kind)
        assert make(lib, out=out) is out
        assert out.tolist() == values
        assert out.dtype == kind
        same = lib.empty_like(out)
        assert make(lib, out=same, dtype=kind, device="cpu", layout=lib.strided) is same
        assert (same.tolist(), same._version) == (values, 1)
    with pytest.raises(RuntimeError, match=r"dtype Double does not match dtype of out parameter \(Float\)"):
        make(lib, out=lib.empty(3), dtype=lib.float64)
    with pytest.raises(TypeError, match=rf"{name}\(\): argument 'out' must be Tensor, not int|invalid combination of arguments"):
        make(lib, out=3)
    with pytest.raises(RuntimeError, match=rf"{name}\(\): functions with out=... arguments don't support automatic differentiation"):
        make(lib, out=lib.ones(3, requires_grad=True))


@pytest.mark.parametrize("name", DRAWN)
def test_drawn_numbers_go_into_out(lib, name):
    out = lib.empty(0, dtype=lib.float64)
    assert DRAWN[name](lib, out=out) is out
    assert out.shape == (2, 3)
    assert out.dtype == lib.float64
    assert DRAWN[name](lib, out=out, requires_grad=True) is out
    assert out.requires_grad
    lib.manual_seed(5)
    first = DRAWN[name](lib, out=lib.empty(2, 3))
    lib.manual_seed(5)
    assert name == "empty" or lib.equal(first, DRAWN[name](lib))


def test_makers_write_through_views(lib):
    base = lib.ones(3, 4)
    assert lib.zeros(4, 2, out=base[:2].t()).stride() == (1, 4)
    assert base.tolist() == [[0.0] * 4] * 2 + [[1.0] * 4]
    with pytest.raises(NotImplementedError, match="\"check_uniform_bounds\" not implemented for 'Long'"):
        lib.rand(2, out=lib.zeros(2, dtype=lib.int64))


# ---------------------------------------------------------------- dtypes of sums, linear algebra, special functions
@pytest.mark.parametrize(("name", "values"), [("sum", 2), ("prod", 0), ("cumsum", [0, 1, 2]), ("cumprod", [0, 0, 0])])
def test_sums_are_formed_in_the_dtype_of_out(lib, name, values):
    x = lib.tensor([0.75, 1.75, 1.5])
    out = lib.empty(0, dtype=lib.int64)
    assert getattr(lib, name)(x, 0, out=out) is out
    assert out.tolist() == values
    wide = getattr(lib, name)(lib.full((3,), 0.1), 0, out=lib.empty(0, dtype=lib.float64))
    assert lib.allclose(wide, getattr(lib, name)(lib.full((3,), 0.1).double(), 0), rtol=1e-14)


MORE = {
    "linalg.inv": (lambda t, x, **k: t.linalg.inv(x, **k), 1),
    "linalg.solve": (lambda t, x, **k: t.linalg.solve(x, x, **k), 1),
    "linalg.qr": (lambda t, x, **k: t.linalg.qr(x, **k), 2),
    "linalg.norm": (lambda t, x, **k: t.linalg.norm(x, **k), 1),
    "linalg.det": (lambda t, x, **k: t.linalg.det(x, **k), 1),
    "linalg.matmul": (lambda t, x, **k: t.linalg.matmul(x, x, **k), 1),
    "lgamma": (lambda t, x, **k: t.lgamma(x, **k), 1),
    "digamma": (lambda t, x, **k: t.digamma(x, **k), 1),
    "polygamma": (lambda t, x, **k: t.polygamma(1, x, **k), 1),
    "special.i1": (lambda t, x, **k: t.special.i1(x, **k), 1),
    "special.zeta": (lambda t, x, **k: t.special.zeta(x + 2, x, **k), 1),
    "renorm": (lambda t, x, **k: t.renorm(x, 2, 0, 1.0, **k), 1),
}


@pytest.mark.parametrize("name", MORE)
def test_more_functions_with_out(lib, name):
    call, count = MORE[name]
    x = lib.tensor([[2.0, 1.0], [0.5, 3.0]], dtype=lib.float64)
    expected = call(lib, x)
    out = tuple(lib.empty(0, dtype=lib.float64) for _ in range(count))
    found = call(lib, x, out=out if count > 1 else out[0])
    for one, given, value in zip(found if count > 1 else [found], out, expected if count > 1 else [expected], strict=True):
        assert one is given
        assert lib.allclose(given, value)
    if lib.__name__ == "torch" and name == "linalg.norm":
        return  # says nothing of it
    with pytest.raises(RuntimeError, match=r"functions with out=\.\.\. arguments don't support automatic differentiation"):
        call(lib, x.clone().requires_grad_(), out=out if count > 1 else out[0])
