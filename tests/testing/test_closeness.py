"""`testing`: verdicts and reports as torch gives them."""

import numpy as np
import pytest

import jitgrad

NAN, INF = float("nan"), float("inf")
# values are given as ("tensor", list, dtype), numbers, None, or nests
CASES = [
    (("t", [1.0, 2.0]), ("t", [1.0, 2.0 + 1e-6]), {}), (("t", [1.0, 2.0]), ("t", [1.0, 2.1]), {}), (("t", [NAN]), ("t", [NAN]), {}),
    (("t", [NAN]), ("t", [NAN]), {"equal_nan": True}), (("t", [1.0]), ("t", [1.0], "float64"), {}),
    (("t", [1.0]), ("t", [1.0], "float64"), {"check_dtype": False}), (("t", [1.0]), ("t", [1.0, 2.0]), {}), (("t", 1.0), ("t", 2.0), {}),
    (1.0, 2.0, {}), (1, 2, {}), (1, 1.0, {}), (("t", [1, 2, 3], "int64"), ("t", [1, 2, 4], "int64"), {}),
    ([("t", [1.0]), ("t", [2.0])], [("t", [1.0]), ("t", [3.0])], {}), ([("t", [1.0])], [("t", [1.0]), ("t", [3.0])], {}),
    ({"a": [("t", [1.0])]}, {"a": [("t", [2.0])]}, {}), ({"a": 1.0}, {"b": 1.0}, {}), (("t", [1.0]), [1.0], {}), (None, None, {}), (None, 1.0, {}),
    (("t", [1.0]), ("t", [2.0]), {"msg": "mine"}), (("t", [1.0]), ("t", [2.0]), {"msg": lambda text: "more: " + text}),
    (("t", [1.0]), ("t", [2.0]), {"rtol": 1.0}), (("t", [1.0]), ("t", [2.0]), {"rtol": 1.0, "atol": 0.0}), (True, False, {}),
    (("t", [True, False], "bool"), ("t", [True, True], "bool"), {}), ("a", "b", {}), (("t", [INF, 0.0]), ("t", [1.0, 0.1]), {}), (NAN, NAN, {}),
    (("t", [[1.0, 2.0], [3.0, 4.0]], "float64"), ("t", [[1.0, 2.5], [3.1, 4.0]], "float64"), {}), (INF, INF, {}), (0.0, 1e-9, {}), (2.0, 0.0, {}),
]  # fmt: skip


def made(lib, value):
    if isinstance(value, tuple):
        return lib.tensor(value[1], dtype=getattr(lib, value[2] if len(value) > 2 else "float32"))
    if isinstance(value, list):
        return [made(lib, one) for one in value]
    return {key: made(lib, one) for key, one in value.items()} if isinstance(value, dict) else value


def outcome(lib, actual, expected, options):
    try:
        return lib.testing.assert_close(made(lib, actual), made(lib, expected), **options)
    except Exception as error:
        text = str(error).replace("torch.", "").replace("jitgrad._tensor._methods.", "").replace("jitgrad.", "")
        return type(error).__name__, text


@pytest.mark.parametrize(("actual", "expected", "options"), CASES)
def test_beside_torch(actual, expected, options):
    torch = pytest.importorskip("torch")
    assert outcome(jitgrad, actual, expected, options) == outcome(torch, actual, expected, options)


def test_arrays_and_strides():
    jitgrad.testing.assert_close(np.ones(2), np.ones(2))
    with pytest.raises(TypeError, match="No comparison pair was able to handle inputs"):
        jitgrad.testing.assert_close(jitgrad.ones(2), np.ones(2))
    one, two = jitgrad.ones(2, 3).t(), jitgrad.ones(3, 2)
    jitgrad.testing.assert_close(one, two)
    with pytest.raises(AssertionError, match=r"attribute 'stride\(\)' do not match: \(1, 3\) != \(2, 1\)"):
        jitgrad.testing.assert_close(one, two, check_stride=True)
    jitgrad.testing.assert_allclose(jitgrad.ones(2), [1, 1])


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "uint8", "int64", "bool"])
def test_made_tensors(lib, name):
    dtype = getattr(lib, name)
    x = lib.testing.make_tensor((20, 30), dtype=dtype, device="cpu")
    assert (tuple(x.shape), x.dtype) == ((20, 30), dtype)
    low, high = {"uint8": (0, 9), "bool": (0, 1)}.get(name, (-9, 9))
    values = x.double()
    assert low <= values.min().item() < values.max().item() <= high
    positive = lib.testing.make_tensor(50, dtype=dtype, device="cpu", low=1, high=2, exclude_zero=name != "bool")
    assert (positive.double() >= 1).all() if name != "bool" else True
    if name != "bool":
        with pytest.raises(ValueError, match="`low` must be less than `high`"):
            lib.testing.make_tensor(3, dtype=dtype, device="cpu", low=2, high=1)


def test_made_leaves(lib):
    x = lib.testing.make_tensor(3, 4, dtype=lib.float64, device="cpu", requires_grad=True, noncontiguous=True)
    assert x.requires_grad
    assert x.is_leaf
    assert not x.is_contiguous()
