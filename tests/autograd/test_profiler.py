"""`autograd.profiler`: which ops and nodes ran in a block.

All but the last tests hold for torch, too; they don't run with it, whose profiler now and then ends a process that numba is in.
"""

import json
import threading

import pytest


@pytest.fixture
def lib():
    """The package under test."""
    return pytest.importorskip("jitgrad")


def names(profile):
    return [event.name for event in profile.function_events]


def test_ops_and_nodes_are_named(lib):
    profiler = lib.autograd.profiler
    x = lib.ones(2, 3, requires_grad=True)
    with profiler.profile() as prof:
        assert lib.autograd._profiler_enabled()
        loss = (x * 2).exp().sum()
        loss.backward()
    assert not lib.autograd._profiler_enabled()
    found = names(prof)
    forward = ["aten::mul", "aten::exp", "aten::sum"]
    nodes = ["SumBackward0", "ExpBackward0", "MulBackward0", "torch::autograd::AccumulateGrad"]
    engine = [f"autograd::engine::evaluate_function: {node}" for node in nodes]
    places = [found.index(name) for name in forward + nodes]
    assert places == sorted(places)
    assert [name for name in found if name in engine] == engine
    lib.ones(2) * 2
    assert names(prof) == found


def test_sequence_numbers_join_an_op_and_its_node(lib):
    x = lib.ones(3, requires_grad=True)
    with lib.autograd.profiler.profile() as prof:
        (x.exp() + x).sum().backward()
    events = {event.name: event for event in prof.function_events if event.name != "aten::add" or event.cpu_parent is None}
    for op, node in (("aten::exp", "ExpBackward0"), ("aten::sum", "SumBackward0")):
        assert events[op].sequence_nr == events[node].sequence_nr >= 0
        assert events[f"autograd::engine::evaluate_function: {node}"].sequence_nr == events[node].sequence_nr


def test_nesting_and_times(lib):
    profiler = lib.autograd.profiler
    with profiler.profile() as prof, profiler.record_function("outside"):
        lib.ones(2).exp()
        with profiler.record_function("inside"):
            lib.ones(2).sin()
    outside, inside = (next(event for event in prof.function_events if event.name == name) for name in ("outside", "inside"))
    assert inside.cpu_parent is outside
    assert inside in outside.cpu_children
    assert any(child.name == "aten::exp" for child in outside.cpu_children)
    assert any(child.name == "aten::sin" for child in inside.cpu_children)
    assert outside.time_range.start <= inside.time_range.start <= inside.time_range.end <= outside.time_range.end
    assert outside.cpu_time_total >= inside.cpu_time_total > 0
    assert outside.self_cpu_time_total == pytest.approx(outside.cpu_time_total - sum(child.cpu_time_total for child in outside.cpu_children))


def test_sums_by_name(lib):
    x = lib.ones(4)
    with lib.autograd.profiler.profile(record_shapes=True) as prof:
        for _ in range(3):
            x.exp()
        lib.ones(2, 2).exp()
    sums = {row.key: row for row in prof.key_averages()}
    assert sums["aten::exp"].count == 4
    assert sums["aten::exp"].cpu_time_total == pytest.approx(sum(e.cpu_time_total for e in prof.function_events if e.name == "aten::exp"))
    assert sums["aten::exp"].cpu_time == pytest.approx(sums["aten::exp"].cpu_time_total / 4)
    by_shape = {str(row.input_shapes): row.count for row in prof.key_averages(group_by_input_shape=True) if row.key == "aten::exp"}
    assert by_shape == {"[[4]]": 3, "[[2, 2]]": 1}
    assert prof.total_average().key == "Total"
    assert prof.self_cpu_time_total > 0
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=10)
    assert "aten::exp" in table
    for title in ("Name", "Self CPU %", "CPU total", "# of Calls", "Self CPU time total:"):
        assert title in table
    assert "aten::exp" in str(prof)


