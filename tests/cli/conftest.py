"""`command` runs `python -m jitgrad` in a process of its own, any warning an error."""

import os
import subprocess
import sys

import pytest


@pytest.fixture
def command():
    def run(*arguments, **environment):
        line = [sys.executable, "-W", "error", "-m", "jitgrad", *map(str, arguments)]
        return subprocess.run(
            line, capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment}
        )

    return run
