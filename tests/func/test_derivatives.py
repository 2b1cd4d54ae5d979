"""`func`: gradients, products with Jacobians, Jacobians, and all of them nested, beside torch's."""

import gc
import weakref
from collections import OrderedDict, namedtuple

import pytest

import jitgrad
from tests.libraries import function

pytestmark = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
Pair = namedtuple("Pair", "first second")


@pytest.fixture
def func(lib):
    return lib.func


def cube(x):
    return (x**3).sum()


def vector(lib, *values, **named):
    return lib.tensor(list(values) or [1.0, 2.0], **named)


def plain(found):
    """Nests of tensors as nests of numbers."""
    if isinstance(found, dict):
        return {name: plain(one) for name, one in found.items()}
    if isinstance(found, tuple):
        return tuple(plain(one) for one in found)
    return [plain(one) for one in found] if isinstance(found, list) else found.tolist()


# ---- grad
def test_gradients(lib, func):
    x, y = vector(lib), vector(lib, 3.0, 4.0)
    assert plain(func.grad(cube)(x)) == [3.0, 12.0]
    assert plain(func.grad(lambda a, b: (a * b).sum(), argnums=1)(x, y)) == [1.0, 2.0]
    assert plain(func.grad(lambda a, b: (a * b).sum(), argnums=(1, 0))(x, y)) == ([1.0, 2.0], [3.0, 4.0])
    assert plain(func.grad(lambda a, b: (a * b).sum(), argnums=-1)(x, y)) == [1.0, 2.0]
    assert plain(func.grad(lambda a, scale: (a * scale).sum())(x, scale=y)) == [3.0, 4.0]
    assert plain(func.grad(lambda a: y.sum())(x)) == [0.0, 0.0]
    assert plain(func.grad_and_value(cube)(x)) == ([3.0, 12.0], 9.0)


def test_gradients_of_nests(lib, func):
    x, y = vector(lib), vector(lib, 3.0, 4.0)
    assert plain(func.grad(lambda p: (p["w"] * p["b"][0]).sum())({"w": x, "b": [y]})) == {"w": [3.0, 4.0], "b": [[1.0, 2.0]]}
    found = func.grad(lambda p: (p.first * p.second).sum())(Pair(x, y))
    assert type(found) is Pair
    assert plain(found.first) == [3.0, 4.0]
    assert type(func.grad(lambda p: p["w"].sum())(OrderedDict(w=x))) is OrderedDict


def test_auxiliary_values(lib, func):
    x = vector(lib)
    assert plain(func.grad(lambda a: (cube(a), a * 2), has_aux=True)(x)) == ([3.0, 12.0], [2.0, 4.0])
    found, (value, aux) = func.grad_and_value(lambda a: (cube(a), {"twice": a * 2}), has_aux=True)(x)
    assert (plain(found), value.item(), plain(aux)) == ([3.0, 12.0], 9.0, {"twice": [2.0, 4.0]})
    assert not aux["twice"].requires_grad
    output, pullback, aux = func.vjp(lambda a: (a * 2, a * 3), x, has_aux=True)
    assert (plain(output), plain(pullback(x)), plain(aux)) == ([2.0, 4.0], ([2.0, 4.0],), [3.0, 6.0])
    assert plain(func.jvp(lambda a: (a * 2, a * 3), (x,), (x,), has_aux=True)) == ([2.0, 4.0], [2.0, 4.0], [3.0, 6.0])
    assert plain(func.jacrev(lambda a: (a * 2, a * 3), has_aux=True)(x)) == ([[2.0, 0.0], [0.0, 2.0]], [3.0, 6.0])
    assert plain(func.jacfwd(lambda a: (a * 2, a * 3), has_aux=True)(x)) == ([[2.0, 0.0], [0.0, 2.0]], [3.0, 6.0])


