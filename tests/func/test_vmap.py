"""`vmap` and calls of modules with other parameters, beside torch's."""

import pytest

import jitgrad

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")


def vmap(lib, *args, **named):
    return lib.func.vmap(*args, **named)


def test_axes(lib):
    x = lib.arange(6.0).reshape(2, 3)
    assert vmap(lib, lib.sum)(x).tolist() == [3.0, 12.0]
    assert vmap(lib, lib.sum, in_dims=1)(x).tolist() == [3.0, 5.0, 7.0]
    assert vmap(lib, lib.sum, in_dims=-1)(x).tolist() == [3.0, 5.0, 7.0]
    assert vmap(lib, lambda a: a * 2, out_dims=1)(x).tolist() == (x * 2).t().tolist()
    assert vmap(lib, lambda a: a * 2, out_dims=-1)(x).tolist() == (x * 2).t().tolist()
    assert vmap(lib, lambda a, b: a * b, in_dims=(0, None))(x, x[0]).tolist() == (x * x[0]).tolist()
    assert vmap(lib, lib.dot)(x, x).tolist() == [5.0, 50.0]
    assert vmap(lib, lambda a, scale: a * scale)(x, scale=2.0).tolist() == (x * 2).tolist()
    assert vmap(lib, lambda a: lib.ones(2))(x).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert vmap(lib, lambda a: lib.ones(2), out_dims=None)(x).tolist() == [1.0, 1.0]
    assert vmap(lib, lambda a: a + 1, chunk_size=1)(x).tolist() == (x + 1).tolist()


def test_nests(lib):
    x = lib.arange(6.0).reshape(2, 3)
    found = vmap(lib, lambda d: {"a": d["b"] * 2, "c": (d["b"],)}, in_dims=({"b": 1},))({"b": x})
    assert (found["a"].tolist(), found["c"][0].tolist()) == ((x * 2).t().tolist(), x.t().tolist())
    first, (second,) = vmap(lib, lambda a: (a, [a]), out_dims=(0, [-1]))(x)
    assert (first.shape, second.shape) == ((2, 3), (3, 2))
    assert vmap(lib, lambda pair: pair[0] + pair[1], in_dims=((0, None),))((x, x[0])).tolist() == (x + x[0]).tolist()


def test_nested_and_combined(lib):
    x = lib.arange(6.0).reshape(2, 3)
    assert vmap(lib, vmap(lib, lambda a: a * a))(x).tolist() == (x * x).tolist()
    outer = vmap(lib, vmap(lib, lib.mul, in_dims=(None, 0)), in_dims=(0, None))
    assert outer(x[0], x[1]).tolist() == lib.outer(x[0], x[1]).tolist()
    per_sample = vmap(lib, lib.func.grad(lambda w, a: (w * a * a).sum()), in_dims=(None, 0))
    assert per_sample(lib.ones(3), x).tolist() == (x * x).tolist()
    assert lib.func.grad(lambda a: vmap(lib, lambda row: (row**2).sum())(a).sum())(x).tolist() == (2 * x).tolist()
    y = x.clone().requires_grad_()
    vmap(lib, lambda row: (row**2).sum())(y).sum().backward()
    assert y.grad.tolist() == (2 * x).tolist()
    assert vmap(lib, lambda a, t: lib.func.jvp(lib.sin, (a,), (t,))[1])(lib.zeros(2), lib.tensor([1.0, 2.0])).tolist() == [1.0, 2.0]


def test_writes(lib):
    x = lib.zeros(2, 2)
    assert vmap(lib, lambda row: row.add_(1))(x).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert x.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_an_empty_batch(lib):
    assert vmap(lib, lambda a: a * 2)(lib.ones(0, 3)).shape == (0, 3)
    assert vmap(lib, lib.sum)(lib.ones(0, 3)).shape == (0,)


