"""The sixty-line engine and the real one run the same nodes in the same order and agree on every gradient."""

import importlib.util
import random
from pathlib import Path

import pytest

import jitgrad as torch

EXAMPLES = Path(__file__).parents[2] / "examples"


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


scratch = load("engine_from_scratch")
LEAVES = (0.5, -1.25, 2.0)


def random_program(seed, length=30):
    """A list of steps (operation, index, index), the indices counting leaves first, then results."""
    rng = random.Random(seed)
    return [
        (rng.choice(["add", "mul", "tanh"]), rng.randrange(len(LEAVES) + k), rng.randrange(len(LEAVES) + k))
        for k in range(length)
    ]


def execute(program, leaves):
    """All values of the program, the leaves first; the last is a sum of the last few, so much of the graph is used."""
    values = list(leaves)
    for operation, i, j in program:
        a, b = values[i], values[j]
        values.append(a.tanh() if operation == "tanh" else a + b if operation == "add" else a.tanh() * b)
    return [*values, values[-1] + values[-2] * values[-3]]


def ours(program):
    numbers = [scratch.Number(value) for value in LEAVES]
    steps = []
    result = execute(program, numbers)[-1]
    scratch.run(result.node, 1.0, trace=lambda name, grad: steps.append((name, grad)))
    return [n.grad for n in numbers], [step for step in steps if step[0] != "AccumulateGrad"]


def real(program):
    leaves = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in LEAVES]
    result = execute(program, leaves)[-1]
    steps = []
    for node in all_nodes(result.grad_fn):
        name = node.name().removesuffix("Backward0")
        node.register_prehook(lambda grads, name=name: steps.append((name, grads[0].item())))
    result.backward()
    return [None if leaf.grad is None else leaf.grad.item() for leaf in leaves], steps


def all_nodes(root):
    seen, todo = [], [root]
    while todo:
        node = todo.pop()
        if node not in seen and "AccumulateGrad" not in node.name():
            seen.append(node)
            todo += [edge for edge, _ in node.next_functions if edge is not None]
    return seen


@pytest.mark.parametrize("seed", range(25))
def test_same_gradients_and_same_order(seed):
    program = random_program(seed)
    grads, steps = ours(program)
    real_grads, real_steps = real(program)
    assert [name for name, _ in steps] == [name for name, _ in real_steps]
    assert [grad for _, grad in steps] == pytest.approx([grad for _, grad in real_steps], rel=1e-12, abs=1e-14)
    assert [g is None for g in grads] == [g is None for g in real_grads]
    assert [g or 0.0 for g in grads] == pytest.approx([g or 0.0 for g in real_grads], rel=1e-12, abs=1e-14)


def test_a_released_graph_refuses_a_second_run():
    w = scratch.Number(3.0)
    y = w * w
    y.backward()
    assert w.grad == 6.0
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()


def test_a_lattice_runs_in_linear_time():
    x = y = scratch.Number(1.0)
    for _ in range(200):
        y = y + y
    steps = []
    scratch.run(y.node, 1.0, trace=lambda name, grad: steps.append(name))
    assert len(steps) == 201
    assert x.grad == 2.0**200


def test_it_is_short():
    lines = (EXAMPLES / "engine_from_scratch.py").read_text().split('"""', 2)[2].splitlines()
    assert sum(bool(line.strip()) for line in lines) <= 65
