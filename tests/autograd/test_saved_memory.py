"""`saved_memory`: which node keeps how many bytes."""

import warnings

import numpy as np
import pytest

import jitgrad as torch
from tests.libraries import function

saved_memory = torch.autograd.graph.saved_memory


def leaf(*shape):
    return torch.ones(shape, requires_grad=True)


def test_by_op():
    x = leaf(10)
    memory = saved_memory((x.exp() * x.tanh()).sum())
    assert memory.total == 80
    assert memory.by_op() == {"ExpBackward0": 40, "TanhBackward0": 40, "MulBackward0": 0}
    assert [value.shared for value in memory if value.op == "MulBackward0"] == [True, True]
    assert memory.of_leaves == 0


def test_memory_of_leaves():
    x, w = torch.ones(4, 3), leaf(2, 3)
    memory = saved_memory(torch.nn.functional.linear(x, w).relu(), {"w": w, "x": x})
    assert memory.total == 4 * 3 * 4 + 4 * 2 * 4
    x.requires_grad_()
    memory = saved_memory(torch.nn.functional.linear(x, w), [("w", w), ("x", x)])
    assert memory.total == memory.of_leaves == 4 * 3 * 4 + 2 * 3 * 4
    assert {value.tensor for value in memory} == {"w", "x"}


def test_shared_memory_is_counted_once():
    x = leaf(100)
    y = x.exp()
    part = y[:2]
    memory = saved_memory((part * part + part.detach() * part).sum())
    assert memory.total == 400
    assert sum(not value.shared for value in memory) == 1


def test_a_view_keeps_all_of_its_base():
    big = torch.zeros(1000)
    memory = saved_memory(leaf(3) * big[:3])
    (value,) = memory
    assert (value.shape, value.nbytes) == ((3,), 4000)
    assert saved_memory(leaf(3) * torch.from_numpy(np.zeros(500, np.float32)[:3])).total == 2000


def test_nothing_is_kept_after_the_backward():
    y = leaf(10).exp().sum()
    assert saved_memory(y).total == 40
    y.backward()
    memory = saved_memory(y)
    assert memory.total == len(memory) == 0
    assert "0 B" in str(memory)


def test_functions_kernels_and_packed_values():
    def forward(ctx, x):
        ctx.extra = torch.zeros(5)
        ctx.numbers = np.zeros(3)
        y = x * 1
        ctx.save_for_backward(y)
        return y

    x = leaf(8)
    y = function(torch, forward, lambda ctx, grad: grad, "Mine").apply(x)
    found = {value.name: value.nbytes for value in saved_memory(y)}
    assert found == {"saved_tensors[0]": 32, "ctx.extra": 20, "ctx.numbers": 24}
    square = torch.elementwise(lambda x: x * x)
    assert saved_memory(square(x * 1)).total == 32
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy().astype("f2"), lambda a: torch.from_numpy(a.astype("f4"))):
        z = x.exp()
    (value,) = saved_memory(z)
    assert (value.shape, value.dtype, value.nbytes) == ((8,), "float32", 16)


def test_what_hooks_keep():
    x = leaf(8)
    for pack, unpack, expected in (
        (lambda t: ("cpu", t.detach()), lambda p: p[1], 32),
        (lambda t: {"a": [t.numpy(force=True).tobytes()]}, lambda p: torch.frombuffer(bytearray(p["a"][0]), dtype=torch.float32), 32),
        (lambda t: 3, lambda p: torch.ones(8), 0),
    ):
        with torch.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = x.exp()
        assert saved_memory(y).total == expected
    with torch.autograd.graph.save_on_cpu():
        y = x.exp()
    assert saved_memory((y * y).sum()).total == 32
    with torch.autograd.graph.allow_mutation_on_saved_tensors():
        y = x.exp()
        assert saved_memory(y).total == 32
        y.mul_(2)
        assert saved_memory(y).total == 32


def test_by_line():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly():
            x = leaf(10)
            y = x.exp()  # first
            z = y.tanh() * 2  # second
    lines = saved_memory(z).by_line()
    assert list(lines.values()) == [40, 40]
    assert all(line.startswith("test_saved_memory.py:") and line.endswith(" in test_by_line") for line in lines)
    first, second = (int(line.split(":")[1].split()[0]) for line in sorted(lines))
    assert second == first + 1
    assert saved_memory(leaf(3).exp()).by_line() == {"": 12}


def test_it_prints_as_a_table():
    x = leaf(10)
    memory = saved_memory((x.exp() * x).sum(), {"<x>": x})
    text = str(memory)
    assert text.startswith("80 B kept alive by 3 saved values of 2 nodes, 40 B of them the leaves' own")
    assert "MulBackward0  self    [10]   float32  shared" in text
    assert "&lt;x&gt;" in memory._repr_html_()
    assert "<x>" not in memory._repr_html_()


def test_a_view_that_was_written_to():
    x = leaf(6)
    y = x * 1
    part = y[:2]
    part.mul_(part.detach() * 3)
    memory = saved_memory(y)
    assert memory.by_op().get("CopySlices", 0) > 0


def test_deep_graphs():
    y = leaf(2)
    for _ in range(20_000):
        y = y.exp() * 0.0
    memory = saved_memory(y)
    assert memory.total == 20_000 * 8
    assert "... 19,940 more values ..." in str(memory)


def test_what_is_refused():
    with pytest.raises(RuntimeError, match="saved_memory: the tensor does not require grad"):
        saved_memory(torch.ones(2))
    with pytest.raises(TypeError, match="saved_memory: expected a Tensor, a GradientEdge or a node"):
        saved_memory([3])
    with pytest.raises(RuntimeError, match="there are no outputs"):
        saved_memory([])
    with pytest.raises(TypeError, match="params should be"):
        saved_memory(leaf(1) * 2, torch.ones(2))
    with pytest.raises(TypeError, match="params should be pairs"):
        saved_memory(leaf(1) * 2, [leaf(1)])
    with pytest.raises(TypeError, match="'w' is no Tensor"):
        saved_memory(leaf(1) * 2, {"w": 3})
