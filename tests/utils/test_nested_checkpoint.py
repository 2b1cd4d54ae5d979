"""Checkpoints in checkpoints, in derivatives and in hooks; what programs do with them, in both packages."""

import gc
import weakref

import pytest

import jitgrad
from tests.libraries import function, leaf, lib

__all__ = ["lib"]
EARLY = pytest.mark.parametrize("early_stop", [True, False])
VARIANTS = pytest.mark.parametrize("reentrant", [True, False])


@pytest.fixture
def module(lib):
    return pytest.importorskip(f"{lib.__name__}.utils.checkpoint")


@pytest.fixture
def run(module):
    return module.checkpoint


class Wrappers:
    """Functions of a function: its derivative, its sum, the same in a checkpoint."""

    def __init__(self, lib, run):
        self.lib, self.run = lib, run

    def grad(self, fn):
        def derivative(x):
            with self.lib.enable_grad():
                return self.lib.autograd.grad(fn(x), x, create_graph=True)[0]

        return derivative

    def sum(self, fn):
        return lambda x: fn(x).sum()

    def c(self, fn):
        return lambda x: self.run(fn, x, use_reentrant=False)


def graph_dies(out):
    """Whether all nodes below die with the result, without the cycle collector."""

    class Mark:
        pass

    todo, seen, marks = [out.grad_fn], set(), []
    while todo:
        node = todo.pop()
        if node in seen:
            continue
        seen.add(node)
        node.metadata["mark"] = mark = Mark()
        marks.append(weakref.ref(mark))
        todo += [below for below, _ in node.next_functions if below is not None]
    del todo, seen, node, mark, out
    return marks


def plain(x):
    return x.sin().exp().sin()


def with_backwards_inside(lib):
    def fn(x):
        lib.autograd.grad(plain(x), x)
        lib.autograd.grad(plain(x), x)
        return x.sin()

    return fn


CASES = [
    (lambda w, f: f, lambda w, f: [w.c(f), w.c(w.c(f))]),
    (lambda w, f: w.grad(f), lambda w, f: [w.grad(w.c(f)), w.grad(w.c(w.c(f)))]),
    (lambda w, f: w.grad(w.grad(f)),
     lambda w, f: [w.grad(w.c(w.grad(f))), w.c(w.grad(w.grad(w.c(f)))), w.grad(w.c(w.grad(w.c(f))))]),
    (lambda w, f: w.grad(w.grad(w.grad(f))), lambda w, f: [w.grad(w.c(w.grad(w.c(w.grad(w.c(f)))))), w.grad(w.c(w.grad(w.grad(w.c(f)))))]),
]  # fmt: skip


@EARLY
@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("case", range(len(CASES)))
def test_derivatives_of_checkpoints(lib, module, run, early_stop, inside, case):
    w, f = Wrappers(lib, run), with_backwards_inside(lib) if inside else plain
    expected, actual = CASES[case]
    x = lib.tensor(0.7, dtype=lib.float64, requires_grad=True)
    with module.set_checkpoint_early_stop(early_stop):
        for fn in actual(w, f):
            assert fn(x).item() == pytest.approx(expected(w, f)(x).item())
            gc.disable()
            try:
                marks = graph_dies(fn(lib.tensor(0.7, requires_grad=True)))
                # torch's AccumulateGrad and ours live as long as the leaf, which is gone too
                assert not any(mark() for mark in marks)
            finally:
                gc.enable()


@EARLY
def test_two_children(lib, module, run, early_stop):
    w = Wrappers(lib, run)

    def g(x):
        return x.cos().sin().exp()

    both = w.c(lambda x: w.c(g)(w.c(plain)(x)))
    x = lib.tensor([[0.1, 0.2], [0.3, 0.4]], dtype=lib.float64, requires_grad=True)
    with module.set_checkpoint_early_stop(early_stop):
        expected = w.grad(w.sum(w.grad(w.sum(lambda x: g(plain(x))))))(x)
        for fn in (w.grad(w.sum(w.grad(w.sum(both)))), w.grad(w.sum(w.c(w.grad(w.sum(both)))))):
            assert lib.allclose(fn(x), expected)


