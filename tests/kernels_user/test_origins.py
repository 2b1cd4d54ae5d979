"""Where the functions behind an op come from: modules, `__main__`, cells of a notebook, lambdas, other processes; methods are refused."""

import copy
import linecache
import multiprocessing
import pickle

import numba
import numpy as np
import pytest

import jitgrad
from jitgrad._core.settings import settings
from jitgrad.autograd.kernels import KernelError, elementwise, jit_function, scalar_function
from tests.kernels_user.cases import tensor
from tests.kernels_user.test_known_faults import run

needs_compiler = pytest.mark.skipif(not settings.jit, reason="about compiled code")


@jit_function
def square(x):
    return x * x


@elementwise
def cube(x):
    return x * x * x


@scalar_function
def bent(a):
    return a if a > 0 else 0.0


renamed = jit_function(lambda x: x + x, name="renamed")


# ---- pickling
@pytest.mark.parametrize("op", [square, cube, bent, renamed])
def test_an_op_of_a_module_is_pickled_by_name_and_never_copied(op):
    assert pickle.loads(pickle.dumps(op)) is op
    assert copy.deepcopy({"op": op})["op"] is op


def test_an_op_without_a_name_in_its_module_is_not_pickled():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(jit_function(lambda x: x * 1.0))


def in_child(op, queue):
    queue.put(op(tensor([1.0, 2.0], grad=False)).tolist())


@pytest.mark.parametrize(("op", "expected"), [(square, [1.0, 4.0]), (cube, [1.0, 8.0])])
def test_an_op_crosses_to_a_spawned_process(op, expected):
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    child = context.Process(target=in_child, args=(op, queue))
    child.start()
    assert queue.get(timeout=120) == expected
    child.join(60)


# ---- main, cells, nested functions
SCRIPT = """
    import multiprocessing
    import jitgrad

    @jitgrad.jit_function
    def double(x):
        return x + x

    @double.backward
    def double_backward(grad, x, y):
        return grad + grad

    def work(op, queue):
        queue.put(op(jitgrad.ones(2)).tolist())

    if __name__ == "__main__":
        x = jitgrad.ones(2, requires_grad=True)
        double(x).sum().backward()
        context = multiprocessing.get_context("spawn")
        queue = context.Queue()
        child = context.Process(target=work, args=(double, queue))
        child.start()
        print(x.grad.tolist(), queue.get(timeout=120))
        child.join()
    """


def test_ops_of_a_script(tmp_path):
    (tmp_path / "script.py").write_text("\n".join(line[4:] for line in SCRIPT.splitlines()))
    assert run(
        "import runpy, sys; sys.argv = ['script.py']; runpy.run_path('script.py', run_name='__main__')", tmp_path
    ) == ["[2.0, 2.0] [2.0, 2.0]"]


def cell(text, scope):
    """Run a text as a notebook does: its lines are known to linecache only."""
    name = f"<cell {len(scope)}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    exec(compile(text, name, "exec"), scope)
    return scope


CELL = """
@jitgrad.jit_function
def shifted(x):
    return x + offset
"""


@needs_compiler
def test_cells_of_a_notebook():
    scope = cell(CELL, {"jitgrad": jitgrad, "offset": 1.0})
    first = scope["shifted"]
    assert first(tensor([1.0], grad=False)).tolist() == [2.0]
    scope["offset"] = "one"
    with pytest.raises(KernelError, match=r'File "<cell 2>", line 4, in shifted\n    return x \+ offset'):
        first(tensor([1.0], grad=False))
    scope["offset"] = 5.0
    cell(CELL.replace("+", "-"), scope)  # the cell is edited and run again
    assert (first(tensor([1.0], grad=False)).item(), scope["shifted"](tensor([1.0], grad=False)).item()) == (6.0, -4.0)
    with pytest.raises(TypeError, match=r"line 4, in f\n    return x if x > 0 else -x"):
        cell("\n@jitgrad.elementwise\ndef f(x):\n    return x if x > 0 else -x\n", scope)


def test_a_function_that_has_functions_in_it():
    @jit_function
    def outer(x):
        def inner(a):
            return a * x[0]

        return np.array([inner(2.0) + inner(3.0)])

    assert outer(tensor([2.0], grad=False)).item() == 10.0


# ---- methods
class Model:
    def __init__(self):
        self.gain = 2.0

    def forward(self, x):
        return self.gain * x

    @staticmethod
    @jit_function
    def double(x):
        return 2.0 * x


@pytest.mark.parametrize("make", [jit_function, elementwise, scalar_function])
def test_methods_are_refused_by_name(make):
    with pytest.raises(TypeError, match=r"not the method Model\.forward"):
        make(Model().forward)
    with pytest.raises(
        TypeError, match=r"not the method Model.forward: define it outside of the class(?s:.)*line \d+, in forward"
    ):
        make(Model.forward)
    assert Model().double(tensor([1.0], grad=False)).item() == 2.0
    assert pickle.loads(pickle.dumps(Model.double)) is Model.double


@pytest.mark.parametrize("other", [np.sum, int, numba.vectorize(lambda a: a), 3])
def test_what_is_no_function_is_refused(other):
    with pytest.raises(TypeError, match=r"must be a Python function or one made by numba\.njit, not"):
        jit_function(other)


# ---- reasons
@needs_compiler
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("b = undefined(a)", "NameError: name 'undefined' is not defined"),
        ("b = np.linalg.nothing(a)", "module 'numpy.linalg' has no attribute 'nothing'"),
        ("import os; b = a", r"Use of unsupported opcode \(IMPORT_NAME\) found"),
        (
            "b = np.dot(a, a.astype(np.float32))",
            r"Numba has no dot\(.*\): np.dot\(\) arguments must all have the same dtype",
        ),
        ("b = a if x.size > 3 else 1.0", "Cannot unify .*"),
        ("b = a.nothing", "Unknown attribute 'nothing' of type array.*"),
    ],
)
def test_what_does_not_compile_is_told_in_one_sentence_with_its_line(line, reason):
    scope = cell(f"def f(x):\n    a = 2.0 * x\n    {line}\n    return b\n", {"np": np})
    for _ in range(2):
        with pytest.raises(KernelError, match=rf"f can't be compiled for x: float64\[:\]: {reason}\n") as caught:
            jit_function(scope["f"])(tensor([1.0]))
        assert str(caught.value).endswith(f"line 3, in f\n    {line}")
