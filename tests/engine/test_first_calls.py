"""First calls of an op from several threads at once: one compiles, all get the right result."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys, threading
import jitgrad as torch
sys.setswitchinterval(1e-6)
barrier, results = threading.Barrier(6), []

def work():
    x = torch.ones(3, requires_grad=True)
    barrier.wait()
    y = (x * 2.0 + x).tanh().sum()
    y.backward()
    results.append([round(v, 4) for v in x.grad.tolist()])

threads = [threading.Thread(target=work) for _ in range(6)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(results == [[0.0296] * 3] * 6)
"""


def test_first_calls_from_six_threads():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("True\n", "")


FORK = """
import os, threading
import jitgrad as torch
from jitgrad._engine.node import ACCUMULATE
held, go = threading.Event(), threading.Event()

def hold():
    with ACCUMULATE:
        held.set()
        go.wait(0.3)

thread = threading.Thread(target=hold)
thread.start()
held.wait()
child = os.fork()
x = torch.ones(3, requires_grad=True)
(x * 2).sum().backward()
assert x.grad.tolist() == [2.0] * 3
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
go.set()
thread.join()
print("done")
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_while_another_thread_accumulates():
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK], capture_output=True, text=True, check=False, timeout=60)
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr
