"""Devices, layouts and memory formats: what can be named, and what is refused."""

import pickle

import pytest

from jitgrad._core import devices

NAMES = ["cpu", "cpu:0", "cuda", "cuda:3", "meta"]


@pytest.mark.parametrize("name", NAMES)
def test_names_like_torchs(name):
    torch = pytest.importorskip("torch")
    ours, theirs = devices.device(name), torch.device(name)
    assert (repr(ours), str(ours), ours.type, ours.index) == (repr(theirs), str(theirs), theirs.type, theirs.index)


MALFORMED = [("foo",), ("cpu:-1",), ("cpu:x",), ("cuda:01",), ("",), ("cpu", -1), ("cuda:1", 1), ("CPU",)]


@pytest.mark.parametrize("arguments", [*MALFORMED, (3,), (), (None,), (1.5,)])
def test_refusals_like_torchs(arguments):
    torch = pytest.importorskip("torch")
    with pytest.raises((TypeError, RuntimeError)) as theirs:
        torch.device(*arguments)
    with pytest.raises(theirs.type) as ours:
        devices.device(*arguments)
    assert str(ours.value)[:60] == str(theirs.value)[:60]


def test_equal_by_type_and_index():
    assert devices.device("cuda", 1) == devices.device("cuda:1") != devices.device("cuda")
    assert devices.device(type="cpu", index=None) == devices.CPU
    assert devices.device("cpu") != "cpu"
    assert {devices.device("cpu"): 1}[devices.CPU] == 1


def test_immutable_and_pickled():
    with pytest.raises(AttributeError):
        devices.CPU.type = "cuda"
    assert pickle.loads(pickle.dumps(devices.device("cuda:1"))) == devices.device("cuda:1")
    assert pickle.loads(pickle.dumps(devices.strided)) is devices.strided


@pytest.mark.parametrize("where", [None, "cpu", "cpu:0", devices.CPU, devices.device("cpu", 0)])
def test_the_cpu_is_accepted(where):
    devices.check_device(where)


@pytest.mark.parametrize(
    ("where", "error", "words"),
    [
        ("cuda", AssertionError, "Torch not compiled with CUDA enabled"),
        (devices.device("xpu"), AssertionError, "Torch not compiled with XPU enabled"),
        ("meta", NotImplementedError, "'meta' backend"),
        ("foo", RuntimeError, "Expected one of cpu, cuda"),
        (1.5, TypeError, r"ones\(\): argument 'device' must be torch.device, not float"),
        (True, TypeError, "not bool"),
    ],
)
def test_all_others_are_refused_by_name(where, error, words):
    with pytest.raises(error, match=words):
        devices.check_device(where, "ones")


def test_layouts_and_pinned_memory():
    devices.check_layout(None), devices.check_layout(devices.strided)
    with pytest.raises(RuntimeError, match="dense"):
        devices.check_layout(devices.sparse_coo)
    with pytest.raises(TypeError, match="layout"):
        devices.check_layout(3)
    devices.check_pinned(False)
    with pytest.raises(RuntimeError, match="pin_memory"):
        devices.check_pinned(True)
