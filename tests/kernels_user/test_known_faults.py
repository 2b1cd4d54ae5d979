"""Faults that users met elsewhere - in other engines, in Numba itself - and that kernels of users must not have here."""
# ruff: noqa: PLW0108  (a lambda is a Python function, which what it calls is not)

import gc
import multiprocessing
import os
import subprocess
import sys
import textwrap
import threading
import types
import weakref

import numba
import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from jitgrad._kernels.user import Compiled
from jitgrad.autograd.kernels import KernelError, elementwise, jit_function
from tests.kernels_user.cases import make_double, make_product, make_scan, tensor

needs_compiler = pytest.mark.skipif(not settings.jit, reason="about compiled code")


def run(program, folder, **environment):
    """Run a program in a process of its own; what it printed, as lines."""
    settings = os.environ | {"JITGRAD_CACHE_DIR": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": "1"} | environment
    settings["PYTHONPATH"] = os.pathsep.join([str(folder), *sys.path])
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=settings,
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


# ---- second derivatives
class Intermediate(jitgrad.autograd.Function):
    """(2x)**2, its backward by an intermediate that no graph knows."""

    @staticmethod
    def forward(ctx, x):
        ctx.i = 2 * x
        return ctx.i**2

    @staticmethod
    @jitgrad.autograd.function.once_differentiable
    def backward(ctx, grad):
        return 4 * ctx.i * grad


@pytest.mark.parametrize("way", ["backward", "grad"])
def test_a_backward_that_is_differentiable_once_says_so_both_ways(way):
    x = tensor(3.0)
    (g,) = jitgrad.autograd.grad(Intermediate.apply(x) * x, x, create_graph=True)
    with pytest.raises(RuntimeError):
        g.backward() if way == "backward" else jitgrad.autograd.grad(g, x)


def test_scratch_of_a_kernel_never_loses_a_term_of_a_second_derivative():
    op = jit_function(lambda x: (4.0 * x * x, 2.0 * x), lambda grad, x, y, i: 4.0 * i * grad, name="fourfold")
    x = tensor([3.0])
    (g,) = jitgrad.autograd.grad(op(x).sum(), x, create_graph=True)
    assert g.tolist() == [24.0]
    with pytest.raises(RuntimeError, match="fourfold can't be differentiated twice"):
        jitgrad.autograd.grad(g.sum() + 0.0 * x.sum(), x)
    op.double_backward(lambda grad, x, y: 8.0 * x * grad)
    (g,) = jitgrad.autograd.grad(op(x).sum(), x, create_graph=True)
    assert jitgrad.autograd.grad(g.sum(), x)[0].tolist() == [8.0]


# ---- memory
def test_nothing_is_left_behind_by_many_steps_with_the_collector_off():
    exp = jit_function(lambda x: np.exp(x), lambda grad, x, y: grad * y, name="myexp")
    x = tensor([0.1, 0.2])

    def step():
        x.grad = None
        exp(x).sum().backward()

    step()
    gc.collect()
    gc.disable()
    try:
        step()
        before = len(gc.get_objects())
        for _ in range(10_000):
            step()
        assert len(gc.get_objects()) - before < 50
    finally:
        gc.enable()


def test_an_output_that_is_saved_dies_with_its_last_name():
    exp = jit_function(lambda x: np.exp(x), lambda grad, x, y: grad * y, name="myexp")
    gc.disable()
    try:
        y = exp(tensor([1.0]))
        gone = weakref.ref(y)
        del y
        assert gone() is None
    finally:
        gc.enable()


# ---- forks and threads
@numba.njit(parallel=True)
def parallel_forward(x):
    y = np.empty_like(x)
    for i in numba.prange(x.size):
        y[i] = 2.0 * x[i]
    return y


def in_child(function, queue):
    queue.put(function(tensor([1.0, 2.0], grad=False)).tolist())


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("forward", [parallel_forward, parallel_forward.py_func])
def test_a_kernel_used_before_a_fork_works_in_the_child(forward):
    op = jit_function(forward)
    assert op(tensor([1.0, 2.0], grad=False)).tolist() == [2.0, 4.0]
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(op, queue))
    child.start()
    assert queue.get(timeout=60) == [2.0, 4.0]
    child.join(60)
    assert child.exitcode == 0