def test_what_is_refused(lib, func):
    x = vector(lib)
    for error, words, call in [
        (RuntimeError, r"to return a scalar Tensor, got tensor with 1 dims", lambda: func.grad(lambda a: a)(x)),
        (RuntimeError, r"Expected f\(\*args\) to return a Tensor, got <class 'int'>", lambda: func.grad(lambda a: 3)(x)),
        (ValueError, r"Thing passed to transform API must be Tensor, got <class 'float'>", lambda: func.grad(cube)(3.0)),
        (RuntimeError, r"Got argnum=2, but only 1 positional inputs", lambda: func.grad(cube, argnums=2)(x)),
        (RuntimeError, r"argnums must be int or Tuple\[int, ...\], got: <class 'str'>", lambda: func.grad(cube, argnums="0")(x)),
        (RuntimeError, r"argnums must be non-empty", lambda: func.grad(cube, argnums=())(x)),
        (RuntimeError, r"argnums elements must be unique", lambda: func.grad(cube, argnums=(0, 0))(x)),
        (RuntimeError, r"only Tensors of floating point", lambda: func.grad(cube)(lib.tensor([1, 2]))),
        (RuntimeError, r"should be a tuple: \(output, aux\) if has_aux is True", lambda: func.grad(cube, has_aux=True)(x)),
        (RuntimeError, r"expected f\(\*primals\) to return only tensors, got unsupported type <class 'int'>", lambda: func.vjp(lambda a: 3, x)),
        (RuntimeError, r"All outputs of f must be floating-point", lambda: func.vjp(lambda a: a > 0, x)),
        (RuntimeError, r"cotangents: \(\*,\), primal output: \*", lambda: func.vjp(cube, x)[1]((lib.tensor(1.0),))),
        (RuntimeError, r"Expected primals to be a tuple", lambda: func.jvp(cube, x, (x,))),
        (RuntimeError, r"Expected primals and tangents to have the same python structure", lambda: func.jvp(cube, (x,), x)),
        (RuntimeError, r"Trying to set a forward gradient that has a different size", lambda: func.jvp(cube, (x,), (lib.ones(3),))),
        (RuntimeError, r"Expected primals to contain at least one Tensor", lambda: func.jvp(cube, (), ())),
        (RuntimeError, r"got unsupported type <class 'int'>", lambda: func.jvp(lambda a: 3, (x,), (x,))),
        (RuntimeError, r"The output of f is independent of the inputs", lambda: func.jvp(lambda a: lib.ones(2), (x,), (x,), strict=True)),
        (ValueError, r"jacrev: `chunk_size` should be greater than 0", lambda: func.jacrev(cube, chunk_size=0)),
        (RuntimeError, r"a leaf Variable that requires grad is being used in an in-place operation", lambda: func.grad(lambda a: a.mul_(2).sum())(x)),
    ]:
        with pytest.raises(error, match=words):
            call()
    assert plain(func.grad(cube)(x)) == [3.0, 12.0]


# ---- what is recorded
def test_only_what_leads_out_has_a_history(lib, func):
    x, y = vector(lib), vector(lib, 3.0, 4.0, requires_grad=True)
    assert not func.grad(cube)(x).requires_grad
    assert func.grad(cube)(y).requires_grad
    assert func.grad(lambda a: (a * a * y).sum())(x).requires_grad
    found, value = func.grad_and_value(cube)(x)
    assert (found.grad_fn, value.grad_fn) == (None, None)
    output, pullback = func.vjp(cube, x)
    assert not output.requires_grad
    assert not pullback(lib.tensor(1.0))[0].requires_grad
    assert pullback(lib.tensor(1.0, requires_grad=True))[0].requires_grad
    assert not func.jvp(cube, (x,), (x,))[1].requires_grad
    assert func.jvp(cube, (y,), (x,))[1].requires_grad
    with lib.no_grad():
        found = func.grad(cube)(y)
    assert (plain(found), found.requires_grad) == ([27.0, 48.0], False)


def test_backward_through_a_transform(lib, func):
    x = vector(lib, requires_grad=True)
    func.grad(cube)(x).sum().backward()
    assert plain(x.grad) == [6.0, 12.0]
    x.grad = None
    func.jvp(cube, (x,), (vector(lib),))[1].backward()
    assert plain(x.grad) == [6.0, 24.0]


def test_no_grad_inside_counts(lib, func):
    def partly(a):
        with lib.no_grad():
            constant = a**2
        return (a - constant).sum()

    assert plain(func.grad(partly)(vector(lib))) == [1.0, 1.0]
    assert plain(func.grad(lambda a: (a.detach() * a).sum())(vector(lib))) == [1.0, 2.0]


def test_nothing_is_left_on_the_inputs(lib, func):
    x = vector(lib)
    func.grad(cube)(x)
    func.jvp(cube, (x,), (x,))
    func.jacrev(cube)(x)
    assert (x.requires_grad, x.grad, x.grad_fn, x._version) == (False, None, None, 0)


