"""L-BFGS: its steps, evaluations and state beside torch's; the recursion beside the matrix it stands for; the line search by itself."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import jitgrad
from jitgrad._core.meta import meta_of
from jitgrad._core.settings import settings
from jitgrad._kernels.quasi_newton import two_loops
from jitgrad.optim._line_search import DECREASE, FLATTEN, Point, cubic_minimum, strong_wolfe
from tests.libraries import lib

__all__ = ["lib"]

OPTIONS = {
    "plain": {"lr": 0.1},
    "plain, short memory": {"lr": 0.1, "history_size": 3, "max_iter": 7},
    "plain, one iteration": {"lr": 0.1, "max_iter": 1},
    "plain, few evaluations": {"lr": 0.05, "max_eval": 4},
    "plain, loose": {"lr": 0.1, "tolerance_grad": 0.5, "tolerance_change": 1e-2},
    "search": {"line_search_fn": "strong_wolfe"},
    "search, short memory": {"line_search_fn": "strong_wolfe", "history_size": 2, "max_iter": 6},
    "search from afar": {"line_search_fn": "strong_wolfe", "lr": 25.0, "max_iter": 12, "max_eval": 60},
    "search from near": {"line_search_fn": "strong_wolfe", "lr": 1e-3, "max_iter": 8},
    "search, one iteration": {"line_search_fn": "strong_wolfe", "max_iter": 1},
    "search, few evaluations": {"line_search_fn": "strong_wolfe", "max_eval": 3, "lr": 9.0},
    "search, many": {"line_search_fn": "strong_wolfe", "max_iter": 60, "tolerance_grad": 1e-4},
}


def rosenbrock(lib, p):
    return ((1 - p[:, :-1]) ** 2 + 20 * (p[:, 1:] - p[:, :-1] ** 2) ** 2).sum()


def waves(lib, p):
    return (p * 3).sin().sum() + (p * p * p * p).sum() * 0.1


def problem(lib, options, function=rosenbrock, dtype="float64", turned=False):
    """A matrix, a vector and a parameter that has no gradient; the optimizer, its closure and what that has seen."""
    rng = np.random.default_rng(3)
    start = lib.tensor(rng.uniform(-1.5, 1.5, (3, 4)).astype(dtype))
    p = lib.nn.Parameter(start.t() if turned else start)
    q = lib.nn.Parameter(lib.tensor(np.array([0.5, -1.0], dtype)))
    idle = lib.nn.Parameter(lib.ones(2, dtype=getattr(lib, dtype)))
    optimizer = lib.optim.LBFGS([p, idle, q], **options)
    seen = []

    def closure():
        optimizer.zero_grad()
        loss = function(lib, p) + ((q - 1) ** 2).sum()
        loss.backward()
        seen.append(loss.item())
        return loss

    return [p, idle, q], optimizer, closure, seen


def numbers(value):
    """A state as lists of numbers."""
    if isinstance(value, dict):
        return {name: numbers(one) for name, one in value.items()}
    if isinstance(value, list):
        return [numbers(one) for one in value]
    return np.asarray(value.tolist()) if hasattr(value, "tolist") else value


def assert_alike(have, want, rtol):
    if isinstance(want, list):
        assert len(have) == len(want)
        for one, other in zip(have, want, strict=True):
            assert_alike(one, other, rtol)
    elif want is None:
        assert have is None
    else:
        size = float(np.abs(want).max())
        np.testing.assert_allclose(have, want, rtol=rtol, atol=rtol * size)


@pytest.mark.parametrize("name", OPTIONS)
@pytest.mark.parametrize("function", [rosenbrock, waves], ids=lambda function: function.__name__)
def test_steps_evaluations_and_state_are_those_of_torch(name, function):
    torch = pytest.importorskip("torch")
    (ours, mine, near, seen), (theirs, other, far, wanted) = (problem(x, OPTIONS[name], function) for x in (jitgrad, torch))
    for _ in range(3):
        assert mine.step(near).item() == pytest.approx(other.step(far).item(), rel=1e-6, abs=1e-9)
        assert seen == pytest.approx(wanted, rel=1e-6, abs=1e-9)  # the closure was called at the same points
        for p, q in zip(ours, theirs, strict=True):
            assert_alike(numbers(p), numbers(q), 1e-6)
        state, expected = numbers(mine.state_dict()["state"]), numbers(other.state_dict()["state"])
        assert list(state) == list(expected) == [0]
        assert list(state[0]) == list(expected[0])
        for key in expected[0].keys() - {"al"}:  # products that are zero but for rounding
            assert_alike(state[0][key], expected[0][key], 1e-4)
    assert mine.state_dict()["param_groups"] == other.state_dict()["param_groups"]
    assert repr(mine) == repr(other)


@pytest.mark.parametrize("name", ["plain", "search"])
def test_steps_in_single_precision(name):
    torch = pytest.importorskip("torch")
    (ours, mine, near, _), (theirs, other, far, _) = (problem(x, OPTIONS[name] | {"max_iter": 6}, waves, "float32") for x in (jitgrad, torch))
    for _ in range(2):
        assert mine.step(near).item() == pytest.approx(other.step(far).item(), rel=1e-4)
    for p, q in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(p.tolist(), q.tolist(), rtol=2e-3, atol=2e-3)
    state, expected = mine.state[ours[0]], other.state[theirs[0]]
    for key in ("d", "old_dirs", "old_stps", "ro", "H_diag", "al"):
        value, want = (x[key][0] if isinstance(x[key], list) else x[key] for x in (state, expected))
        assert value.shape == want.shape
        assert str(value.dtype).split(".")[1] == str(want.dtype).split(".")[1] == "float32"


def of(lib, value):
    """A state with tensors of another library."""
    if isinstance(value, dict):
        return {name: of(lib, one) for name, one in value.items()}
    if isinstance(value, list):
        return [of(lib, one) for one in value]
    return lib.tensor(np.array(value.detach().numpy())) if hasattr(value, "detach") else value


@pytest.mark.parametrize("name", ["plain", "plain, short memory", "search, short memory"])
@pytest.mark.parametrize("back", [False, True], ids=["torch to jitgrad", "jitgrad to torch"])
def test_a_state_goes_over(name, back):
    torch = pytest.importorskip("torch")
    source, target = (jitgrad, torch) if back else (torch, jitgrad)
    given, first, closure, _ = problem(source, OPTIONS[name])
    taken, second, anew, _ = problem(target, OPTIONS[name])
    first.step(closure)
    first.step(closure)
    with target.no_grad():
        for p, q in zip(taken, given, strict=True):
            p.copy_(of(target, q))
    second.load_state_dict(of(target, first.state_dict()))
    for _ in range(2):
        assert second.step(anew).item() == pytest.approx(first.step(closure).item(), rel=1e-6)
    for p, q in zip(taken, given, strict=True):
        assert_alike(numbers(p), numbers(q), 1e-5)


@pytest.mark.parametrize("how", ["state_dict", "pickle", "copy"])
def test_going_on_from_a_saved_state(lib, how):
    options = OPTIONS["search, short memory"]
    given, first, closure, _ = problem(lib, options)
    first.step(closure)
    first.step(closure)
    taken, second, anew, _ = problem(lib, options)
    with lib.no_grad():
        for p, q in zip(taken, given, strict=True):
            p.copy_(q)
    if how == "state_dict":
        second.load_state_dict(copy.deepcopy(first.state_dict()))
    else:
        other = pickle.loads(pickle.dumps(first)) if how == "pickle" else copy.deepcopy(first)
        second.load_state_dict(other.state_dict())
    for _ in range(2):
        assert second.step(anew).item() == pytest.approx(first.step(closure).item(), rel=1e-9)


def test_what_is_loaded_counts_also_after_steps(lib):
    """An optimizer that has made steps takes the pairs of the state that it loads."""
    _, first, closure, _ = problem(lib, OPTIONS["plain"])
    first.step(closure)
    kept = copy.deepcopy(first.state_dict())
    values = [p.detach().clone() for p in first.param_groups[0]["params"]]
    expected = [first.step(closure).item() for _ in range(2)]
    first.load_state_dict(kept)
    with lib.no_grad():
        for p, value in zip(first.param_groups[0]["params"], values, strict=True):
            p.copy_(value)
    assert [first.step(closure).item() for _ in range(2)] == expected


def test_it_minimizes(lib):
    (p, idle, q), optimizer, closure, seen = problem(lib, {"line_search_fn": "strong_wolfe", "max_iter": 300, "max_eval": 400})
    assert optimizer.step(closure).item() == seen[0]
    assert q.tolist() == pytest.approx([1, 1], abs=1e-5)
    assert idle.tolist() == [1, 1]
    assert seen[-1] < 1e-3 * seen[0]
    assert optimizer.state[p]["func_evals"] == len(seen)


@pytest.mark.parametrize("name", ["plain", "search"])
def test_parameters_of_any_strides(name):
    runs = [problem(jitgrad, OPTIONS[name], lambda _, p: rosenbrock(jitgrad, p if p.shape[0] == 3 else p.t()), turned=x) for x in (False, True)]
    for _ in range(2):
        assert len({round(optimizer.step(closure).item(), 9) for _, optimizer, closure, _ in runs}) == 1
    np.testing.assert_allclose(runs[0][0][0].tolist(), runs[1][0][0].t().tolist(), rtol=1e-9)
    assert not runs[1][0][0].is_contiguous()


def test_nothing_to_do(lib):
    w = lib.zeros(2, requires_grad=True)
    optimizer = lib.optim.LBFGS([w])
    assert optimizer.step(lambda: 2.5) == 2.5  # no gradient at all
    assert optimizer.state[w] == {"func_evals": 1, "n_iter": 0}
    w.grad = lib.ones(2)
    optimizer.param_groups[0]["max_iter"] = 0
    optimizer.step(lambda: 2.5)
    assert optimizer.state[w]["func_evals"] == 2
    assert optimizer.state[w]["d"] is None
    optimizer.param_groups[0]["max_iter"] = 1
    optimizer.step(lambda: 2.5)
    assert w.tolist() == [-0.5, -0.5]


def test_the_loss_that_is_not_a_number(lib):
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.LBFGS([w], max_iter=4, line_search_fn="strong_wolfe")

    def closure():
        optimizer.zero_grad()
        loss = (w * float("nan")).sum()
        loss.backward()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert optimizer.step(closure).isnan()
    assert w.isnan().all()
    assert optimizer.state[w]["func_evals"] == 6


def test_no_memory():
    """Steps along the gradient, scaled by the curvature in the last one; torch raises IndexError."""
    w = jitgrad.tensor([1.0, -2.0], dtype=jitgrad.float64, requires_grad=True)
    optimizer = jitgrad.optim.LBFGS([w], lr=0.5, history_size=0, max_iter=2, max_eval=9)

    def closure():
        optimizer.zero_grad()
        loss = (w * w).sum() * 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert optimizer.state[w]["old_dirs"] == []
    first = 1 - 0.5 / 12 * 4  # the gradient is 4 and -8 there
    assert w.tolist() == pytest.approx([first * 0.5, first * -1.0])  # the scale is 1/4, the rate half of it


def test_a_loss_that_is_not_a_number_where_its_gradient_is_one():
    """The search ends at such a point when it is flat enough; torch raises IndexError."""
    w = jitgrad.tensor([3.0], requires_grad=True)
    optimizer = jitgrad.optim.LBFGS([w], max_iter=1, line_search_fn="strong_wolfe")

    def closure():
        w.grad = (w.detach() - 1) / 2
        return float("nan")

    optimizer.step(closure)
    assert w.item() == 2.0


def test_gradients_near_the_largest_number(lib):
    w = lib.ones(2, requires_grad=True)
    optimizer = lib.optim.LBFGS([w])

    def closure():
        w.grad = lib.full((2,), 3e38) if not optimizer.state[w]["n_iter"] else lib.full((2,), -3e38)
        return w.grad[0] / 4

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            optimizer.step(closure)
    assert optimizer.state[w]["n_iter"] >= 2


def test_options_and_what_they_refuse(lib):
    w = lib.ones(2, requires_grad=True)
    for options, words in (({"lr": -1}, "Invalid learning rate: -1"), ({"lr": lib.ones(2)}, "Tensor lr must be 1-element")):
        with pytest.raises(ValueError, match=words):
            lib.optim.LBFGS([w], **options)
    with pytest.raises(ValueError, match=r"LBFGS doesn't support per-parameter options \(parameter groups\)"):
        lib.optim.LBFGS([{"params": [w]}, {"params": [lib.ones(1)]}])
    with pytest.raises(ValueError, match="optimizer got an empty parameter list"):
        lib.optim.LBFGS([])
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'closure'"):
        lib.optim.LBFGS([w]).step()
    optimizer = lib.optim.LBFGS([w], lr=lib.tensor(0.25), max_iter=8)
    assert optimizer.param_groups[0]["max_eval"] == 10
    w.grad = lib.ones(2)
    optimizer.param_groups[0]["line_search_fn"] = "weak"
    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(lambda: 1.0)
    optimizer.add_param_group({"params": [lib.ones(1)]})
    with pytest.raises(AssertionError, match="Expected exactly one param_group, but got 2"):
        optimizer.step(lambda: 1.0)


@pytest.mark.skipif(not settings.jit, reason="nothing is compiled")
def test_a_compiled_step_refuses_it_by_name():
    _, optimizer, closure, _ = problem(jitgrad, OPTIONS["search"])
    _, eager, anew, _ = problem(jitgrad, OPTIONS["search"])
    step = jitgrad.compile(lambda: optimizer.step(closure))
    with pytest.warns(RuntimeWarning, match="LBFGS has its own update"):
        first = step()
    assert first.item() == eager.step(anew).item()
    assert step().item() == pytest.approx(eager.step(anew).item())


def test_a_compiled_closure():
    w = jitgrad.tensor([1.0, 2.0], requires_grad=True)
    optimizer = jitgrad.optim.LBFGS([w], line_search_fn="strong_wolfe")

    @jitgrad.compile
    def closure():
        optimizer.zero_grad()
        loss = ((w - 3) ** 4).sum() + (w * w).sum()
        loss.backward()
        return loss

    before = optimizer.step(closure).item()
    assert optimizer.step(closure).item() < before
    assert closure.history == []


def test_hooks_run_around_the_step_and_writes_are_counted(lib):
    (p, *_), optimizer, closure, _ = problem(lib, {"max_iter": 1, "lr": 0.1})
    log = []
    optimizer.register_step_pre_hook(lambda *_: log.append("before"))
    optimizer.register_step_post_hook(lambda *_: log.append("after"))
    version = p._version
    optimizer.step(closure)
    assert log == ["before", "after"]
    assert p._version == version + 1


# ---------------------------------------------------------------- the recursion
@pytest.mark.parametrize("first", [0, 2, 4])
@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-10), (np.float32, 1e-3)])
def test_the_recursion_is_a_product_with_the_matrix(first, dtype, rtol):
    """H from the pairs by the formula that defines it (Nocedal and Wright, equation 7.16)."""
    rng = np.random.default_rng(first)
    rows, count, n, scale = 5, 4, 7, 0.3
    spread = rng.standard_normal((n, n))
    hessian = spread @ spread.T + np.eye(n)
    steps = rng.standard_normal((rows, n))
    changes = steps @ hessian
    inverses = 1 / (steps * changes).sum(1)
    inverse = scale * np.eye(n)
    for k in range(count):
        row = (first + k) % rows
        project = np.eye(n) - inverses[row] * np.outer(changes[row], steps[row])
        inverse = project.T @ inverse @ project + inverses[row] * np.outer(steps[row], steps[row])
    vector = rng.standard_normal(n)
    arrays = [array.astype(dtype) for array in (changes, steps, inverses, np.zeros(rows), vector)]
    entry = meta_of(arrays[-1]).k[two_loops.index]
    entry(*arrays[:4], first, count, scale, arrays[4])
    np.testing.assert_allclose(arrays[4], inverse @ vector, rtol=rtol, atol=rtol)
    last = (first + count - 1) % rows
    np.testing.assert_allclose(arrays[3][count - 1], inverses[last] * steps[last] @ vector, rtol=rtol)
    entry(*arrays[:4], first, 0, 2.0, arrays[4])
    np.testing.assert_allclose(arrays[4], 2 * (inverse @ vector), rtol=rtol, atol=rtol)


# ---------------------------------------------------------------- the line search
CURVES = {
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "quartic": (lambda t: (t - 2) ** 4 - t, lambda t: 4 * (t - 2) ** 3 - 1),
    "waves": (lambda t: -np.sin(3 * t) + 0.1 * t * t, lambda t: -3 * np.cos(3 * t) + 0.2 * t),
    "flat at its end": (lambda t: np.exp(-t), lambda t: -np.exp(-t)),
    "a kink": (lambda t: abs(t - 0.3) + 0.01 * t * t, lambda t: np.sign(t - 0.3) + 0.02 * t),
}


@pytest.mark.parametrize("name", CURVES)
@pytest.mark.parametrize("first", [1e-3, 0.1, 1.0, 30.0])
def test_the_search_ends_at_a_good_point(name, first):
    value, slope = CURVES[name]
    tried = []

    def at(step):
        tried.append(step)
        return Point(step, value(step), slope(step), None)

    start = Point(0.0, value(0.0), slope(0.0), None)
    found, calls = strong_wolfe(at, start, first, 1.0, 1e-9, 60)
    assert calls == len(tried)
    assert found.step in tried
    assert found.value <= start.value + DECREASE * found.step * start.slope
    assert name == "a kink" or abs(found.slope) <= -FLATTEN * start.slope


def test_the_search_ends_by_its_number_of_trials():
    calls = []

    def at(step):
        calls.append(step)
        return Point(step, -step, -1.0, None)

    start = Point(0.0, 0.0, -1.0, None)
    assert strong_wolfe(at, start, 1.0, 1.0, 1e-9, 3)[0].step == 1000.0  # a straight line downwards: ten times as far each time
    assert calls == [1.0, 10.0, 100.0, 1000.0]
    assert strong_wolfe(at, start, 1.0, 1.0, 1e-9, 0)[1] == 1
    assert strong_wolfe(at, start, 1.0, 1.0, 1e-9, -2)[0].step == 1.0


@pytest.mark.parametrize(("low", "high", "expected"), [(0.0, 3.0, 1.0), (1.5, 3.0, 1.5), (0.0, 0.5, 0.5)])
def test_the_minimum_of_a_cubic(low, high, expected):
    one, other = Point(0.0, 1.0, -2.0, None), Point(3.0, 4.0, 4.0, None)  # (t - 1)^2
    assert cubic_minimum(one, other, low, high) == cubic_minimum(other, one, low, high) == pytest.approx(expected)


def test_a_cubic_without_minimum():
    falling = Point(0.0, 0.0, -1.0, None)
    assert cubic_minimum(falling, falling, 0.0, 4.0) == 2.0
    assert cubic_minimum(Point(0.0, 0.0, -1.0, None), Point(1.0, -1.0, -1.0, None), 2.0, 10.0) == 10.0
    assert cubic_minimum(Point(0.0, 0.0, 1.0, None), Point(1.0, 1.0, 1.0, None), 2.0, 10.0) == 2.0
    assert cubic_minimum(Point(0.0, 0.0, 0.0, None), Point(1.0, 0.0, 0.0, None), 2.0, 10.0) == 6.0
    assert cubic_minimum(Point(0.0, 0.0, 1.0, None), Point(1.0, 0.5, 0.5, None), 2.0, 10.0) == 6.0
