"""Names that programs written for torch use: old constructors, placement, defaults, questions asked by functions."""

import copy
import os
import pickle
import subprocess
import sys
import warnings

import numpy as np
import pytest

from tests.libraries import lib

__all__ = ["lib"]
TYPES = {"Float": "float32", "Double": "float64", "Half": "float16", "Long": "int64", "Int": "int32", "Short": "int16", "Char": "int8",
         "Byte": "uint8", "Bool": "bool"}  # fmt: skip


# ---------------------------------------------------------------- old constructors
@pytest.mark.parametrize("name", TYPES)
def test_classes_of_one_dtype(lib, name):
    kind, dtype = getattr(lib, name + "Tensor"), getattr(lib, TYPES[name])
    assert kind([[1, 0]]).tolist() == [[1, 0]]
    assert kind([1]).dtype is dtype is kind.dtype
    assert kind(2, 3).shape == (2, 3)
    assert kind().shape == (0,)
    assert isinstance(kind([1]), kind)
    assert isinstance(lib.ones(1).double(), kind) == (name == "Double")
    assert lib.ones(2).type(kind).dtype is dtype
    assert lib.ones(2).type(f"torch.{name}Tensor").type() == f"torch.{name}Tensor"


def test_tensor_makes_tensors(lib):
    assert lib.Tensor(2, 3).shape == lib.Tensor(lib.Size([2, 3])).shape == lib.Tensor(size=(2, 3)).shape == (2, 3)
    assert lib.Tensor([2, 3]).tolist() == lib.Tensor((2, 3)).tolist() == [2.0, 3.0]
    assert lib.Tensor(np.ones(2)).dtype is lib.float32
    assert lib.Tensor().shape == (0,)
    x = lib.ones(2, requires_grad=True)
    y = lib.Tensor(x)
    assert y._base is x
    assert y.grad_fn.name() == "AliasBackward0"
    assert lib.Tensor(lib.ones(2).long()).dtype is lib.int64


def test_new_takes_the_dtype_of_its_tensor(lib):
    x = lib.ones(2, dtype=lib.float64)
    assert x.new([1, 2]).dtype is x.new(2, 3).dtype is x.new().dtype is lib.float64
    assert x.new(lib.Size([4])).shape == (4,)
    assert x.new(x).data_ptr() == x.data_ptr()
    assert x.new(np.zeros(3, np.float32)).tolist() == [0.0, 0.0, 0.0]


