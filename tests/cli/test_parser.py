"""The command line: help, exit status, and refusals that say what was wrong."""

import pytest

from jitgrad import __version__
from jitgrad.cli import main


def exit_status(*arguments):
    with pytest.raises(SystemExit) as raised:
        main(arguments)
    return raised.value.code


def test_version(capsys):
    assert exit_status("--version") == 0
    assert capsys.readouterr().out == f"jitgrad {__version__}\n"


@pytest.mark.parametrize(
    "arguments", [["-h"], ["demo", "-h"], ["info", "-h"], ["cache", "-h"], ["cache", "clear", "-h"]]
)
def test_help(arguments, capsys):
    assert exit_status(*arguments) == 0
    assert capsys.readouterr().out.startswith("usage: python -m jitgrad")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required"),
        (["nonsense"], "invalid choice"),
        (["cache"], "required"),
        (["demo", "--epochs", "0"], "must be at least 1, got 0"),
        (["demo", "--epochs", "many"], "--epochs"),
        (["demo", "--seed", "-1"], "must not be negative, got -1"),
    ],
)
def test_refusals(arguments, message, capsys):
    assert exit_status(*arguments) == 2
    assert message in capsys.readouterr().err


def test_an_interrupt_ends_without_a_traceback(monkeypatch, capsys):
    def stopped():
        raise KeyboardInterrupt

    monkeypatch.setattr("jitgrad.cli.info.run", stopped)
    assert main(["info"]) == 1
    assert "stopped" in capsys.readouterr().out
