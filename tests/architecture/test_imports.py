"""Imports stand at the top; numba stays in `_kernels` and out of `import jitgrad`."""

import ast
import json
import subprocess
import sys

from tests.architecture import tree

# What may be imported inside a function, and why.
OPTIONAL = {"matplotlib", "safetensors", "tqdm", "torch", "jax"}  # extras: absent for most users
LATE = {"numba", "llvmlite"}  # 0.3-0.7 s, paid at the first kernel instead of at `import jitgrad`
LATE_INSIDE = {  # modules of ours that import numba at their top, so that they must come late too
    "src/jitgrad/_kernels/jit.py",
    "src/jitgrad/_kernels/maps.py",
    "src/jitgrad/_kernels/memory.py",
    "src/jitgrad/_kernels/registry.py",
    "src/jitgrad/_kernels/tiling.py",
    "src/jitgrad/_kernels/user.py",
    "src/jitgrad/cli/info.py",
    "src/jitgrad/compiler/version.py",
}
# Modules of `_kernels` that may use what lies behind numba's public API; the store asks for llvmlite's version only, `tiling` what the processor has.
DEEP = ("jit", "blas", "buffers", "philox", "program", "tiles", "tiling", "vector", "store")


def function_imports(path):
    for function in tree.functions(path):
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                yield node


def test_no_import_inside_a_function():
    wrong = [
        f"{tree.name(path)}:{node.lineno}"
        for path in tree.modules(generated=True)
        for node in function_imports(path)
        if not tree.imported(node) <= OPTIONAL | LATE
        and not (tree.name(path) in LATE_INSIDE and tree.imported(node) == {""})
    ]
    assert wrong == []


def test_the_list_of_exceptions_is_not_longer_than_needed():
    used = {
        tree.name(path)
        for path in tree.modules()
        if any(tree.imported(node) == {""} for node in function_imports(path))
    }
    assert used == LATE_INSIDE


def test_no_star_import():
    wrong = [
        f"{tree.name(path)}:{node.lineno}"
        for path in tree.modules(generated=True)
        for node in ast.walk(tree.parse(path))
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names)
    ]
    assert wrong == []


def test_only_kernels_import_numba():
    users = {
        tree.name(path)
        for path in tree.modules(generated=True)
        for node in ast.walk(tree.parse(path))
        if isinstance(node, ast.Import | ast.ImportFrom) and tree.imported(node) & LATE
    }
    assert all(path.startswith("src/jitgrad/_kernels/") for path in users), users


def test_only_few_kernel_modules_reach_behind_numbas_api():
    users = {
        path.relative_to(tree.PACKAGE / "_kernels").as_posix()
        for path in tree.modules()
        for node in ast.walk(tree.parse(path))
        if _reaches_behind(node)
    }
    assert all(path.startswith(DEEP) for path in users), users


def _reaches_behind(node):
    if isinstance(node, ast.Import):
        return any(alias.name.startswith(("numba.core", "llvmlite")) for alias in node.names)
    if isinstance(node, ast.ImportFrom) and not node.level:
        return (node.module or "").startswith(("numba.core", "llvmlite"))
    return isinstance(node, ast.Attribute) and ast.unparse(node).startswith("numba.core")


def test_importing_the_package_does_not_import_numba():
    loaded = _modules_after("import jitgrad")
    assert "jitgrad" in loaded
    assert {"numba", "llvmlite", "scipy", "matplotlib", "tqdm", "torch"} & loaded == set()


def test_importing_the_package_does_not_import_the_command_line():
    assert {name for name in _modules_after("import jitgrad") if name.startswith("jitgrad.cli")} == set()


def _modules_after(statement):
    program = f"import json, sys\n{statement}\nprint(json.dumps(list(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout))


def test_import_jitgrad_loads_a_bounded_number_of_modules():
    """At a quarter of a millisecond each they are what `import jitgrad` costs beside NumPy; the rest comes at its first use."""
    code = "import sys, numpy; before = len(sys.modules); import jitgrad; print(len(sys.modules) - before)"
    assert int(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout) <= 102