REFUSED = [
    (lambda t: t.Tensor(3.5), TypeError, r"new\(\): data must be a sequence \(got float\)"),
    (lambda t: t.Tensor(None), TypeError, r"new\(\): data must be a sequence \(got NoneType\)"),
    (lambda t: t.Tensor("a"), TypeError, r"new\(\): invalid data type 'str'"),
    (lambda t: t.Tensor(2, "a"), TypeError, r"new\(\): argument 'size' failed to unpack the object at pos 2"),
    (lambda t: t.Tensor([1], [2]), TypeError, r"new\(\) received an invalid combination of arguments - got \(list, list\)"),
    (lambda t: t.Tensor(2, requires_grad=True), TypeError, r"new\(\) received an invalid combination of arguments"),
    (lambda t: t.Tensor(-1), RuntimeError, r"Trying to create tensor with negative dimension -1: \[-1\]"),
    (lambda t: t.Tensor(2, device="cuda"), RuntimeError, "legacy constructor expects device type: cpu but device type: cuda was passed"),
    (lambda t: t.FloatTensor(t.ones(2).double()), TypeError, r"expected TensorOptions\(dtype=float, device=cpu"),
    (lambda t: t.ones(2).new(t.ones(2).long()), TypeError, r"expected TensorOptions\(dtype=float, .*got TensorOptions\(dtype=long int"),
    (lambda t: t.IntTensor([2**40]), RuntimeError, "without overflow"),
    (lambda t: t.ones(2).as_subclass(int), TypeError, "Creating a Tensor subclass from a class that does not inherit from Tensor"),
    (lambda t: t.autograd.Variable(1), TypeError, "Variable data has to be a tensor, but got int"),
    (lambda t: t.set_default_tensor_type(t.IntTensor), TypeError, "only floating-point types are supported as the default type"),
    (lambda t: t.set_default_tensor_type("torch.cuda.FloatTensor"), TypeError, "type torch.cuda.FloatTensor not available"),
    (lambda t: t.is_floating_point(3), TypeError, r"is_floating_point\(\): argument 'input' \(position 1\) must be Tensor, not int"),
    (lambda t: t.ones(2).cuda(), AssertionError, "Torch not compiled with CUDA enabled"),
    (lambda t: t.ones(2).pin_memory(), RuntimeError, "Cannot access accelerator device when none is available."),
    (lambda t: t.ones(2).size(5), IndexError, "Dimension out of range"),
    (lambda t: t.ones(2).stride(-2), IndexError, "Dimension out of range"),
    (lambda t: t.ones(2).clone(memory_format=3), TypeError, "argument 'memory_format' must be torch.memory_format, not int"),
    (lambda t: t.ones(2).clone(memory_format=t.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
    (lambda t: t.use_deterministic_algorithms(3), TypeError, "argument 'mode'"),
    (lambda t: t.ones(2, requires_grad=True).apply_(lambda x: x), RuntimeError, r"Can't call apply_\(\) on Variable that requires grad"),
    (lambda t: t.set_num_interop_threads(0), RuntimeError, "expects a positive integer"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals(lib, number):
    call, error, words = REFUSED[number]
    with pytest.raises(error, match=words):
        call(lib)


def test_subclasses_are_made_of_data(lib):
    class Mine(lib.Tensor):
        pass

    class Named(lib.Tensor):
        def __init__(self, data):
            self.length = len(data)

    made = Mine([1, 2])
    assert type(made) is Mine
    assert made.tolist() == [1.0, 2.0]
    assert Named([1, 2]).length == 2
    x = lib.ones(2, requires_grad=True)
    cast = (x * 3).as_subclass(Mine)
    assert type(cast) is Mine
    cast.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]


def test_what_the_slots_hold_survives_a_bare_call():
    lib = pytest.importorskip("jitgrad")
    x = lib.Tensor([1.0])
    assert copy.deepcopy(x).tolist() == pickle.loads(pickle.dumps(x)).tolist() == [1.0]
    with lib.inference_mode():
        assert lib.Tensor([1.0]).is_inference()


# ---------------------------------------------------------------- placement
def test_placement(lib):
    x = lib.ones(2, 3)
    assert x.device == lib.device("cpu")
    assert (x.device.type, x.device.index, x.get_device()) == ("cpu", None, -1)
    assert x.layout is lib.strided
    assert not any([x.is_cuda, x.is_meta, x.is_sparse, x.is_pinned(), x.is_shared(), x.is_quantized])
    assert x.is_cpu
    assert x.cpu() is x
    assert x.to(lib.device("cpu")) is x
    assert x.t().dim_order() == (1, 0)
    assert x.t().contiguous(memory_format=lib.contiguous_format).is_contiguous()
    image = lib.ones(2, 4, 5, 3).permute(0, 3, 1, 2)
    assert image.is_contiguous(memory_format=lib.channels_last)
    assert not lib.ones(2, 3, 4, 5).is_contiguous(memory_format=lib.channels_last)
    assert lib.ones(2, device=lib.device("cpu"), layout=lib.strided, pin_memory=False).tolist() == [1.0, 1.0]
    with lib.device("cpu"):
        assert lib.ones(1).device.type == "cpu"


def test_sparse_tensors_are_refused_by_name():
    lib = pytest.importorskip("jitgrad")
    with pytest.raises(NotImplementedError, match="sparse"):
        lib.ones(2).to_sparse()


FORK = """
import os
import jitgrad as torch
x = torch.zeros(2)
assert x.share_memory_() is x
assert x.is_shared()
child = os.fork()
if not child:
    x.numpy()[:] = 5
    os._exit(0)
os.waitpid(child, 0)
assert x.tolist() == [5.0, 5.0]
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_writes_to_shared_memory():
    """In a process of its own: whoever else runs in this one may mind."""
    subprocess.run([sys.executable, "-c", FORK], check=True)


def test_python_functions_element_by_element(lib):
    x = lib.tensor([1.0, 2.0])
    assert x.apply_(lambda a: a + 1).tolist() == [2.0, 3.0]
    assert x.map_(lib.tensor([10.0]).expand(2), lambda a, b: a + b).tolist() == [12.0, 13.0]
    assert [a.item() for a in reversed(x)] == [13.0, 12.0]


# ---------------------------------------------------------------- defaults and questions
def test_defaults(lib):
    assert lib.get_default_device() == lib.device("cpu")
    lib.set_default_device("cpu")
    before = lib.get_default_dtype()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            lib.set_default_tensor_type(lib.DoubleTensor)
            assert lib.tensor(1.0).dtype is lib.Tensor([1]).dtype is lib.float64
            lib.set_default_tensor_type("torch.FloatTensor")
            assert lib.Tensor([1]).dtype is lib.float32
        finally:
            lib.set_default_dtype(before)
    lib.set_default_device(None)


def test_switches(lib):
    try:
        lib.use_deterministic_algorithms(True, warn_only=True)
        assert lib.are_deterministic_algorithms_enabled()
        assert lib.get_deterministic_debug_mode() == 1
        lib.set_deterministic_debug_mode("error")
        assert not lib.is_deterministic_algorithms_warn_only_enabled()
    finally:
        lib.use_deterministic_algorithms(False)
    assert lib.get_deterministic_debug_mode() == 0
    assert lib.get_float32_matmul_precision() == "highest"


def test_questions(lib):
    x = lib.ones(2)
    assert lib.is_floating_point(x)
    assert not lib.is_floating_point(x.long())
    assert not lib.is_complex(x)
    assert lib.is_signed(x)
    assert lib.is_nonzero(x[:1])
    assert lib.is_same_size(x, lib.zeros(2))
    assert lib.is_storage(x.untyped_storage())
    assert not lib.is_storage(x)
    assert lib.typename(x.double()) == "torch.DoubleTensor"
    assert lib.typename([]) == "list"
    assert lib.detach(lib.ones(1, requires_grad=True)).requires_grad is False
    assert (lib.inf, lib.pi > 3, lib.e < 3, lib.newaxis) == (float("inf"), True, True, None)
    assert lib.nan != lib.nan
    assert lib.contiguous_format is not lib.preserve_format
    assert lib.random.initial_seed() == lib.initial_seed()


# ---------------------------------------------------------------- fills and old ways to make tensors
def test_diagonals_are_filled(lib):
    assert lib.zeros(2, 3).fill_diagonal_(1).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    assert lib.zeros(5, 2).fill_diagonal_(1, wrap=True).sum(1).tolist() == [1.0, 1.0, 0.0, 1.0, 1.0]
    assert lib.zeros(3, 3, 3).fill_diagonal_(1).sum().item() == 3.0
    x = lib.ones(2, 2, requires_grad=True)
    x.clone().fill_diagonal_(5).sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    for shape, words in (((2,), "dimensions must larger than 1"), ((2, 3, 3), "all dimensions of input must be of equal length")):
        with pytest.raises(RuntimeError, match=words):
            lib.ones(shape).fill_diagonal_(1)


def test_distributions(lib):
    lib.manual_seed(0)
    draws = lib.empty(20000, dtype=lib.float64)
    assert abs(draws.cauchy_(median=3.0).median().item() - 3) < 0.1
    geometric = draws.geometric_(0.25)
    assert geometric.min().item() == 1
    assert abs(geometric.mean().item() - 4) < 0.15
    assert abs(draws.log_normal_(mean=1.0, std=0.5).log().mean().item() - 1) < 0.05
    assert abs(lib.poisson(lib.full((20000,), 2.5)).mean().item() - 2.5) < 0.1
    x = lib.ones(2, requires_grad=True)
    names = {"cauchy_": "Cauchy", "log_normal_": "LogNormal", "exponential_": "Exponential"}
    for method, name in names.items():
        drawn = getattr(x * 1, method)()
        assert drawn.grad_fn.name() == name + "Backward0"
    assert [(x * 1).random_(*bounds).grad_fn.name() for bounds in ((0, 2), (2,), ())] == [f"RandomBackward{k}" for k in range(3)]
    (x * 1).cauchy_().sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_draws_repeat_under_a_seed(lib):
    draws = {"cauchy_": (), "geometric_": (0.5,), "log_normal_": ()}
    for call in [*(lambda name=name: getattr(lib.empty(4), name)(*draws[name]) for name in draws), lambda: lib.poisson(lib.ones(4))]:
        lib.manual_seed(3)
        first = call().tolist()
        lib.manual_seed(3)
        assert call().tolist() == first


BAD_DRAWS = [
    (lambda t: t.ones(2).geometric_(0), RuntimeError, r"geometric_ expects p to be in \(0, 1\), but got p=0"),
    (lambda t: t.ones(2).cauchy_(sigma=-1), RuntimeError, "cauchy_ expects sigma > 0.0, but found sigma=-1"),
    (lambda t: t.ones(2).long().cauchy_(), RuntimeError, "dtype must be a floating point but you specified long int"),
    (lambda t: t.ones(2).log_normal_(std=0), RuntimeError, "log_normal_ expects std > 0.0, but found std=0"),
    (lambda t: t.ones(2).bool().geometric_(0.5), NotImplementedError, "geometric_cpu"),
    (lambda t: t.poisson(-t.ones(2)), RuntimeError, "invalid Poisson rate, expected rate to be non-negative"),
    (lambda t: t.frombuffer(bytearray(5), dtype=t.float32), ValueError, r"buffer length \(5 bytes\) after offset \(0 bytes\) must be a multiple"),
    (lambda t: t.frombuffer(bytearray(8), dtype=t.float32, count=3), ValueError, "must not be greater than actual buffer length"),
    (lambda t: t.frombuffer(bytearray(0), dtype=t.float32), ValueError, r"both buffer length \(0\) and count \(-1\) must not be 0"),
    (lambda t: t.frombuffer(3, dtype=t.float32), ValueError, "object does not implement Python buffer protocol."),
    (lambda t: t.ones(3).index_reduce(0, t.tensor([0]), t.ones(1), "foo"), RuntimeError, r"index_reduce\(\): Expected reduce to be one of"),
]


@pytest.mark.parametrize("number", range(len(BAD_DRAWS)))
def test_refusals_of_fills(lib, number):
    call, error, words = BAD_DRAWS[number]
    with pytest.raises(error, match=words):
        call(lib)


def test_old_ways_to_make_tensors(lib):
    memory = bytearray(np.array([1.0, 2.0], np.float32).tobytes())
    x = lib.frombuffer(memory, dtype=lib.float32)
    memory[:4] = b"\0\0\0\0"
    assert x.tolist() == [0.0, 2.0]
    with pytest.warns(UserWarning, match="torch.range is deprecated"):
        assert lib.range(1, 2, 0.5).tolist() == [1.0, 1.5, 2.0]
    with pytest.warns(UserWarning, match="non-inplace resize is deprecated"):
        assert x.resize(2, 1).shape == (2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match=r"requested resize to 3 \(3 elements in total\), but the given tensor has a size of 2"):
            x.resize(3)


def test_functions_of_nn_by_their_short_names(lib):
    x = lib.arange(8.0).view(1, 1, 8)
    assert lib.conv1d(x, lib.ones(1, 1, 3)).tolist() == [[[3.0, 6.0, 9.0, 12.0, 15.0, 18.0]]]
    assert lib.max_pool1d(x, 4).tolist() == [[[3.0, 7.0]]]
    assert lib.avg_pool1d(x, 4).tolist() == [[[1.5, 5.5]]]
    assert lib.cosine_similarity(x[0], -x[0]).tolist() == pytest.approx([-1.0])
    assert lib.group_norm(lib.ones(1, 2, 3), 1).tolist() == [[[0.0] * 3] * 2]
    assert lib.pixel_shuffle(lib.ones(1, 4, 1, 1), 2).shape == (1, 1, 2, 2)


def test_storages_have_names(lib):
    x = lib.ones(2)
    assert isinstance(x.untyped_storage(), lib.UntypedStorage)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert isinstance(x.storage(), lib.TypedStorage)


def test_storages(lib):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        x = lib.arange(6.0)
        part, whole = x[2:].untyped_storage(), x.untyped_storage()
        assert part == whole
        assert (part.nbytes(), len(part), x.storage().size(), x[2:].storage_offset()) == (24, 24, 6, 2)
        assert x.storage().tolist() == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
        assert whole[4:8].tolist() == [0, 0, 128, 63]
        x.storage()[0] = 7.0
        assert x[0].item() == 7.0
        assert whole.clone().data_ptr() != whole.data_ptr()
        assert whole.copy_(lib.zeros(6).untyped_storage()) is whole
        assert x.sum().item() == 0.0
        assert (whole.type(), x.storage().type()) == ("torch.storage.UntypedStorage", "torch.FloatStorage")
        assert lib.UntypedStorage(8).nbytes() == 8
        assert lib.TypedStorage([1, 2], dtype=lib.float64).tolist() == [1.0, 2.0]
        assert not any([whole.is_cuda, whole.is_shared()])
        with pytest.raises(RuntimeError, match="slices are only supported in UntypedStorage"):
            x.storage()[1:3]


def test_storages_keep_their_length():
    lib = pytest.importorskip("jitgrad")
    whole = lib.ones(2).untyped_storage()
    assert whole.resize_(8) is whole
    with pytest.raises(NotImplementedError, match=r"UntypedStorage.resize_: memory keeps its length \(8 elements\)"):
        whole.resize_(0)


def test_names_of_arguments(lib):
    x = lib.arange(6.0)
    assert [part.tolist() for part in x.split(split_size=4)] == [[0.0, 1.0, 2.0, 3.0], [4.0, 5.0]]
    assert len(lib.split(tensor=x, split_size_or_sections=[2, 4])) == 2
    assert lib.ones(6).resize_(size=(2, 3)).shape == (2, 3)
    assert x.view(size=(2, 3)).permute(dims=(1, 0)).shape == (3, 2)
    assert x[:1].expand(size=(2, 1)).repeat(repeats=(1, 2)).shape == (2, 2)


NO_TENSOR = [
    (lambda t: t.ones(2, 2).mm(1), "mm", "mat2", 1),
    (lambda t: t.mm(t.ones(2, 2), 1), "mm", "mat2", 2),
    (lambda t: t.mm(1, t.ones(2, 2)), "mm", "input", 1),
    (lambda t: t.ones(2).dot(2.5), "dot", "tensor", 1),
    (lambda t: t.ones(2).expand_as(3), "expand_as", "other", 1),
    (lambda t: t.ones(2).addmv(t.ones(2, 2), 1), "addmv", "vec", 2),
    (lambda t: t.ones(3).cross(1), "cross", "other", 1),
]


@pytest.mark.parametrize("number", range(len(NO_TENSOR)))
def test_what_must_be_a_tensor(lib, number):
    call, function, name, position = NO_TENSOR[number]
    with pytest.raises(TypeError, match=rf"{function}\(\): argument '{name}' \(position {position}\) must be Tensor, not (int|float)"):
        call(lib)


def test_sizes_and_cuts_one_by_one(lib):
    x = lib.arange(8.0).view(2, 4)
    assert lib.ones(1, 3).broadcast_to(2, 3).shape == lib.broadcast_to(lib.ones(3), size=(2, 3)).shape == (2, 3)
    assert lib.ones(2, 3).count_nonzero(0, 1).item() == 6
    assert [part.shape[1] for part in x.hsplit(1, 3)] == [part.shape[1] for part in lib.hsplit(x, indices=(1, 3))] == [1, 2, 1]
    assert [part.shape[0] for part in lib.vsplit(x, sections=2)] == [1, 1]
    assert lib.histogram(x).hist.shape == (100,)
    with pytest.raises(TypeError, match=r"hsplit\(\) received an invalid combination of arguments"):
        x.hsplit()
    with pytest.raises(TypeError, match=r"chunk\(\): argument 'chunks' \(position 1\) must be int, not float"):
        x.chunk(1.5)


def test_nodes_of_ldexp_and_kron(lib):
    x = lib.ones(2, requires_grad=True)
    assert lib.ldexp(x, lib.tensor([1, 2])).grad_fn.name() == "LdexpBackward0"
    assert lib.kron(x, lib.ones(2)).grad_fn.name() == "UnsafeViewBackward0"


def test_conj_physical_in_place(lib):
    x = lib.ones(2)
    assert x.conj_physical_() is x
    assert x._version == 1
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        lib.conj_physical_(lib.ones(2, requires_grad=True))
