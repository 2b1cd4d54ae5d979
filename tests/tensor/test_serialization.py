"""`save` and `load`: what comes back, what is shared, what is refused, and that torch reads and writes the same files."""

import io
import pickle
import zipfile
from collections import OrderedDict

import numpy as np
import pytest

import jitgrad
from jitgrad import nn, serialization
from tests.libraries import lib

__all__ = ["lib"]


class Plain:
    """A class that no file may name unasked."""

    def __init__(self, value):
        self.value = value


class Evil:
    """What a hostile file would hold: loading it calls a function."""

    def __reduce__(self):
        return exec, ("raise SystemExit('code from a file has run')",)


def round_trip(lib, thing, **options):
    file = io.BytesIO()
    lib.save(thing, file)
    file.seek(0)
    return lib.load(file, **options)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int16", "int8", "uint8", "bool"])
def test_tensors_come_back(lib, dtype):
    x = lib.tensor([[1, 0], [3, 4]], dtype=getattr(lib, dtype))
    found = round_trip(lib, x)
    assert found.dtype is x.dtype
    assert found.tolist() == x.tolist()


def test_containers_come_back(lib):
    thing = {
        "numbers": [1, 2.5, True, None, 1 << 70, "text", b"bytes"],
        "nested": OrderedDict(a=(lib.ones(2), {3: lib.zeros(())})),
        "kinds": (lib.float32, lib.int64, lib.Size([2, 3]), lib.device("cpu"), {1, 2}),
        "empty": [lib.ones(0, 3), {}, ()],
        "parameter": nn.Parameter(lib.ones(2)) if lib is jitgrad else lib.nn.Parameter(lib.ones(2)),
    }
    found = round_trip(lib, thing)
    assert found["numbers"] == thing["numbers"]
    assert found["kinds"] == thing["kinds"]
    assert type(found["kinds"][2]) is lib.Size
    assert type(found["nested"]) is OrderedDict
    assert found["nested"]["a"][1][3].shape == ()
    assert found["empty"][0].shape == (0, 3)
    assert type(found["parameter"]) is lib.nn.Parameter
    assert found["parameter"].requires_grad


def test_what_shares_memory_shares_it_again(lib):
    base = lib.arange(12.0).view(3, 4)
    found = round_trip(lib, {"base": base, "row": base[1], "turned": base.t(), "again": base})
    found["base"][1, 2] = 50
    assert found["row"][2].item() == found["turned"][2, 1].item() == 50
    assert found["turned"].stride() == (1, 4)
    assert found["row"].storage_offset() == 4
    assert found["again"] is found["base"]


def test_memory_is_written_once():
    file, base = io.BytesIO(), jitgrad.zeros(1000)
    jitgrad.save([base[k:] for k in range(20)], file)
    assert file.tell() < 4000 + 4000


def test_gradients_are_asked_for_again(lib):
    x = lib.ones(2, requires_grad=True)
    leaf, computed = round_trip(lib, [x, x * 2])
    assert leaf.requires_grad
    assert leaf.is_leaf
    assert computed.is_leaf


def test_modules_and_optimizers(tmp_path):
    net = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    optimizer = jitgrad.optim.Adam(net.parameters())
    net(jitgrad.ones(4, 2)).sum().backward()
    optimizer.step()
    jitgrad.save({"net": net.state_dict(), "optimizer": optimizer.state_dict()}, tmp_path / "file.pt")
    found = jitgrad.load(str(tmp_path / "file.pt"))
    other = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))
    other.load_state_dict(found["net"])
    assert all(jitgrad.equal(a, b) for a, b in zip(net.parameters(), other.parameters(), strict=True))
    jitgrad.optim.Adam(other.parameters()).load_state_dict(found["optimizer"])


def test_a_whole_module_needs_trust(tmp_path):
    net = nn.Linear(2, 1)
    jitgrad.save(net, tmp_path / "net.pt")
    with pytest.raises(pickle.UnpicklingError, match=r"jitgrad\.nn\.modules\.linear\.Linear was not an allowed global"):
        jitgrad.load(tmp_path / "net.pt")
    found = jitgrad.load(tmp_path / "net.pt", weights_only=False)
    assert jitgrad.equal(found.weight, net.weight)
    assert type(found.weight) is nn.Parameter


# ---------------------------------------------------------------- safety
def test_no_code_runs_unasked(lib):
    with pytest.raises(pickle.UnpicklingError, match="Weights only load failed"):
        round_trip(lib, {"a": Evil()})


@pytest.mark.parametrize("thing", [Plain(3), np.float64(2.0), pickle.loads])
def test_unknown_names_are_refused_by_name(thing):
    with pytest.raises(pickle.UnpicklingError, match="was not an allowed global by default"):
        round_trip(jitgrad, thing)


def test_classes_can_be_let_in():
    with serialization.safe_globals([Plain]):
        assert round_trip(jitgrad, Plain(jitgrad.ones(1))).value.tolist() == [1.0]
    with pytest.raises(pickle.UnpicklingError):
        round_trip(jitgrad, Plain(1))
    serialization.add_safe_globals([(Plain, f"{Plain.__module__}.Plain")])
    assert serialization.get_safe_globals() == [Plain]
    assert round_trip(jitgrad, Plain(1)).value == 1
    serialization.clear_safe_globals()
    assert round_trip(jitgrad, Plain(1), weights_only=False).value == 1


