"""What is not baked in: values that Python looks at, numbers from outside, hooks, modes."""

import subprocess
import sys
import threading

import numpy as np
import pytest

import jitgrad as torch
from jitgrad import nn, optim
from jitgrad.nn import functional as F
from tests.compiler.steps import Trainer, assert_same, classes, quietly

RATE = 2.0


@pytest.mark.parametrize("look", [
    lambda x: x.sum().item(), lambda x: float(x.sum()), lambda x: bool(x.sum() > 0), lambda x: x.numpy(), lambda x: x.tolist(), repr, str,
    lambda x: int(x.sum()), lambda x: x.sum() if x.sum() > 0 else x, lambda x: f"{x.sum()}", np.asarray, lambda x: 1.0 in x,
])  # fmt: skip
def test_looking_at_a_value_runs_eagerly(look):
    def step(x):
        look(x * 2)
        return x * 2

    compiled = torch.compile(step)
    with pytest.warns(RuntimeWarning, match=r"step runs eagerly: .*test_fallbacks\.py:\d+"):
        compiled(torch.ones(3))
    assert compiled(torch.zeros(3)).tolist() == [0.0, 0.0, 0.0]
    assert len(compiled.versions) == 0


def test_a_branch_on_a_value_is_taken_each_time():
    compiled = torch.compile(lambda x: x + 1 if x.sum() > 0 else x - 1)
    assert quietly(compiled, torch.ones(2)).tolist() == [2.0, 2.0]
    assert compiled(-torch.ones(2)).tolist() == [-2.0, -2.0]


def test_numbers_from_globals_closures_and_attributes_are_guarded():
    global RATE
    box, settings = [1.0, 2.0], {"scale": 3.0}

    class Config:
        shift = 0.0

    config = Config()
    config.factor = 5.0
    local = 7.0

    def helper(x):
        return x * RATE

    def step(x):
        return helper(x) + box[1] * settings["scale"] + config.factor * local

    compiled = torch.compile(step)
    x = torch.ones(2)

    def agree():
        np.testing.assert_allclose(compiled(x).numpy(), step(x).numpy())
        np.testing.assert_allclose(compiled(x).numpy(), step(x).numpy())

    agree()
    RATE = 3.0
    agree()
    box[1] = 20.0
    agree()
    settings["scale"] = 30.0
    agree()
    config.factor = 50.0
    agree()
    local = 70.0
    agree()
    assert compiled.history == []
    RATE = 2.0


def test_numbers_and_flags_passed_in_are_guarded():
    compiled = torch.compile(lambda x, factor, up=True: x * factor if up else x / factor)
    x = torch.ones(2)
    assert compiled(x, 2.0).tolist() == [2.0, 2.0]
    assert compiled(x, 4.0).tolist() == [4.0, 4.0]
    assert compiled(x, 4.0, up=False).tolist() == [0.25, 0.25]
    assert compiled(x, 2.0).tolist() == [2.0, 2.0]


def test_training_flag():
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    compiled = torch.compile(lambda x: model(x).detach())
    x = torch.randn(4, 3)
    compiled(x)
    model.eval()
    np.testing.assert_allclose(compiled(x).numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)
    model.train()
    compiled(x)
    model.eval()
    np.testing.assert_allclose(compiled(x).numpy(), model(x).detach().numpy(), rtol=1e-5, atol=1e-6)


def test_a_function_that_changes_python_state_runs_eagerly():
    seen = []

    class Counter:
        count = 0

    counter = Counter()
    counter.count = 0

    def step(x):
        counter.count += 1
        return x + counter.count

    compiled = torch.compile(step)
    assert [quietly(compiled, torch.zeros(1)).item() for _ in range(3)] == [1.0, 2.0, 3.0]
    assert "count" in compiled.history[0]
    del seen


def test_arrays_made_on_the_way_are_not_baked_in():
    source = np.ones(3, "f4")
    compiled = torch.compile(lambda x: x + torch.tensor(source))
    assert quietly(compiled, torch.zeros(3)).tolist() == [1.0, 1.0, 1.0]
    source[:] = 5
    assert compiled(torch.zeros(3)).tolist() == [5.0, 5.0, 5.0]


def test_random_numbers_go_on():
    torch.manual_seed(3)
    compiled = torch.compile(lambda x: F.dropout(x, 0.5))
    a = [compiled(torch.ones(20)).tolist() for _ in range(3)]
    assert compiled.history == []
    torch.manual_seed(3)
    b = [F.dropout(torch.ones(20), 0.5).tolist() for _ in range(3)]
    assert a == b
    assert a[0] != a[1]


