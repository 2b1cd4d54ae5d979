"""Kernels of one's own, each in four forms: the bare jitted loops, an op of ours, and both packages' `autograd.Function` around the loops.

Every builder returns a step without arguments: one forward and one backward. What a step costs beyond the bare loops is the glue.
"""

import numpy as np
from numba import njit

import jitgrad
from examples.soft_dtw import soft_dtw, soft_dtw_backward


def scan(x, decay):
    y = np.empty_like(x)
    acc = 0.0
    for i in range(x.size):
        acc = decay * acc + x[i]
        y[i] = acc
    return y


def scan_backward(grad, x, decay, y):
    g = np.empty_like(x)
    acc = 0.0
    for i in range(x.size - 1, -1, -1):
        acc = decay * acc + grad[i]
        g[i] = acc
    return g


def products(x, w, b):
    y = np.empty_like(x)
    for i in range(x.size):
        y[i] = x[i] * w[i] + b[i]
    return y


def products_backward(grad, x, w, b, y):
    gx, gw, gb = np.empty_like(x), np.empty_like(w), np.empty_like(b)
    for i in range(x.size):
        gx[i], gw[i], gb[i] = grad[i] * w[i], grad[i] * x[i], grad[i]
    return gx, gw, gb


def two_ways(x):
    y, z = np.empty_like(x), np.empty_like(x)
    for i in range(x.size):
        y[i], z[i] = 2.0 * x[i], x[i] * x[i]
    return y, z


def two_ways_backward(g, h, x, y, z):
    out = np.empty_like(x)
    for i in range(x.size):
        out[i] = 2.0 * g[i] + 2.0 * x[i] * h[i]
    return out


def doubles(size, seed=0):
    return np.random.Generator(np.random.PCG64(seed)).uniform(size=size)


# ---- what every form is given: arrays, other arguments, the gradient of the (first) output
CASES = {
    "scan of 64": (scan, scan_backward, [64], (0.5,), 1),
    "three inputs of 64": (products, products_backward, [64, 64, 64], (), 1),
    "two outputs of 64": (two_ways, two_ways_backward, [64], (), 2),
    "soft-DTW 40x40": (soft_dtw.py_func, soft_dtw_backward, [(40, 40)], (1.0,), 1),
}


def bare(name):
    """The loops alone, jitted as a user would."""
    forward, backward, sizes, others, outputs = CASES[name]
    arrays = [doubles(size, k) for k, size in enumerate(sizes)]
    first, second = njit(forward), njit(backward)
    found = first(*arrays, *others)
    kept = found if isinstance(found, tuple) else (found,)
    grads = [np.ones_like(x) if isinstance(x, np.ndarray) else 1.0 for x in kept[:outputs]]

    def step():
        found = first(*arrays, *others)
        second(*grads, *arrays, *others, *(found if isinstance(found, tuple) else (found,)))

    return step


def op(name):
    """A `jit_function`."""
    forward, backward, sizes, others, outputs = CASES[name]
    return stepping(jitgrad, jitgrad.jit_function(forward, backward, outputs=outputs), sizes, others)


def wrapped(package, name):
    """`autograd.Function` of a package around the jitted loops, as its documentation has it."""
    forward, backward, sizes, others, outputs = CASES[name]
    first, second = njit(forward), njit(backward)
    count = len(sizes)

    class Wrapped(package.autograd.Function):
        @staticmethod
        def forward(ctx, *given):
            found = first(*(x.detach().numpy() for x in given[:count]), *given[count:])
            kept = found if isinstance(found, tuple) else (found,)
            ctx.save_for_backward(*given[:count])
            ctx.others, ctx.kept = given[count:], kept
            outs = tuple(package.from_numpy(np.asarray(x)) for x in kept[:outputs])
            return outs if outputs > 1 else outs[0]

        @staticmethod
        def backward(ctx, *grads):
            numbers = [g.contiguous().numpy() if g.ndim else g.item() for g in grads]
            found = second(*numbers, *(x.detach().numpy() for x in ctx.saved_tensors), *ctx.others, *ctx.kept)
            parts = found if isinstance(found, tuple) else (found,)
            return (*map(package.from_numpy, parts), *(None,) * len(ctx.others))

    return stepping(package, Wrapped.apply, sizes, others)


def stepping(package, call, sizes, others):
    """A step of a function of tensors: gradients cleared, forward, backward from the first output."""
    leaves = [package.tensor(doubles(size, k)).requires_grad_() for k, size in enumerate(sizes)]
    first = call(*leaves, *others)
    first = first[0] if isinstance(first, tuple) else first
    seed = package.ones(first.shape, dtype=package.float64)

    def step():
        for leaf in leaves:
            leaf.grad = None
        found = call(*leaves, *others)
        (found[0] if isinstance(found, tuple) else found).backward(seed)

    return step


def elementwise(package):
    """tanh(x) * x of 64 elements: ours one op, torch's two."""
    if package is jitgrad:
        return stepping(package, jitgrad.elementwise(lambda x: jitgrad.tanh(x) * x), [64], ())
    return stepping(package, lambda x: package.tanh(x) * x, [64], ())