@EARLY
def test_other_values_and_keywords(lib, module, run, early_stop):
    def fn(k, a, f, *, b=None):
        return {"y": f(k * a * b.exp()).exp()}, 1, "text"

    a, b = leaf(lib, 2.0), leaf(lib, 0.5)
    with module.set_checkpoint_early_stop(early_stop):
        out, one, text = run(fn, 3, a, lib.sin, b=b, use_reentrant=False)
    assert (one, text) == (1, "text")
    found = lib.autograd.grad(out["y"], (a, b))
    expected = lib.autograd.grad(fn(3, a, lib.sin, b=b)[0]["y"], (a, b))
    assert [g.item() for g in found] == pytest.approx([g.item() for g in expected])


@EARLY
def test_the_graph_is_the_first_one(lib, module, run, early_stop):
    a, calls = leaf(lib, 1.0), []
    with module.set_checkpoint_early_stop(early_stop):
        out = run(lambda a: a.sin().cos().sin(), a, use_reentrant=False)
    out.grad_fn.next_functions[0][0].register_hook(lambda *_: calls.append(1))
    out.backward()
    assert calls == [1]


@EARLY
def test_a_backward_in_a_hook(lib, module, run, early_stop):
    def fn(a):
        x = a.sin().cos()
        return x, x.sin()

    a = leaf(lib, 1.0)
    with module.set_checkpoint_early_stop(early_stop):
        x, out = run(fn, a, use_reentrant=False)
    out.grad_fn.register_hook(lambda *_: x.backward(retain_graph=True))
    out.backward(retain_graph=True)
    plain = leaf(lib, 1.0)
    sum(fn(plain)).backward()
    assert a.grad.item() == pytest.approx(plain.grad.item())


@pytest.mark.parametrize(
    ("blocks", "argument", "runs"),
    [
        ((), None, 1), ((), False, 2), ((), True, 1), ((False,), None, 2), ((True,), None, 1), ((False, True), False, 1), ((False,), True, 2),
        ((True,), False, 1),
    ],
)  # fmt: skip
def test_early_stop_is_set_by_the_block_of_the_forward(lib, module, run, blocks, argument, runs):
    calls = []

    def fn(x):
        y = x.sin().cos()
        calls.append(1)  # behind the last op that saves
        return y.clone()

    a, named = leaf(lib, 1.0), {} if argument is None else {"early_stop": argument}
    entered = [module.set_checkpoint_early_stop(enable) for enable in blocks]
    for context in entered:
        context.__enter__()
    out = run(fn, a, use_reentrant=False, **named)
    for context in reversed(entered):
        context.__exit__(None, None, None)
    out.backward()
    assert len(calls) == runs


@EARLY
def test_nothing_runs_again_where_nothing_was_saved(lib, module, run, early_stop):
    calls = []
    with module.set_checkpoint_early_stop(early_stop):
        out = run(lambda x: calls.append(1) or x.clone(), leaf(lib, 1.0), use_reentrant=False)
    out.backward()
    assert calls == [1]


@pytest.mark.parametrize("grouped", [True, False])
def test_groups(lib, module, run, grouped):
    x, calls = lib.ones(3, requires_grad=True), []

    def fn(x):
        calls.append(1)
        y = x.sin().cos()
        return y, y.sin().cos()

    y, z = run(fn, x, use_reentrant=False)
    group = module.GraphExecGroup()
    if grouped:
        group.__enter__()
        with pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"):
            module.GraphExecGroup().__enter__()
    (grad,) = lib.autograd.grad(z, y, lib.ones(3))
    lib.autograd.grad(y, x, grad)
    if grouped:
        group.__exit__(None, None, None)
    assert len(calls) == (2 if grouped else 3)
    out = run(lambda x: x.sin().cos(), x, use_reentrant=False)
    with module.GraphExecGroup():
        out.sum().backward(retain_graph=True)
        with pytest.raises(RuntimeError, match=r"already unpacked once. Performing two backward calls that overlap"):
            out.sum().backward()


