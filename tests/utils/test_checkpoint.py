"""Checkpoints: both variants, beside torch's."""

import contextlib
import gc
import warnings
import weakref

import numpy as np
import pytest

import jitgrad
from tests.libraries import function, leaf, lib

__all__ = ["lib"]
VARIANTS = pytest.mark.parametrize("reentrant", [True, False])


@pytest.fixture
def run(lib):
    """`checkpoint` of either package."""
    return pytest.importorskip(f"{lib.__name__}.utils.checkpoint").checkpoint


@pytest.fixture
def module(lib):
    return pytest.importorskip(f"{lib.__name__}.utils.checkpoint")


def counted(fn):
    """The function, and how often it ran, in `calls`."""

    def again(*args, **kwargs):
        again.calls += 1
        return fn(*args, **kwargs)

    again.calls = 0
    return again


# ---- gradients
@VARIANTS
def test_gradients_and_number_of_runs(lib, run, reentrant):
    x, w = leaf(lib, 1.0, 2.0), leaf(lib, 3.0, 4.0)
    fn = counted(lambda x, w: ((x * w).sin() * x).exp())
    y = run(fn, x, w, use_reentrant=reentrant)
    assert fn.calls == 1
    y.sum().backward()
    assert fn.calls == 2
    expected = lib.autograd.grad(fn(x, w).sum(), (x, w))
    assert x.grad.tolist() == pytest.approx(expected[0].tolist())
    assert w.grad.tolist() == pytest.approx(expected[1].tolist())


@VARIANTS
def test_several_outputs_and_other_arguments(lib, run, reentrant):
    x = leaf(lib, 1.0, 2.0)
    a, b = run(lambda x, n, none, ints: (x * n, (x * ints).exp()), x, 3, None, lib.tensor([1, 2]), use_reentrant=reentrant)
    (a * b).sum().backward()
    found = x.grad.clone()
    x.grad = None
    ((x * 3) * (x * lib.tensor([1, 2])).exp()).sum().backward()
    assert found.tolist() == pytest.approx(x.grad.tolist())


@VARIANTS
@pytest.mark.filterwarnings("ignore:None of the inputs")  # said of the inner one, whose forward isn't recorded at first
def test_nested(lib, run, reentrant):
    x = leaf(lib, 0.5)
    inner = counted(lambda x: x.sin().exp())
    outer = counted(lambda x: run(inner, x.cos(), use_reentrant=reentrant).tanh())
    run(outer, x, use_reentrant=reentrant).backward()
    assert outer.calls == 2
    assert inner.calls == 3
    found = x.grad.item()
    x.grad = None
    x.cos().sin().exp().tanh().backward()
    assert found == pytest.approx(x.grad.item())


def test_deep_nesting(lib, run):
    def deep(x, n, call):
        return x.sin() if n == 0 else call(deep, x.sin(), n - 1, call).cos()

    x, found = leaf(lib, 0.5), []
    for call in (lambda f, *args: f(*args), lambda f, *args: run(f, *args, use_reentrant=False)):
        found += lib.autograd.grad(deep(x, 5, call), x)
    assert found[0].item() == pytest.approx(found[1].item())


def test_keywords_closures_and_inputs_without_gradient(lib, run):
    w = leaf(lib, 2.0)
    y = run(lambda x, scale: (x * w * scale).exp(), lib.tensor([0.5]), scale=w, use_reentrant=False)
    y.backward()
    assert w.grad.item() == pytest.approx(2 * np.exp(2.0), rel=1e-5)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        run(lambda x, scale: x, w, scale=w, use_reentrant=True)


def test_second_derivative(lib, run):
    x = leaf(lib, 0.7)
    (first,) = lib.autograd.grad(run(lambda x: x.sin().exp(), x, use_reentrant=False), x, create_graph=True)
    (second,) = lib.autograd.grad(first, x)
    s, c = np.sin(0.7), np.cos(0.7)
    assert second.item() == pytest.approx(np.exp(s) * (c * c - s), rel=1e-5)


