"""Hooks on saved tensors: when they run, on what, what is refused."""

import pytest

from tests.libraries import function, leaf


def tracing(lib, log):
    def pack(x):
        log.append(("pack", x.tolist(), lib.is_grad_enabled()))
        return x

    def unpack(x):
        log.append(("unpack", x.tolist(), lib.is_grad_enabled()))
        return x

    return lib.autograd.graph.saved_tensors_hooks(pack, unpack)


def test_when_they_run(lib):
    a, b, log = leaf(lib, 1.0), lib.tensor([2.0]), []
    with tracing(lib, log):
        y = a * b
        a + b  # saves nothing
        z = y.exp()
    z.tolist()
    assert log == [("pack", [2.0], False), ("pack", z.tolist(), False)]
    log.clear()
    z.backward()
    assert log == [("unpack", z.tolist(), False), ("unpack", [2.0], False)]
    assert a.grad.tolist() == [2 * z.item()]
    with pytest.raises(RuntimeError, match="second time"):
        z.backward()


def test_order_and_identity(lib):
    a, b, seen = leaf(lib, 1.0), leaf(lib, 2.0), []
    with lib.autograd.graph.saved_tensors_hooks(lambda x: seen.append((x is a, x is b)) or x, lambda x: x):
        a * b
    assert seen == [(False, True), (True, False)]


def test_values_may_be_kept_anywhere(lib):
    a, kept = leaf(lib, 1.0, 2.0), {}

    def pack(x):
        kept[len(kept)] = x.tolist()
        return len(kept) - 1

    with lib.autograd.graph.saved_tensors_hooks(pack, lambda key: lib.tensor(kept[key])):
        y = (a * a * a).sum()
    y.backward()
    assert a.grad.tolist() == [3.0, 12.0]


def test_second_derivatives_find_their_way(lib):
    a = leaf(lib, 2.0)
    with lib.autograd.graph.saved_tensors_hooks(lambda x: x.detach(), lambda x: x):
        y = a * a * a
    (first,) = lib.autograd.grad(y, a, create_graph=True)
    (second,) = lib.autograd.grad(first, a)
    assert (first.item(), second.item()) == (12.0, 12.0)


def test_the_innermost_pair_counts(lib):
    a, log = leaf(lib, 1.0), []
    hooks = lib.autograd.graph.saved_tensors_hooks
    with hooks(lambda x: log.append("outer") or x, lambda x: x):
        with hooks(lambda x: log.append("inner") or x, lambda x: x):
            a.exp()
        a.exp()
    a.exp()
    assert log == ["inner", "outer"]


def test_functions(lib):
    log = []

    def forward(ctx, x):
        ctx.save_for_backward(x, None)
        return x * 2

    def backward(ctx, grad):
        x, nothing = ctx.saved_tensors
        assert nothing is None
        return grad * x

    made = function(lib, forward, backward)
    a = leaf(lib, 3.0)
    with tracing(lib, log):
        y = made.apply(a)
    y.backward()
    assert log == [("pack", [3.0], False), ("unpack", [3.0], False)]
    assert a.grad.tolist() == [3.0]


