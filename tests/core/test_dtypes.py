"""Dtypes against torch: names, promotion, casting rules, limits, messages."""

import copy
import itertools
import pickle

import numpy as np
import pytest

from jitgrad._core import dtypes as D

torch = pytest.importorskip("torch")

PAIRS = list(itertools.product(D.ALL_DTYPES, repeat=2))
SCALARS = [True, 3, 2.5]


@pytest.fixture(autouse=True)
def _restore_default():
    yield
    D.set_default_dtype(D.float32)
    torch.set_default_dtype(torch.float32)


def theirs(ours):
    return getattr(torch, ours.name)


def named(torch_dtype):
    return str(torch_dtype).removeprefix("torch.")


def words(error):
    return str(error.value).replace("torch.", "jitgrad.")


@pytest.mark.parametrize("ours", D.ALL_DTYPES, ids=str)
def test_facts_of_a_dtype(ours):
    other = theirs(ours)
    assert repr(ours) == repr(other).replace("torch", "jitgrad")
    for fact in ("itemsize", "is_floating_point", "is_signed", "is_complex"):
        assert getattr(ours, fact) == getattr(other, fact)
    assert D.TENSOR_TYPE_NAME[ours] == torch.zeros(1, dtype=other).type()
    assert D.FROM_TENSOR_TYPE_NAME[D.TENSOR_TYPE_NAME[ours]] is ours
    assert ours.numpy == torch.zeros(1, dtype=other).numpy().dtype
    assert D.from_numpy(ours.numpy) is ours


def test_every_kind_is_named():
    assert [d.kind for d in D.ALL_DTYPES] == list("iiiiifffb")


def test_aliases():
    for alias, name in (
        ("half", "float16"),
        ("float_", "float32"),
        ("double", "float64"),
        ("short", "int16"),
        ("int_", "int32"),
        ("long", "int64"),
    ):
        assert getattr(D, alias) is getattr(D, name)


def test_a_dtype_is_one_object():
    for ours in D.ALL_DTYPES:
        assert pickle.loads(pickle.dumps(ours)) is ours
        assert copy.copy(ours) is ours
        assert copy.deepcopy(ours) is ours
    assert len({hash(d) for d in D.ALL_DTYPES}) == len(D.ALL_DTYPES)


def test_a_dtype_is_immutable():
    with pytest.raises(AttributeError):
        D.float32.name = "other"
    with pytest.raises(AttributeError):
        del D.float32.name
    with pytest.raises(TypeError):
        D.dtype("float32")
    with pytest.raises(TypeError):
        type("child", (D.dtype,), {})
    assert D.float32.name == "float32"


def test_from_numpy_normalises_byte_order_and_spelling():
    assert D.from_numpy(np.dtype(">f4")) is D.float32
    assert D.canonical(np.dtype(">i8")) is D.int64.numpy
    assert D.canonical(np.dtype("longlong")) is D.int64.numpy
    assert D.from_numpy(np.float64) is D.float64
    assert D.from_numpy("bool") is D.bool_


@pytest.mark.parametrize("kind", ["complex64", "U3", "object", "datetime64[s]"])
def test_from_numpy_refuses_other_types(kind):
    array = np.zeros(1, dtype=kind)
    with pytest.raises(TypeError, match=r"can.t convert np\.ndarray of type numpy"):
        D.from_numpy(array.dtype)


@pytest.mark.parametrize(("a", "b"), PAIRS, ids=str)
def test_promotion_and_casting_of_a_pair(a, b):
    assert D.promote(a, b).name == named(torch.promote_types(theirs(a), theirs(b)))
    assert D.can_cast(a, b) == torch.can_cast(theirs(a), theirs(b))
    if not D.can_cast(a, b):
        with pytest.raises(RuntimeError) as expected:
            torch.zeros(2, dtype=theirs(b)).add_(torch.zeros(2, dtype=theirs(a)))
        with pytest.raises(RuntimeError) as error:
            D.check_can_cast(D.promote(a, b), b)
        assert str(error.value) == str(expected.value)
    else:
        D.check_can_cast(a, b)


