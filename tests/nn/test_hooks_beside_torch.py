"""What hooks of modules do, in both packages: the older backward hooks, global tables, words of warnings and errors."""

import copy
import gc
import pickle
import warnings
import weakref
from collections import OrderedDict, namedtuple

import pytest

from tests.libraries import leaf, lib

__all__ = ["lib"]
MANY_NODES = pytest.mark.filterwarnings("ignore:Using a non-full backward hook when the forward contains multiple:FutureWarning")


@pytest.fixture(autouse=True)
def fresh_tables(lib):
    """Programs put fresh tables in the place of the global ones, and expect that to have an effect."""
    yield
    modules = lib.nn.modules.module
    modules._global_backward_hooks = OrderedDict()
    modules._global_forward_hooks = OrderedDict()
    modules._global_forward_pre_hooks = OrderedDict()
    modules._global_is_full_backward_hook = None


def note(*_):
    """A hook that can be pickled."""


def module_of(lib, forward):
    return type("Made", (lib.nn.Module,), {"forward": forward})()


def heard(call):
    """Categories and texts of the warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [(w.category, str(w.message)) for w in caught]


# ---- order
@pytest.mark.parametrize(
    ("register", "in_backward"),
    [
        ("register_forward_hook", False),
        ("register_forward_pre_hook", False),
        ("register_full_backward_hook", True),
        ("register_full_backward_pre_hook", True),
    ],
)
def test_order(lib, register, in_backward):
    module, fired = lib.nn.Linear(2, 2), []
    for k, first in enumerate((False, True, False, True)):
        getattr(module, register)(lambda *_, k=k: fired.append(k), prepend=first)
    for _ in range(2):
        out = module(lib.ones(1, 2, requires_grad=True))
        assert fired == ([] if in_backward else [3, 1, 0, 2])
        out.sum().backward()
        assert fired == [3, 1, 0, 2]
        fired.clear()


@MANY_NODES
def test_global_before_own(lib):
    module, log, modules = lib.nn.Sigmoid(), [], lib.nn.modules.module
    module.register_forward_pre_hook(lambda *_: log.append("own before"))
    module.register_forward_hook(lambda *_: log.append("own after"))
    module.register_backward_hook(lambda *_: log.append("own backward"))
    modules.register_module_forward_pre_hook(lambda *_: log.append("before"))
    modules.register_module_forward_hook(lambda *_: log.append("after"))
    modules.register_module_backward_hook(lambda *_: log.append("backward"))
    module(leaf(lib, 1.0)).backward()
    assert log == ["before", "own before", "after", "own after", "backward", "own backward"]


def test_hooks_that_remove_themselves(lib):
    module, handles = lib.nn.Sigmoid(), []

    def once(_, values, *__):
        handles.pop(0).remove()

    for register in (module.register_forward_pre_hook, module.register_forward_hook):
        handles += [register(once), register(once)]
    table = handles[0].hooks_dict_ref()
    assert len(table) == 2
    module(leaf(lib, 1.0))
    assert not handles
    assert not table


def test_replaced_tables(lib):
    modules = lib.nn.modules.module
    modules.register_module_forward_hook(lambda m, args, out: -out)
    assert lib.nn.ReLU()(lib.ones(1)).item() == -1
    modules._global_forward_hooks = OrderedDict()
    assert lib.nn.ReLU()(lib.ones(1)).item() == 1
    modules.register_module_forward_hook(lambda m, args, out: out + 1)
    assert lib.nn.ReLU()(lib.ones(1)).item() == 2


# ---- the older backward hooks
@MANY_NODES
def test_older_hook_changes_the_gradient(lib):
    x, module = leaf(lib, 0.0), lib.nn.Sigmoid()
    with module.register_backward_hook(lambda m, grad_in, grad_out: tuple(g * 2 for g in grad_in)):
        module(x).backward()
    assert x.grad.tolist() == [0.5]
    x.grad = None
    with lib.nn.modules.module.register_module_backward_hook(lambda m, grad_in, grad_out: (grad_out[0] * 3,)):
        module(x).backward()
    assert x.grad.tolist() == [3.0]
    x.grad = None
    module(x).backward()
    assert x.grad.tolist() == [0.25]


@MANY_NODES
def test_older_hook_with_a_wrong_number(lib):
    x, module = leaf(lib, 1.0), lib.nn.Sigmoid()
    for changed, count in ((lambda m, grad_in, grad_out: (), 0), (lambda m, grad_in, grad_out: grad_in * 2, 2)):
        for register in (module.register_backward_hook, lib.nn.modules.module.register_module_backward_hook):
            with register(changed), pytest.raises(RuntimeError, match=f"hook '<lambda>' has returned.*got {count}, but expected 1"):
                module(x).backward()


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_older_hook_finds_the_first_tensor(lib):
    x, seen = leaf(lib, 1.0), []
    for forward in (lambda m, x: {"n": 1, "y": x * 2}, lambda m, x: [(x * 2, 3)], lambda m, x: x * 2):
        module = module_of(lib, forward)
        module.register_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_out[0].tolist()))
        out = module(x)
        out = out["y"] if isinstance(out, dict) else out[0][0] if isinstance(out, list) else out
        out.backward()
        module(x.detach())  # no history: nothing to hook
    assert seen == [[1.0]] * 3


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        (lambda m, a, b: [a.clone(), b.clone()], "non-full backward hooks on a Module that does not return a single Tensor or a tuple"),
        (lambda m, a, b: (a.clone(), b.clone()), "a non-full backward hook when outputs are generated by different autograd Nodes"),
        (lambda m, a, b: (a * b).clone(), "a non-full backward hook when the forward contains multiple autograd Nodes"),
        (lambda m, *ab: ab[0] * ab[1], None),
    ],
)
def test_older_hook_warns(lib, forward, words):
    module = module_of(lib, forward)
    module.register_backward_hook(note)
    a, b = (leaf(lib, 1.0) * 1, leaf(lib, 2.0) * 1)
    assert [(c, text.startswith(f"Using {words}")) for c, text in heard(lambda: module(a, b))] == ([(FutureWarning, True)] if words else [])


def test_older_hook_warns_of_its_input(lib):
    module = module_of(lib, lambda m, x: x[0] * 2)
    module.register_backward_hook(note)
    ((category, text),) = heard(lambda: module([leaf(lib, 1.0)]))
    assert category is FutureWarning
    assert "that does not take as input a single Tensor or a tuple of Tensors is deprecated" in text


def test_one_kind_of_backward_hook(lib):
    modules, module, other = lib.nn.modules.module, lib.nn.ReLU(), lib.nn.ReLU()
    module.register_backward_hook(note)
    other.register_full_backward_hook(note)
    for register in (module.register_full_backward_hook, other.register_backward_hook):
        with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a single Module"):
            register(note)
    for first, second in ((modules.register_module_backward_hook, modules.register_module_full_backward_hook),) * 2:
        modules._global_is_full_backward_hook = None
        with first(note), pytest.raises(RuntimeError, match="and full backward hooks as a global Module hook"):
            second(note)


# ---- full backward hooks
def test_input_requires_grad_as_before(lib):
    seen = []
    module = module_of(lib, lambda m, *xs: seen.append([x.requires_grad for x in xs]) or sum(x.sum() for x in xs))
    x = leaf(lib, 1.0)
    module.register_full_backward_hook(note)
    module(x, x.detach(), x)
    assert seen == [[True, False, True]]


def test_pre_hook_meets_hook(lib):
    module, x, seen = lib.nn.Sigmoid(), leaf(lib, 0.0), []
    module.register_full_backward_pre_hook(lambda m, grad_out: (grad_out[0] * 0.5,))
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append((grad_in[0].item(), grad_out[0].item())))
    module(x).backward()
    assert seen == [(0.125, 0.5)]


def test_sizes_of_inputs_and_outputs(lib):
    module, seen = module_of(lib, lambda m, a, b: (a.sum() * b).sum().view(1).expand(8).contiguous()), []
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append([tuple(g.shape) for g in grad_in + grad_out]))
    module(lib.ones(5, 5, requires_grad=True), lib.ones(10, requires_grad=True)).sum().backward()
    assert seen == [[(5, 5), (10,), (8,)]]


def test_named_tuples_stay(lib):
    pair, seen = namedtuple("pair", "a b"), []
    module = module_of(lib, lambda m, x: pair(x * 2, x * 3))
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append([None if g is None else g.item() for g in grad_out]))
    out = module(leaf(lib, 1.0))
    assert type(out) is pair
    out.a.backward()
    assert seen == [[1.0, None]]


@pytest.mark.parametrize("register", ["register_full_backward_hook", "register_full_backward_pre_hook"])
def test_watched_tensors_are_not_written_to(lib, register):
    def forward(m, x, write):
        m.x = x
        if write:
            x += 1
        return x.clone()

    module, x = module_of(lib, forward), leaf(lib, 1.0, 2.0)
    getattr(module, register)(note)
    with pytest.raises(RuntimeError, match=r"Output 0 of BackwardHookFunction.* is a view and is being modified inplace"):
        module(x.clone(), True)
    base = x.clone()
    module(base, False)
    base[0] *= 1
    with pytest.raises(RuntimeError, match=r"Output 0 of BackwardHookFunction.* is a view and its base or another view"):
        module.x + 2
    out = module(x, False)
    with pytest.raises(RuntimeError, match=r"BackwardHookFunction.* is a view and is being modified inplace"):
        out += 1


def test_what_a_hook_may_not_return(lib):
    module, x = lib.nn.Sigmoid(), leaf(lib, 1.0)
    for answer, error, words in (
        ((lib.ones(3),), RuntimeError, "hook 'hook' has changed the size of value"),
        ((3,), TypeError, "expected Variable, but hook returned 'int'"),
        (3, TypeError, r"object of type 'int' has no len\(\)"),
        ((), RuntimeError, "returned an invalid number of grad_.*put, got 0, but expected 1"),
    ):
        for register in (module.register_full_backward_hook, module.register_full_backward_pre_hook):
            with register(lambda *_, answer=answer: answer), pytest.raises(error, match=words):
                module(x).backward()


def test_errors_in_hooks_reach_the_caller(lib):
    module, x = lib.nn.Sigmoid(), leaf(lib, 0.0)
    for register in (module.register_full_backward_hook, module.register_full_backward_pre_hook):
        with register(lambda *_: 1 / 0), pytest.raises(ZeroDivisionError):
            module(x).backward()
    assert x.grad is None
    module(x).backward()
    assert x.grad.item() == 0.25


def test_second_derivative(lib):
    module, x, seen = lib.nn.Tanh(), leaf(lib, 0.5), []
    module.register_full_backward_hook(lambda m, grad_in, grad_out: seen.append(grad_in[0].requires_grad))
    (grad,) = lib.autograd.grad(module(x), x, lib.ones(1), create_graph=True)
    grad.backward()
    assert seen[0]
    t = lib.tanh(x.detach())
    assert x.grad.item() == pytest.approx((-2 * t * (1 - t * t)).item())


# ---- forward hooks
def test_marks_go_with_their_hook(lib):
    module = module_of(lib, lambda m, x, bias=None: x if bias is None else x + bias)
    after = module.register_forward_hook(lambda m, args, kwargs, out: out + kwargs["bias"], with_kwargs=True)
    before = module.register_forward_pre_hook(lambda m, args, kwargs: (args, {"bias": 2 * kwargs["bias"]}), with_kwargs=True)
    x = lib.ones(1)
    assert module(x, bias=x).item() == 5
    after.remove()
    assert module(x, bias=x).item() == 3
    before.remove()
    assert module(x, bias=x).item() == 2
    assert not module._forward_hooks_with_kwargs
    assert not module._forward_pre_hooks_with_kwargs


def test_always_called(lib):
    seen = []
    module = module_of(lib, lambda m, x, **named: 1 / 0)
    module.register_forward_hook(lambda m, args, kwargs, out: seen.append((kwargs, out)), always_call=True, with_kwargs=True)
    module.register_forward_pre_hook(note)

    def breaks(m, args, out):
        raise KeyError("too")

    module.register_forward_hook(breaks, always_call=True)

    def call():
        with pytest.raises(ZeroDivisionError):
            module(lib.ones(1), n=3)

    ((category, text),) = heard(call)
    assert category is UserWarning
    assert text.startswith("module forward hook with ``always_call=True`` raised an exception that was silenced as another error was raised in")
    assert seen == [({"n": 3}, None)]
    passes = module_of(lib, lambda m, x: x)
    passes.register_forward_hook(lambda m, args, out: seen.append("once"), always_call=True)
    passes.register_forward_hook(breaks)
    with pytest.raises(KeyError):
        passes(lib.ones(1))
    assert seen[1:] == ["once"]


# ---- state
def test_older_hooks_before_loading(lib):
    layer, log = lib.nn.Linear(1, 1), []
    inner = lib.nn.ModuleList([layer])
    first = layer._register_load_state_dict_pre_hook(lambda state_dict, prefix, *rest: log.append((prefix, len(rest))))
    layer._register_load_state_dict_pre_hook(lambda module, state_dict, prefix, *rest: log.append((module is layer, prefix)), True)
    inner.load_state_dict(inner.state_dict())
    assert log == [("0.", 5), (True, "0.")]
    first.remove()
    inner.load_state_dict(inner.state_dict())
    assert log[2:] == [(True, "0.")]


def test_hooks_before_loading_hold_no_module(lib):
    for with_module in (True, False):
        layer = lib.nn.Linear(1, 1)
        layer._register_load_state_dict_pre_hook(note, with_module)
        for twin in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
            twin.load_state_dict(layer.state_dict())
        watched = weakref.ref(layer)
        gc.disable()
        try:
            del layer
            assert watched() is None
        finally:
            gc.enable()


def test_modules_of_before_there_were_hooks_after_loading(lib):
    module, log = lib.nn.Softmin(1), []
    del module._load_state_dict_post_hooks
    module = pickle.loads(pickle.dumps(module))
    module.load_state_dict({})
    module.register_load_state_dict_post_hook(lambda m, keys: log.append(m is module))
    module.load_state_dict({})
    assert log == [True]


def test_hooks_after_loading_change_the_keys(lib):
    layer = lib.nn.Linear(1, 1)
    model = lib.nn.ModuleList([layer])

    def change(module, keys):
        assert module is layer
        keys.missing_keys.append("foo")
        keys.unexpected_keys.append("bar")

    with layer.register_load_state_dict_post_hook(change):
        assert tuple(model.load_state_dict(model.state_dict(), strict=False)) == (["foo"], ["bar"])
        with pytest.raises(RuntimeError, match=r'Missing key.*"foo".*\n.*Unexpected key.*"bar"'):
            model.load_state_dict(model.state_dict())
    assert repr(model.load_state_dict(model.state_dict())) == "<All keys matched successfully>"
    with layer.register_load_state_dict_post_hook(lambda m, keys: [k.clear() for k in keys] and None):
        model.load_state_dict({**model.state_dict(), "extra": lib.ones(1)})
    layer.register_load_state_dict_post_hook(lambda m, keys: 3)
    with pytest.raises(AssertionError, match="Hooks registered with ``register_load_state_dict_post_hook`` are not expected to"):
        model.load_state_dict(model.state_dict())


def test_hooks_after_saving(lib):
    def other(module, state_dict, prefix, metadata):
        return {"other": 1}

    layer = lib.nn.Linear(1, 1)
    layer._register_state_dict_hook(other)
    assert layer.state_dict() == {"other": 1}
    assert list(lib.nn.Sequential(layer).state_dict()) == ["0.weight", "0.bias"]
    layer.register_state_dict_post_hook(other)
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        layer.state_dict()
    with pytest.raises(RuntimeError, match="Cannot register the same function as the state dict post hook"):
        layer._register_state_dict_hook(other)


# ---- registration, handles
@pytest.mark.parametrize("kind", ["buffer", "module", "parameter"])
@pytest.mark.parametrize("returns", [True, False])
def test_registration_hooks_mark_what_they_see(lib, kind, returns):
    def mark(module, name, member):
        member.seen = name
        return member if returns else None

    with getattr(lib.nn.modules.module, f"register_module_{kind}_registration_hook")(mark):
        module = lib.nn.Sequential(lib.nn.BatchNorm1d(2), lib.nn.Sequential())
    names = {"buffer": ["running_mean", "running_var", "num_batches_tracked"], "parameter": ["weight", "bias"], "module": ["0", "1"]}
    assert [x.seen for x in {"buffer": module.buffers, "parameter": module.parameters, "module": module.children}[kind]()] == names[kind]


def test_handles(lib):
    layer = lib.nn.Linear(1, 1)
    handle = layer.register_forward_hook(note)
    assert isinstance(handle, lib.utils.hooks.RemovableHandle)
    assert list(layer._forward_hooks) == [handle.id]
    with layer.register_forward_hook(note) as second:
        assert second.id == handle.id + 1 < lib.utils.hooks.RemovableHandle.next_id
    assert list(layer._forward_hooks) == [handle.id]
    assert pickle.loads(pickle.dumps(handle)).id == handle.id
    del layer
    gc.collect()
    assert handle.hooks_dict_ref() is None
    handle.remove()
