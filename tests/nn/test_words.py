"""What modules say when something is wrong, in both packages: type and leading words."""

import pytest

from tests.libraries import lib

__all__ = ["lib"]


def linear(t, **state):
    return t.nn.Linear(2, 1).load_state_dict(state)


def submodule(t, path, module):
    t.nn.Sequential(t.nn.Linear(2, 2)).set_submodule(path, module, strict=path == "x")


def assigned(t, name, value):
    module = t.nn.BatchNorm1d(2)
    module.child = t.nn.ReLU()
    module.__setattr__(name, value)


WRONG = [
    (lambda t: t.nn.Sequential(t.nn.ReLU()).get_submodule("1"), AttributeError, "Sequential has no attribute `1`"),
    (lambda t: t.nn.Sequential(t.nn.Linear(1, 1)).get_submodule("0.weight"), AttributeError, "`weight` is not an nn.Module"),
    (lambda t: t.nn.Sequential(t.nn.Linear(1, 1)).get_parameter("0"), AttributeError, "`0` is not an nn.Parameter"),
    (lambda t: t.nn.BatchNorm1d(2).get_buffer("weight"), AttributeError, "`weight` is not a buffer"),
    (lambda t: t.nn.Linear(1, 1).foo, AttributeError, "'Linear' object has no attribute 'foo'"),
    (lambda t: assigned(t, "weight", 3), TypeError, r"cannot assign 'int' as parameter 'weight' \(torch.nn.Parameter or None expected\)"),
    (lambda t: assigned(t, "running_mean", 3), TypeError, r"cannot assign 'int' as buffer 'running_mean' \(torch.nn.Buffer, torch.Tensor or None"),
    (lambda t: assigned(t, "child", 3), TypeError, r"cannot assign 'int' as child module 'child' \(torch.nn.Module or None expected\)"),
    (lambda t: t.nn.Linear(1, 1).to(t.int64), TypeError, "nn.Module.to only accepts floating point or complex dtypes, but got desired dtype="),
    (lambda t: t.nn.Linear(1, 1).to("nonsense"), RuntimeError, "Expected one of cpu, cuda"),
    (lambda t: t.nn.Linear(1, 1).to("cuda"), AssertionError, "Torch not compiled with CUDA enabled"),
    (lambda t: t.nn.Linear(1, 1).train(3), ValueError, "training mode is expected to be boolean"),
    (lambda t: linear(t, weight=t.ones(1, 2)), RuntimeError,
     r"Error\(s\) in loading state_dict for Linear:\n\tMissing key\(s\) in state_dict: \"bias\". "),
    (lambda t: linear(t, weight=t.ones(2, 2), bias=t.ones(1), a=1, b=2), RuntimeError,
     r"Error\(s\) in loading state_dict for Linear:\n\tUnexpected key\(s\) in state_dict: \"a\", \"b\". \n\tsize mismatch for weight: copying a "
     r"param with shape torch.Size\(\[2, 2\]\) from checkpoint, the shape in current model is torch.Size\(\[1, 2\]\)\."),
    (lambda t: linear(t, weight=3, bias=t.ones(1)), RuntimeError,
     "While copying the parameter named \"weight\", expected torch.Tensor or Tensor-like"),
    (lambda t: t.nn.Linear(1, 1).load_state_dict([1]), TypeError, "Expected state_dict to be dict-like, got <class 'list'>."),
    (lambda t: t.nn.ModuleList([t.nn.ReLU()])[5], IndexError, "index 5 is out of range"),
    (lambda t: t.nn.ModuleList(3), TypeError, "ModuleList.extend should be called with an iterable, but got int"),
    (lambda t: t.nn.ModuleList([3]), TypeError, "int is not a Module subclass"),
    (lambda t: t.nn.ModuleDict({"a": t.nn.ReLU()})["z"], KeyError, "z"),
    (lambda t: t.nn.ModuleDict({"keys": t.nn.ReLU()}), KeyError, "attribute 'keys' already exists"),
    (lambda t: t.nn.ModuleDict().update(3), TypeError, "ModuleDict.update should be called with an iterable of key/value pairs, but got int"),
    (lambda t: t.nn.Sequential(3), TypeError, "int is not a Module subclass"),
    (lambda t: t.nn.Sequential(t.nn.ReLU()) * 0, ValueError, "Non-positive multiplication factor 0 for"),
    (lambda t: t.nn.Sequential(t.nn.ReLU()).insert(5, t.nn.ReLU()), IndexError, "Index out of range: 5"),
    (lambda t: t.nn.ParameterDict().__setitem__(3, t.ones(1)), TypeError,
     "Index given to ParameterDict cannot be used as a key as it is not a string \\(type is 'int'\\). Open an issue"),
    (lambda t: submodule(t, "", t.nn.ReLU()), ValueError, "Cannot set the submodule without a target name!"),
    (lambda t: submodule(t, "0.weight", t.nn.ReLU()), AttributeError, "`weight` is not an nn.Module"),
    (lambda t: submodule(t, "x", t.nn.ReLU()), AttributeError, "Sequential has no attribute `x`"),
    (lambda t: submodule(t, "0", 3), ValueError, "`module` is not an nn.Module, found <class 'int'>"),
    (lambda t: t.nn.Linear(2, 3)(t.ones(2, 4)), RuntimeError, r"mat1 and mat2 shapes cannot be multiplied \(2x4 and 2x3\)"),
    (lambda t: t.nn.Linear(2, 3)(t.ones(2, 2, dtype=t.float64)), RuntimeError, "mat1 and mat2 must have the same dtype, but got Double and Float"),
    (lambda t: t.nn.Linear(2, 3)(t.ones(4, 2, 2, dtype=t.int64)), RuntimeError, "mat1 and mat2 must have the same dtype, but got Long and Float"),
    (lambda t: t.nn.Linear(2, 3, bias=False)(t.ones(2, 2, dtype=t.float64)), RuntimeError, "expected m1 and m2 to have the same dtype"),
    (lambda t: t.addmm(t.ones(3), t.ones(2, 2, dtype=t.float64), t.ones(2, 3)), RuntimeError, "mat1 and mat2 must have the same dtype"),
    (lambda t: t.nn.Linear(2, 3)([t.ones(2)]), TypeError, r"linear\(\): argument 'input' \(position 1\) must be Tensor, not list"),
    (lambda t: t.nn.functional.linear(t.ones(2), 3), TypeError, r"linear\(\): argument 'weight' \(position 2\) must be Tensor, not int"),
    (lambda t: t.nn.Dropout(1.5), ValueError, "dropout probability has to be between 0 and 1, but got 1.5"),
    (lambda t: t.nn.BatchNorm1d(2)(t.ones(1, 2)), ValueError, "Expected more than 1 value per channel when training, got input size torch.Size"),
    (lambda t: t.nn.Embedding(3, 2, padding_idx=5), AssertionError, "Padding_idx must be within num_embeddings"),
    (lambda t: t.nn.MSELoss(reduction="foo")(t.ones(1), t.ones(1)), ValueError, "foo is not a valid value for reduction"),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(WRONG)))
def test_wrong(lib, case):
    call, error, words = WRONG[case]
    with pytest.raises(error, match=words):
        call(lib)


def test_duplicates_on_demand(lib):
    layer = lib.nn.Linear(1, 1)
    twice = lib.nn.ModuleList([layer, layer])
    assert [len(list(twice.modules(remove_duplicate=remove))) for remove in (True, False)] == [2, 3]
    assert [name for name, _ in twice.named_modules(remove_duplicate=False)] == ["", "0", "1"]
    assert [name for name, _ in twice.named_parameters(remove_duplicate=False)] == ["0.weight", "0.bias", "1.weight", "1.bias"]


def test_memory_of_unknown_content(lib):
    layer = lib.nn.Linear(2, 3)
    weight = layer.weight
    assert layer.to_empty(device="cpu") is layer
    assert layer.weight is weight
    assert (tuple(weight.shape), weight.dtype, weight.requires_grad) == ((3, 2), lib.float32, True)


def test_devices(lib):
    layer = lib.nn.Linear(1, 1)
    assert layer.to("cpu") is layer.to(device="cpu") is layer.cpu() is layer
    assert lib.nn.ReLU().cuda() is not None  # there is nothing to move
    assert layer.dump_patches is False
