"""`elementwise`: a scalar function as an op - values, derivatives of any order, broadcasting, what is refused and where."""
# ruff: noqa: PLW0108  (a lambda is a Python function, which what it calls is not)

import math
from math import tanh as math_tanh

import numba
import numpy as np
import pytest

import jitgrad
from jitgrad import where
from jitgrad._core.settings import settings
from jitgrad.autograd.kernels import KernelError, elementwise, scalar_function
from tests.kernels_user.cases import tensor

GAIN = 2.0
COEFFICIENTS = [1.0, 0.5, 0.25]


@elementwise
def softclip(x, *, width=1.0):
    """Straight near zero, flat far away."""
    return jitgrad.where(abs(x) < width, x, width * jitgrad.tanh(x / width))


@elementwise
def bump(x, y):
    return jitgrad.exp(-x * x) * y + y * y * y


def gradients(function, *tensors, **named):
    result = function(*tensors, **named)
    return [g.tolist() for g in jitgrad.autograd.grad(result.sum(), tensors)]


def test_values_gradient_and_node():
    x = tensor([0.5, 2.0])
    y = softclip(x, width=1.5)
    np.testing.assert_allclose(y.tolist(), [0.5, 1.5 * math.tanh(2 / 1.5)], rtol=1e-14)
    assert y.grad_fn.name() == "SoftclipBackward"
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.0, 1 - math.tanh(2 / 1.5) ** 2], rtol=1e-14)
    assert softclip.__doc__ == "Straight near zero, flat far away."


def test_every_order_of_derivative():
    x = tensor([0.3])
    value = bump(x, 2.0)
    expected = [
        2 * math.exp(-0.09) + 8,
        -4 * 0.3 * math.exp(-0.09),
        2 * (4 * 0.09 - 2) * math.exp(-0.09),
        2 * (-8 * 0.027 + 12 * 0.3) * math.exp(-0.09),
    ]
    for one in expected:
        np.testing.assert_allclose(value.item(), one, rtol=1e-12)
        (value,) = jitgrad.autograd.grad(value.sum(), x, create_graph=True)


