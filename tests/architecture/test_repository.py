"""The repository as a whole: links lead somewhere, generated files are fresh, CI runs what the README says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture import tree

SKIPPED = {".git", ".venv", "build", "dist", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".import_linter_cache",
           ".hypothesis", ".benchmarks", "__pycache__", "jitgrad-demo"}  # fmt: skip
TEXT = {".py", ".md", ".toml", ".txt", ".svg", ".cfg", ".yml", ".yaml", ""}


def files(*suffixes):
    for folder, folders, names in os.walk(tree.ROOT):
        folders[:] = [name for name in folders if name not in SKIPPED and not name.endswith(".egg-info")]
        yield from (Path(folder) / name for name in names if Path(name).suffix in suffixes)


def test_links_of_documents_exist():
    missing = []
    for document in files(".md"):
        text = re.sub(r"```.*?```", "", document.read_text(encoding="utf-8"), flags=re.DOTALL)
        for target in re.findall(r"\]\(([^)\s]+)\)|<img[^>]+src=\"([^\"]+)\"", text):
            link = (target[0] or target[1]).partition("#")[0]
            if link and "://" not in link and not link.startswith("mailto:") and not (document.parent / link).exists():
                missing.append(f"{tree.name(document)}: {link}")
    assert missing == []


def test_anchors_of_documents_exist():
    missing = []
    for document in files(".md"):
        text = document.read_text(encoding="utf-8")
        for path, anchor in re.findall(r"\]\(([^)\s#:]*)#([^)\s]+)\)", text):
            target = document.parent / path if path else document
            if anchor not in _anchors(target):
                missing.append(f"{tree.name(document)}: {path}#{anchor}")
    assert missing == []


def _anchors(document):
    headings = re.findall(r"^#+ (.+)$", document.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_no_path_of_somebodys_machine():
    pattern = re.compile(r"(?<![\w.])/(?:home|Users|root|work|tmp|opt)/\w")
    found = [
        f"{tree.name(path)}: {match[0]}"
        for path in files(*TEXT)
        if path != Path(__file__)
        for match in pattern.finditer(path.read_text(encoding="utf-8", errors="ignore"))
    ]
    assert found == []


@pytest.mark.skipif(not (tree.ROOT / "tools" / "gen_api.py").exists(), reason="not a checkout")
def test_generated_files_are_fresh():
    command = [sys.executable, str(tree.ROOT / "tools" / "gen_api.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def command_of_readme(name):
    """The line of the README's block that follows the comment `<!-- NAME -->`."""
    text = (tree.ROOT / "README.md").read_text(encoding="utf-8")
    (line,) = re.findall(rf"<!-- {name} -->\n```\w*\n(.+)\n```", text)
    return line


@pytest.mark.parametrize("name", ["demo command", "test command"])
def test_readme_commands_are_one_line_that_starts_from_nothing(name):
    assert command_of_readme(name).startswith("python3 -m venv .venv && .venv/bin/")


def test_ci_runs_the_test_command_of_the_readme():
    line = subprocess.run(
        ["bash", ".ci/run", "--print-test-command"], cwd=tree.ROOT, capture_output=True, text=True, check=True
    )
    assert line.stdout.strip() == command_of_readme("test command")


def test_version_is_in_the_changelog():
    version = re.search(r'__version__ = "([^"]+)"', (tree.PACKAGE / "_version.py").read_text(encoding="utf-8"))[1]
    assert f"## {version}" in (tree.ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_required_dependencies_are_numpy_and_numba_only():
    text = (tree.ROOT / "pyproject.toml").read_text(encoding="utf-8")
    (line,) = re.findall(r"^dependencies = \[(.*)\]$", text, re.MULTILINE)
    assert re.findall(r'"([a-z]+)', line) == ["numpy", "numba"]