def two_runs(first, second):
    runs = [first, second]
    return lambda x: runs.pop(0)(x)  # noqa: PLW0108  (a run each)


def three(x):
    return x.sin().exp().sin()


def two(x):
    return x.sin().exp()


@EARLY
def test_fewer_or_more_saved_tensors(lib, module, run, early_stop):
    with module.set_checkpoint_early_stop(early_stop):
        with pytest.raises(RuntimeError, match="A different number of tensors was saved"):
            run(two_runs(three, two), leaf(lib, 1.0), use_reentrant=False).backward()
        out = run(two_runs(two, three), leaf(lib, 1.0), use_reentrant=False)
    if early_stop:
        out.backward()
    else:
        with pytest.raises(module.CheckpointError, match="trying to save more tensors during recomputation than during the original forward"):
            out.backward()


@pytest.mark.parametrize("block", [True, False, None])
@pytest.mark.parametrize("argument", [True, False])
def test_words_for_other_shapes(lib, module, run, block, argument):
    if lib.__name__ == "torch" and (argument if block is None else block):
        pytest.skip("its logs take seconds")
    fn = two_runs(two, lambda x: x.sin() * lib.tensor([1.0, 2.0]))
    if argument if block is None else block:
        words = "You are seeing this error because you passed `debug=True` to checkpoint"
    else:
        words = "Recomputed values for the following tensors have different metadata"
    with module.set_checkpoint_debug_enabled(block):
        out = run(fn, leaf(lib, 1.0), use_reentrant=False, debug=argument)
    with pytest.raises(RuntimeError, match=words):
        out.backward()


def test_what_an_error_tells_in_debug_mode():
    run = jitgrad.utils.checkpoint.checkpoint
    x = leaf(jitgrad, 1.0)
    out = run(two_runs(two, lambda x: x.cos() * jitgrad.tensor([1.0, 2.0])), x, use_reentrant=False, debug=True)
    with pytest.raises(jitgrad.utils.checkpoint.CheckpointError) as caught:
        out.backward()
    first, _, again = str(caught.value).partition("Operations executed during recomputation:")
    assert "Operations executed during the original forward:\n\n  aten.sin.default(float32[1]) -> float32[1]\n  aten.exp.default(" in first
    assert "aten.cos.default(float32[1]) -> float32[1]" in again
    assert first.count("test_nested_checkpoint.py") >= 4  # where each of them was saved
    assert "saved metadata: {'shape': torch.Size([1])" in again
    assert jitgrad._engine.modes.LOCAL.interceptor is None


def test_saved_tensors_seen_from_outside(lib, run):
    calls, a = [], leaf(lib, 1.0, 2.0)

    def fn(a):
        calls.append(1)
        (a * a) * a
        return a.exp()

    out = run(fn, a, use_reentrant=False)
    for count in (2, 3):
        assert out.grad_fn._saved_result.tolist() == pytest.approx(a.exp().tolist())
        assert len(calls) == count
    out.sum().backward()
    assert len(calls) == 4
    with pytest.raises(RuntimeError, match="or directly access saved tensors after they have already been freed"):
        _ = out.grad_fn._saved_result


def test_identity_of_saved_inputs(lib, run):
    seen = []

    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * 1

    made = function(lib, forward, lambda ctx, grad: (seen.extend(ctx.saved_tensors) or grad, None))
    a, b = leaf(lib, 1.0), lib.tensor(1.0)
    run(made.apply, a, b, use_reentrant=False).backward()
    assert seen[0] is b