def test_random_numbers(lib):
    draw = lambda a: a + lib.rand(())  # noqa: E731
    with pytest.raises(RuntimeError, match="vmap: called random operation while in randomness error mode"):
        vmap(lib, draw)(lib.zeros(3))
    assert len(set(vmap(lib, draw, randomness="same")(lib.zeros(3)).tolist())) == 1
    assert len(set(vmap(lib, draw, randomness="different")(lib.zeros(3)).tolist())) == 3


@pytest.mark.parametrize(
    ("words", "call"),
    [
        ("got no inputs. Maybe you forgot to add inputs", lambda lib, x: vmap(lib, lambda: 3)()),
        ("expected `in_dims` to be int or a", lambda lib, x: vmap(lib, lib.sum, in_dims=None)(x)),
        ("expected `in_dims` to be int or a", lambda lib, x: vmap(lib, lib.sum, in_dims="0")(x)),
        ("in_dims is not compatible with the structure of `inputs`", lambda lib, x: vmap(lib, lib.sum, in_dims=(0, 0))(x)),
        ("We cannot vmap over non-Tensor arguments", lambda lib, x: vmap(lib, lambda a: a)(3)),
        ("a Tensor of dimensionality 2 so expected in_dim to satisfy -2 <= in_dim < 2", lambda lib, x: vmap(lib, lib.sum, in_dims=2)(x)),
        ("Expected all tensors to have the same size in the mapped dimension", lambda lib, x: vmap(lib, lib.dot, in_dims=(0, 1))(x, x)),
        ("Expected at least one Tensor to vmap over", lambda lib, x: vmap(lib, lib.sum, in_dims=(None,))(x)),
        ("must only return Tensors, got type <class 'int'>", lambda lib, x: vmap(lib, lambda a: 3)(x)),
        ("out_dims is not compatible with the structure of `outputs`", lambda lib, x: vmap(lib, lambda a: a, out_dims=(0, 0))(x)),
        ("`out_dims` must be an int, None or a python collection of ints", lambda lib, x: vmap(lib, lambda a: a, out_dims="0")(x)),
        ("can not return a BatchedTensor when out_dim is None", lambda lib, x: vmap(lib, lambda a: a, out_dims=None)(x)),
        ("chunk_size should be None or greater than 0", lambda lib, x: vmap(lib, lib.sum, chunk_size=0)(x)),
    ],
)
def test_refusals(lib, words, call):
    with pytest.raises(ValueError, match=words):
        call(lib, lib.arange(6.0).reshape(2, 3))


def test_an_unknown_randomness(lib):
    with pytest.raises(RuntimeError, match="Only allowed values for randomness are 'error', 'different', or 'same'"):
        vmap(lib, lib.sum, randomness="maybe")(lib.ones(2, 2))


# ---- modules
def layers(lib):
    return lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.Linear(2, 1))


def ones_of(module, lib):
    return {name: lib.ones_like(value) for name, value in module.named_parameters()}


def test_a_module_with_other_parameters(lib):
    module, call = layers(lib), lib.func.functional_call
    own = dict(module.named_parameters())
    x = lib.ones(2)
    assert call(module, ones_of(module, lib), x).tolist() == [7.0]
    assert call(module, ones_of(module, lib), (x,)).tolist() == [7.0]
    assert call(module, ones_of(module, lib), None, {"input": x}).tolist() == [7.0]
    some, rest = {"0.weight": lib.ones(2, 2)}, {"0.bias": lib.zeros(2), "1.weight": lib.ones(1, 2), "1.bias": lib.zeros(1)}
    assert call(module, (some, rest), x).tolist() == [4.0]
    assert all(own[name] is value for name, value in module.named_parameters())
    with pytest.raises(TypeError):
        call(module, ones_of(module, lib), (x, x))
    assert all(own[name] is value for name, value in module.named_parameters())