def test_prange_without_parallel_is_a_loop_and_no_race():
    @jit_function
    def count(x):
        out = np.zeros(1)
        for _ in numba.prange(200_000):
            out[0] += 1
        return out

    assert count(tensor([1.0], grad=False)).item() == 200_000


@needs_compiler
def test_a_first_call_from_four_threads_at_once():
    scan = make_scan()
    barrier, found = threading.Barrier(4), []

    def call():
        x = tensor([1.0, 2.0, 3.0])
        barrier.wait()
        scan(x, 0.5).sum().backward()
        found.append(x.grad.tolist())

    threads = [threading.Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[1.75, 1.5, 1.0]] * 4
    assert len(scan._signatures) == 1


# ---- caches
LIB = """
    import numba
    import deep

    @numba.njit(cache=True)
    def middle(x):
        return deep.inner(x)
    """
DEEP = """
    import numba
    FACTOR = 2.0

    @numba.njit(cache=True)
    def inner(x):
        return x * {factor}
    """
USE = """
    import numpy as np
    import jitgrad, lib
    from jitgrad.autograd.kernels import jit_function, elementwise, scalar_function

    @jit_function
    def outer(x):
        return np.array([lib.middle(x[0]) + 1.0])

    half = scalar_function(lib.middle, partials=(None,))
    e = elementwise(lambda x: half(x) + 1.0)
    x = jitgrad.ones(1, dtype=jitgrad.float64)
    print(outer(x).item(), e(x).item(), elementwise(lambda x: lib.middle(x) + 1.0)(x).item())
    """


@needs_compiler
def test_a_callee_of_a_callee_that_changes_in_another_file(tmp_path):
    (tmp_path / "lib.py").write_text(textwrap.dedent(LIB))
    for factor, expected in (("2.0", "3.0"), ("100.0", "101.0"), ("2.0", "3.0"), ("FACTOR * 4", "9.0")):
        (tmp_path / "deep.py").write_text(textwrap.dedent(DEEP).format(factor=factor))
        assert run(USE, tmp_path) == [" ".join([expected] * 3)]


@needs_compiler
def test_the_second_process_finds_what_the_first_compiled(tmp_path):
    (tmp_path / "lib.py").write_text(textwrap.dedent(LIB))
    (tmp_path / "deep.py").write_text(textwrap.dedent(DEEP).format(factor="2.0"))
    run(USE, tmp_path)

    def stored():
        return {path.name: path.stat().st_mtime_ns for path in (tmp_path / "cache").rglob("*.nb*")}

    first = stored()
    assert any(name.startswith("outer_") for name in first)
    run(USE, tmp_path)
    assert stored() == first


def test_a_global_that_changes_in_the_process():
    scope = {"np": np, "gain": 2.0}
    exec("def forward(x):\n    return gain * x\ndef backward(grad, x, y):\n    return gain * grad", scope)
    op = jit_function(scope["forward"], scope["backward"])
    x = tensor([1.0])
    for gain in (2.0, 3.0, 2.0):
        scope["gain"] = gain
        for _ in range(2):
            y = op(x)
            (g,) = jitgrad.autograd.grad(y.sum(), x)
            assert (y.item(), g.item()) == (gain, gain)


def test_a_captured_array_that_is_written_to():
    table = np.array([1.0, 2.0])
    op = jit_function(lambda x: x * table[0], name="scaled")
    x = tensor([1.0], grad=False)
    assert op(x).item() == 1.0
    table[0] = 5.0
    assert op(x).item() == 5.0