def test_a_hook_on_a_leaf_runs_once(lib, run):
    w, calls = leaf(lib, 2.0), []
    w.register_hook(lambda grad: calls.append(grad.item()))
    run(lambda h: w * h, w * leaf(lib, 3.0), use_reentrant=False).backward()
    assert calls == [12.0]


@VARIANTS
def test_a_result_without_gradient(lib, run, reentrant):
    layer = lib.nn.Linear(2, 2)

    def fn(x):
        with lib.no_grad():
            return layer(x)

    a = lib.ones(2, 2, requires_grad=True)
    for _ in range(2):
        out = run(fn, a, use_reentrant=reentrant)
        out += a
        if reentrant:
            with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
                out.sum().backward()
        else:
            out.sum().backward()


def test_reentrant_values_and_errors(lib, run):
    def fn(a, b, scale, c):
        y, z = a + b * c, a * b + c
        y *= scale
        z *= scale
        return scale, y, None, True, z, "bar", a

    a, b, c = leaf(lib, 2.0), leaf(lib, 3.0), lib.tensor([5.0])
    out = run(fn, a, b, 7, c, use_reentrant=True)
    assert (out[0], *out[2:4], out[5]) == (7, None, True, "bar")
    assert [out[1].item(), out[4].item(), out[6].item()] == [7 * 17, 7 * 11, 2]
    out[1].backward(retain_graph=True)
    out[4].backward(retain_graph=True)
    out[6].backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        out[6].backward()
    assert (a.grad.item(), b.grad.item()) == (7 + 21 + 1, 35 + 14)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        assert run(fn, 2.0, 3.0, 7, 5.0, use_reentrant=True) == (7, 119.0, None, True, 77.0, "bar", 2.0)
    with pytest.raises(RuntimeError, match=r"none of output has requires_grad=True, this checkpoint\(\) is not necessary"):
        run(lambda x, y: x, c, a, use_reentrant=True).sum().backward()


def test_reentrant_goes_on_after_a_refusal(lib, run):
    a = leaf(lib, 1.0)
    with pytest.raises(RuntimeError, match=r"torch\.utils\.checkpoint is incompatible with \.grad\(\)"):
        lib.autograd.grad(run(lib.exp, a, use_reentrant=True), a)
    run(lib.exp, a, use_reentrant=True).backward()
    assert a.grad.item() == pytest.approx(2.718281, abs=1e-5)


def test_sequential_takes_one_input(lib, module):
    for args in ((), (leaf(lib, 1.0), leaf(lib, 1.0), True, True)):
        with pytest.raises(TypeError):
            module.checkpoint_sequential(lib.nn.Sequential(lib.nn.ReLU()), 1, *args, use_reentrant=False)
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        module.checkpoint_sequential([lib.nn.ReLU()] * 3, 3, leaf(lib, 1.0))


@VARIANTS
def test_sequential_runs_all_but_the_last_part_again(lib, module, reentrant):
    calls = []
    parts = [lambda x, k=k: calls.append(k) or x * lib.tensor(2.0) for k in range(6)]
    out = module.checkpoint_sequential(parts, 2, leaf(lib, 1.0), use_reentrant=reentrant)
    assert calls == [0, 1, 2, 3, 4, 5]
    out.backward()
    assert calls[6:] == [0, 1, 2]


def test_depth(lib, run):
    """10,000 reentrant checkpoints around one another: neither the stack overflows nor the interpreter's limit is met."""
    if lib.__name__ == "torch":
        pytest.skip("its forward recurses in Python")
    x = leaf(lib, 1.0)

    # A chain of functions that each have a checkpoint of the one before in them: their backwards are nested.
    class Deep(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x, depth):
            ctx.depth = depth
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            if ctx.depth:
                with lib.enable_grad():
                    y = lib.ones(1, requires_grad=True)
                    run(lambda y: Deep.apply(y, ctx.depth - 1), y, use_reentrant=True).backward()
                    assert y.grad.item() == 1
            return grad, None

    Deep.apply(x, 10_000).backward()
    assert x.grad.item() == 1
