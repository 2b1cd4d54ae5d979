"""The progress bar yields what it is given, with tqdm and without."""

import io
import sys

import pytest

from jitgrad.cli.progress import bar


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def no_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm", None)


@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_yields_all_steps(stream):
    assert list(bar(iter("abc"), 3, "steps", stream())) == list("abc")


def test_plain_in_a_file(no_tqdm):
    stream = io.StringIO()
    assert list(bar(range(25), 25, "steps", stream)) == list(range(25))
    assert stream.getvalue() == "steps: 10% 20% 30% 40% 50% 60% 70% 80% 90% 100% \n"


def test_plain_on_a_terminal(no_tqdm):
    stream = Terminal()
    list(bar(range(80), 80, "steps", stream))
    frames = stream.getvalue().split("\r")
    assert frames[-1] == f"steps [{'#' * 40}] 80/80\n"
    assert len(frames) == 41


def test_plain_with_few_steps(no_tqdm):
    stream = io.StringIO()
    list(bar(range(2), 2, "steps", stream))
    assert stream.getvalue() == "steps: 50% 100% \n"


def test_an_error_in_a_step_passes_through(no_tqdm):
    def steps():
        yield 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        list(bar(steps(), 2, "steps", io.StringIO()))
