"""Selective checkpoints: what is kept, what is computed again, what is refused."""

import functools
import gc
import weakref

import pytest

import jitgrad
from jitgrad._ops.kinds import OPS
from jitgrad._tensor import interception
from jitgrad.utils.checkpoint import selective
from tests.libraries import leaf, lib

__all__ = ["lib"]


@pytest.fixture
def module(lib):
    return pytest.importorskip(f"{lib.__name__}.utils.checkpoint")


def contexts(module, policy, **named):
    return functools.partial(module.create_selective_checkpoint_contexts, policy, **named)


def policy_of(module, *ops):
    policies = module.CheckpointPolicy
    return lambda ctx, op, *args, **named: policies.MUST_SAVE if op in ops else policies.PREFER_RECOMPUTE


def fn(x, y):
    return x.cos().mm(y).sin().sum()


def run_counts(monkeypatch, call):
    """The ops whose kernels ran during a call, by name."""
    names = []
    inner = interception._call

    def noted(op, inputs, statics, outs):
        if outs is None:
            names.append(op.name)
        return inner(op, inputs, statics, outs)

    def noted_run(op, inputs, statics):
        names.append(op.name)
        return interception_run(op, inputs, statics)

    interception_run = selective.run_op
    monkeypatch.setattr(interception, "_call", noted)
    monkeypatch.setattr(selective, "run_op", noted_run)
    call()
    monkeypatch.undo()
    return names


@pytest.mark.parametrize("kind", ["list", "policy", "bool", "nothing", "everything"])
def test_gradients(lib, module, kind):
    mm = lib.ops.aten.mm.default
    policy = {
        "list": [mm], "policy": policy_of(module, mm), "bool": lambda ctx, op, *args, **named: op == mm, "nothing": [],
        "everything": lambda *args, **named: module.CheckpointPolicy.PREFER_SAVE,
    }[kind]  # fmt: skip
    x, y = (lib.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True) for _ in range(2))
    module.checkpoint(fn, x, y, use_reentrant=False, context_fn=contexts(module, policy)).backward()
    expected = lib.autograd.grad(fn(x, y), (x, y))
    assert lib.allclose(x.grad, expected[0])
    assert lib.allclose(y.grad, expected[1])


def test_what_is_kept_is_not_computed_again(monkeypatch):
    module, mm = jitgrad.utils.checkpoint, jitgrad.ops.aten.mm.default
    x, y = (jitgrad.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True) for _ in range(2))
    out = module.checkpoint(fn, x, y, use_reentrant=False, context_fn=contexts(module, [mm]))
    assert run_counts(monkeypatch, out.backward) == ["cos", "sin"]  # sin saves the last tensor that is needed
    out = module.checkpoint(fn, x, y, use_reentrant=False, context_fn=contexts(module, [jitgrad.ops.aten.cos.default]))
    assert run_counts(monkeypatch, out.backward) == ["_mm", "sin"]
    out = module.checkpoint(fn, x, y, use_reentrant=False, early_stop=False, context_fn=contexts(module, []))
    assert run_counts(monkeypatch, out.backward) == ["cos", "_mm", "sin", "_sum"]


def test_the_policy_is_told_of_each_call(lib, module):
    seen, x = [], leaf(lib, 0.5)

    def policy(ctx, op, *args, **named):
        if op in (lib.ops.aten.sin.default, lib.ops.aten.mul.Tensor):
            seen.append((str(op), ctx.is_recompute, ctx.op_output.item(), len(args), isinstance(args[0], lib.Tensor)))
        return True

    module.checkpoint(lambda x: x.sin() * x, x, use_reentrant=False, context_fn=contexts(module, policy)).backward()
    s = x.sin().item()
    assert seen == [("aten.sin.default", False, s, 1, True), ("aten.mul.Tensor", False, pytest.approx(s * 0.5), 2, True)]


def test_a_policy_with_state_is_asked_in_the_first_run_only(lib, module):
    counts = []
    policy = lambda ctx, op, *args, **named: counts.append(len(counts)) or module.CheckpointPolicy.PREFER_RECOMPUTE  # noqa: E731
    out = module.checkpoint(lambda x: x.sin().sin().sin(), leaf(lib, 1.0), use_reentrant=False, context_fn=contexts(module, policy))
    out.backward()
    assert counts == [0, 1, 2]


def test_several_results_and_values_that_are_kept_beside(lib, module):
    x = lib.tensor([[0.1, 0.2, 0.4], [0.3, 0.5, 0.9]], dtype=lib.float64, requires_grad=True)
    layer = lib.nn.LayerNorm(3, dtype=lib.float64)

    def several(x):
        variance, mean = lib.var_mean(x, 1)
        low, high = x.sort(1).values.split([1, 2], 1)
        return (layer(x) * variance.exp()[:, None]).sum() * mean.sum() + (low * high).sum() + x.max(1).values.prod()

    keep = contexts(module, lambda *args, **named: True)
    module.checkpoint(several, x, use_reentrant=False, context_fn=keep).backward()
    assert lib.allclose(x.grad, lib.autograd.grad(several(x), x)[0])


def test_views_of_integers(lib, module):
    y = leaf(lib, 1.0, 2.0, 3.0)
    out = module.checkpoint(lambda x, y: (x.view(-1), y.sin().cos()), lib.tensor([1, 2, 3]), y, use_reentrant=False,
                            context_fn=contexts(module, [lib.ops.aten.view.default]))  # fmt: skip
    out[1].sum().backward()
    assert lib.allclose(y.grad, -y.sin().sin() * y.cos())


