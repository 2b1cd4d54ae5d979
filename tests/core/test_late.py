"""Names that bring their module at the first use."""

import importlib
import os
import subprocess
import sys

import pytest

import jitgrad

HOMES = ["jitgrad", "jitgrad.autograd", "jitgrad.autograd.graph", "jitgrad.optim"]


@pytest.mark.parametrize("name", HOMES)
def test_dir_lists_what_would_load(name):
    module = importlib.import_module(name)
    late = {*getattr(module, "_LATE_NAMES", ()), *getattr(module, "_LATE", ())}
    assert late
    assert late <= set(dir(module))
    for each in sorted(late):
        assert getattr(module, each) is not None


@pytest.mark.parametrize("name", HOMES)
def test_other_names_are_refused(name):
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nothing_like_it'"):
        importlib.import_module(name).nothing_like_it


def test_listing_loads_nothing():
    program = "import sys, jitgrad; before = set(sys.modules); dir(jitgrad), dir(jitgrad.autograd); print(sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"
    assert jitgrad.autograd.Function.__module__ == "jitgrad.autograd.function"


IMPORTS = """
import sys
import jitgrad
import jitgrad._core.late as late

taken = []

def modules_running():
    frame = sys._getframe(2)
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals["__name__"].startswith("jitgrad.") and "cli" not in frame.f_globals["__name__"]:
            yield frame.f_globals["__name__"]
        frame = frame.f_back

class Watched:
    def __enter__(self):
        taken.extend(modules_running())
    def __exit__(self, *exception):
        pass

late.BUILDING = Watched()
import pkgutil, importlib
for module in pkgutil.walk_packages(jitgrad.__path__, "jitgrad."):
    if not module.name.startswith("jitgrad.cli") and "__main__" not in module.name:
        importlib.import_module(module.name)
print(taken)
"""


def test_no_module_needs_something_late_while_it_is_imported():
    """It would wait, as a module that others wait for, for whoever imports something late, who may wait for the module."""
    done = subprocess.run([sys.executable, "-c", IMPORTS], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "[]"


FORK = """
import os, signal, sys, threading
from jitgrad._core.late import LateModule
sys.path.insert(0, sys.argv[1])
begun = sys.begun = threading.Event()
late = LateModule("slow_to_import")
thread = threading.Thread(target=lambda: late.number)
thread.start()
begun.wait()
child = os.fork()
if child == 0:
    signal.alarm(10)  # a child that waits for the thread it hasn't got ends so
    os._exit(late.number)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_imports(tmp_path):
    (tmp_path / "slow_to_import.py").write_text("import sys, time\nsys.begun.set()\ntime.sleep(0.3)\nnumber = 7\n")
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK, str(tmp_path)], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
