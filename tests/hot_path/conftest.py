"""Counts are those of a program that has done nothing rare, whatever the tests before did."""

import pytest

from jitgrad._tensor.base import INFERENCE_LEAVES


@pytest.fixture(autouse=True)
def nothing_rare_before():
    seen = list(INFERENCE_LEAVES)
    INFERENCE_LEAVES.clear()
    yield
    INFERENCE_LEAVES[:] = seen