REFUSED = {
    "unpack gives no tensor": (lambda x: 3, lambda x: x, TypeError, "Output of saved tensor unpack_hook expected to be a Tensor but got result of"),
    "unpack gives another shape": (lambda x: x, lambda x: x[:2], RuntimeError, r"The size of tensor a \(3\) must match the size of tensor b \(2\)"),
    "pack raises": (lambda x: 1 / 0, lambda x: x, ZeroDivisionError, "division"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(lib, case):
    pack, unpack, error, message = REFUSED[case]
    a = leaf(lib, 1.0, 2.0, 3.0)
    with pytest.raises(error, match=message):
        with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
            y = a.exp()
        y.sum().backward()
    assert a.exp().requires_grad


def test_a_pack_hook_must_not_write(lib):
    def pack(x):
        with lib.no_grad():
            x.add_(1)
        return x

    hooks = lib.autograd.graph.saved_tensors_hooks(pack, lambda x: x)
    with pytest.raises(RuntimeError, match="A saved tensor pack hook is modifying its input in place"), hooks:
        leaf(lib, 1.0) * lib.ones(1)


def test_disabled(lib):
    graph = lib.autograd.graph
    with graph.disable_saved_tensors_hooks("not here"):
        with pytest.raises(RuntimeError, match="not here"), graph.saved_tensors_hooks(lambda x: x, lambda x: x):
            pass
        with graph.disable_saved_tensors_hooks("nor here"), pytest.raises(RuntimeError, match="nor here"), graph.save_on_cpu():
            pass
    hooks, disabled = graph.saved_tensors_hooks(lambda x: x, lambda x: x), graph.disable_saved_tensors_hooks("too late")
    with hooks, pytest.raises(RuntimeError, match="too late"), disabled:
        pass


def test_save_on_cpu(lib):
    a = leaf(lib, 1.0, 2.0)
    with lib.autograd.graph.save_on_cpu(pin_memory=False):
        y = (a * a).sum()
    y.backward()
    assert a.grad.tolist() == [2.0, 4.0]


# ---- saved values of nodes
def test_saved_values_by_name(lib):
    a, b = leaf(lib, 1.0), lib.tensor([2.0])
    product = (a * b).grad_fn
    assert product._saved_other.tolist() == [2.0]
    assert product._saved_self is None
    both = leaf(lib, 3.0)
    assert (a * both).grad_fn._saved_self is a
    assert (a * both).grad_fn._saved_other is both
    y = a.exp()
    result = y.grad_fn._saved_result
    assert result.tolist() == y.tolist()
    assert result.grad_fn is y.grad_fn
    assert (a + b).grad_fn.next_functions[0][0].variable is a
    assert {"_saved_self", "_saved_other", "_raw_saved_self", "next_functions"} <= set(dir(product))
    assert not hasattr(y.grad_fn, "_saved_other")
    assert lib.sum(leaf(lib, 1.0, 2.0), 0).grad_fn._saved_dim == (0,)
    assert (a * 3).grad_fn._saved_other.item() == 3


def test_reading_after_release(lib):
    a = leaf(lib, 1.0)
    y = a * a
    node = y.grad_fn
    y.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        node._saved_self
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor after it has been freed"):
        node._raw_saved_self.register_hooks(lambda x: x, lambda x: x)


def test_reading_after_a_write(lib):
    a = leaf(lib, 1.0) * 1
    y = a * a
    with lib.no_grad():
        a.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.grad_fn._saved_self


@pytest.mark.parametrize("op", [lambda a: a * a, lambda a: a.exp(), lambda a: a.softmax(0), lambda a: a.view(1) * a])
def test_hooks_on_one_saved_value(lib, op):
    a, log = leaf(lib, 2.0), []
    plain, hooked = op(a), op(a)
    plain.sum().backward()
    expected = a.grad.tolist()
    a.grad = None
    names = [name for name in dir(hooked.grad_fn) if name.startswith("_raw_saved_")]
    name = "_raw_saved_self" if "_raw_saved_self" in names else names[0]
    raw = getattr(hooked.grad_fn, name)
    raw.register_hooks(lambda x: log.append("pack") or x.tolist(), lambda x: log.append("unpack") or lib.tensor(x))
    with pytest.raises(RuntimeError, match="Calling register_hooks on a saved tensor whose hooks have already been set"):
        getattr(hooked.grad_fn, name).register_hooks(lambda x: x, lambda x: x)
    hooked.sum().backward()
    assert log == ["pack", "unpack"]
    assert a.grad.tolist() == pytest.approx(expected)


def test_hooks_on_a_saved_value_of_a_function(lib):
    log = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    a = leaf(lib, 3.0)
    y = function(lib, forward, lambda ctx, grad: grad * ctx.saved_tensors[0]).apply(a)
    y.grad_fn._raw_saved_tensors[0].register_hooks(lambda x: log.append("pack") or x, lambda x: log.append("unpack") or x)
    y.backward()
    assert log == ["pack", "unpack"]
    assert a.grad.tolist() == [3.0]


# ---- writes to saved tensors
def test_allowed_writes(lib):
    a = leaf(lib, 1.0, 2.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        b = a.clone()
        y = (b**2).sum()
        b.sin_()
        b.mul_(3)
        y.backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_allowed_writes_through_views(lib):
    a = leaf(lib, 1.0, 2.0)
    with lib.autograd.graph.allow_mutation_on_saved_tensors():
        b = a * 1
        y = (b * b).sum()
        with lib.no_grad():
            b.zero_()
        y.backward()
    assert a.grad.tolist() == [2.0, 4.0]


def test_writes_are_not_allowed_elsewhere(lib):
    graph = lib.autograd.graph
    a = leaf(lib, 1.0)
    with graph.allow_mutation_on_saved_tensors():
        y = a.exp() * 1
        with pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"), graph.allow_mutation_on_saved_tensors():
            pass
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved_tensors' context"):
        y.backward()
    b = a * 1
    z = b * b
    b.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_increment_version(lib):
    x, y = lib.ones(1), lib.ones(1)
    lib.autograd.graph.increment_version(x)
    lib.autograd.graph.increment_version([x, y])
    assert (x._version, y._version) == (2, 1)
    a = leaf(lib, 1.0) * 1
    z = a * a
    lib.autograd.graph.increment_version(a)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("good", [(False, False), (True, False), (False, True)])
def test_hooks_are_callables(lib, good):
    hooks = [(lambda x: x) if fine else 7 for fine in good]
    x = leaf(lib, 2.0)
    with (
        pytest.raises(TypeError, match=r"(?s)incompatible function arguments.*Invoked with: ") as raised,
        lib.autograd.graph.saved_tensors_hooks(*hooks),
    ):
        pass
    assert str(raised.value).endswith(", ".join(map(repr, hooks)))
    (x * x).backward()
    assert x.grad.tolist() == [4.0]


def test_increment_version_of_something_else(lib):
    with pytest.raises(RuntimeError, match=r"increment_version expect a Iterable\[Tensor\] as input"):
        lib.autograd.graph.increment_version(3)
