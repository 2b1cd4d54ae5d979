"""Making tensors: inference of dtypes, copies and shared memory, layouts, refusals, ranges."""

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]


def kind(x):
    return str(x.dtype).partition(".")[2]


# ---------------------------------------------------------------- from data
INFERRED = {
    "int64": [3, [1, 2], [True, 2], range(3), (1, 2), [[1], [2]]],
    "float32": [1.5, [1, 2.0], [True, 2.5], [], [[], []], np.float32(3), [np.float32(3)], [1, np.float32(2)]],
    "float64": [np.float64(3), [1.0, np.float64(2)], np.zeros(2), [np.zeros(2)]],
    "bool": [True, [True, False], np.bool_(True)],
    "int32": [np.int32(3), [np.int32(3)]],
}


@pytest.mark.filterwarnings("ignore:Creating a tensor from a list")
@pytest.mark.parametrize(("name", "data"), [(name, data) for name, many in INFERRED.items() for data in many])
def test_inferred_dtypes(lib, name, data):
    assert kind(lib.tensor(data)) == name


def test_the_default_dtype_is_what_python_floats_become(lib):
    lib.set_default_dtype(lib.float64)
    try:
        assert kind(lib.tensor([1.0])) == kind(lib.zeros(2)) == kind(lib.arange(2.0)) == "float64"
        assert kind(lib.tensor(np.float32(1))) == "float32"
    finally:
        lib.set_default_dtype(lib.float32)


def test_tensors_inside_lists(lib):
    x = lib.tensor([lib.tensor(1.5), lib.tensor([2.5]), 3])
    assert x.tolist() == [1.5, 2.5, 3.0]
    with pytest.raises(ValueError, match="only one element tensors can be converted to Python scalars"):
        lib.tensor([lib.ones(2)])


REFUSED = [
    ([[1, 2], [3]], ValueError, "expected sequence of length 2 at dim 1"),
    ([[1, 2], 3], TypeError, "not a sequence"),
    ([1, [2]], TypeError, "'list' object cannot be interpreted as an integer"),
    ("a", TypeError, r"new\(\): invalid data type 'str'"),
    (["a"], ValueError, "too many dimensions 'str'"),
    (None, RuntimeError, "Could not infer dtype of NoneType"),
    ([None], RuntimeError, "Could not infer dtype of NoneType"),
    ({1: 2}, RuntimeError, "Could not infer dtype of dict"),
    (2**63, ValueError, "Overflow when unpacking long long"),
    ([2**63], ValueError, "Overflow when unpacking long long"),
    (np.array(["a"]), TypeError, "can't convert np.ndarray of type numpy.str_"),
    (np.array([1], object), TypeError, "can't convert np.ndarray of type numpy.object_"),
]


@pytest.mark.parametrize(("data", "error", "words"), REFUSED)
def test_refused_data(lib, data, error, words):
    with pytest.raises(error, match=words):
        lib.tensor(data)


def test_numbers_are_cast_as_torch_casts_them(lib):
    assert lib.tensor([1.5, -1.5], dtype=lib.int64).tolist() == [1, -1]
    assert lib.tensor(-1, dtype=lib.uint8).item() == 255
    assert lib.tensor(1e40).item() == np.inf
    for number, name in ((300, "uint8"), (float("nan"), "int64"), (1e30, "int32")):
        with pytest.raises(RuntimeError, match="value cannot be converted to type"):
            lib.tensor([number], dtype=getattr(lib, name))
    assert lib.tensor(np.array([300]), dtype=lib.uint8).tolist() == [44]


def test_a_copy_of_a_tensor_warns_and_has_no_history(lib):
    x = lib.ones(2, requires_grad=True)
    with pytest.warns(UserWarning, match="To copy construct from a tensor"):
        y = lib.tensor(x)
    assert y.is_leaf
    assert not y.requires_grad
    y[0] = 5
    assert x.tolist() == [1, 1]


def test_arrays_of_any_layout_are_copied_contiguous_and_native():
    packed = np.zeros(3, [("a", "i1"), ("b", "f4")])["b"]
    arrays = [
        np.arange(6.0)[::-2],
        np.arange(6, dtype=">f8").reshape(2, 3).T,
        packed,
        np.broadcast_to(np.float32(1), (2, 2)),
    ]
    for array in arrays:
        x = jitgrad.tensor(array)
        assert x.tolist() == array.tolist()
        assert x.array.flags.c_contiguous
        assert x.array.flags.aligned
        assert x.array.flags.writeable
        assert x.array.dtype.isnative
        assert not np.shares_memory(x.array, array)