@pytest.mark.parametrize("default", [D.float32, D.float64, D.float16], ids=str)
def test_result_dtype_of_all_categories(default):
    D.set_default_dtype(default)
    torch.set_default_dtype(theirs(default))
    for (a, b), shape_a, shape_b in itertools.product(PAIRS, [(), (2,)], [(), (2,)]):
        expected = torch.result_type(torch.zeros(shape_a, dtype=theirs(a)), torch.zeros(shape_b, dtype=theirs(b)))
        category = [D.Category.DIM if shape else D.Category.ZERO_DIM for shape in (shape_a, shape_b)]
        assert D.result_dtype([(a, category[0]), (b, category[1])]).name == named(expected)
    for a, shape, scalar in itertools.product(D.ALL_DTYPES, [(), (2,)], SCALARS):
        expected = torch.result_type(torch.zeros(shape, dtype=theirs(a)), scalar)
        operands = [(a, D.Category.DIM if shape else D.Category.ZERO_DIM), (D.scalar_dtype(scalar), D.Category.NUMBER)]
        assert D.result_dtype(operands).name == named(expected)
    for x, y in itertools.product(SCALARS, repeat=2):
        operands = [(D.scalar_dtype(x), D.Category.NUMBER), (D.scalar_dtype(y), D.Category.NUMBER)]
        assert D.result_dtype(operands).name == named(torch.result_type(x, y))


def test_result_dtype_with_all_three_categories():
    operands = [(D.float64, D.Category.ZERO_DIM), (D.int8, D.Category.DIM), (D.float32, D.Category.NUMBER)]
    assert D.result_dtype(operands) is D.float64
    assert D.result_dtype([(D.uint8, D.Category.DIM), (D.int8, D.Category.DIM)]) is D.int16
    with pytest.raises(ValueError, match="at least one"):
        D.result_dtype([])


def test_scalar_dtype():
    assert [D.scalar_dtype(x) for x in (True, 1, 1.0)] == [D.bool_, D.int64, D.float32]
    assert [D.scalar_dtype(x) for x in (np.bool_(1), np.int8(1), np.float64(1))] == [D.bool_, D.int64, D.float32]
    D.set_default_dtype(D.float64)
    assert D.scalar_dtype(1.0) is D.float64
    for odd in (1j, "1", None):
        with pytest.raises(TypeError):
            D.scalar_dtype(odd)


@pytest.mark.parametrize(("ours", "other"), [(D.int32, torch.int32), ("float32", "float32"), (3, 3)])
def test_default_dtype_must_be_floating(ours, other):
    with pytest.raises(TypeError) as expected:
        torch.set_default_dtype(other)
    with pytest.raises(TypeError) as error:
        D.set_default_dtype(ours)
    assert str(error.value) in str(expected.value)
    assert D.default_dtype() is D.float32


def test_finfo():
    for ours in (D.float16, D.float32, D.float64):
        mine, other = D.finfo(ours), torch.finfo(theirs(ours))
        for fact in ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype"):
            assert getattr(mine, fact) == getattr(other, fact), fact
        assert repr(mine) == repr(other)
        assert type(mine.eps) is float
    assert D.finfo() == D.finfo(D.float32) != D.finfo(D.float64)
    assert hash(D.finfo()) == hash(D.finfo(D.float32))


def test_iinfo():
    for ours in (d for d in D.ALL_DTYPES if d.kind == "i"):
        mine, other = D.iinfo(ours), torch.iinfo(theirs(ours))
        for fact in ("bits", "max", "min", "dtype"):
            assert getattr(mine, fact) == getattr(other, fact), fact
        assert repr(mine) == repr(other)
    assert D.iinfo(D.int8) == D.iinfo(D.int8) != D.iinfo(D.uint8)
    assert hash(D.iinfo(D.int8)) == hash(D.iinfo(D.int8))


@pytest.mark.parametrize(
    ("info", "kind"),
    [("finfo", D.int32), ("iinfo", D.float32), ("iinfo", D.bool_), ("finfo", "a"), ("iinfo", "a"), ("finfo", D.bool_)],
)
def test_limits_refuse_other_types(info, kind):
    with pytest.raises(TypeError) as expected:
        getattr(torch, info)(theirs(kind) if isinstance(kind, D.dtype) else kind)
    with pytest.raises(TypeError) as error:
        getattr(D, info)(kind)
    assert str(error.value) == words(expected)
