"""no_grad, enable_grad, set_grad_enabled: blocks, decorators, generators, coroutines, exceptions, threads."""

import asyncio
import threading

import pytest

import jitgrad
from tests.libraries import leaf


def test_a_block(lib):
    x = leaf(lib, 1.0)
    with lib.no_grad():
        assert not lib.is_grad_enabled()
        y = x * 2
        made = lib.ones(1, requires_grad=True)
    assert lib.is_grad_enabled()
    assert not y.requires_grad
    assert y.grad_fn is None
    assert y.is_leaf
    assert made.requires_grad


def test_nesting(lib):
    x = leaf(lib, 1.0)
    with lib.no_grad():
        with lib.enable_grad():
            assert (x * 2).requires_grad
            with lib.set_grad_enabled(False):
                assert not (x * 2).requires_grad
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
    assert (x * 2).requires_grad


@pytest.mark.parametrize("name", ["no_grad", "enable_grad"])
def test_decorators_with_and_without_parentheses(lib, name):
    mode = getattr(lib, name)

    @mode()
    def called():
        """Its text."""
        return lib.is_grad_enabled()

    @mode
    def bare():
        return lib.is_grad_enabled()

    with lib.set_grad_enabled(name == "no_grad"):
        assert called() is bare() is (name == "enable_grad")
    assert called.__name__ == "called"
    assert called.__doc__ == "Its text."


def test_set_grad_enabled_as_a_call_and_as_a_decorator(lib):
    lib.set_grad_enabled(False)
    try:
        assert not lib.is_grad_enabled()
    finally:
        lib.set_grad_enabled(True)

    @lib.set_grad_enabled(False)
    def quiet():
        return lib.is_grad_enabled()

    assert lib.is_grad_enabled()
    assert quiet() is False
    assert repr(lib.set_grad_enabled(True)).endswith("set_grad_enabled(mode=True)")


def test_an_exception_ends_the_block(lib):
    with pytest.raises(ValueError), lib.no_grad():
        raise ValueError
    assert lib.is_grad_enabled()

    @lib.no_grad()
    def fails():
        raise ValueError

    with pytest.raises(ValueError):
        fails()
    assert lib.is_grad_enabled()


def test_a_generator_has_the_mode_while_it_runs(lib):
    seen = []

    @lib.no_grad()
    def numbers():
        try:
            got = yield lib.is_grad_enabled()
            seen.append((got, lib.is_grad_enabled()))
            yield "second"
        except KeyError:
            seen.append(("thrown", lib.is_grad_enabled()))
            yield "third"
        finally:
            seen.append(("end", lib.is_grad_enabled()))
        return "result"

    steps = numbers()
    assert next(steps) is False
    assert lib.is_grad_enabled()
    assert steps.send("value") == "second"
    assert steps.throw(KeyError()) == "third"
    with pytest.raises(StopIteration) as end:
        next(steps)
    assert end.value.value == "result"
    assert seen == [("value", False), ("thrown", False), ("end", False)]


def test_closing_a_generator(lib):
    seen = []

    @lib.no_grad()
    def numbers():
        try:
            yield 1
        finally:
            seen.append(lib.is_grad_enabled())

    steps = numbers()
    next(steps)
    steps.close()
    assert seen == [False]
    assert lib.is_grad_enabled()


def test_a_coroutine_has_the_mode_while_it_runs():
    """Unlike torch's, whose decorated coroutines never have it."""

    @jitgrad.no_grad()
    async def inner():
        before = jitgrad.is_grad_enabled()
        await asyncio.sleep(0)
        return before, jitgrad.is_grad_enabled()

    async def other():
        states = []
        for _ in range(3):
            states.append(jitgrad.is_grad_enabled())
            await asyncio.sleep(0)
        return states

    async def main():
        return await asyncio.gather(inner(), other())

    assert asyncio.run(main()) == [(False, False), [True, True, True]]


def test_an_async_generator():
    @jitgrad.no_grad()
    async def numbers():
        yield jitgrad.is_grad_enabled()
        await asyncio.sleep(0)
        yield jitgrad.is_grad_enabled()

    async def main():
        return [(state, jitgrad.is_grad_enabled()) async for state in numbers()]

    assert asyncio.run(main()) == [(False, True), (False, True)]


def test_each_thread_has_its_own_mode(lib):
    seen = []
    with lib.no_grad():
        thread = threading.Thread(target=lambda: seen.append(lib.is_grad_enabled()))
        thread.start()
        thread.join()
        assert not lib.is_grad_enabled()
    assert seen == [True]


def test_a_class_is_decorated_with_a_warning(lib):
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @lib.no_grad()
        class Thing:
            def __init__(self):
                self.state = lib.is_grad_enabled()

    assert Thing().state is False


def test_multithreading_switch(lib):
    assert lib.autograd.is_multithreading_enabled()
    with lib.autograd.set_multithreading_enabled(False):
        assert not lib.autograd.is_multithreading_enabled()
    assert lib.autograd.is_multithreading_enabled()


@pytest.mark.parametrize("mode", [1, None, "on"])
def test_no_bool(lib, mode):
    with pytest.raises(TypeError, match=r"set_grad_enabled\(\): argument 'enabled' \(position 1\) must be bool, not"):
        lib.set_grad_enabled(mode)
    assert lib.is_grad_enabled()


def test_no_tensor(lib):
    with pytest.raises(TypeError, match=r"is_inference\(\): argument 'input' \(position 1\) must be Tensor, not int"):
        lib.is_inference(3)


def test_assert(lib):
    lib._assert(lib.tensor([True]), "holds")
    for false in (False, lib.tensor([False])):
        with pytest.raises(AssertionError, match="does not hold"):
            lib._assert(false, "does not hold")