def test_a_bad_target_raises_and_changes_nothing():
    compiled, eager = Trainer(lambda p: optim.Adam(p, lr=0.1)), Trainer(lambda p: optim.Adam(p, lr=0.1))
    step, (x, y) = torch.compile(compiled.step), classes()
    step(x, y), eager.step(x, y)
    bad = y.clone()
    bad[3] = 7
    for _ in range(2):
        with pytest.raises(IndexError, match="Target 7 is out of bounds"):
            step(x, bad)
        with pytest.raises(IndexError, match="Target 7 is out of bounds"):
            eager.step(x, bad)
    step(x, y), eager.step(x, y)
    assert_same(compiled.model, eager.model)


def test_every_target_ignored():
    compiled, eager = Trainer(), Trainer()
    step, (x, _) = torch.compile(compiled.step), classes()
    y = torch.tensor([-100] * 8)
    for _ in range(2):
        a, b = step(x, y), eager.step(x, y)
    assert np.isnan(a.item())
    assert np.isnan(b.item())
    assert_same(compiled.model, eager.model)


def test_nan_goes_through():
    compiled = torch.compile(lambda x: (torch.relu(x), x != x, torch.isnan(x), x.amax(), torch.clamp(x, 0, 1)))
    x = torch.tensor([1.0, float("nan"), -1.0])
    for _ in range(2):
        relu, differs, isnan, largest, clamped = compiled(x)
        assert (
            np.isnan(relu.numpy()).tolist()
            == differs.tolist()
            == isnan.tolist()
            == np.isnan(clamped.numpy()).tolist()
            == [False, True, False]
        )
        assert np.isnan(largest.item())
    assert compiled.history == []


def test_hooks_added_later_are_run():
    compiled = Trainer()
    step, (x, y) = torch.compile(compiled.step), classes()
    step(x, y), step(x, y)
    seen = []
    handle = compiled.model[0].register_forward_hook(lambda module, args, output: seen.append(1))
    quietly(step, x, y), quietly(step, x, y)
    assert len(seen) == 2
    handle.remove()
    weight = next(iter(compiled.model.parameters()))
    grads = []
    handle = weight.register_hook(lambda grad: grads.append(1))
    quietly(step, x, y), quietly(step, x, y)
    assert len(grads) == 2
    handle.remove()


def test_hooks_that_work_on_tensors_are_compiled():
    def make():
        trainer = Trainer()
        next(iter(trainer.model.parameters())).register_hook(lambda grad: grad * 2)
        return trainer

    compiled, eager = make(), make()
    step, (x, y) = torch.compile(compiled.step), classes()
    for _ in range(4):
        step(x, y), eager.step(x, y)
    assert_same(compiled.model, eager.model)


def test_another_parameter_in_the_place_of_one():
    compiled = Trainer()
    step, (x, y) = torch.compile(compiled.step), classes()
    step(x, y), step(x, y)
    compiled.model[0].weight = nn.Parameter(torch.zeros(16, 4))
    compiled.model[0].bias = nn.Parameter(torch.zeros(16))
    before = step(x, y).item()
    assert before == pytest.approx(F.cross_entropy(compiled.model(x), y).item(), rel=0.2)
    compiled.model[0].weight.data = torch.ones(16, 4)
    assert step(x, y).item() != before


def test_no_grad_is_respected():
    weight = torch.ones(3, requires_grad=True)
    compiled = torch.compile(lambda x: (x * weight).sum())
    with torch.no_grad():
        assert not quietly(compiled, torch.ones(3)).requires_grad
    assert quietly(compiled, torch.ones(3)).requires_grad


def test_in_place_writes_to_arguments_and_views():
    def step(x, y):
        x.mul_(2)
        x[1:] += y
        z = x.clone()
        z[0] = 7
        return z, x.sum()

    compiled = torch.compile(step)
    a, b = torch.ones(3), torch.ones(3)
    for _ in range(3):
        p, q = compiled(a, torch.ones(2)), step(b, torch.ones(2))
        assert a.tolist() == b.tolist()
        assert p[0].tolist() == q[0].tolist()
        assert p[1].item() == q[1].item()
    assert a._version == b._version
    assert compiled.history == []


def test_arguments_that_overlap_what_is_written():
    compiled = Trainer()
    step, (x, y) = torch.compile(compiled.step), classes()
    step(x, y)
    weight = next(iter(compiled.model.parameters()))
    assert np.isfinite(step(weight.detach()[:8], y).item())