def test_requires_grad(lib):
    assert lib.tensor([1.0], requires_grad=True).is_leaf
    for make in (
        lambda: lib.tensor([1], requires_grad=True),
        lambda: lib.zeros(2, dtype=lib.int64, requires_grad=True),
    ):
        with pytest.raises(RuntimeError, match="Only Tensors of floating point"):
            make()


# ---------------------------------------------------------------- shared memory
def test_from_numpy_shares_memory(lib):
    array = np.arange(3.0)
    x = lib.from_numpy(array)
    x[0] = 7
    array[1] = 8
    assert array.tolist() == x.tolist() == [7, 8, 2]
    assert lib.as_tensor(array).data_ptr() == x.data_ptr()
    assert lib.as_tensor(x) is x
    assert lib.as_tensor(array, dtype=lib.float32).data_ptr() != x.data_ptr()
    assert lib.asarray(array).data_ptr() == x.data_ptr()
    assert lib.asarray(array, copy=True).data_ptr() != x.data_ptr()


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.arange(3)[::-1], "At least one stride in the given numpy array is negative"),
        (np.arange(3, dtype=">f4"), "given numpy array has byte order different"),
        (np.zeros(3, [("a", "i1"), ("b", "f4")])["b"], "given numpy array strides not a multiple"),
    ],
)
def test_from_numpy_refuses_what_it_can_not_share(lib, array, words):
    with pytest.raises(ValueError, match=words):
        lib.from_numpy(array)


def test_from_numpy_of_no_array_or_a_read_only_one(lib):
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        lib.from_numpy([1])
    array = np.arange(3.0)
    array.flags.writeable = False
    with pytest.warns(UserWarning, match="The given NumPy array is not writable"):
        jitgrad.from_numpy(array)


# ---------------------------------------------------------------- filled
def test_shapes_as_arguments(lib):
    assert (
        lib.zeros(2, 3).shape
        == lib.ones((2, 3)).shape
        == lib.empty([2, 3]).shape
        == lib.zeros(size=(2, 3)).shape
        == (2, 3)
    )
    assert lib.zeros(()).shape == ()
    assert lib.full((), 2).item() == 2
    for make, error, words in (
        (lib.zeros, TypeError, 'missing 1 required positional arguments: "size"'),
        (
            lambda: lib.zeros(2.0),
            TypeError,
            r"zeros\(\): argument 'size' \(position 1\) must be tuple of ints, not float",
        ),
        (lambda: lib.zeros(True), TypeError, "must be tuple of ints, not bool"),
        (lambda: lib.ones(2, -1), RuntimeError, r"Trying to create tensor with negative dimension -1: \[2, -1\]"),
        (lambda: lib.full(2, 1), TypeError, "must be tuple of ints, not int"),
        (lambda: lib.full((2,), "a"), TypeError, r"argument 'fill_value' \(position 2\) must be Number, not str"),
        (lambda: lib.zeros_like(3), TypeError, r"argument 'input' \(position 1\) must be Tensor, not int"),
        (lambda: lib.zeros(2, dtype="float32"), TypeError, "argument 'dtype' must be"),
        (lambda: lib.zeros(2, device="cuda"), AssertionError, "Torch not compiled with CUDA enabled"),
    ):
        with pytest.raises(error, match=words):
            make()


def test_dtypes_of_filled_tensors(lib):
    assert [kind(lib.full((2,), v)) for v in (1, 1.0, True)] == ["int64", "float32", "bool"]
    x = lib.ones(2, dtype=lib.int64)
    assert kind(lib.full_like(x, 1.5)) == kind(x.new_full((2,), 1.5)) == "int64"
    assert x.new_tensor([1.5]).tolist() == [1]
    assert kind(x.new_zeros(2, dtype=lib.float64)) == "float64"
    assert kind(lib.zeros(2, dtype=int)) == "int64"
    assert kind(lib.scalar_tensor(True)) == "float32"
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        lib.full((2,), 300, dtype=lib.uint8)


# ---------------------------------------------------------------- ranges
def test_arange(lib):
    assert lib.arange(3).tolist() == lib.arange(end=3).tolist() == [0, 1, 2]
    assert lib.arange(1, 6, 2).tolist() == [1, 3, 5]
    assert lib.arange(1, 0, -1).tolist() == [1]
    assert np.allclose(lib.arange(0, 1, 0.3).numpy(), [0, 0.3, 0.6, 0.9])
    assert lib.arange(-5, 5.5, 1.5, dtype=lib.int64).tolist() == list(range(-5, 5))
    assert [kind(lib.arange(*a)) for a in ((3,), (3.0,), (0, 3, 1.0))] == ["int64", "float32", "float32"]
    for arguments, words in (
        ((1, 0), "upper bound and lower bound inconsistent with step sign"),
        ((1, 2, 0), "step must be nonzero"),
        ((float("nan"),), "unsupported range: 0 -> nan"),
    ):
        with pytest.raises(RuntimeError, match=words):
            lib.arange(*arguments)


