"""What tests of forward mode share: the module of either package, and tangents as numbers."""

import pytest

QUIET = pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # torch's own, at its first dual tensor


@pytest.fixture
def fw(lib):
    """The module under test; no level is left open."""
    module = lib.autograd.forward_ad
    yield module
    while module._current_level >= 0:
        module.exit_dual_level()


def tangent(fw, x):
    """A tensor's tangent as nested lists, or None."""
    found = fw.unpack_dual(x).tangent
    return None if found is None else found.tolist()