# ---- products and Jacobians
def test_products(lib, func):
    x, y = vector(lib), vector(lib, 3.0, 4.0)
    output, pullback = func.vjp(lambda a, b: {"product": a * b, "sum": a + b}, x, y)
    assert plain(output) == {"product": [3.0, 8.0], "sum": [4.0, 6.0]}
    assert plain(pullback({"product": x, "sum": y})) == ([6.0, 12.0], [4.0, 8.0])
    assert plain(pullback({"product": x, "sum": y})) == ([6.0, 12.0], [4.0, 8.0])
    assert plain(func.jvp(lambda a, b: (a * b, [b]), (x, y), (y, x))) == (([3.0, 8.0], [[3.0, 4.0]]), ([10.0, 20.0], [[1.0, 2.0]]))
    assert plain(func.jvp(lambda a: lib.ones(2), (x,), (y,))) == ([1.0, 1.0], [0.0, 0.0])


@pytest.mark.filterwarnings("ignore:Attempted to insert a get_attr Node:UserWarning")  # torch's own
def test_linearized(lib, func):
    x, y = vector(lib), vector(lib, 3.0, 4.0)
    output, push = func.linearize(lambda a: a**2, x)
    assert (plain(output), plain(push(y))) == ([1.0, 4.0], [6.0, 16.0])
    with pytest.raises(RuntimeError, match=r"tangent:0 with shape .* doesn't match the shape"):
        push(lib.ones(3))


@pytest.mark.parametrize("name", ["jacrev", "jacfwd"])
def test_jacobians(lib, func, name):
    jacobian = getattr(func, name)
    x, y = vector(lib), vector(lib, 3.0, 4.0)
    assert plain(jacobian(lambda a: a**2)(x)) == [[2.0, 0.0], [0.0, 4.0]]
    assert plain(jacobian(lambda a, b: a * b, argnums=1)(x, y)) == [[1.0, 0.0], [0.0, 2.0]]
    assert plain(jacobian(lambda a, b: a * b, argnums=(0, 1))(x, y)) == ([[3.0, 0.0], [0.0, 4.0]], [[1.0, 0.0], [0.0, 2.0]])
    assert plain(jacobian(lambda a: {"twice": a * 2, "sum": (a.sum(),)})(x)) == {"twice": [[2.0, 0.0], [0.0, 2.0]], "sum": ([1.0, 1.0],)}
    assert plain(jacobian(lambda p: p["a"] * 2)({"a": x})) == {"a": [[2.0, 0.0], [0.0, 2.0]]}
    assert jacobian(lambda a: a.sum(1))(lib.ones(2, 3)).shape == (2, 2, 3)
    assert plain(jacobian(lambda a: lib.ones(2))(x)) == [[0.0, 0.0], [0.0, 0.0]]


def test_second_derivatives(lib, func):
    x, y = vector(lib), vector(lib, 3.0, 4.0)
    hessian = [[6.0, 0.0], [0.0, 12.0]]
    assert plain(func.hessian(cube)(x)) == hessian
    for outer in (func.jacfwd, func.jacrev):
        for inner in (func.jacfwd, func.jacrev):
            assert plain(outer(inner(cube))(x)) == hessian
    assert plain(func.hessian(lambda a, b: (a * a * b).sum(), argnums=(0, 1))(x, y)) == (
        ([[6.0, 0.0], [0.0, 8.0]], [[2.0, 0.0], [0.0, 4.0]]),
        ([[2.0, 0.0], [0.0, 4.0]], [[0.0, 0.0], [0.0, 0.0]]),
    )
    assert func.hessian(lambda a: (a.softmax(0) * a).sum())(x).tolist()[0] == pytest.approx(
        func.jacrev(func.jacrev(lambda a: (a.softmax(0) * a).sum()))(x).tolist()[0], abs=1e-6
    )


# ---- nested
def test_nested_gradients(lib, func):
    x = lib.tensor(2.0)
    assert func.grad(func.grad(lambda a: a**4))(x).item() == 48.0
    assert func.grad(func.grad(func.grad(lambda a: a**4)))(x).item() == 48.0
    assert func.grad(lambda a: a * func.grad(lambda b: a * b**2)(a))(x).item() == pytest.approx(3 * 2 * 4)
    assert func.grad(lambda a: func.grad(lambda b: (a - b) * b)(a) * a)(x).item() == pytest.approx(-4.0)