def test_linspace_counts_from_both_ends(lib):
    x = lib.linspace(0, 1, 11, dtype=lib.float64)
    assert x[-1].item() == 1.0
    assert np.allclose(x.numpy(), np.arange(11) / 10, atol=1e-15)
    assert lib.linspace(2, 7, 1).tolist() == [2]
    assert lib.linspace(0, 1, 0).shape == (0,)
    assert lib.linspace(-5, 0, 4, dtype=lib.int64).tolist() == [-5, -3, -1, 0]
    assert lib.logspace(0, 2, 3, base=2).tolist() == [1, 2, 4]
    with pytest.raises(RuntimeError, match="number of steps must be non-negative"):
        lib.linspace(0, 1, -1)


def test_matrices(lib):
    assert lib.eye(2, 3).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert lib.tril_indices(2, 2).tolist() == [[0, 1, 1], [0, 0, 1]]
    assert lib.triu_indices(2, 3, 1).tolist() == [[0, 0, 1], [1, 2, 2]]
    with pytest.raises(RuntimeError, match="n must be greater or equal to 0, got -1"):
        lib.eye(-1)


# ---------------------------------------------------------------- questions
def test_questions(lib):
    assert lib.is_tensor(lib.ones(1))
    assert not lib.is_tensor(np.ones(1))
    assert lib.numel(lib.ones(2, 3)) == 6
    assert lib.result_type(lib.ones(2, dtype=lib.int8), lib.tensor(1)) == lib.int8
    assert lib.result_type(1, 2.0) == lib.float32
    assert lib.promote_types(lib.int8, lib.uint8) == lib.int16
    assert not lib.can_cast(lib.float32, lib.int32)
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        lib.set_default_dtype(lib.int32)


def test_inference_tensors(lib):
    with lib.inference_mode():
        x = lib.zeros(2)
    assert x.is_inference()


# ---------------------------------------------------------------- where a new tensor is and how it lies
FACTORIES = {
    "zeros": (2,),
    "ones": (2,),
    "empty": (2,),
    "rand": (2,),
    "randn": (2,),
    "full": ((2,), 1.0),
    "arange": (2,),
    "linspace": (0, 1, 2),
    "logspace": (0, 1, 2),
    "eye": (2,),
    "randperm": (2,),
    "randint": (5, (2,)),
    "scalar_tensor": (2.0,),
    "empty_strided": ((2,), (1,)),
}
LIKE = {"zeros_like": (), "ones_like": (), "empty_like": (), "rand_like": (), "randn_like": (), "full_like": (1.0,), "randint_like": (5,)}


def places(lib):
    """Every factory as a function of keywords."""
    x = lib.ones(2)
    for name, arguments in FACTORIES.items():
        yield name, lambda name=name, arguments=arguments, **how: getattr(lib, name)(*arguments, **how)
    for name, arguments in LIKE.items():
        yield name, lambda name=name, arguments=arguments, **how: getattr(lib, name)(x, *arguments, **how)
    for name in ("new_zeros", "new_ones", "new_empty"):
        yield name, lambda name=name, **how: getattr(x, name)(2, **how)


@pytest.mark.parametrize("package", ["jitgrad", "torch"])
def test_places_that_are_accepted(package):
    lib = pytest.importorskip(package)
    for _, make in places(lib):
        assert make(device="cpu", layout=lib.strided).device == lib.device("cpu")
        assert make(device=lib.device("cpu"), layout=None).numel() >= 1


@pytest.mark.parametrize("package", ["jitgrad", "torch"])
def test_places_that_are_refused(package):
    lib = pytest.importorskip(package)
    for name, make in places(lib):
        with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
            make(device="cuda")
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'device' must be torch.device, not float|invalid combination"):
            make(device=1.5)
        with pytest.raises(TypeError, match=rf"{name}\(\): argument 'layout' must be torch.layout, not int|invalid combination"):
            make(layout=3)


def test_sparse_and_pinned_memory_is_refused():
    lib = pytest.importorskip("jitgrad")
    for _, make in places(lib):
        with pytest.raises(RuntimeError, match=r"layout torch.sparse_coo is not implemented"):
            make(layout=lib.sparse_coo)
    for name, arguments in FACTORIES.items():
        with pytest.raises(RuntimeError, match="pin_memory=True requires"):
            getattr(lib, name)(*arguments, pin_memory=True)
