"""`_saved_*` and `_raw_saved_*` of nodes: names, identity, what is left after the release."""

import pytest

from tests.libraries import leaf

FIELDS = {
    "index": (lambda lib, x: x[:, lib.tensor([0, 1])], {"self_sym_sizes": (2, 2)}),
    "mean": (lambda lib, x: x.mean(), {"self_sym_sizes": (2, 2), "self_sym_numel": 4}),
    "mean of rows": (lambda lib, x: x.mean(1), {"self_sym_numel": 4, "dim": (1,), "keepdim": False}),
    "sum": (lambda lib, x: x.sum(), {"self_sym_sizes": (2, 2)}),
    "permute": (lambda lib, x: x.permute(1, 0), {"dims": (1, 0)}),
    "slice": (lambda lib, x: x[0:1], {"dim": 0, "start": 0, "end": 1, "step": 1}),
    "add": (lambda lib, x: x + x, {"alpha": 1}),
    "gather": (lambda lib, x: x.gather(0, lib.tensor([[0, 1]])), {"dim": 0, "sparse_grad": False}),
    "as_strided": (lambda lib, x: x.as_strided((3,), (1,), 1), {"size": (3,), "stride": (1,), "storage_offset": 1}),
    "norm": (lambda lib, x: lib.linalg.vector_norm(x), {"ord": 2, "keepdim": False}),
    "logit": (lambda lib, x: lib.logit(x), {"eps": None}),
    "elu": (lambda lib, x: lib.nn.functional.elu(x), {"input_scale": 1, "scale": 1}),
    "max of rows": (lambda lib, x: x.max(1)[0], {"dim": 1, "keepdim": False}),
    "max of rows kept": (lambda lib, x: x.max(1, keepdim=True)[0], {"keepdim": True}),
    "median of rows": (lambda lib, x: x.median(1)[0], {"keepdim": False}),
    "product": (lambda lib, x: x.mm(lib.ones(2, 3)), {"self_sym_sizes": (2, 2), "mat2_sym_sizes": (2, 3)}),
    "sum and product": (lambda lib, x: lib.addmm(x, lib.ones(2, 3), lib.ones(3, 2)), {"mat1_sym_sizes": (2, 3), "mat2_sym_sizes": (3, 2)}),
    "layer": (lambda lib, x: lib.nn.functional.linear(lib.ones(3, 2), x, lib.ones(2)), {"mat1_sym_sizes": (3, 2), "mat2_sym_sizes": (2, 2)}),
    "products": (lambda lib, x: lib.addbmm(x, lib.ones(5, 2, 3), lib.ones(5, 3, 2)), {"batch1_sym_argsize_0": 5, "batch2_sym_argsize_2": 2}),
    "layer norm": (lambda lib, x: lib.nn.functional.layer_norm(x, (2, 2)), {"normalized_shape": (2, 2)}),
    "nll": (lambda lib, x: lib.nn.functional.nll_loss(x, lib.tensor([0, 1]), reduction="sum"), {"reduction": 2}),
    "huber": (lambda lib, x: lib.nn.functional.huber_loss(x, x.detach(), delta=3.0), {"reduction": 1, "delta": 3.0}),
    "smooth l1": (lambda lib, x: lib.nn.functional.smooth_l1_loss(x, x.detach(), beta=0.5), {"beta": 0.5}),
    "rounded quotient": (lambda lib, x: lib.div(x, x * 2, rounding_mode="trunc"), {"rounding_mode": "trunc"}),
    "quotient rounded down": (lambda lib, x: lib.div(x, 3.0, rounding_mode="floor"), {"rounding_mode": "floor", "self": None}),
    "by a number": (lambda lib, x: x * 3, {"self": None}),
    "scaled sum": (lambda lib, x: lib.add(x, 2, alpha=4), {"alpha": 4}),
    "power of a number": (lambda lib, x: 1.5**x, {"self": 1.5}),
    "variance": (lambda lib, x: x.var(), {"dim": None, "correction": None}),
    "variance of rows": (lambda lib, x: x.var(1), {"dim": (1,), "correction": 1}),
    "roll": (lambda lib, x: x.roll(1, 0), {"dims": (0,), "shifts": (1,)}),
    "windows": (lambda lib, x: x.unfold(1, 2, 1), {"dimension": 1, "size": 2, "step": 1}),
    "pieces": (lambda lib, x: x.split([1, 1])[0], {"split_sizes": (1, 1)}),
    "equal pieces": (lambda lib, x: x.split(1)[0], {"split_size": 1}),
    "embedding": (lambda lib, x: lib.nn.functional.embedding(lib.tensor([0]), x), {"weight_sym_argsize_0": 2, "scale_grad_by_freq": False}),
    "scattered": (lambda lib, x: x.masked_scatter(x > 1, lib.ones(5)), {"source_sym_sizes": (5,)}),
}

