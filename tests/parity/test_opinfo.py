"""torch's own test databases put to jitgrad by a harness that lies outside the repository.

JITGRAD_OPINFO names the harness's folder; without it these tests are skipped and `test_against_torch.py` stands alone.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
HARNESS = Path(os.environ.get("JITGRAD_OPINFO", "")) / "run.py"
pytestmark = pytest.mark.skipif(
    "JITGRAD_OPINFO" not in os.environ or not HARNESS.exists(), reason="JITGRAD_OPINFO names no harness"
)
STRICT = ["--strict-errors", "--inplace", "--alias"]


@pytest.mark.parametrize(
    ("least", "options"),
    [(170, ["--tiers", "T1", *STRICT]), (20, ["--modules", "--tiers", "T1"]), (5, ["--optimizers", "--tiers", "T1"])],
    ids=["ops", "modules", "optimizers"],
)
def test_first_tier(least, options):
    command = [sys.executable, str(HARNESS), "--package", "jitgrad", "--min-present", str(least), "--budget", "480"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