def test_equal_bytecode_with_other_globals_or_cells_is_not_the_same_kernel(tmp_path):
    def make(k):
        return jit_function(lambda x: x * k, name="times")

    x = tensor([1.0], grad=False)
    assert [make(k)(x).item() for k in (0.1, 0.2, 0.1)] == [0.1, 0.2, 0.1]
    assert [elementwise(lambda x, k=k: x * k)(x).item() for k in (0.1, 0.2)] == [0.1, 0.2]
    both = [elementwise(lambda x, y: x - y), elementwise(lambda x, y: y - x)]
    assert [f(x, 3.0).item() for f in both] == [-2.0, 2.0]
    program = """
        import sys
        import jitgrad
        from jitgrad.autograd.kernels import elementwise, jit_function
        K = {k}
        x = jitgrad.ones(2, dtype=jitgrad.float64)
        f = jit_function(lambda x: x * K)
        g = elementwise(lambda x, y: {e})
        print(f(x)[0].item(), g(x, x * 3.0)[0].item())
        """
    for k, e, expected in ((0.1, "x - y", "0.1 -2.0"), (0.2, "y - x", "0.2 2.0"), (0.1, "x - y", "0.1 -2.0")):
        assert run(program.format(k=k, e=e), tmp_path) == [expected]


@needs_compiler
def test_what_has_no_digest_is_compiled_in_memory(tmp_path):
    program = """
        import numba, numpy as np
        import jitgrad
        from jitgrad.autograd.kernels import jit_function

        @numba.vectorize
        def twice(x):
            return 2.0 * x

        print(jit_function(lambda x: twice(x), name="odd")(jitgrad.ones(2)).tolist())
        """
    assert run(program, tmp_path) == ["[2.0, 2.0]"]
    assert not list((tmp_path / "cache").rglob("*lambda*"))