MATRICES = {
    "inv": ({"inverse"}, {"result"}),
    "cholesky": ({"L"}, {"result"}),
    "qr": ({"Q", "R"}, {"result0"}),
    "svd": ({"U", "S", "Vh", "full_matrices"}, {"result0", "full"}),
    "eigh": ({"eigenvalues", "eigenvectors"}, {"result0"}),
}


def matrix(lib):
    return lib.tensor([[0.25, 0.5], [0.75, 0.5]], requires_grad=True)


@pytest.mark.parametrize("name", FIELDS)
def test_names(lib, name):
    make, expected = FIELDS[name]
    node = make(lib, matrix(lib)).grad_fn
    for field, value in expected.items():
        assert getattr(node, "_saved_" + field) == value
        assert "_saved_" + field in dir(node)
    with pytest.raises(AttributeError, match="object has no attribute '_saved_nothing'"):
        node._saved_nothing


@pytest.mark.parametrize("call", ["topk(1)", "max(0)", "min(0)", "sort()", "kthvalue(1)", "median(0)", "nanmedian(0)", "mode(0)"])
def test_indices_have_one_name(lib, call):
    op, arguments = call[:-1].split("(")
    values, indices = getattr(matrix(lib), op)(*map(int, arguments.split(",") if arguments else ()))
    node = values.grad_fn
    assert node._saved_indices.tolist() == indices.tolist()
    assert {"_saved_indices", "_raw_saved_indices"} <= set(dir(node))
    assert not {"_saved_index", "_raw_saved_index"} & set(dir(node))


