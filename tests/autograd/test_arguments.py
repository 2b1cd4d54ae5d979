"""The arguments of `backward` and `grad`, and what is refused."""

import pytest

from tests.libraries import leaf

UNUSED = "appears to not have been used in the graph"


def loss(x):
    return (x * x).sum()


def test_gradient_of_the_output(lib):
    x = leaf(lib, 1.0, 2.0)
    (x * x).backward(lib.tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    x.grad = None
    (x * 2).backward(lib.ones(2, dtype=lib.float64))
    assert x.grad.dtype == lib.float32


REFUSED = {
    "no scalar": (lambda lib, x: (x * 2).backward(), RuntimeError, "grad can be implicitly created only for scalar outputs"),
    "no history": (lambda lib, x: lib.ones(1).sum().backward(), RuntimeError, "element 0 of tensors does not require grad"),
    "shape": (lambda lib, x: (x * 2).backward(lib.ones(3)), RuntimeError,
              r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and output\[0\] has a shape of torch.Size\(\[2\]\)"),
    "type": (lambda lib, x: (x * 2).backward([1.0, 2.0]), TypeError, "gradients can be either Tensors or None, but got float"),
    "too few gradients": (lambda lib, x: lib.autograd.backward([loss(x)] * 2, [lib.tensor(1.0)]), RuntimeError, "got 2 tensors and 1 gradients"),
    "a constant output": (lambda lib, x: lib.autograd.backward([loss(x), lib.tensor(1.0)]), RuntimeError, "element 1 of tensors does not require"),
    "no tensor": (lambda lib, x: lib.autograd.backward([3]), AssertionError, "Expected output to be a torch.Tensor"),
    "no inputs": (lambda lib, x: lib.autograd.backward(loss(x), inputs=[]), RuntimeError, r"`inputs` argument to `backward\(\)` cannot be empty"),
    "a constant input": (lambda lib, x: lib.autograd.backward(loss(x), inputs=[lib.ones(1)]), RuntimeError, "can't retain_grad"),
    "an input of another kind": (lambda lib, x: lib.autograd.backward(loss(x), inputs=[3]), RuntimeError, "all inputs have to be Tensors"),
    "grad of no inputs": (lambda lib, x: lib.autograd.grad(loss(x), []), RuntimeError, r"`inputs` argument to `grad\(\)` cannot be empty"),
    "grad of a constant": (lambda lib, x: lib.autograd.grad(loss(x), lib.ones(1)), RuntimeError, "One of the differentiated Tensors does not"),
    "grad of an unused": (lambda lib, x: lib.autograd.grad(loss(x), leaf(lib, 1.0)), RuntimeError, UNUSED),
    "contradiction": (lambda lib, x: lib.autograd.grad(loss(x), x, allow_unused=False, materialize_grads=True), ValueError, "Expected allow_unused"),
    "both names": (lambda lib, x: lib.autograd.backward(loss(x), lib.tensor(1.0), grad_variables=lib.tensor(1.0)), RuntimeError, "both passed to"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:`grad_variables` is deprecated")
@pytest.mark.parametrize("case", REFUSED)
def test_refused(lib, case):
    call, error, message = REFUSED[case]
    x = leaf(lib, 1.0, 2.0)
    with pytest.raises(error, match=message):
        call(lib, x)
    assert x.grad is None


def test_several_outputs(lib):
    x = leaf(lib, 1.0, 2.0)
    lib.autograd.backward([loss(x), x * 3], [None, lib.tensor([1.0, 0.0])])
    assert x.grad.tolist() == [5.0, 4.0]
    assert lib.autograd.grad([loss(x), (x * 3).sum()], x)[0].tolist() == [5.0, 7.0]
    both = (x * 2, x * 3)
    assert lib.autograd.grad(both, (x,), (lib.ones(2), lib.ones(2)))[0].tolist() == [5.0, 5.0]


def test_old_name_of_the_gradients(lib):
    x = leaf(lib, 1.0)
    with pytest.warns(FutureWarning, match="`grad_variables` is deprecated"):
        lib.autograd.backward(loss(x), grad_variables=lib.tensor(2.0))
    assert x.grad.tolist() == [4.0]


def test_inputs_of_backward(lib):
    x, y = leaf(lib, 1.0), leaf(lib, 2.0)
    z = x * y
    w = z * z
    w.backward(inputs=[x], retain_graph=True)
    assert (x.grad.tolist(), y.grad) == ([8.0], None)
    w.backward(inputs=y, retain_graph=True)
    assert y.grad.tolist() == [4.0]
    w.backward(inputs={"z": z})
    assert z.grad.tolist() == [4.0]
    assert z.retains_grad
    unreachable = leaf(lib, 1.0)
    loss(x).backward(inputs=[unreachable])
    assert unreachable.grad is None


def test_grad_leaves_dot_grad_alone(lib):
    x = leaf(lib, 1.0, 2.0)
    assert lib.autograd.grad(loss(x), x)[0].tolist() == [2.0, 4.0]
    assert x.grad is None


def test_grad_of_anything(lib):
    x = leaf(lib, 1.0, 2.0)
    y = x * 2
    z = (y * y).sum()
    assert [g.tolist() for g in lib.autograd.grad(z, [y, x, y], retain_graph=True)] == [[4.0, 8.0], [8.0, 16.0], [4.0, 8.0]]
    assert lib.autograd.grad(z, z, retain_graph=True)[0].item() == 1.0
    assert lib.autograd.grad(x, x, lib.ones(2))[0].tolist() == [1.0, 1.0]
    assert lib.autograd.grad(z, {"first": x})["first"].tolist() == [8.0, 16.0]


def test_unused_inputs(lib):
    x, y = leaf(lib, 1.0), leaf(lib, 1.0)
    assert lib.autograd.grad(loss(x), [x, y], allow_unused=True)[1] is None
    zeros = lib.autograd.grad(loss(x), [x, y], materialize_grads=True, create_graph=True)[1]
    assert (zeros.tolist(), zeros.requires_grad) == ([0.0], True)


def test_batched_gradients(lib):
    x = leaf(lib, 1.0, 2.0)
    (rows,) = lib.autograd.grad(x * x, x, lib.eye(2), is_grads_batched=True)
    assert rows.tolist() == [[2.0, 0.0], [0.0, 4.0]]
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension"):
        lib.autograd.grad(x * x, x, lib.ones(2, 3), is_grads_batched=True)


def test_retain_graph(lib):
    x = leaf(lib, 1.0)
    y = loss(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0]
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.backward()
    scaled = (x * 2).sum()
    lib.autograd.grad(scaled, x)
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        lib.autograd.grad(scaled, x)
    shifted = (x + 2).sum()  # saves nothing
    shifted.backward()
    shifted.backward()


def test_create_graph(lib):
    x = leaf(lib, 2.0)
    y = x**3
    (first,) = lib.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = lib.autograd.grad(first.sum(), x, create_graph=True)
    (third,) = lib.autograd.grad(second.sum(), x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]
    assert not third.requires_grad
    with pytest.raises(RuntimeError, match="second time"):  # create_graph without retain_graph
        z = loss(x)
        lib.autograd.grad(z, x, create_graph=True, retain_graph=False)
        lib.autograd.grad(z, x)
    with lib.no_grad():
        assert lib.autograd.grad(loss_outside(lib, x), x, create_graph=True)[0].requires_grad


def loss_outside(lib, x):
    with lib.enable_grad():
        return loss(x)


def test_outputs_alone_decide_what_runs(lib):
    ran = []
    x, y = leaf(lib, 1.0), leaf(lib, 1.0)
    a, b = x * 2, y * 3
    a.grad_fn.register_hook(lambda *given: ran.append("a"))
    b.grad_fn.register_hook(lambda *given: ran.append("b"))
    b.register_hook(lambda g: ran.append("tensor b"))
    y.register_hook(lambda g: ran.append("y"))
    lib.autograd.grad(a * b, x)
    assert ran == ["a"]


def test_gradient_edges(lib):
    graph = lib.autograd.graph
    x = leaf(lib, 1.0, 2.0)
    y = x * x
    assert graph.get_gradient_edge(y)[:2] == (y.grad_fn, 0)
    assert graph.get_gradient_edge(x).node.variable is x
    assert lib.autograd.grad(y.sum(), graph.get_gradient_edge(x), retain_graph=True)[0].tolist() == [2.0, 4.0]
    assert lib.autograd.grad(graph.get_gradient_edge(y), x, lib.ones(2), retain_graph=True)[0].tolist() == [2.0, 4.0]
    lib.autograd.backward(graph.get_gradient_edge(y.sum()), inputs=[graph.get_gradient_edge(x)])
    assert x.grad.tolist() == [2.0, 4.0]
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        lib.autograd.grad(graph.get_gradient_edge(x * x), x)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        lib.autograd.grad(graph.get_gradient_edge(x * x), x, lib.ones(3))
    with pytest.raises(RuntimeError, match="materialize_grads cannot be used when the given input is a GradientEdge"):
        lib.autograd.grad((x * 3).sum(), graph.get_gradient_edge(leaf(lib, 1.0)), materialize_grads=True)
    with pytest.raises(RuntimeError, match="It is not possible to get the gradient edge for a Tensor that does not require gradients"):
        graph.get_gradient_edge(lib.ones(1))


def test_edge_of_one_output_of_several(lib):
    x = leaf(lib, 1.0, 2.0)
    first, second = (x * 1).unbind(0)
    edge = lib.autograd.graph.get_gradient_edge(second)
    assert edge[:2] == (first.grad_fn, 1)
    assert lib.autograd.grad(edge, x)[0].tolist() == [0.0, 1.0]
