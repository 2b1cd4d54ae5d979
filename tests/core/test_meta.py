"""Tables of kernels: numbers are given once, and a table is seen only when it is complete, whatever other threads do."""

import threading
import time

import numpy as np
import pytest

from jitgrad._core import meta


@pytest.fixture(autouse=True)
def own_tables(monkeypatch):
    monkeypatch.setattr(meta, "_FACTORIES", [])
    monkeypatch.setattr(meta, "_TABLES", {})


class Slow(list):
    """Other threads run between the reading of its length and what is done with that."""

    def __len__(self):
        found = super().__len__()
        time.sleep(0.01)
        return found


def in_threads(count, work):
    found, barrier = [], threading.Barrier(count)

    def run():
        barrier.wait()
        found.append(work())

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def factory(dtype, entries, index):
    time.sleep(0.001)
    return lambda: index


def test_every_kernel_gets_a_number_of_its_own(monkeypatch):
    monkeypatch.setattr(meta, "_FACTORIES", Slow())
    entries = meta.table(np.dtype("f4"))
    assert sorted(in_threads(6, lambda: meta.register(factory))) == list(range(6))
    assert [entry() for entry in entries] == list(range(6))


def test_a_table_is_complete_when_it_is_seen():
    for _ in range(5):
        meta.register(factory)
    tables = in_threads(6, lambda: [entry() for entry in meta.table(np.dtype("f8"))])
    assert tables == [list(range(5))] * 6