def test_gradients_of_a_module(lib):
    module = layers(lib)
    found = lib.func.grad(lambda parameters, x: lib.func.functional_call(module, parameters, x).sum())(ones_of(module, lib), lib.ones(2))
    assert {name: value.tolist() for name, value in found.items()} == {
        "0.weight": [[1.0, 1.0], [1.0, 1.0]], "0.bias": [1.0, 1.0], "1.weight": [[3.0, 3.0]], "1.bias": [1.0],
    }  # fmt: skip
    _, tangent = lib.func.jvp(lambda p: lib.func.functional_call(module, p, lib.ones(2)), (ones_of(module, lib),), (ones_of(module, lib),))
    assert tangent.tolist() == [13.0]


def test_tied_members(lib):
    first, layer = lib.nn.Linear(2, 2, bias=False), lib.nn.Linear(2, 2, bias=False)
    layer.weight = first.weight
    module = lib.nn.Sequential(first, lib.nn.ReLU(), layer)
    x = lib.ones(2)
    values = {"0.weight": lib.ones(2, 2)}
    assert lib.func.functional_call(module, values, x).tolist() == [4.0, 4.0]
    loose = lib.func.functional_call(module, values, x, tie_weights=False)
    assert loose.tolist() == pytest.approx(layer(lib.tensor([2.0, 2.0])).tolist())
    with pytest.raises(ValueError, match=r"functional_call got multiple values for keys .*, which are tied"):
        lib.func.functional_call(module, {**values, "2.weight": lib.zeros(2, 2)}, x)


def test_names_that_are_refused(lib):
    module, call, x = lib.nn.Linear(2, 1), lib.func.functional_call, lib.ones(2)
    weight = {"weight": lib.ones(1, 2)}
    with pytest.raises(RuntimeError, match=r"Error\(s\) in reparametrizing for Linear:\n\tMissing key\(s\): 'bias'"):
        call(module, weight, x, strict=True)
    with pytest.raises(RuntimeError, match=r"Unexpected key\(s\): 'other'"):
        call(module, {**weight, "bias": lib.ones(1), "other": lib.ones(1)}, x, strict=True)
    with pytest.raises(ValueError, match="appeared in multiple dictionaries; behavior of functional call is ambiguous"):
        call(module, (weight, weight), x)
    with pytest.raises(ValueError, match="Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts"):
        call(module, 3, x)


def test_buffers_that_the_call_writes(lib):
    module = lib.nn.BatchNorm1d(2)
    state = {"running_mean": lib.zeros(2), "running_var": lib.ones(2), "num_batches_tracked": lib.tensor(0)}
    lib.func.functional_call(module, state, lib.tensor([[1.0, 2.0], [3.0, 4.0]]))
    assert state["running_mean"].tolist() == pytest.approx([0.2, 0.3])
    assert state["num_batches_tracked"].item() == 1
    assert (module.running_mean.tolist(), module.num_batches_tracked.item()) == ([0.0, 0.0], 0)


def test_an_ensemble(lib):
    models = [lib.nn.Linear(2, 1) for _ in range(3)]
    parameters, buffers = lib.func.stack_module_state(models)
    assert ({name: tuple(value.shape) for name, value in parameters.items()}, buffers) == ({"weight": (3, 1, 2), "bias": (3, 1)}, {})
    assert all(value.is_leaf and value.requires_grad for value in parameters.values())
    x = lib.ones(2)
    found = vmap(lib, lambda p: lib.func.functional_call(models[0], p, x))(parameters)
    for one, model in zip(found.tolist(), models, strict=True):
        assert one == pytest.approx(model(x).tolist(), abs=1e-6)
    with pytest.raises(RuntimeError, match="Expected at least one model, got 0"):
        lib.func.stack_module_state([])
    with pytest.raises(RuntimeError, match="Expected all models to be of the same class"):
        lib.func.stack_module_state([models[0], lib.nn.ReLU()])


def test_a_refused_draw_leaves_the_generator_where_it_was():
    jitgrad.manual_seed(3)
    first = jitgrad.rand(1).item()
    jitgrad.manual_seed(3)
    with pytest.raises(RuntimeError):
        jitgrad.vmap(lambda a: a + jitgrad.rand(()))(jitgrad.zeros(2))
    assert jitgrad.rand(1).item() == first