def test_levels_are_not_confused(lib, func):
    x, one = lib.tensor(3.0), lib.tensor(1.0)
    push = lambda f: lambda a: func.jvp(f, (a,), (one,))[1]  # noqa: E731
    assert push(lambda a: a * push(lambda b: a + b)(one))(x).item() == 1.0
    assert push(push(push(lambda a: a**3)))(x).item() == 6.0
    assert push(func.grad(lambda a: a**3))(x).item() == 18.0
    assert func.grad(push(lambda a: a**3))(x).item() == 18.0
    assert func.grad(lambda a: func.jvp(lambda b: a * b * b, (a,), (a,))[1])(x).item() == pytest.approx(6 * 9)
    assert push(lambda a: func.vjp(lambda b: a * b * b, a)[1](a)[0])(x).item() == pytest.approx(6 * 9)


def test_writes_inside(lib, func):
    def written(a):
        b = a.clone()
        b[0] = b[1] * 2
        b.mul_(a)
        return b.sum()

    x = vector(lib)
    assert plain(func.grad(written)(x)) == [4.0, 6.0]
    assert plain(func.jacfwd(written)(x)) == [4.0, 6.0]
    assert plain(func.hessian(written)(x)) == [[0.0, 2.0], [2.0, 2.0]]


def test_custom_functions(lib, func):
    def setup(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    made = function(lib, lambda x: x**3, lambda ctx, grad: grad * 3 * ctx.saved_tensors[0] ** 2, setup_context=staticmethod(setup),
                    jvp=staticmethod(lambda ctx, t: 3 * ctx.saved_tensors[0] ** 2 * t), generate_vmap_rule=True)  # fmt: skip
    x = vector(lib)
    assert plain(func.grad(lambda a: made.apply(a).sum())(x)) == [3.0, 12.0]
    assert plain(func.jacfwd(made.apply)(x)) == [[3.0, 0.0], [0.0, 12.0]]
    assert plain(func.grad(func.grad(made.apply))(lib.tensor(2.0))) == 12.0
    if lib is jitgrad:  # torch loses the outer tangent here
        assert func.jvp(lambda a: func.jvp(made.apply, (a,), (a,))[1], (x,), (x,))[1].tolist() == [9.0, 72.0]


def test_inference_tensors(lib, func):
    with lib.inference_mode():
        x = vector(lib)
    assert plain(func.grad(cube)(x)) == [3.0, 12.0]


def test_what_is_exported():
    assert jitgrad.vmap is jitgrad.func.vmap
    assert "func" in dir(jitgrad)
    for name in jitgrad.func.__all__:
        assert getattr(jitgrad.func, name).__module__.startswith("jitgrad.func")


@pytest.mark.parametrize("name", ["grad", "vjp", "jvp", "jacfwd", "jacrev", "hessian", "nested", "reverse over forward"])
def test_everything_is_freed_by_reference_counting(name):
    func, made = jitgrad.func, []

    def scalar(x):
        y = (x.exp() * x).softmax(0)
        made.append(weakref.ref(y))
        return y[0]

    calls = {
        "vjp": lambda x: func.vjp(scalar, x)[1](jitgrad.tensor(1.0)),
        "jvp": lambda x: func.jvp(scalar, (x,), (x,)),
        "nested": func.grad(lambda a: func.grad(scalar)(a).sum()),
        "reverse over forward": lambda x: func.jvp(scalar, (x.requires_grad_(),), (x,)),
    }
    gc.collect()
    gc.disable()
    try:
        call = calls[name] if name in calls else getattr(func, name)(scalar)
        call(jitgrad.ones(3))
        assert made
        assert [ref() for ref in made if ref() is not None] == []
    finally:
        gc.enable()


def test_dual_tensors_are_seen_inside(lib, func):
    fw, seen = lib.autograd.forward_ad, []

    def watched(x):
        seen.append((fw._current_level, fw.unpack_dual(x).tangent.tolist()))
        return x**2

    assert plain(func.jvp(watched, (vector(lib),), (vector(lib, 3.0, 4.0),))[1]) == [6.0, 16.0]
    assert plain(func.jacfwd(lambda x: func.jvp(watched, (x,), (x * 5,))[1])(lib.tensor(2.0))) == 40.0
    assert seen == [(0, [3.0, 4.0]), (0, 10.0)]
    assert fw._current_level == -1