def test_two_threads():
    compiled, (x, y) = Trainer(lambda p: optim.SGD(p, lr=1e-4), (4, 64, 3)), classes(64)
    step = torch.compile(compiled.step)
    step(x, y)
    failures = []

    def work():
        try:
            for _ in range(200):
                assert np.isfinite(step(x, y).item())
        except Exception as why:
            failures.append(why)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_versions_are_bounded():
    compiled = torch.compile(lambda x: x * 2, limit=2)
    for n in range(1, 6):
        assert compiled(torch.ones(n)).tolist() == [2.0] * n
    assert len(compiled.versions) == 2


def test_background():
    compiled = torch.compile(lambda x: x * 3 + 1, background=True)
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]
    compiled.pending.join()
    assert len(compiled.versions) == 1
    assert compiled(torch.ones(2)).tolist() == [4.0, 4.0]


def test_two_graphs_never_share_a_program():
    x, y = torch.tensor([[1.0, 2.0], [4.0, 8.0]]), torch.tensor([[3.0, 5.0], [7.0, 11.0]])
    pairs = [
        (lambda x, y: x - y, lambda x, y: y - x),
        (lambda x, y: x * 0.1, lambda x, y: x * 0.2),
        (lambda x, y: x.sum(0), lambda x, y: x.sum(1)),
        (lambda x, y: x @ y, lambda x, y: x @ y.t()),
    ]
    for first, second in pairs:
        for function in (first, second, first):
            np.testing.assert_allclose(torch.compile(function)(x, y).numpy(), function(x, y).numpy(), rtol=1e-6)
            compiled = torch.compile(function)
            compiled(x, y)
            np.testing.assert_allclose(compiled(x, y).numpy(), function(x, y).numpy(), rtol=1e-6)


def test_clearing_the_gradient_of_an_argument():
    def step(x):
        x.grad = None
        return x.detach() * 2

    compiled = torch.compile(step)
    for _ in range(3):
        x = torch.ones(2, requires_grad=True)
        x.sum().backward()
        compiled(x)
        assert x.grad is None
    assert compiled.history == []


def test_a_norm_and_its_spelled_out_form_stay_what_they_are():
    """At the origin the one has a gradient of zero, the other NaN, as in eager mode."""

    def step(x):
        return torch.autograd.grad(x.norm(), x)[0], torch.autograd.grad((x * x).sum().sqrt(), x)[0]

    compiled = torch.compile(step)
    for _ in range(2):
        norm, spelled = compiled(torch.zeros(3, requires_grad=True))
        assert norm.tolist() == [0.0, 0.0, 0.0]
        reference = step(torch.zeros(3, requires_grad=True))[1]
        np.testing.assert_array_equal(spelled.numpy(), reference.numpy())
    assert compiled.history == []


def test_gradient_clipping_is_compiled():
    def make():
        trainer = Trainer()

        def step(x, y):
            trainer.optimizer.zero_grad()
            loss = F.cross_entropy(trainer.model(x), y)
            loss.backward()
            nn.utils.clip_grad_norm_(trainer.model.parameters(), 0.1)
            trainer.optimizer.step()
            return loss

        return trainer, step

    (compiled, inner), (eager, step) = make(), make()
    fast, (x, y) = torch.compile(inner), classes()
    for _ in range(4):
        fast(x, y), step(x, y)
    assert fast.history == []
    for p, q in zip(compiled.model.parameters(), eager.model.parameters(), strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-6, atol=1e-7)


def test_a_second_process_finds_the_program(tmp_path):
    """Compiled once, loaded later: nothing new lies in the store, and nothing in it was written again."""
    code = ("import jitgrad as torch\n"
            "from tests.compiler.steps import Trainer, classes\n"
            "step, (x, y) = torch.compile(Trainer().step), classes()\n"
            "step(x, y); step(x, y); print(len(step.versions))")  # fmt: skip
    environment = {"JITGRAD_CACHE_DIR": str(tmp_path), "PYTHONPATH": "src", "PATH": ""}
    command = [sys.executable, "-c", code]
    stored = []
    for _ in range(2):
        done = subprocess.run(command, check=True, capture_output=True, env=environment, text=True)
        assert done.stdout.split() == ["1"]
        stored.append({path.name: path.stat().st_mtime_ns for path in tmp_path.rglob("*.nb[ic]")})
    assert any("step_step" in name for name in stored[0])
    assert stored[0] == stored[1]