def test_events_added_by_hand(lib):
    util = lib.autograd.profiler_util
    total = util.FunctionEventAvg()
    total.add(util.FunctionEvent(id=0, name="made", thread=0, start_us=10, end_us=15))
    total.add(util.FunctionEvent(id=1, name="made", thread=0, start_us=20, end_us=30))
    assert (total.key, total.count, total.cpu_time_total, total.cpu_time) == ("made", 2, 15, 7.5)
    total.add(total)
    assert (total.count, total.cpu_time_total, total.device_time_total) == (4, 30, 0)


def test_off_and_misused(lib):
    profiler = lib.autograd.profiler
    with profiler.profile(enabled=False) as prof:
        assert prof is None
        assert not lib.autograd._profiler_enabled()
    with profiler.record_function("nobody listens"):
        pass

    @profiler.record_function("decorated")
    def double(x):
        return x + x

    with profiler.profile() as prof:
        double(lib.ones(1))
        with pytest.raises(RuntimeError, match="not reentrant"), prof:
            pass
    assert "decorated" in names(prof)


def test_a_trace_for_the_browser(lib, tmp_path):
    with lib.autograd.profiler.profile() as prof:
        lib.ones(2).cos()
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert any(event.get("name") == "aten::cos" for event in events)


def test_errors_threads_and_other_modes(lib):
    profiler = lib.autograd.profiler
    seen = []
    with profiler.profile() as prof:
        with pytest.raises(RuntimeError):
            lib.ones(2) + lib.ones(3)
        thread = threading.Thread(target=lambda: seen.append(lib.autograd._profiler_enabled()))
        thread.start()
        thread.join()
        with lib.no_grad(), profiler.profile() as inner:
            lib.ones(2).tanh()
    assert seen == [False]
    assert names(inner) == ["aten::tanh"]
    assert "aten::tanh" in names(prof)
    assert all(event.cpu_parent is None for event in prof.function_events)
    with pytest.raises(RuntimeError, match="didn't finish"):
        profiler.profile().function_events
    x = lib.ones(2, requires_grad=True)
    with profiler.profile() as prof:
        lib.utils.checkpoint.checkpoint(lambda t: t.exp() * 2, x, use_reentrant=False).sum().backward()
    assert names(prof).count("aten::exp") == 2
    assert x.grad.tolist() == pytest.approx([2 * 2.718281828] * 2)


# ---------------------------------------------------------------- under the names of today
def test_events_of_a_block(lib):
    profiler = lib.profiler
    with profiler.profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as prof:
        with profiler.record_function("mine"):
            lib.ones(3).exp()
        lib.ones(3).exp()
    found = [event.name for event in prof.events()]
    assert (found.count("aten::exp"), found.count("mine")) == (2, 1)
    assert {row.key: row.count for row in prof.key_averages()}["aten::exp"] == 2
    assert "Self CPU time total" in prof.key_averages().table(sort_by="cpu_time_total", row_limit=3)
    assert profiler.ProfilerActivity.CPU in profiler.supported_activities()


@pytest.mark.parametrize("repeat", [1, 2])
def test_steps_by_a_schedule(lib, repeat):
    profiler = lib.profiler
    saved = []
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=repeat)
    with profiler.profile(schedule=plan, on_trace_ready=lambda prof: saved.append({row.key: row.count for row in prof.key_averages()})) as prof:
        for k in range(9):
            lib.ones(2).exp() if k % 4 == 2 else lib.ones(2).sin()
            prof.step()
    assert len(saved) == repeat
    for sums in saved:
        assert (sums["aten::exp"], sums["aten::sin"], sums["ProfilerStep*"]) == (1, 1, 2)


def test_what_a_schedule_says(lib):
    profiler = lib.profiler
    plan = profiler.schedule(wait=1, warmup=1, active=2, repeat=2, skip_first=1)
    said = [plan(step).name for step in range(11)]
    assert said == ["NONE", *["NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE"] * 2, "NONE", "NONE"]


def test_it_ends_what_it_began(lib):
    saved = []
    with lib.profiler.profile(on_trace_ready=saved.append) as prof:
        prof.step()
        lib.ones(2).cos()
    assert saved == [prof]
    assert not lib.autograd._profiler_enabled()
    with pytest.raises(AssertionError, match="Profiler must be initialized"):
        lib.profiler.profile().events()