def test_index_tensors(lib):
    index = lib.tensor([0, 1])
    y = matrix(lib)[:, index]
    assert y.grad_fn._saved_indices[0] is None
    assert y.grad_fn._saved_indices[1].tolist() == [0, 1]
    nothing, raw = y.grad_fn._raw_saved_indices
    with pytest.raises(RuntimeError, match="None is forbidden"):
        nothing.register_hooks(lambda x: x, lambda x: x)
    raw.register_hooks(lambda x: x, lambda x: x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        y.grad_fn._saved_indices


def test_an_input_is_itself(lib):
    a = leaf(lib, 1.0, 2.0)
    b, constant = a * a, lib.ones(2)
    c, d, e = a * b, a * constant, lib.exp(a)
    assert c.grad_fn._saved_self is a
    assert c.grad_fn._saved_other is b
    assert d.grad_fn._saved_other is constant
    assert e.grad_fn._saved_result is not e
    assert e.grad_fn._saved_result.grad_fn is e.grad_fn
    node = c.grad_fn
    del b
    assert node._saved_other.grad_fn is not None  # another tensor with the same history


def test_raw(lib):
    def pack(x):
        return x

    def unpack(x):
        return x

    a = leaf(lib, 2.0)
    with lib.autograd.graph.saved_tensors_hooks(pack, unpack):
        b = a**2
    c = b.exp()
    d = c**2
    packed, result, plain = b.grad_fn._raw_saved_self, c.grad_fn._raw_saved_result, d.grad_fn._raw_saved_self
    assert (packed.data is a, packed.unpack_hook is unpack) == (True, True)
    assert (result.data is c, result.data.requires_grad, result.unpack_hook) == (False, False, None)
    assert (plain.data is c, plain.unpack_hook) == (True, None)
    assert isinstance(packed, lib.autograd.SavedTensor)
    assert packed.unpack().tolist() == [2.0]
    with pytest.raises(RuntimeError, match="Trying to create a SavedTensor object from Python is forbidden"):
        lib.autograd.SavedTensor()


@pytest.mark.parametrize("hooks", [(), (len,), (1, 1)])
def test_what_register_hooks_takes(lib, hooks):
    y = leaf(lib, 2.0).exp()
    with pytest.raises(TypeError, match="incompatible function arguments"):
        y.grad_fn._raw_saved_result.register_hooks(*hooks)


def test_what_comes_back_is_another_tensor(lib):
    """The version counter of what a hook returns is its own, not that of the tensor that was packed."""
    a = leaf(lib, 1.0)
    other = a.detach().clone()
    with lib.autograd.graph.saved_tensors_hooks(lambda x: other, lambda x: x):
        y = a.sin()
    found = y.grad_fn._saved_self
    assert found is not a
    with lib.no_grad():
        found.add_(1)
    assert a._version == 0
    with lib.autograd.graph.save_on_cpu():
        y = a.sin()
    assert y.grad_fn._saved_self is not a


def test_a_saved_tensor_that_was_detached_in_place(lib):
    x = leaf(lib, 1.0)
    a = x.clone()
    b, c, d = a.sin(), a.exp(), a * 3
    a.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
        b.sum().backward()
    (c + d).sum().backward()  # the result is saved, or nothing
    assert x.grad is not None


def test_a_result_that_was_detached_in_place(lib):
    x = leaf(lib, 1.0)
    y = x.exp()
    z = y * x
    y.detach_()
    with pytest.raises(RuntimeError, match="Trying to use a saved tensor that has been detached in-place"):
        z.sum().backward()


def test_detached_before_it_was_saved(lib):
    x = leaf(lib, 2.0)
    y = (x * 1).detach_()
    (y * x).sum().backward()
    assert x.grad.item() == 2.0


def test_twice_through_brackets(lib):
    for make in (lambda x: x[lib.tensor([0])], lambda x: x.index_put((lib.tensor([0]),), lib.ones(2))):
        y = make(matrix(lib)).sum()
        y.backward()
        with pytest.raises(RuntimeError, match="second time"):
            y.backward()


ONCE = {
    "values in brackets": (lambda lib, x, c: c.__setitem__(0, 1.0) or c, True),
    "index of a source that takes no gradient": (lambda lib, x, c: x.index_add(0, lib.tensor([0]), lib.ones(1, 2)), False),
    "index of a source": (lambda lib, x, c: lib.ones(2, 2).index_add(0, lib.tensor([0]), x[:1]), True),
    "scatter_add": (lambda lib, x, c: x.scatter_add(0, lib.tensor([[0]]), lib.ones(1, 1)), False),
    "addmm of constants": (lambda lib, x, c: lib.addmm(x, lib.ones(2, 2), lib.ones(2, 2)), False),
    "addmm": (lambda lib, x, c: lib.addmm(x, x, lib.ones(2, 2)), True),
    "in place on a part": (lambda lib, x, c: c[0].mul_(2) is None or c, True),
}


@pytest.mark.parametrize("name", ONCE)
def test_what_can_be_run_once(lib, name):
    """A node that saved nothing may run again without `retain_graph`."""
    make, once = ONCE[name]
    x = matrix(lib)
    y = make(lib, x, x.clone())
    y.backward(lib.ones(2, 2))
    if once:
        with pytest.raises(RuntimeError, match="second time"):
            y.backward(lib.ones(2, 2))
    else:
        y.backward(lib.ones(2, 2))


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_rounding_mode(lib, mode):
    x = lib.tensor([5.0], requires_grad=True)
    assert lib.div(x, 2.0, rounding_mode=mode).grad_fn._saved_rounding_mode == mode


def test_lengths_of_a_batch(lib):
    x = lib.ones(2, 3, 4, requires_grad=True)
    node = lib.addbmm(lib.ones(3, 5), x, lib.ones(2, 4, 5)).grad_fn
    assert node._saved_batch1_sym_argsize_0 == 2
    assert node._saved_batch1_sym_argsize_1 == 3
    assert node._saved_batch2_sym_argsize_2 == 5


@pytest.mark.parametrize("name", MATRICES)
def test_decompositions_speak_of_their_parts(lib, name):
    theirs, ours = MATRICES[name]
    y = getattr(lib.linalg, name)(matrix(lib) + 2 * lib.eye(2))
    node = (y[0] if isinstance(y, tuple) else y).grad_fn
    shown = {field.removeprefix("_saved_") for field in dir(node)}
    assert theirs <= shown
    assert not ours & shown


def test_what_ops_keep_to_themselves(lib):
    x = matrix(lib)
    for node, field in ((x.sum(0).grad_fn, "kind"), (x.view(4).grad_fn, "shape"), (x.exp().clone().grad_fn, "self_sym_sizes")):
        assert not hasattr(node, "_saved_" + field)
        assert "_saved_" + field not in dir(node)


KEPT = {
    "trunc": lambda lib, x, y: lib.div(x, y, rounding_mode="trunc"),
    "floor": lambda lib, x, y: lib.div(x, y, rounding_mode="floor"),
    "addcdiv": lambda lib, x, y: lib.addcdiv(x, lib.ones(2), y),
}


@pytest.mark.parametrize("name", ["trunc", "floor", "addcdiv"])
def test_saved_though_no_gradient_reads_it(lib, name):
    x, y = leaf(lib, 5.0, 7.0), lib.tensor([2.0, 3.0])
    z = KEPT[name](lib, x, y).sum()
    z.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.backward()
    z = KEPT[name](lib, x, y).sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("mode", ["trunc", "floor"])
def test_dividend_is_saved_for_the_divisor_alone(lib, mode):
    x, y = leaf(lib, 5.0, 7.0), leaf(lib, 2.0, 3.0)
    assert lib.div(x, y.detach(), rounding_mode=mode).grad_fn._saved_self is None
    assert lib.div(x, y, rounding_mode=mode).grad_fn._saved_self is x
    z = lib.div(x, 2.0, rounding_mode=mode)
    assert z.grad_fn._saved_other.item() == 2.0
    z.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        z.sum().backward()


def test_weight_of_lerp_is_saved(lib):
    w = leaf(lib, 0.25, 0.5)
    weight = w * 1
    z = lib.lerp(lib.ones(2), lib.zeros(2), weight).sum()
    with lib.no_grad():
        weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@pytest.mark.parametrize("name", ["sum", "mean"])
def test_axes_that_are_given_make_another_node(lib, name):
    x = matrix(lib)
    kind = name.capitalize() + "Backward"
    assert getattr(x, name)().grad_fn.name() == kind + "0"
    for y in (getattr(x, name)(None), getattr(lib, name)(x, dim=None), getattr(x, name)(dim=())):
        assert y.grad_fn.name() == kind + "1"
        assert y.item() == getattr(x, name)().item()
    y = getattr(x, name)(None, dtype=lib.float64)
    y.backward()
    assert x.grad.tolist() == [[1.0 if name == "sum" else 0.25] * 2] * 2


@pytest.mark.parametrize("name", ["fmod", "remainder"])
def test_where_nothing_is_read_nothing_is_let_go(lib, name):
    x, y = leaf(lib, 5.0, 7.0), lib.tensor([2.0, 3.0])
    z = getattr(lib, name)(x, y).sum()
    z.backward()
    y.add_(1)
    z.backward()
    assert x.grad.tolist() == [2.0, 2.0]