def test_retained_graph(lib, run):
    x = leaf(lib, 0.7)
    fn = counted(lambda x: x.sin().exp())
    y = run(fn, x, use_reentrant=False)
    y.backward(retain_graph=True)
    y.backward()
    assert fn.calls == 3
    assert x.grad.item() == pytest.approx(2 * np.exp(np.sin(0.7)) * np.cos(0.7), rel=1e-5)
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_backward_inside(lib, run):
    x = leaf(lib, 0.7)

    def fn(x):
        z = x.sin().cos()
        (g,) = lib.autograd.grad(z, x, retain_graph=True)
        return x.cos() * g * z

    for early in (True, False):
        x.grad = None
        run(fn, x, use_reentrant=False, early_stop=early).backward()
        found, x.grad = x.grad.item(), None
        fn(x).backward()
        assert found == pytest.approx(x.grad.item())


def product(lib, again=False):
    """x * w as a custom Function; `again`: its backward reads what is saved twice."""

    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x * w

    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        if again:
            x, w = ctx.saved_tensors
        return grad * w, grad * x

    return function(lib, forward, backward)


@pytest.mark.parametrize("last", [True, False])
def test_custom_function(lib, run, last):
    made = product(lib)
    x, w = leaf(lib, 2.0), leaf(lib, 3.0)
    fn = counted(lambda x, w: made.apply(x.exp(), w) if last else made.apply(x.exp(), w).sin())
    run(fn, x, w, use_reentrant=False).backward()
    assert fn.calls == 2
    e, outer = np.exp(2.0), 1 if last else np.cos(3 * np.exp(2.0))
    assert x.grad.item() == pytest.approx(outer * 3 * e, rel=1e-4)
    assert w.grad.item() == pytest.approx(outer * e, rel=1e-4)


def test_saved_tensors_are_handed_out_once(lib, run, module):
    made = product(lib, again=True)
    y = run(lambda x: made.apply(x.exp(), x), leaf(lib, 2.0), use_reentrant=False)
    with pytest.raises(module.CheckpointError, match="already unpacked once"):
        y.backward()


def test_saved_tensors_outside_of_a_backward(lib, run):
    y = run(lambda x: x.sin().exp(), leaf(lib, 2.0), use_reentrant=False)
    for _ in range(2):
        assert y.grad_fn._saved_result.tolist() == y.tolist()
    y.backward()


@VARIANTS
def test_without_recording(lib, run, reentrant):
    with lib.no_grad():
        assert not run(lambda x: x * 2, leaf(lib, 1.0), use_reentrant=reentrant).requires_grad


# ---- memory
def test_what_is_saved_is_let_go(lib, run):
    x, seen = leaf(lib, *[1.0] * 8), []

    def fn(x):
        y = x.exp()
        seen.append(weakref.ref(y))
        return (y * y).sum()

    y = run(fn, x, use_reentrant=False)
    gc.collect()
    assert seen[0]() is None
    y.backward()
    del y
    gc.collect()
    assert all(r() is None for r in seen)


# ---- random numbers
@VARIANTS
def test_dropout_has_the_same_mask(lib, run, reentrant):
    """The gradient is nonzero exactly where the output is, and the generator goes on as if nothing had been run again."""
    lib.manual_seed(3)
    x = lib.ones(64, requires_grad=True)
    y = run(lambda x: lib.nn.functional.dropout(x.exp(), 0.5), x, use_reentrant=reentrant)
    lib.rand(5)
    before = lib.get_rng_state()
    y.sum().backward()
    assert ((x.grad != 0) == (y != 0)).all()
    assert (lib.get_rng_state() == before).all()


@VARIANTS
def test_dropout_with_another_mask(lib, run, reentrant):
    lib.manual_seed(3)
    x = lib.ones(64, requires_grad=True)
    y = run(lambda x: lib.nn.functional.dropout(x.exp(), 0.5), x, use_reentrant=reentrant, preserve_rng_state=False, early_stop=False)
    lib.rand(5)
    before = lib.get_rng_state()
    y.sum().backward()
    assert not ((x.grad != 0) == (y != 0)).all()
    assert not (lib.get_rng_state() == before).all()


