"""Sizes: small files, short functions. Files written by the generator are apart."""

from statistics import quantiles

from tests.architecture import tree

FILE_LINES = 400
FUNCTION_LINES = 60
NINE_OF_TEN_LINES = 25


def test_files():
    sizes = {tree.name(path): tree.lines(path) for path in tree.modules()}
    assert {path: lines for path, lines in sizes.items() if lines > FILE_LINES} == {}


def test_functions():
    sizes = {
        f"{tree.name(path)}:{function.lineno} {function.name}": tree.length(function)
        for path in tree.modules()
        for function in tree.functions(path)
    }
    assert {where: lines for where, lines in sizes.items() if lines > FUNCTION_LINES} == {}
    assert quantiles(sizes.values(), n=10)[-1] <= NINE_OF_TEN_LINES


def test_a_file_is_generated_only_where_it_says_so():
    generated = [tree.name(path) for path in tree.modules(generated=True) if tree.is_generated(path)]
    assert all(path.startswith(("src/jitgrad/_tensor/", "src/jitgrad/_ops/")) for path in generated)
