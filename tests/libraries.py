"""The packages a test of semantics runs with: what it says must hold for torch, and so for us."""

import pytest


@pytest.fixture(params=["jitgrad", "torch"])
def lib(request):
    """The package under test, then the oracle where it is installed."""
    return pytest.importorskip(request.param)


def leaf(lib, *values, dtype="float32"):
    """A leaf that takes a gradient."""
    return lib.tensor(list(values), dtype=getattr(lib, dtype), requires_grad=True)


def function(lib, forward, backward, name="Made", **more):
    """A custom Function made of two plain functions."""
    members = {"forward": staticmethod(forward), "backward": staticmethod(backward), **more}
    return type(lib.autograd.Function)(name, (lib.autograd.Function,), members)


def identity(lib, log, tag):
    """A Function that does nothing but note when its backward runs."""

    def backward(ctx, grad):
        log.append(tag)
        return grad

    return function(lib, lambda ctx, x: x * 1, backward)
