"""What becomes one loop, what is computed once, what is not computed, and what `source`, `graph` and `explain` tell about it."""

import re

import numpy as np

import jitgrad as torch
from jitgrad import optim
from jitgrad.nn import functional as F
from tests.compiler.steps import Trainer, classes


def program(function, *arguments):
    """The compiled function after two calls, whose second gives what eager mode gives."""
    compiled = torch.compile(function)
    compiled(*arguments)
    for a, b in zip(tensors(compiled(*arguments)), tensors(function(*arguments)), strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-6, atol=1e-6)
    assert compiled.history == []
    return compiled


def tensors(value):
    return value if isinstance(value, tuple) else (value,)


def groups(compiled):
    return len(re.findall(r"^    # \d+: ", compiled.source(), re.MULTILINE))


def loops(compiled):
    return len(re.findall(r"^ +for c in range", compiled.source(), re.MULTILINE))


def test_a_chain_is_one_loop():
    compiled = program(lambda x, y: ((x * 2 + y).tanh() * x).sigmoid(), torch.randn(8, 16), torch.randn(16))
    assert groups(compiled) == 1
    assert loops(compiled) == 1


def test_views_and_broadcasts_are_read_in_place():
    compiled = program(lambda x: (x.t() + x[:, :1]) * x[0], torch.randn(6, 6))
    assert loops(compiled) == 1
    assert "copy" not in compiled.graph()


def test_a_reduction_takes_what_it_sums():
    compiled = program(lambda x: (x.exp() * x).sum(1), torch.randn(8, 16))
    assert groups(compiled) == 1
    assert loops(compiled) == 1


def test_a_softmax_is_one_loop_over_rows():
    compiled = program(lambda x: x.softmax(1), torch.randn(8, 16))
    assert groups(compiled) == 1


def test_equal_subexpressions_are_computed_once():
    compiled = program(lambda x: (x.exp() + 1, x.exp() * 2, (x.exp() + 1).sqrt()), torch.randn(5, 8))
    assert compiled.source().count(" = exp(") == 1


def test_what_nobody_needs_is_not_computed():
    compiled = program(lambda x: (x.tanh(), x * 2)[1], torch.randn(64))
    assert "tanh" not in compiled.source()
    assert "tanh" not in compiled.graph()


def test_the_gradient_of_the_data_is_not_computed():
    trainer = Trainer(sizes=(4, 16, 3))
    compiled = torch.compile(trainer.step)
    x, y = classes()
    compiled(x, y)
    compiled(x, y)
    assert len(re.findall(r" @ ", compiled.graph())) == 5


def test_transposes_are_flags():
    x, w = torch.randn(700, 520), torch.randn(40, 520)  # too large for tiles
    compiled = program(lambda x, w: (x @ w.t(), x.t() @ x), x, w)
    assert re.search(r"gemm\(1, 0,", compiled.source())


def test_places_in_the_arena_are_given_again():
    def step(x):
        for _ in range(12):
            x = (x @ x) * 0.1
        return x

    compiled = program(step, torch.randn(32, 32))
    arena = int(re.search(r"(\d+) bytes of arena", compiled.explain()).group(1))
    assert arena <= 3 * 32 * 32 * 4


def test_source_graph_and_explain():
    trainer = Trainer(lambda p: optim.Adam(p, lr=0.1))
    step = torch.compile(trainer.step)
    x, y = classes()
    step(x, y), step(x, y), step(*classes(5))
    source, graph, explained = step.source(), step.graph(), step.explain()
    assert re.search(r"# \d+: .*relu.*\(test_fusion\.py:\d+\)|# \d+: .*relu.*\(steps\.py:\d+\)", source)
    assert "linear" in graph
    assert "update of" in graph
    for words in ("2 compiled version(s)", "floating-point operations", "captured: ", "float32[16, 4]", "guards: ", "bytes of arena",
                  "traced again: argument 0 is float32[5, 4], not float32[8, 4]"):  # fmt: skip
        assert words in explained
    compile(source, "program", "exec")


def test_why_there_is_another_version():
    box = [1.0]
    weight = torch.ones(3, requires_grad=True)

    def step(x, factor):
        return x * box[0] * factor + weight.detach()

    compiled = torch.compile(step, limit=20)
    x = torch.ones(3)
    compiled(x, 1.0)
    box[0] = 2.0
    compiled(x, 1.0)
    compiled(x, 3.0)
    compiled(x.double(), 3.0)
    compiled(torch.ones(3, requires_grad=True), 3.0)
    assert compiled.retraces[0] == "box changed"
    assert compiled.retraces[1] == "other arguments beside the tensors"
    assert "float64[3], not float32[3]" in compiled.retraces[2]


def test_sums_of_float32_are_as_good_as_eager_ones():
    """Lanes and blocks change the order of a sum, and bound its error."""
    rng = np.random.default_rng(0)
    x = torch.tensor(rng.standard_normal((7, 30_000)).astype("f4"))
    compiled = torch.compile(lambda x: (x.sum(1), x.sum(0), x.sum(), (x * x).mean()))
    for _ in range(2):
        found = compiled(x)
    wide = x.numpy().astype("f8")
    sizes = np.abs(wide)
    exact = (wide.sum(1), wide.sum(0), wide.sum(), (wide**2).mean())
    for a, b, size in zip(found, exact, (sizes.sum(1), sizes.sum(0), sizes.sum(), 1), strict=True):
        assert (np.abs(a.numpy() - b) <= 1e-6 * size).all()


def test_cross_entropy_is_one_group_forward():
    compiled = program(F.cross_entropy, torch.randn(16, 10), torch.randint(0, 10, (16,)))
    assert groups(compiled) <= 2
