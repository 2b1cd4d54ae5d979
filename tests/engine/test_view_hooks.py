"""Hooks on views whose base is written to, where torch loses them."""

import pytest

import jitgrad
from tests.libraries import leaf


@pytest.mark.parametrize("before", [True, False])
def test_a_view_gets_hooks_after_a_write_to_its_base(before):
    """torch forgets the second hook, and crashes without the first."""
    log = []
    base = leaf(jitgrad, 1.0, 2.0) * 1
    view = base[0]
    if before:
        view.register_hook(lambda grad: log.append("before"))
    base.mul_(2)
    view.register_hook(lambda grad: log.append(grad.tolist()))
    (view * 3).backward()
    assert log == [3.0]
