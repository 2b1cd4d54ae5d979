"""`save_on_disk` and `save_compressed`: the same bits, kept elsewhere, gone with the graph."""

import builtins
import errno
import gc
import io
import os
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest

import jitgrad as torch
from jitgrad._tensor.base import wrap
from tests.libraries import function

graph = torch.autograd.graph


@pytest.fixture(params=["disk", "compressed"])
def hooks(request, tmp_path):
    """A context that saves elsewhere, whatever the size."""
    if request.param == "disk":
        return lambda: graph.save_on_disk(tmp_path)
    return lambda: graph.save_compressed(min_bytes=0)


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def array_of(dtype, shape):
    """Random bits, NaNs with a payload, negative zeros and infinities among them."""
    rng = np.random.default_rng(0)
    count = int(np.prod(shape)) * np.dtype(dtype).itemsize
    if dtype == "bool":
        return np.asarray(rng.random(shape) < 0.5)
    return np.frombuffer(rng.bytes(count), dtype).reshape(shape).copy()


@pytest.mark.parametrize("shape", [(), (1,), (7,), (0,), (3, 0, 2), (5, 4, 3)])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_bit_by_bit(hooks, dtype, shape):
    array = array_of(dtype, shape)
    held = hooks()
    tensor = wrap(array)
    back = held.unpack_hook(held.pack_hook(tensor))
    assert back.array.dtype == array.dtype
    assert back.array.shape == array.shape
    assert back.array.tobytes() == array.tobytes()
    assert not np.shares_memory(back.array, array)


@pytest.mark.parametrize("layout", [lambda a: a.T, lambda a: a[::-1, ::2], lambda a: np.broadcast_to(a[:1], a.shape)])
def test_any_layout(hooks, layout):
    array = layout(np.arange(12.0).reshape(3, 4))
    held = hooks()
    assert np.array_equal(held.unpack_hook(held.pack_hook(wrap(array))).array, array)


def test_the_same_gradients(hooks):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 3))
    x, target = torch.randn(16, 8), torch.randint(0, 3, (16,))
    torch.nn.functional.cross_entropy(model(x), target).backward()
    expected = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with hooks():
        loss = torch.nn.functional.cross_entropy(model(x), target)
    loss.backward(retain_graph=True)
    assert all(torch.equal(p.grad, grad) for p, grad in zip(model.parameters(), expected, strict=True))
    loss.backward()
    assert all(torch.equal(p.grad, 2 * grad) for p, grad in zip(model.parameters(), expected, strict=True))
    with pytest.raises(RuntimeError, match="second time"):
        loss.backward()


def test_second_derivatives(hooks):
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with hooks():
        y = x * x * x
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert second.tolist() == [12.0, 18.0]


def test_functions_and_kernels(hooks):
    square = function(torch, lambda ctx, x: ctx.save_for_backward(x) or x * x, lambda ctx, g: g * ctx.saved_tensors[0] * 2, "Square")
    x = torch.tensor([2.0, 3.0], requires_grad=True)
    with hooks():
        y = square.apply(x) + torch.elementwise(lambda x: x * x)(x)
    y.sum().backward()
    assert x.grad.tolist() == [8.0, 12.0]


def test_a_later_write_does_no_harm(hooks):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.tensor([3.0, 4.0])
    with hooks():
        y = x * w
        w.mul_(10)
        z = x * w
        w.numpy()[:] = -1
        v = x * w
    w.zero_()
    (y + z * 100 + v * 1000).sum().backward()
    assert x.grad.tolist() == [3 + 3000 - 1000, 4 + 4000 - 1000]


# ---- files
def test_files_go_with_the_backward(tmp_path):
    x = torch.ones(100, requires_grad=True)
    with graph.save_on_disk(tmp_path):
        y = x.exp()
        z = (y * y).sum()
    (name,) = files(tmp_path)  # saved three times, written once
    assert (tmp_path / name).stat().st_size == 400
    z.backward(retain_graph=True)
    assert files(tmp_path) == [name]
    z.backward()
    assert files(tmp_path) == []


def test_files_go_with_the_graph(tmp_path):
    gc.disable()
    try:
        x = torch.ones(100, requires_grad=True)
        with graph.save_on_disk(tmp_path):
            y = x.exp().tanh()
        assert len(files(tmp_path)) == 2
        del y
        assert files(tmp_path) == []
    finally:
        gc.enable()


def test_files_go_with_the_process(tmp_path):
    code = f"""
        import jitgrad, os
        with jitgrad.autograd.graph.save_on_disk({str(tmp_path)!r}):
            y = jitgrad.ones(10, requires_grad=True).exp()
        assert len(os.listdir({str(tmp_path)!r})) == 1
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)
    assert files(tmp_path) == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_child_process_leaves_the_files_alone(tmp_path):
    code = f"""
        import jitgrad, os
        x = jitgrad.ones(10, requires_grad=True)
        with jitgrad.autograd.graph.save_on_disk({str(tmp_path)!r}):
            y = x.exp()
        child = os.fork()
        if child == 0:
            del y
            os._exit(0)
        os.waitpid(child, 0)
        y.sum().backward()
        assert x.grad.tolist() == y.tolist()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True)