@pytest.mark.parametrize(
    ("x", "y"), [((3,), (3,)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((0, 3), (3,)), ((2, 3), ()), ((), ())]
)
def test_broadcasting_and_its_gradients(x, y):
    rng = np.random.default_rng(0)
    x, y = (tensor(rng.normal(size=shape)) for shape in (x, y))
    got = gradients(bump, x, y)
    want = gradients(lambda a, b: (-a * a).exp() * b + b * b * b, x, y)
    for one, other in zip(got, want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_layouts():
    base = tensor(np.arange(24.0).reshape(4, 6) / 10)
    for view in (base.t(), base[::2, ::3], base[:, 1], base.expand(2, 4, 6)):
        np.testing.assert_allclose(bump(view, 2.0).tolist(), ((-view * view).exp() * 2.0 + 8.0).tolist(), rtol=1e-12)


def test_dtypes():
    assert bump(tensor([1.0], dtype=jitgrad.float32), 2.0).dtype is jitgrad.float32
    assert bump(tensor([1.0], dtype=jitgrad.float32), tensor([1.0])).dtype is jitgrad.float64
    assert bump(tensor([1.0], dtype=jitgrad.float16), 1.0).dtype is jitgrad.float16
    whole = elementwise(lambda x: where(x > 2, x * x - 1, -x), name="whole")
    assert whole(jitgrad.tensor([1, 3])).dtype is jitgrad.int64
    assert whole(jitgrad.tensor([1, 3])).tolist() == [-1, 8]
    assert elementwise(lambda x: 0.5 * x)(jitgrad.tensor([1, 3])).tolist() == [0.5, 1.5]
    assert elementwise(lambda x: jitgrad.exp(x))(jitgrad.tensor([0])).dtype is jitgrad.float32


def test_conditions_as_results_and_as_operands():
    inside = elementwise(lambda x, *, lo=0.0, hi=1.0: (lo <= x) & (x <= hi), name="inside")
    found = inside(tensor([-1.0, 0.5, 1.0, 2.0]))
    assert found.dtype is jitgrad.bool
    assert found.tolist() == [False, True, True, False]
    assert not found.requires_grad
    pick = elementwise(lambda mask, x: where(mask, x * x, 0.0), conditions=("mask",))
    x = tensor([2.0, 3.0])
    pick(jitgrad.tensor([True, False]), x).sum().backward()
    assert x.grad.tolist() == [4.0, 0.0]


def test_numbers_and_defaults():
    scaled = elementwise(lambda x, factor=3.0: x * factor, name="scaled")
    assert scaled(2.0) == 6.0
    assert scaled(2, factor=0.5) == 1.0
    assert scaled(tensor([1.0])).tolist() == [3.0]
    assert scaled(2.0, tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    with pytest.raises(TypeError, match="argument 'x' must be Tensor or number, not str"):
        scaled("a")
    with pytest.raises(TypeError, match="missing operand 'x'"):
        scaled()
    with pytest.raises(TypeError, match="takes 2 operands but 3 were given"):
        scaled(tensor([1.0]), 1.0, 2.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'size'"):
        scaled(tensor([1.0]), size=2)


def test_keyword_only_numbers_are_run_time_and_choices_are_static():
    @elementwise
    def series(x, *, rate=0.5, terms=2, alternate=False, kind="plain"):
        total = 0.0
        for k in range(terms):
            total = total + (-1) ** (k * alternate) * (rate * x) ** k
        if kind == "square":
            total = total * total
        return total

    x = tensor([1.0])
    assert series(x).item() == 1.5
    assert series(x, terms=3).item() == 1.75
    assert series(x, terms=3, alternate=True).item() == 0.75
    assert series(x, kind="square").item() == 2.25
    op = series._version().op
    before = op.map.cache_info().currsize
    for rate in (0.1, 0.2, 0.3):
        assert series(x, rate=rate).item() == pytest.approx(1 + rate)
    assert op.map.cache_info().currsize == before  # no tracing, so no compilation, per number
    with pytest.raises(TypeError, match="'rate' is keyword-only, so it is a number without gradient"):
        series(x, rate=tensor([1.0]))
    needs = elementwise(lambda x, *, power: x**power)  # traced at the call, when the static is known
    assert needs(x * 3, power=2).item() == 9.0
    with pytest.raises(TypeError, match="missing keyword-only argument 'power'"):
        needs(x)


def test_true_is_not_one_as_a_static():
    kind = elementwise(lambda x, *, value=0: x + (10.0 if value is True else 1.0), name="kind")
    x = tensor([0.0])
    assert [kind(x, value=v).item() for v in (1, True, 1)] == [1.0, 10.0, 1.0]


# ---- the common call, spelled out
product = elementwise(lambda x, y: x * y + x, name="product")
square = elementwise(lambda x: x * x, name="square")


def test_the_common_call_is_taken_and_agrees_with_the_general_one():
    x, y = tensor([1.0, 2.0]), tensor([3.0, 5.0])
    assert type(square(x).fn).__mro__[1].__name__ == "OneOperand"
    assert type(product(x, y).fn).__mro__[1].__name__ == "TwoOperands"
    assert product(x, y).grad_fn.name() == "ProductBackward"
    assert gradients(product, x, y) == [[4.0, 6.0], [1.0, 2.0]]
    assert gradients(lambda x: product(x, y.detach()), x) == [[4.0, 6.0]]
    assert gradients(lambda y: product(x.detach(), y), y) == [[1.0, 2.0]]
    assert gradients(product, x, tensor([[3.0, 5.0]])) == [[4.0, 6.0], [[1.0, 2.0]]]  # the general way
    for needs in ((x, y), (x, y.detach()), (x.detach(), y)):
        product(*needs).sum().backward()
    assert x.grad.tolist() == [8.0, 12.0]
    assert y.grad.tolist() == [2.0, 4.0]


def test_second_derivatives_of_the_common_call():
    x, y = tensor([2.0]), tensor([3.0])
    (g,) = jitgrad.autograd.grad((product(square(x), y) * x).sum(), x, create_graph=True)  # x**3 (y + 1)
    assert g.item() == 48.0
    assert [h.item() for h in jitgrad.autograd.grad(g.sum(), (x, y))] == [48.0, 12.0]


def test_the_common_call_watches_what_it_saved():
    x, y = tensor([1.0]) * 1.0, tensor([2.0], grad=False)
    z = product(x, y)
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = square(x)
    x.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    z = square(tensor([1.0]))
    z.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        z.sum().backward()


# ---- what it reads from outside
def test_a_number_from_outside_is_traced_anew_when_it_changes():
    global GAIN
    amplify = elementwise(lambda x: GAIN * x, name="amplify")
    x = tensor([1.0])
    try:
        found = []
        for GAIN in (2.0, 3.0, 2.0):  # noqa: B007
            found.append((amplify(x).item(), gradients(amplify, x)[0][0]))
    finally:
        GAIN = 2.0
    assert found == [(2.0, 2.0), (3.0, 3.0), (2.0, 2.0)]


def test_closures_lists_and_helpers():
    def make(power):
        return elementwise(lambda x: polynomial(x) ** power, name="power")

    x = tensor([2.0])
    assert make(1)(x).item() == 3.0
    assert make(2)(x).item() == 9.0
    op = make(1)
    COEFFICIENTS[0] = 5.0
    try:
        assert op(x).item() == 7.0
    finally:
        COEFFICIENTS[0] = 1.0
    assert op(x).item() == 3.0


def polynomial(x):
    total = 0.0
    for c in reversed(COEFFICIENTS):
        total = total * x + c
    return total


def test_a_helper_that_is_defined_anew():
    scope = {}
    exec("def helper(x):\n    return 2.0 * x", scope)  # as in a notebook
    exec("def f(x):\n    return helper(x) + 1.0", scope)
    f = elementwise(scope["f"])
    assert f(tensor([1.0])).item() == 3.0
    exec("def helper(x):\n    return 100.0 * x", scope)
    assert f(tensor([1.0])).item() == 101.0


def test_words_of_jitgrad_math_and_numpy_mean_the_same():
    x = tensor([0.5])
    for function in (lambda x: jitgrad.tanh(x), lambda x: math.tanh(x), lambda x: np.tanh(x), lambda x: math_tanh(x)):
        np.testing.assert_allclose(elementwise(function)(x).item(), math.tanh(0.5), rtol=1e-14)
    assert elementwise(lambda x: np.clip(x, -0.25, 0.25) + np.pi - math.pi)(x).item() == pytest.approx(0.25)
    assert elementwise(lambda x: max(x, 0.75, 0.6) + min(x, 0.1))(x).item() == 0.85
    assert elementwise(lambda x: jitgrad.nn.functional.leaky_relu(-x, 0.5))(x).item() == -0.25


def test_one_in_another():
    outer = elementwise(lambda x: softclip(x, width=0.5) * bump(x, 1.0), name="outer")
    x = tensor([0.3, 1.0])
    got, want = gradients(outer, x), gradients(lambda x: softclip(x, width=0.5) * bump(x, 1.0), x)
    np.testing.assert_allclose(got, want, rtol=1e-12)


def test_a_jitted_helper_is_looked_into():
    cube = numba.njit(lambda x: x * x * math.fabs(x))
    f = elementwise(lambda x: cube(x) + 1.0)
    assert f(tensor([-2.0])).item() == 9.0
    assert gradients(f, tensor([-2.0])) == [[-12.0]]


# ---- scalar functions
@numba.njit
def newton(a):
    """The root of y + y**3 = a."""
    y = a
    for _ in range(60):
        y -= (y + y**3 - a) / (1.0 + 3.0 * y * y)
    return y


def test_a_scalar_function_with_given_partials():
    root = scalar_function(newton, partials=(lambda a, result: 1.0 / (1.0 + 3.0 * result * result),))
    f = elementwise(lambda x: 2.0 * root(x), name="twice_root")
    x = tensor([2.0, 10.0])
    np.testing.assert_allclose(f(x).tolist(), [2.0, 4.0], rtol=1e-12)
    np.testing.assert_allclose(gradients(f, x)[0], [0.5, 2 / 13])
    assert f.check(points=[-10.0, -1.0, 0.0, 0.5, 3.0])  # the second derivative too
    assert f(tensor([2.0], dtype=jitgrad.float32)).dtype is jitgrad.float32
    assert root(2.0) == pytest.approx(1.0)


def test_a_scalar_function_without_partials_says_so():
    bare = scalar_function(newton)
    f = elementwise(lambda x: bare(x))
    with jitgrad.no_grad():
        assert f(tensor([2.0])).item() == pytest.approx(1.0)
    with pytest.raises(TypeError, match="no derivative of newton was given"):
        f(tensor([2.0])).sum().backward()
    with pytest.raises(ValueError, match="newton has 1 arguments, but 2 partials were given"):
        scalar_function(newton, partials=(None, None))


def test_a_scalar_function_follows_what_it_reads():
    scope = {"factor": 2.0}
    exec("def branch(x):\n    return factor * x if x > 0 else 0.0", scope)
    branch = scalar_function(scope["branch"], partials=(None,))
    f = elementwise(lambda x: branch(x))
    assert f(tensor([1.0], grad=False)).item() == 2.0
    scope["factor"] = 7.0
    assert f(tensor([1.0], grad=False)).item() == 7.0
    scope["factor"] = {}
    with pytest.raises(KernelError, match="branch reads 'factor', which is neither a number"):
        f(tensor([1.0], grad=False))


# ---- several results
@elementwise
def polar(r, phi):
    return r * jitgrad.cos(phi), r * jitgrad.sin(phi), r > 1.0


def test_several_results():
    r, phi = tensor([[1.0], [2.0]]), tensor([0.1, 0.2, 0.3])
    x, y, far = polar(r, phi)
    assert far.tolist() == [[False] * 3, [True] * 3]
    assert x.grad_fn.name() == "PolarBackward"
    (x * 3.0 + y * y).sum().backward()
    want = [jitgrad.autograd.grad((r * phi.cos() * 3.0 + (r * phi.sin()) ** 2).sum(), leaf)[0] for leaf in (r, phi)]
    np.testing.assert_allclose(r.grad.tolist(), want[0].tolist())
    np.testing.assert_allclose(phi.grad.tolist(), want[1].tolist())
    np.testing.assert_allclose(
        jitgrad.autograd.grad(polar(r, phi)[1].sum(), r)[0].tolist(), [[phi.sin().sum().item()]] * 2
    )
    assert polar(2.0, 0.0) == (2.0, 0.0, True)


def test_second_derivatives_of_several_results():
    r, phi = tensor([1.5]), tensor([0.4])
    x, y, _ = polar(r, phi)
    (g,) = jitgrad.autograd.grad((x * y).sum(), phi, create_graph=True)  # r^2 cos(2 phi)
    np.testing.assert_allclose(g.item(), 2.25 * math.cos(0.8))
    h = jitgrad.autograd.grad(g.sum(), (r, phi))
    np.testing.assert_allclose([h[0].item(), h[1].item()], [3.0 * math.cos(0.8), -4.5 * math.sin(0.8)])
    assert polar.check(points=[-2.0, -0.5, 0.0, 0.5, 1.0, 3.0])


def test_a_write_to_what_several_results_saved_is_noticed():
    r, phi = tensor([1.0]) * 1.0, tensor([0.5])
    x, _, _ = polar(r, phi)
    r.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


# ---- in place, out=
def test_in_place():
    x = tensor([0.5, 2.0])
    y = x * 1.0
    assert softclip.inplace(y, width=1.5) is y
    np.testing.assert_allclose(y.tolist(), softclip(x, width=1.5).tolist())
    y.sum().backward()
    np.testing.assert_allclose(x.grad.tolist(), [1.0, 1 - math.tanh(2 / 1.5) ** 2])
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        softclip.inplace(x)
    with pytest.raises(TypeError, match="3 results, so there is no in-place form"):
        polar.inplace(y, 1.0)


def test_out():
    x, out = tensor([0.5, 2.0], grad=False), tensor([0.0, 0.0], grad=False)
    version = out._version
    assert softclip(x, out=out) is out
    assert out.tolist() == softclip(x).tolist()
    assert out._version == version + 1
    with pytest.raises(
        RuntimeError, match=r"functions with out=\.\.\. arguments don't support automatic differentiation"
    ):
        softclip(tensor([1.0, 1.0]), out=out)
    with pytest.raises(RuntimeError, match="shape"):
        softclip(x, out=tensor([0.0], grad=False))
    outs = tuple(jitgrad.zeros(2, dtype=kind) for kind in (jitgrad.float64, jitgrad.float64, jitgrad.bool))
    assert polar(x, 0.0, out=outs) is outs
    assert outs[0].tolist() == [0.5, 2.0]


def test_inference_mode_and_no_grad():
    x = tensor([1.0])
    with jitgrad.no_grad():
        assert not softclip(x).requires_grad
    with jitgrad.inference_mode():
        assert softclip(x.detach()).is_inference()
        assert polar(x.detach(), 1.0)[0].is_inference()


@pytest.mark.skipif(not settings.jit, reason="about compiled code")
def test_a_compiled_step_takes_them_in():
    w = tensor([1.0, 2.0, 3.0])

    def step(x):
        w.grad = None
        a, b, _ = polar(w, softclip(x, width=0.5))
        loss = (a * b).sum()
        loss.backward()
        return loss

    x = tensor([0.1, 0.7, -2.0], grad=False)
    want, grad = step(x).item(), w.grad.tolist()
    compiled = jitgrad.compile(step)
    for _ in range(3):  # a warning, an error here, would say that it runs eagerly
        assert compiled(x).item() == pytest.approx(want)
        np.testing.assert_allclose(w.grad.tolist(), grad)


# ---- given partials, sources, checks
def test_a_given_partial_replaces_the_derived_one():
    through = elementwise(lambda x: jitgrad.sign(x), name="through")
    through.partial("x")(lambda x: where(abs(x) <= 1, 1.0, 0.0))
    assert gradients(through, tensor([-3.0, -0.5, 0.5])) == [[0.0, 1.0, 1.0]]
    with pytest.raises(AssertionError, match=r"through: d/dx at x=-1.0 is 1, but the slopes"):
        through.check()
    with pytest.raises(ValueError, match="through has no operand 'y'; its operands are x"):
        through.partial("y")
    with pytest.raises(TypeError, match="there is no 'z'"):
        through.partial("x")(lambda z: z)


def test_keep_result():
    kept = elementwise(lambda x: jitgrad.exp(x), keep_result=True, name="kept")
    assert "exp(" in elementwise(lambda x: jitgrad.exp(x), name="again").source("backward").partition("def ")[2]
    assert "exp(" not in kept.source("backward").partition("def ")[2]
    assert gradients(kept, tensor([1.0])) == [[pytest.approx(math.e)]]


def test_sources():
    assert "def map_softclip(in_x, s_width, out0):" in softclip.source()
    assert "def map_softclip_backward_x(in_grad, in_x, s_width, out0):" in softclip.source("backward")
    assert "real = np.float64" in softclip.source("double_backward", jitgrad.float64)
    with pytest.raises(ValueError, match="source\\(\\) knows 'forward', 'backward', 'double_backward', not 'third'"):
        softclip.source("third")


def test_check_finds_what_goes_wrong_at_edges():
    assert bump.check()
    assert softclip.check(width=0.5)
    naive = elementwise(
        lambda x: jitgrad.log(1.0 + jitgrad.exp(x)) - jitgrad.log(1.0 + jitgrad.exp(x)) * 0.0, name="naive"
    )
    assert naive.check(points=[-1.0, 0.0, 2.0])
    wrong = elementwise(lambda x: x * x, name="wrong")
    wrong.partial("x")(lambda x: 2.1 * x)
    with pytest.raises(AssertionError, match=r"wrong: d/dx at x=-1000.0 is -2100, but the slopes"):
        wrong.check()


def test_check_asks_nothing_where_a_derivative_jumps_or_has_a_pole():
    assert elementwise(lambda x: where(x > 0, 2.0 * x, -x) + jitgrad.floor(x), name="bent").check()
    assert elementwise(lambda x, y: jitgrad.sqrt(abs(x * y) + 1), name="corner").check()
    steep = elementwise(lambda x: x * 1e5, name="steep")
    steep.partial("x")(lambda x: 2e5)  # wrong by as much as a step would be, but the same for every step
    with pytest.raises(AssertionError, match=r"steep: d/dx at x=-1000\.0 is 200000"):
        steep.check()


def test_operands_of_any_name():
    f = elementwise(lambda grad, result, data: grad * result + data * data, name="exp")
    leaves = [tensor([2.0]), tensor([3.0]), tensor([5.0])]
    assert gradients(f, *leaves) == [[3.0], [2.0], [10.0]]
    assert f(data=leaves[2], grad=leaves[0], result=leaves[1]).item() == 31.0


# ---- refusals
def line_with(text):
    with open(__file__) as file:
        return next(number for number, line in enumerate(file, 1) if text in line)


def test_what_cannot_be_expressed_is_refused_at_the_declaration_with_the_line():
    with pytest.raises(TypeError, match="no truth value") as caught:

        @elementwise
        def branching(x):
            if x > 0:  # the line that is named
                return x
            return -x

    message = str(caught.value)
    assert f'File "{__file__}", line {line_with("# the line that is named")}, in branching\n    if x > 0:' in message
    assert "where(condition, a, b)" in message


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x > 0 and x, "no truth value"),
        (lambda x: 0 < x < 1, "no truth value"),
        (lambda x: np.sort(x), "np.sort is not a function of one element"),
        (lambda x: jitgrad.sum(x), "jitgrad.sum is not a function of one element"),
        (lambda x: math.gamma(x), "math.gamma is not a function of one element"),
        (lambda x: np.linalg.norm(x), "np.linalg.norm is not a function of one element"),
        (lambda x: x.tanh(), r"write jitgrad.tanh\(x\) instead of x.tanh\(\)"),
        (lambda x: float(x), "an element has no value while the function is traced"),
        (lambda x: x[0], "'element' object is not subscriptable"),
        (lambda x: [1, 2][x], "an element has no value"),
        (lambda x: "text", "must return elements or numbers, not str"),
        (lambda *xs: xs[0], r"takes a variable number of arguments \(\*xs\)"),
        (lambda: 1.0, "has no operand"),
        (lambda x: x + LEAF, "reads the tensor 'LEAF' from outside"),
        (lambda x: x * SETTINGS["gain"], "reads 'SETTINGS' from outside, a dict"),
        (lambda x: x * missing, "name 'missing' is not defined"),  # noqa: F821
    ],
)
def test_refusals_by_name(function, message):
    with pytest.raises((TypeError, NameError), match=message) as caught:
        elementwise(function)
    assert f'File "{__file__}", line' in str(caught.value)


LEAF = tensor([1.0])
SETTINGS = {"gain": 2.0}


def test_a_value_that_keeps_changing_is_mentioned_once():
    scope = {"t": 0.0}
    exec("def f(x):\n    return x * t", scope)
    f = elementwise(scope["f"], name="f")
    x = jitgrad.ones(1, dtype=jitgrad.int64)  # integers are interpreted: nothing is compiled 40 times

    def calls():
        for k in range(40):
            scope["t"] = k
            assert f(x).item() == k

    with pytest.warns(
        RuntimeWarning, match=r"f was traced .* 32 times .* \(t\): make it a keyword-only argument"
    ) as caught:
        calls()
    assert len(caught) == 1