def test_written_to(lib, module):
    sin, x = lib.ops.aten.sin.default, leaf(lib, 1.0)

    def call(**named):
        return module.checkpoint(lambda x: x.sin().mul_(2).cos().exp(), x, use_reentrant=False,
                                 context_fn=contexts(module, policy_of(module, sin), **named))  # fmt: skip

    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        call().backward()
    call(allow_cache_entry_mutation=True).backward()


def test_only_one_backward(lib, module):
    keep = contexts(module, [lib.ops.aten.sin.default])
    out = module.checkpoint(lambda x: x.sin().cos().exp(), leaf(lib, 1.0), use_reentrant=False, context_fn=keep)
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match=r"Trying to backward an extra time\. You are only allowed to backward once on any region computed"):
        out.backward(retain_graph=True)


def test_another_second_run(lib, module):
    for second, words in ((lambda x: x.tanh(), "encountered during backward but not found in storage"),
                          (lambda x: x.exp().exp().exp(), "invocation index 2 encountered during backward but not found in")):  # fmt: skip
        runs = [lambda x: x.exp().exp(), second]
        out = module.checkpoint(lambda x, runs=runs: runs.pop(0)(x), leaf(lib, 1.0), use_reentrant=False, early_stop=False,
                                context_fn=contexts(module, []))  # fmt: skip
        with pytest.raises(RuntimeError, match=words):
            out.backward()


def test_refused(lib, module):
    make = module.create_selective_checkpoint_contexts
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload but got: 2 of type <class 'int'>"):
        make([2])
    with pytest.raises(ValueError, match="Please update the OpOverloadPacket to a specific OpOverload"):
        make([lib.ops.aten.sin])
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops"):
        make(2)
    with pytest.raises(AttributeError, match="object has no attribute 'nonsense'"):
        _ = lib.ops.aten.nonsense


def test_ops_by_name(lib):
    aten = lib.ops.aten
    assert aten.mm.default is aten.mm.default
    assert aten.mm.default != aten.bmm.default
    assert (str(aten.mm.default), str(aten.mul.Tensor), str(aten.mm)) == ("aten.mm.default", "aten.mul.Tensor", "aten.mm")
    assert repr(aten.mm.default) == "<OpOverload(op='aten.mm', overload='default')>"
    assert aten.mm.default.__name__ == "mm.default"
    assert aten.mm.default.name() in ("aten::mm", "aten::mm.default")
    x = lib.ones(2, 2)
    assert aten.mm.default(x, x).tolist() == aten.mm(x, x).tolist() == [[2, 2], [2, 2]]


LAYERS = {
    "addmm": lambda lib, x: lib.nn.Linear(2, 2)(x), "mm": lambda lib, x: lib.nn.Linear(2, 2, bias=False)(x), "bmm": lambda lib, x: x[None] @ x[None],
    "_softmax": lambda lib, x: lib.softmax(x, 1), "_log_softmax": lambda lib, x: lib.log_softmax(x, 1), "sum": lambda lib, x: x.sum((0,)),
    "mean": lambda lib, x: x.mean(1), "native_layer_norm": lambda lib, x: lib.nn.LayerNorm(2)(x), "cat": lambda lib, x: lib.cat([x, x]),
    "gelu": lambda lib, x: lib.nn.functional.gelu(x), "where": lambda lib, x: lib.where(x > 0, x, -x), "gather": lambda lib, x: x.gather(1, x.long()),
    "index_select": lambda lib, x: x.index_select(0, lib.tensor([1])), "max": lambda lib, x: x.max(1).values, "pow": lambda lib, x: x**2,
    "nll_loss_forward": lambda lib, x: lib.nn.functional.cross_entropy(x, lib.tensor([0, 1])),
    "embedding": lambda lib, x: lib.nn.functional.embedding(x.long(), x),
    "mse_loss": lambda lib, x: lib.nn.functional.mse_loss(x, x * 2),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_policy_sees_names_of_torch(lib, module, name):
    seen, x = [], lib.tensor([[0.5, 0.25], [0.125, 1.0]], requires_grad=True)
    policy = lambda ctx, op, *args, **named: bool(seen.append(str(op).split(".")[1]))  # noqa: E731
    module.checkpoint(lambda x: LAYERS[name](lib, x), x, use_reentrant=False, context_fn=contexts(module, policy))
    assert name in seen


def test_every_op_has_a_name():
    names = {jitgrad._tensor.aten._torch_name(name) for name in OPS}
    assert all(str(jitgrad.ops.aten.__getattr__(name).default) for name in names)
    assert all(name and not name.endswith("_op") for name in names)


def test_the_store_dies_with_the_graph():
    module = jitgrad.utils.checkpoint
    refs = []

    class Noted(selective._Kept):
        def __init__(self, *args):
            super().__init__(*args)
            refs.append(weakref.ref(self))

    original, selective._Kept = selective._Kept, Noted
    gc.disable()
    try:

        def call():
            keep = contexts(module, [jitgrad.ops.aten.exp.default])
            return module.checkpoint(lambda x: x.cos().exp().sin(), leaf(jitgrad, 1.0), use_reentrant=False, context_fn=keep)

        out = call()
        assert refs[0]() is not None
        del out
        assert refs[0]() is None
        out = call()
        out.backward(retain_graph=True)
        assert refs[1]() is None  # used up, though the graph is kept
    finally:
        selective._Kept = original
        gc.enable()


def test_no_mode_is_left_behind():
    module = jitgrad.utils.checkpoint
    with pytest.raises(ZeroDivisionError):
        module.checkpoint(lambda x: x.exp() * (1 / 0), leaf(jitgrad, 1.0), use_reentrant=False, context_fn=contexts(module, []))
    assert jitgrad._engine.modes.LOCAL.interceptor is None
    assert jitgrad._engine.modes.SPECIAL == 0