def test_small_ones_stay_in_memory(tmp_path):
    x, w = torch.ones(100, requires_grad=True), torch.ones((), requires_grad=True)
    with graph.save_on_disk(tmp_path, min_bytes=100):
        y = x.exp() * w.exp()
    assert len(files(tmp_path)) == 1
    assert graph.saved_memory(y).total == 4
    y.sum().backward()
    assert w.grad is not None


def test_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"save_on_disk: there is no such folder: '.*nowhere'"):
        graph.save_on_disk(tmp_path / "nowhere")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="save_on_disk: this is not a folder"):
        graph.save_on_disk(str(tmp_path / "file"))
    folder = tmp_path / "later"
    folder.mkdir()
    hooks = graph.save_on_disk(folder)
    folder.rmdir()
    with pytest.raises(FileNotFoundError, match=r"a saved tensor of shape \[3\], 12 bytes, can't be written"), hooks:
        torch.ones(3, requires_grad=True).exp()


def test_a_full_disk(tmp_path, monkeypatch):
    real = builtins.open

    class Full(io.FileIO):
        def write(self, data):
            super().write(memoryview(data).cast("B")[:100])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(builtins, "open", lambda name, mode="r", *rest: Full(name, mode) if mode == "wb" else real(name, mode, *rest))
    x = torch.ones(1000, requires_grad=True)
    with (
        pytest.raises(OSError, match=r"a saved tensor of shape \[1000\], 4000 bytes, can't be written: No space left") as caught,
        graph.save_on_disk(tmp_path),
    ):
        x.exp()
    assert caught.value.errno == errno.ENOSPC
    assert caught.value.filename == str(tmp_path)
    assert files(tmp_path) == []
    monkeypatch.undo()
    with graph.save_on_disk(tmp_path):
        y = x.exp().sum()
    y.backward()


DAMAGE = {
    "is gone": (lambda path: path.unlink(), "can't be read back from .*: No such file"),
    "is shorter": (lambda path: path.write_bytes(path.read_bytes()[:-1]), "should be 400 bytes long, but is not"),
    "is longer": (lambda path: path.write_bytes(path.read_bytes() + b"x"), "should be 400 bytes long, but is not"),
    "is changed": (lambda path: path.write_bytes(bytes(400)), "was changed since it was saved: its checksum differs"),
}


@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_file(tmp_path, how):
    x = torch.ones(100, requires_grad=True)
    with graph.save_on_disk(tmp_path):
        y = x.exp().sum()
    damage, message = DAMAGE[how]
    damage(next(tmp_path.iterdir()))
    with pytest.raises(RuntimeError, match=message):
        y.backward()
    assert x.grad is None
    del y
    assert files(tmp_path) == []


# ---- compression
def test_memory_is_saved():
    x = torch.randn(50_000, requires_grad=True)
    with graph.save_compressed(level=6):
        y = x.relu()
    memory = graph.saved_memory(y).total
    assert memory < 0.7 * 200_000
    with graph.save_compressed(level=6):
        z = torch.zeros(50_000, requires_grad=True).exp()
    assert graph.saved_memory(z).total < 2000


def test_what_can_not_be_compressed_stays_as_it_is():
    hooks = graph.save_compressed(min_bytes=0)
    noise = wrap(np.frombuffer(np.random.default_rng(0).bytes(4000), np.int32).copy())
    assert hooks.pack_hook(noise).nbytes == 4000


@pytest.mark.parametrize("arguments", [{"level": 10}, {"level": -2}, {"level": "9"}, {"level": True}, {"min_bytes": -1}, {"min_bytes": 1.5}])
def test_arguments(arguments):
    (name,) = arguments
    with pytest.raises(ValueError, match=f"save_compressed: {name} should be"):
        graph.save_compressed(**arguments)
    if name == "min_bytes":
        with pytest.raises(ValueError, match="save_on_disk: min_bytes should be"):
            graph.save_on_disk(".", **arguments)


@pytest.mark.parametrize("level", [-1, 0, 1, 9])
def test_levels(level):
    x = torch.ones(1000, requires_grad=True)
    with graph.save_compressed(level):
        y = x.exp().sum()
    y.backward()
    assert torch.equal(x.grad, torch.ones(1000).exp())


def test_threads(tmp_path):
    hooks, failed = graph.save_on_disk(tmp_path), []
    leaves = [torch.full((500,), float(k), requires_grad=True) for k in range(8)]

    def work(x, k):
        try:
            with graph.saved_tensors_hooks(hooks.pack_hook, hooks.unpack_hook):
                for _ in range(5):
                    (x * x).sum().backward()
            assert x.grad.tolist() == [10.0 * k] * 500
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=work, args=(x, k)) for k, x in enumerate(leaves)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert files(tmp_path) == []
