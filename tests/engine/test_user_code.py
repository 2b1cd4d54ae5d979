"""What a backward is to the code of the user that it calls: callbacks, modes, several roots."""

import threading

import pytest

from tests.libraries import function, leaf


def queue(lib, callback):
    lib.autograd.Variable._execution_engine.queue_callback(callback)


def calling(lib, callback):
    """A Function whose backward queues a callback."""

    def backward(ctx, grad):
        queue(lib, callback)
        return grad

    return function(lib, lambda ctx, x: x * 1, backward).apply


@pytest.mark.parametrize("hooked", [False, True])
def test_a_callback_runs_at_the_end(lib, hooked):
    """In the accelerated run (False) and in the full one."""
    x, log = leaf(lib, 1.0), []
    y = calling(lib, lambda: log.append((x.grad.item(), lib.is_grad_enabled())))(x)
    if hooked:
        y.register_hook(lambda g: None)
    (y * 3).sum().backward()
    assert log == [(3.0, False)]
    assert lib.is_grad_enabled()


def test_a_callback_may_queue_another(lib):
    x, log = leaf(lib, 1.0), []

    def first():
        log.append("first")
        queue(lib, lambda: log.append("second"))

    calling(lib, first)(x).sum().backward()
    assert log == ["first", "second"]


@pytest.mark.parametrize("hooked", [False, True])
def test_a_callback_belongs_to_the_innermost_backward(lib, hooked):
    x, log = leaf(lib, 1.0), []
    inner = calling(lib, lambda: log.append("inner"))

    def backward(ctx, grad):
        queue(lib, lambda: log.append("outer"))
        with lib.enable_grad():
            inner(leaf(lib, 1.0)).sum().backward()
        log.append("between")
        return grad

    y = function(lib, lambda ctx, x: x * 1, backward).apply(x)
    if hooked:
        y.register_hook(lambda g: None)
    y.sum().backward()
    assert log == ["inner", "between", "outer"]


def test_a_callback_waits_for_what_the_full_run_goes_on_with(lib):
    """The accelerated run gives up at the Function without a gradient, below the one that queued the callback."""
    x, log = leaf(lib, 1.0), []
    nothing = function(lib, lambda ctx, x: x * 1, lambda ctx, grad: None).apply
    calling(lib, lambda: log.append(x.grad))(nothing(x * 2)).sum().backward()
    assert log == [None]


def test_a_callback_fails(lib):
    x = leaf(lib, 1.0)

    def fail():
        raise ValueError("at the end")

    with pytest.raises(ValueError, match="at the end"):
        calling(lib, fail)(x).sum().backward()
    assert x.grad.item() == 1.0
    assert lib.is_grad_enabled()
    (x * 2).sum().backward()
    assert x.grad.item() == 3.0


def test_callbacks_outside_a_backward(lib):
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue(lib, print)
    seen = []

    def refused():
        with pytest.raises(RuntimeError, match="Final callbacks"):
            queue(lib, print)
        seen.append(True)

    def backward(ctx, grad):
        other = threading.Thread(target=refused)
        other.start()
        other.join()
        return grad

    function(lib, lambda ctx, x: x * 1, backward).apply(leaf(lib, 1.0)).sum().backward()
    assert seen == [True]


def test_a_node_called_by_itself_is_no_backward(lib):
    log = []

    def unpack(x):
        log.append(x)
        queue(lib, print)
        return x

    x = leaf(lib, 1.0)
    with lib.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = x.exp()
    with pytest.raises(RuntimeError, match="Final callbacks"):
        y.grad_fn(lib.ones(1))
    assert len(log) == 1
    assert lib.is_grad_enabled()


def test_arguments_of_a_node(lib):
    y = leaf(lib, 2.0) ** 2
    for grads, text in (((), "expected 1 arguments, got 0 instead"), ((lib.ones(1),) * 2, "expected 1 arguments, got 2"), ((3.0,), "argument 0")):
        with pytest.raises(TypeError, match=text):
            y.grad_fn(*grads)
    assert y.grad_fn(lib.ones(1)).tolist() == [4.0]


@pytest.mark.parametrize("hooked", [False, True])
def test_hooks_that_are_set_in_a_backward_and_left(lib, hooked):
    hooks = lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)

    def backward(ctx, grad):
        hooks.__enter__()
        return grad

    x = leaf(lib, 1.0)
    y = function(lib, lambda ctx, x: x * 1, backward).apply(x)
    if hooked:
        y.register_hook(lambda g: None)
    y.sum().backward()
    z = x.exp()
    z.grad_fn._raw_saved_result.register_hooks(lambda x: x, lambda x: x)  # refused if there were hooks


def test_hooks_end_once(lib):
    hooks = lib.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    with pytest.raises(RuntimeError):
        hooks.__exit__()
    x = leaf(lib, 1.0)
    with hooks:
        x.exp().sum().backward()
    assert x.grad is not None


def test_several_roots(lib):
    x, seed = leaf(lib, 1.0, 2.0), lib.tensor([10.0, 100.0])
    y = x * 2
    z = y * y
    lib.autograd.backward([y, z, y], [seed, lib.ones(2), seed])
    assert x.grad.tolist() == [20 + 8 + 20, 200 + 16 + 200]
    assert seed.tolist() == [10.0, 100.0]
    with pytest.raises(RuntimeError, match="second time"):
        lib.autograd.backward([y, z], [seed, seed])


def test_several_roots_some_with_hooks(lib):
    x, log = leaf(lib, 1.0), []
    y, z = x * 2, x * 3
    z.register_hook(lambda g: log.append(g.item()) or g * 10)
    lib.autograd.backward([y, z], [lib.ones(1), lib.ones(1)])
    assert (log, x.grad.item()) == ([1.0], 32.0)


def test_unpacking_runs_in_the_mode_of_the_backward(lib):
    x, log = leaf(lib, 3.0), []

    def unpack(x):
        log.append(lib.is_grad_enabled())
        return x

    with lib.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = (x * x).exp()
    y.sum().backward()
    assert log == [False, False, False]
    assert lib.is_grad_enabled()


def test_an_unpacking_that_fails_leaves_the_thread_as_it_was(lib):
    def fail(x):
        raise KeyError("gone")

    x = leaf(lib, 3.0)
    with lib.autograd.graph.saved_tensors_hooks(lambda x: x, fail):
        y = x.exp()
    for _ in range(2):
        with pytest.raises(KeyError, match="gone"):
            y.backward()
    assert lib.is_grad_enabled()
    x.exp().backward()
    assert x.grad is not None


def test_an_unpacking_may_run_a_backward(lib):
    x = leaf(lib, 3.0)

    def unpack(value):
        with lib.enable_grad():
            (x * 10).sum().backward()
        return value

    with lib.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        y = x.exp()
    y.sum().backward()
    assert x.grad.item() == pytest.approx(10 + y.item())