# ---- warnings and errors
def test_warnings(lib, run):
    with pytest.warns(UserWarning, match="the use_reentrant parameter should be passed explicitly"):
        run(lambda x: x * 2, leaf(lib, 1.0))
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        assert not run(lambda x: x * 2, lib.ones(1), use_reentrant=True).requires_grad
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(lambda x: x * 2, lib.ones(1), use_reentrant=False)


def test_reentrant_refuses(lib, run):
    x = leaf(lib, 1.0)
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\) or passing an `inputs`"):
        lib.autograd.grad(run(lambda x: x.exp(), x, use_reentrant=True), x)
    with pytest.raises(RuntimeError, match=r"incompatible with .grad\(\) or passing an `inputs`"):
        run(lambda x: x.exp(), x, use_reentrant=True).backward(inputs=[x])
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        run(lambda x: x.detach() * 2, x, use_reentrant=True).backward()
    for options in ({"debug": True}, {"context_fn": lambda: None}):
        with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
            run(lambda x: x, x, use_reentrant=True, **options)


def test_arguments_are_checked(lib, run):
    x = leaf(lib, 1.0)
    with pytest.raises(ValueError, match=r"determinism_check should be one of \['default', 'none'\], but got all"):
        run(lambda x: x, x, use_reentrant=False, determinism_check="all")
    with pytest.raises(ValueError, match="debug=True is incompatible"):
        run(lambda x: x, x, use_reentrant=False, debug=True, context_fn=lambda: None)


def changing(*steps):
    """A function that does another step every time."""
    todo = iter(steps)

    def step(x):
        return next(todo)(x)

    return step


MISMATCHES = {
    "metadata": (lambda x: x.exp().sum(), lambda x: x[:1].exp().sum(), True,
                 "have different metadata than during the forward pass.\ntensor at position 0:\nsaved metadata: {'shape': torch.Size([2])"),
    "fewer": (lambda x: x.exp().exp(), lambda x: x.exp(), True,
              "A different number of tensors was saved during the original forward and recomputation.\n"
              "Number of tensors saved during forward: 2\nNumber of tensors saved during recomputation: 1.\n"),
    "more": (lambda x: x.exp(), lambda x: x.exp().exp(), False, "trying to save more tensors during recomputation than"),
}  # fmt: skip


@pytest.mark.parametrize("name", MISMATCHES)
@pytest.mark.parametrize("debug", [False, True])
def test_another_second_run(lib, run, module, name, debug):
    first, second, early, message = MISMATCHES[name]
    if debug and lib.__name__ == "torch":
        pytest.skip("its logs take seconds")
    y = run(changing(first, second), leaf(lib, 1.0, 2.0), use_reentrant=False, early_stop=early, debug=debug)
    with pytest.raises(module.CheckpointError) as caught:
        y.sum().backward()
    assert message in str(caught.value)
    assert not debug or ("test_checkpoint.py" in str(caught.value) and "because you passed `debug=True`" in str(caught.value))


def test_metadata_unchecked(lib, run):
    x = leaf(lib, 1.0, 1.0)
    run(changing(lambda x: x.exp(), lambda x: x[:1].exp()), x, use_reentrant=False, determinism_check="none").sum().backward()
    assert x.grad.tolist() == pytest.approx([np.e, np.e])


@VARIANTS
def test_input_written_to(lib, run, reentrant):
    x = leaf(lib, 1.0)
    h = x * 2
    y = run(lambda h: h.exp(), h, use_reentrant=reentrant)
    with lib.no_grad():
        h.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_error_in_the_second_run(lib, run):
    def fail(x):
        raise KeyError("second")

    x = leaf(lib, 1.0)
    y = run(changing(lambda x: x.exp(), fail, lambda x: x.exp()), x, use_reentrant=False)
    with pytest.raises(KeyError, match="second"):
        y.backward(retain_graph=True)
    assert (x * x).requires_grad
    y.backward()
    assert x.grad.item() == pytest.approx(np.e)