def test_no_place_to_write_a_cache(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("")
    program = """
        import warnings
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            import jitgrad
            from jitgrad.autograd.kernels import elementwise, jit_function
            x = jitgrad.ones(2, requires_grad=True)
            y = jit_function(lambda x: x + x, lambda grad, x, y: grad + grad)(elementwise(lambda x: x * x)(x))
            y.sum().backward()
        print(x.grad.tolist(), [str(w.message)[:40] for w in caught if w.category is RuntimeWarning])
        """
    expected = "[]" if not settings.jit else "['jitgrad: no writable cache folder (tried']"
    assert run(program, tmp_path, JITGRAD_CACHE_DIR=str(blocked / "cache")) == [f"[4.0, 4.0] {expected}"]


# ---- NaN, division, integers
def test_kernels_keep_nan_infinity_and_the_sign_of_zero():
    def forward(x, zero):
        out = np.empty(6)
        nan = x[0]
        out[0] = 1.0 if np.isnan(nan) else 0.0
        out[1] = 1.0 if nan != nan else 0.0
        out[2] = 0.0 if nan <= 0 else nan
        out[3] = x[1] / zero
        out[4] = zero / zero
        out[5] = np.copysign(1.0, -zero * 1.0)
        return out

    found = jit_function(forward)(tensor([np.nan, 1.0], grad=False), np.zeros(())[()]).tolist()
    assert found[:2] == [1.0, 1.0]
    assert np.isnan(found[2])
    assert found[3] == np.inf
    assert np.isnan(found[4])
    assert found[5] == -1.0


def test_constants_of_every_kind_of_array():
    product = make_product()
    x = tensor([1.0, 2.0], grad=False)
    raw = np.zeros(17, np.uint8)
    unaligned = raw[1:].view(np.float64)
    unaligned[:] = [3.0, 4.0]
    for w in (
        np.array([3.0, 4.0], ">f8"),
        np.array([4.0, 3.0])[::-1],
        np.array([3.0, 0.0, 4.0, 0.0])[::2],
        unaligned,
        np.array([3, 4]),
    ):
        assert product(x, w).tolist() == [3.0, 8.0]
    for wrong in (
        np.array([3.0, 4.0], np.longdouble),
        np.array([3.0], np.float16),
        np.array(["a"]),
        np.ma.array([1.0, 2.0], mask=[0, 1]),
    ):
        with pytest.raises(KernelError, match=r"argument 'w' of product is an? .*array"):
            product(x, wrong)


@needs_compiler
def test_integers_are_computed_as_numpy_does():
    square = jit_function(lambda k: k * k, name="square")
    assert square(jitgrad.tensor([100], dtype=jitgrad.int8)).item() == 16


@needs_compiler
def test_a_0d_tensor_in_a_loop_kernel_is_refused_by_name():
    with pytest.raises(KernelError, match=r"scan_forward can't be compiled for x: float64\[\].*cannot index"):
        make_scan()(tensor(1.0), 0.5)


# ---- layouts of gradients
def test_a_backward_never_sees_a_strided_gradient():
    double = make_double()
    x = tensor(np.arange(6.0).reshape(2, 3))
    double(x).sum().backward()
    assert (x.grad == 2).all()
    x.grad = None
    double(x).t().contiguous().view(-1).pow(2).sum().backward()
    assert (x.grad == 8 * x).all()
    x.grad = None
    jitgrad.cat([double(x), double(x)], 1).pow(2).sum().backward()
    assert (x.grad == 16 * x).all()


@pytest.mark.parametrize("hooked", [False, True])
def test_gradients_arrive_contiguous_aligned_writable_and_typed(hooked):
    seen = []

    def backward(grad, x, y):
        seen.append((grad.flags.c_contiguous, grad.flags.aligned, grad.dtype == np.float64, grad.shape == (2, 3)))
        grad[...] = grad * 2.0  # may be written to
        return grad.copy()

    def losses(y):
        yield y.sum()
        yield (y.t() * y.t()).sum()
        yield y.expand(4, 2, 3).sum()
        yield y[::2, 1:].sum()
        yield jitgrad.cat([y, y], 1).float().sum()
        yield (y.t() @ jitgrad.ones(2, 2, dtype=jitgrad.float64)).sum()
        yield y[:, :0].sum() + y.sum()
        yield y.unbind(0)[0].sum()

    count = len(list(losses(tensor(np.ones((2, 3))))))
    for k in range(count):
        y = watched(backward)(tensor(np.ones((2, 3))))
        if hooked:
            y.register_hook(lambda g: None)
        list(losses(y))[k].backward()
    assert seen == [(True, True, True, True)] * count


def watched(backward):
    """A jit_function whose backward runs as plain Python, so that it can look at what it gets."""
    op = jit_function(lambda x: x * 1.0, lambda grad, x, y: grad * 1.0, name="watched")
    op(tensor(np.ones((2, 3)))).sum().backward()
    (plan,) = op._signatures.values()
    plan.straight, plan.back, plan.compiled_back = None, None, Compiled(backward, None, False, frozenset({0}))
    return op


def test_gradients_of_size_0_and_0d():
    double = make_double()
    for shape in ((0,), (0, 3), (2, 0)):
        x = tensor(np.zeros(shape))
        double(x).sum().backward()
        assert x.grad.shape == shape
    x = tensor(3.0)
    double(x).backward()
    assert x.grad.item() == 2.0


# ---- debugging
BOUNDS = """
    import jitgrad
    import numpy as np
    from jitgrad.autograd.kernels import jit_function

    def shifted(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = x[i + 1]
        return y

    op = jit_function(shifted, lambda grad, x, y: grad * 1.0)
    for _ in range(2):
        try:
            op(jitgrad.ones(3))
        except jitgrad.autograd.kernels.KernelError as error:
            print(str(error).replace(chr(10), " | "))
    """


@needs_compiler
def test_bounds_check_mode_names_the_line(tmp_path):
    program = tmp_path / "shifting.py"
    program.write_text(textwrap.dedent(BOUNDS))
    lines = run("import shifting", tmp_path, JITGRAD_BOUNDSCHECK="1")
    assert len(lines) == 2
    for line in lines:
        assert line.startswith("shifted: index is out of bounds |")
        assert line.endswith('shifting.py", line 9, in shifted |     y[i] = x[i + 1]')


# ---- recursion
RECURSION = """
    import jitgrad
    from jitgrad.autograd.kernels import elementwise, jit_function, scalar_function

    def factorial(a):
        return 1.0 if a < 1 else factorial(a - 1) * a

    def even(n):
        return True if n == 0 else odd(n - 1)

    def odd(n):
        return False if n == 0 else even(n - 1)

    @jit_function
    def doubled(x, n):
        return x * 1.0 if n == 0 else doubled(x * 2.0, n - 1)

    x = jitgrad.tensor([5.0, 3.0])
    helper = scalar_function(factorial, partials=(None,))
    print(jit_function(lambda x: x * factorial(x[0]))(x).tolist(), jit_function(lambda x, n: x * even(n))(x, 3).tolist(),
          doubled(x, 3).tolist(), elementwise(lambda x: helper(x))(x).tolist())
    """


def test_functions_that_call_themselves_survive_a_second_process(tmp_path):
    """Numba's own cache gives back code that crashes for a recursion over two types (float32, then float64)."""
    expected = "[600.0, 360.0] [0.0, 0.0] [40.0, 24.0] [120.0, 6.0]"
    assert [run(RECURSION, tmp_path) for _ in range(2)] == [[expected]] * 2


# ---- what a name stands for
def test_a_constant_of_a_module_that_was_given_another_name():
    module = types.ModuleType("settings_of_mine")
    module.GAIN = 2.0
    scope = {"module": module}
    exec("def f(x):\n    m = module\n    return m.GAIN * x", scope)
    f, g = elementwise(scope["f"]), jit_function(scope["f"])
    x = tensor([1.0], grad=False)
    assert (f(x).item(), g(x).item()) == (2.0, 2.0)
    module.GAIN = 7.0
    assert (f(x).item(), g(x).item()) == (7.0, 7.0)


def test_attributes_of_a_class_are_refused_because_nobody_could_tell_that_they_change():
    class Settings:
        rate = 2.0

    with pytest.raises(TypeError, match="it reads 'Settings' from outside, a type"):
        elementwise(lambda x: Settings.rate * x)


def test_numbers_that_only_their_spelling_tells_apart_as_statics():
    inverse = elementwise(lambda x, *, c=1: x / c)
    x = tensor([1.0], grad=False)
    assert [inverse(x, c=c).item() for c in (0.0, -0.0, 0.0)] == [np.inf, -np.inf, np.inf]
    for _ in range(3):
        inverse(x, c=float("nan"))
    assert len(inverse._version().op.plans) == 3  # nan is one value, not three
    with pytest.raises(
        TypeError, match="keyword-only argument 'c' must be a number, a bool, a string or a tuple of those, not list"
    ):
        inverse(x, c=[1])
    with pytest.raises(TypeError, match=r"'w' must be a number, not str"):
        elementwise(lambda x, *, w=1.0: x * w, name="scaled")(x, w="2")


# ---- forks while a thread compiles
FORKS = """
    import os, signal, threading
    import numpy as np
    import jitgrad
    from jitgrad.autograd.kernels import elementwise, jit_function

    signal.alarm(100)  # a fork that never comes back ends the process
    x = jitgrad.ones(3, dtype=jitgrad.float64)
    begun, stop = threading.Semaphore(0), threading.Event()

    def run(k):
        scope = {"np": np, "K": float(k)}
        exec("def f(x): return x * K\\ndef g(x): return x + K", scope)
        return jit_function(scope["f"])(x)[0].item(), elementwise(scope["g"])(x)[0].item()

    def compile_on():
        k = 1
        while not stop.is_set():
            k += 1
            begun.release()
            run(k + 0.5)

    thread = threading.Thread(target=compile_on)
    thread.start()
    codes = []
    for k in range(4):
        for _ in range(k + 1):
            begun.acquire()
        child = os.fork()
        if not child:
            signal.alarm(50)
            os._exit(0 if run(1000 + k) == (1000.0 + k, 1001.0 + k) else 3)
        codes.append(os.waitpid(child, 0)[1])
    stop.set()
    thread.join()
    print(codes)
    """


@needs_compiler
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_fork_while_another_thread_compiles(tmp_path):
    """The child never finds a lock of ours held, and the fork itself never waits for what waits for it."""
    assert run(FORKS, tmp_path) == ["[0, 0, 0, 0]"]


# ---- loops with bounds that are arguments
def damped(x, w, m, n):
    s = 0.0
    for _ in range(m):
        for j in range(n):
            s = s * 0.5 + x[0] * w[j % w.size] ** 2
    return s


def damped_backward(grad, x, w, m, n, s):
    gx, gw = np.zeros_like(x), np.zeros_like(w)
    for _ in range(m):
        for j in range(n - 1, -1, -1):
            k = j % w.size
            gx[0] += grad * w[k] ** 2
            gw[k] += grad * x[0] * 2.0 * w[k]
            grad *= 0.5
    return gx, gw


@pytest.mark.parametrize(
    ("m", "n", "value", "dx", "dw"),
    [
        (2, 3, 25.3125, 12.65625, [1.125, 4.5, 13.5]),
        (0, 3, 0.0, 0.0, [0.0, 0.0, 0.0]),
        (2, 0, 0.0, 0.0, [0.0, 0.0, 0.0]),
        (1, 10_000, 14.857142857142858, 7.428571428571427, [4.571428571428571, 2.2857142857142856, 6.857142857142857]),
    ],
)
def test_nested_loops_with_run_time_bounds(m, n, value, dx, dw):
    op = jit_function(damped, damped_backward, name="damped")
    x, w = tensor([2.0]), tensor([1.0, 2.0, 3.0])
    y = op(x, w, m, n)
    gx, gw = jitgrad.autograd.grad(y, (x, w))
    np.testing.assert_allclose([y.item(), gx.item(), *gw.tolist()], [value, dx, *dw], rtol=1e-12)


# ---- static arguments
def test_static_arguments_of_every_kind_tell_calls_apart():
    def pick(x, axis, how, flag, pair):
        total = x.sum(0) if axis == 0 else x.sum(1)
        if how == "double":
            total = 2.0 * total
        return total + pair[0] if flag else total

    op = jit_function(pick)
    x = tensor([[1.0, 2.0], [3.0, 4.0]], grad=False)
    for _ in range(2):
        assert op(x, 0, "plain", False, (1, 2)).tolist() == [4.0, 6.0]
        assert op(x, 1, "plain", False, (1, 2)).tolist() == [3.0, 7.0]
        assert op(x, 1, "double", False, (1, 2)).tolist() == [6.0, 14.0]
        assert op(x, 1, "double", True, (5, 2)).tolist() == [11.0, 19.0]
        assert op(x, 1, "double", True, (0.5, 2)).tolist() == [6.5, 14.5]
    chosen = elementwise(lambda x, *, how="plain", n=1: x**n if how == "plain" else -x, name="chosen")
    assert [chosen(x, n=2)[1, 1].item(), chosen(x, how="minus")[1, 1].item(), chosen(x)[1, 1].item()] == [
        16.0,
        -4.0,
        4.0,
    ]


@needs_compiler
def test_integer_powers_and_sums_are_numbas():
    power = jit_function(lambda k: k ** np.int64(-1), name="power")
    assert power(jitgrad.tensor([2])).item() == 0  # integers to a negative power
    total = jit_function(lambda x: x.sum(), name="total")  # kept in the array's dtype: accumulate in float64 yourself
    assert total(jitgrad.ones(3)).dtype is jitgrad.float32
