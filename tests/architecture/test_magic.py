"""No magic: every name can be found by a search, every class holds what its file says."""

import ast

import pytest

from tests.architecture import tree

STORE = "src/jitgrad/_kernels/store.py"  # turns kernel sources into functions: the one place that runs generated code
FORBIDDEN = {"setattr", "vars", "exec", "eval", "globals", "locals", "__import__"}
# object.__setattr__ and friends are for classes that define the protocol themselves.


def calls(path):
    for node in ast.walk(tree.parse(path)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node


@pytest.mark.parametrize("word", sorted(FORBIDDEN))
def test_not_called(word):
    wrong = [
        f"{tree.name(path)}:{call.lineno}"
        for path in tree.modules(generated=True)
        if tree.name(path) != STORE
        for call in calls(path)
        if call.func.id == word
    ]
    assert wrong == []


def test_every_module_says_what_it_is():
    silent = [tree.name(path) for path in tree.modules() if ast.get_docstring(tree.parse(path)) is None]
    assert silent == []


def test_public_faces_are_explicit():
    """`__init__` modules re-export; what they offer stands in `__all__`."""
    wrong = []
    for path in tree.modules(generated=True):
        body = tree.parse(path).body
        offers = any(isinstance(node, ast.ImportFrom) and node.level for node in body)
        listed = any(isinstance(node, ast.Assign | ast.AnnAssign) and "__all__" in ast.unparse(node) for node in body)
        if path.name == "__init__.py" and offers and not listed and not tree.name(path).startswith("src/jitgrad/_"):
            wrong.append(tree.name(path))
    assert wrong == []