# ---- contexts, early stop
def test_contexts(lib, run):
    log = []

    @contextlib.contextmanager
    def noting(tag):
        log.append(tag)
        try:
            yield
        finally:
            log.append(f"end of {tag}")

    y = run(lambda x: x.exp(), leaf(lib, 1.0), use_reentrant=False, context_fn=lambda: (noting("first"), noting("second")))
    assert log == ["first", "end of first"]
    y.backward()
    assert log[2:] == ["second", "end of second"]


def test_context_that_hides_an_error(lib, run):
    with pytest.raises(RuntimeError, match="suppressed an exception raised during the checkpointed forward"):
        run(lambda x: 1 / 0, leaf(lib, 1.0), use_reentrant=False,
            context_fn=lambda: (contextlib.suppress(ZeroDivisionError), contextlib.nullcontext()))  # fmt: skip


@pytest.mark.parametrize(("argument", "forced", "ends"), [(True, None, 1), (False, None, 2), (True, False, 2), (False, True, 1)])
def test_early_stop(lib, run, module, argument, forced, ends):
    log = []

    def fn(x):
        y = x.exp()
        log.append("end")
        return y + 1

    forcing = contextlib.nullcontext() if forced is None else module.set_checkpoint_early_stop(forced)
    with forcing:
        y = run(fn, leaf(lib, 1.0), use_reentrant=False, early_stop=argument)
    y.backward()
    assert len(log) == ends


# ---- sequences
@VARIANTS
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_sequential(lib, module, reentrant, segments):
    steps = [counted(fn) for fn in (lambda x: x.sin(), lambda x: x.exp(), lambda x: x * x, lambda x: x.tanh(), lambda x: x.cos())]
    x = leaf(lib, 0.3, 0.4)
    module.checkpoint_sequential(steps, segments, x, use_reentrant=reentrant).sum().backward()
    size = len(steps) // segments
    inside = size * (segments - 1)
    assert [fn.calls for fn in steps] == [2] * inside + [1] * (len(steps) - inside)
    found, x.grad = x.grad.tolist(), None
    y = x
    for fn in steps:
        y = fn(y)
    y.sum().backward()
    assert found == pytest.approx(x.grad.tolist())


def test_sequential_of_modules(lib, module):
    model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))
    x = lib.ones(2, 3, requires_grad=True)
    module.checkpoint_sequential(model, 2, x, use_reentrant=False).sum().backward()
    found, x.grad = x.grad.tolist(), None
    model(x).sum().backward()
    assert np.allclose(found, x.grad.tolist())
    with pytest.warns(UserWarning, match="checkpoint_sequential: the use_reentrant parameter should be passed explicitly"):
        module.checkpoint_sequential(model, 2, x)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: debug"):
        module.checkpoint_sequential(model, 2, x, use_reentrant=False, debug=True)


def test_a_module_may_come_twice():
    """torch drops the second of two equal modules here, and so changes the result."""
    act, x = jitgrad.nn.Sigmoid(), jitgrad.tensor([0.5])
    model = jitgrad.nn.Sequential(act, act, act)
    found = jitgrad.utils.checkpoint.checkpoint_sequential(model, 2, x, use_reentrant=False)
    assert found.tolist() == model(x).tolist()


def test_devices_of_arguments(lib, module):
    """Asked where there is the CPU alone."""
    assert module.get_device_states(lib.ones(1), 3) == ([], [])
    assert module.set_device_states([], []) is None
    assert module.DefaultDeviceType.get_device_type() in ("cpu", "cuda")
    before = module.DefaultDeviceType.get_device_type()
    module.DefaultDeviceType.set_device_type("another")
    assert module._infer_device_type(lib.ones(1)) == "another"
    module.DefaultDeviceType.set_device_type(before)
