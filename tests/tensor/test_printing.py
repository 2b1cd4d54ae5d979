"""Printed tensors, character for character against torch."""

import numpy as np
import pytest

from jitgrad._core import dtypes as D
from jitgrad._tensor import printing as P

torch = pytest.importorskip("torch")

SHAPES = [(), (1,), (0,), (5,), (40,), (0, 3), (2, 0, 4), (2, 3), (3, 1, 2), (2, 2, 2, 3), (3, 30), (7, 7), (1, 1),
          (1001,), (40, 40), (2, 600), (8, 9, 20), (1000,), (7, 2, 2, 50)]  # fmt: skip
SCALES = [1.0, 1e-5, 1e-3, 50.0, 1e4, 1e9, "whole", "ratio", "zero", "odd", "odd whole", "negative", "wide"]


@pytest.fixture(autouse=True)
def _same_names_and_options(monkeypatch):
    # The package's name is longer than torch's, so the same suffixes may break elsewhere; compare under one name.
    monkeypatch.setattr(D.dtype, "__repr__", lambda self: f"torch.{self.name}")
    yield
    P.set_printoptions(profile="default")
    torch.set_printoptions(profile="default")
    D.set_default_dtype(D.float32)
    torch.set_default_dtype(torch.float32)


def check(array, requires_grad=False):
    array = np.asarray(array)
    kind = D.from_numpy(array.dtype)
    expected = torch.from_numpy(array.copy())
    if requires_grad:
        expected.requires_grad_()
    assert P.tensor_str(array, kind, requires_grad) == repr(expected)
    if requires_grad:
        name = type((expected * 2).grad_fn).__name__
        doubled = np.asarray(array * 2, dtype=array.dtype)
        assert P.tensor_str(doubled, kind, True, name) == repr(expected * 2)


def floats(rng, shape, scale):
    x = np.asarray(rng.standard_normal(shape))
    if isinstance(scale, float):
        return np.asarray(x * scale)
    special = rng.random(shape)
    return np.asarray({
        "whole": np.round(x * 20),
        "ratio": np.where(special < 0.1, x * 1e4, x),
        "zero": x * 0,
        "odd": np.where(special < 0.2, np.nan, np.where(special < 0.4, np.inf, np.where(special < 0.5, -np.inf, x))),
        "odd whole": np.where(special < 0.3, np.nan, np.where(special < 0.5, -np.inf, np.round(x * 9))),
        "negative": -np.abs(np.round(x * 1e3)),
        "wide": np.where(special < 0.5, np.round(x) * 1e7, 0.25),
    }[scale])  # fmt: skip


@pytest.mark.parametrize("kind", ["float32", "float64", "float16"])
@pytest.mark.parametrize("scale", SCALES)
def test_floats(kind, scale):
    rng = np.random.default_rng(SCALES.index(scale))
    for shape in SHAPES:
        with np.errstate(over="ignore"):
            array = floats(rng, shape, scale).astype(kind)
            check(array)
            if array.size < 200:
                check(array, requires_grad=True)


@pytest.mark.parametrize("kind", [d.name for d in D.ALL_DTYPES if not d.is_floating_point])
def test_integers_and_bools(kind):
    rng = np.random.default_rng(0)
    for shape in SHAPES:
        for high in (2, 120):
            low = 0 if kind in ("uint8", "bool") else -high
            check(np.asarray(rng.integers(low, high, shape)).astype(kind))


def test_the_name_of_the_package(monkeypatch):
    monkeypatch.undo()
    assert P.tensor_str(np.zeros(1), D.float64) == "tensor([0.], dtype=jitgrad.float64)"


def test_layouts_of_memory():
    base = np.arange(60.0, dtype=np.float32).reshape(3, 4, 5)
    for array in (base.T, base[::-1, :, ::2], np.broadcast_to(base[0], (2, 4, 5))):
        assert P.tensor_str(array, D.float32) == repr(torch.from_numpy(array.copy()))


def test_edges_of_the_choice_of_notation():
    for values in ([1e8, 1e6], [1.1e8, 1e6], [1e-4, 1e-3], [0.9e-4, 1e-3], [1000.0, 1.0], [1001.0, 1.0], [1000.5, 1.0],
                   [0.0, 1e-5], [-0.0, 2.0], [np.nan, np.inf], [1e300, 1e-300], [5e-324],
                   [0.99999999], [-0.5]):  # fmt: skip
        check(np.array(values))
        check(np.array(values[0]))


@pytest.mark.parametrize(
    "options",
    [
        {"precision": 2},
        {"precision": 0},
        {"threshold": 5},
        {"threshold": 5, "edgeitems": 1},
        {"threshold": 5, "edgeitems": 0},
        {"edgeitems": 0},
        {"threshold": 0},
        {"linewidth": 30},
        {"linewidth": 5},
        {"sci_mode": True},
        {"sci_mode": False},
        {"profile": "short"},
        {"profile": "full"},
        {"profile": "short", "precision": 7, "sci_mode": True},
    ],
    ids=str,
)
def test_options(options):
    rng = np.random.default_rng(1)
    for shape in SHAPES:
        for scale in (1.0, "whole", "odd", 1e-6):
            array = floats(rng, shape, scale).astype(np.float32)
            with P.printoptions(**options), torch._tensor_str.printoptions(**options):
                check(array)
                check(np.round(array * 0 + 3).clip(0, 3).astype(np.int32) if scale == 1.0 else array)


def test_state_of_the_options():
    def both(function, **options):
        getattr(P, function)(**options)
        getattr(torch, function)(**options)
        assert P.get_printoptions() == torch._tensor_str.get_printoptions()

    both("set_printoptions", precision=2, sci_mode=True)
    both("set_printoptions", threshold=7)
    both("set_printoptions", linewidth=60, edgeitems=1)
    both("set_printoptions", profile="short", threshold=3)
    both("set_printoptions", profile="full")
    before = P.get_printoptions()
    with pytest.raises(KeyError), P.printoptions(precision=9):
        assert P.get_printoptions()["precision"] == 9
        raise KeyError
    assert P.get_printoptions() == before
    with pytest.raises(ValueError, match="profile must be one of"):
        P.set_printoptions(profile="other")


def test_default_dtype_is_not_shown():
    D.set_default_dtype(D.float64)
    torch.set_default_dtype(torch.float64)
    for kind in ("float32", "float64", "int64", "bool"):
        for shape in ((2,), (0,), (0, 2)):
            check(np.zeros(shape, dtype=kind))


def test_subclass_and_parameter_and_tangent():
    class Mine(torch.Tensor):
        pass

    array = np.arange(60, dtype=np.float32).reshape(2, 30)
    mine = torch.from_numpy(array).as_subclass(Mine)
    assert P.tensor_str(array, D.float32, type_name="Mine") == repr(mine)
    parameter = torch.nn.Parameter(torch.from_numpy(array))
    assert P.parameter_str(P.tensor_str(array, D.float32, True)) == repr(parameter)
    assert P.tensor_str(array[0, :2], D.float32, tangent="tensor([1., 1.])") == (
        "tensor([0., 1.], tangent=tensor([1., 1.]))"
    )