def damaged(change):
    """A saved file with its pickle or its memory changed."""
    file, other = io.BytesIO(), io.BytesIO()
    jitgrad.save(jitgrad.arange(4.0), file)
    with zipfile.ZipFile(file) as old, zipfile.ZipFile(other, "w") as new:
        for name in old.namelist():
            kept = change(name, old.read(name))
            if kept is not None:
                new.writestr(name, kept)
    other.seek(0)
    return other


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda name, data: data[:-4] if name.endswith("data/0") else data,
            "has 12 bytes where 4 elements of float32 are expected",
        ),
        (lambda name, data: None if name.endswith("data/0") else data, "the file lacks the memory archive/data/0"),
        (lambda name, data: None if name.endswith("pkl") else data, "has no data.pkl"),
        (lambda name, data: b"big" if name.endswith("byteorder") else data, "other byte order"),
        (
            lambda name, data: data.replace(b"FloatStorage", b"BFloat16Storage") if name.endswith("pkl") else data,
            "torch.BFloat16Storage",
        ),
    ],
)
def test_damaged_files_are_refused(change, words):
    with pytest.raises(pickle.UnpicklingError, match=words):
        jitgrad.load(damaged(change))


def test_a_tensor_never_reaches_outside_of_its_memory():
    def change(name, data):
        return data.replace(b"K\x04\x85", b"K\x09\x85") if name.endswith("pkl") else data  # the length 4 as 9

    with pytest.raises(RuntimeError, match="out of bounds for storage of size 16"):
        jitgrad.load(damaged(change))
    with pytest.raises(RuntimeError, match="the file is damaged"):
        serialization.rebuild_tensor(np.zeros(4, np.float32), -1, (2,), (1,))


# ---------------------------------------------------------------- arguments
@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (
            lambda t: t.save(3, 5),
            AttributeError,
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute",
        ),
        (
            lambda t: t.load(5),
            AttributeError,
            "'int' object has no attribute 'seek'. You can only torch.load from a file that is seekable",
        ),
        (lambda t: t.load("/there/is/no/file"), FileNotFoundError, "."),
        (lambda t: t.load(io.BytesIO(b"")), EOFError, "|"),
        (lambda t: t.load(io.BytesIO(b"garbage")), pickle.UnpicklingError, "Weights only load failed"),
    ],
)
def test_refusals(lib, call, error, words):
    with pytest.raises(error, match=words):
        call(lib)


def test_memory_has_one_dtype(lib):
    x = lib.ones(2)
    with pytest.raises(
        RuntimeError, match="Cannot save multiple tensors or storages that view the same data as different types"
    ):
        lib.save([x, x.view(lib.int32)], io.BytesIO())


def test_locations(lib):
    for where in (None, "cpu", lib.device("cpu"), {"cpu": "cpu"}, lambda storage, location: storage):
        assert round_trip(lib, lib.ones(1), map_location=where).tolist() == [1.0]
    with pytest.raises(AssertionError, match="CUDA"):
        round_trip(jitgrad, jitgrad.ones(1), map_location="cuda")


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_protocols(protocol):
    file = io.BytesIO()
    jitgrad.save({"a": jitgrad.ones(2), "b": b"x"}, file, pickle_protocol=protocol)
    file.seek(0)
    assert jitgrad.load(file)["a"].tolist() == [1.0, 1.0]


# ---------------------------------------------------------------- with torch
def exchange(writer, reader, thing):
    file = io.BytesIO()
    writer.save(thing, file)
    file.seek(0)
    return reader.load(file)


def sample(lib):
    base = lib.arange(6.0).view(2, 3)
    return {"base": base, "part": base[1], "long": lib.tensor([1, 2]), "dtype": lib.float64, "size": lib.Size([2]), "device": lib.device("cpu"),
            "parameter": lib.nn.Parameter(lib.ones(2, dtype=lib.float64)), "half": lib.ones(2).half(), "empty": lib.ones(0)}  # fmt: skip


@pytest.mark.parametrize("names", [("jitgrad", "torch"), ("torch", "jitgrad")])
def test_files_go_both_ways(names):
    writer, reader = (pytest.importorskip(name) for name in names)
    found, expected = exchange(writer, reader, sample(writer)), sample(reader)
    for name, value in expected.items():
        if isinstance(value, reader.Tensor):
            assert found[name].dtype is value.dtype
            assert type(found[name]) is type(value)
            assert found[name].tolist() == value.tolist()
        else:
            assert found[name] == value
    found["base"][1] = 9
    assert found["part"].tolist() == [9.0, 9.0, 9.0]


def test_state_dicts_of_torch_load():
    torch = pytest.importorskip("torch")
    theirs, ours = torch.nn.Linear(3, 2), nn.Linear(3, 2)
    ours.load_state_dict(exchange(torch, jitgrad, theirs.state_dict()))
    assert ours.weight.tolist() == theirs.weight.tolist()
    theirs.load_state_dict(exchange(jitgrad, torch, nn.Linear(3, 2).state_dict()))
