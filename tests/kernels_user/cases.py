"""Kernels that several tests use."""

import numpy as np

import jitgrad
from jitgrad.autograd.kernels import jit_function


def scan_forward(x, decay):
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


def make_scan(**options):
    return jit_function(scan_forward, scan_backward, name="scan", **options)


def scaled_forward(x, w):
    out = np.empty_like(x)
    for i in range(x.size):
        out.flat[i] = x.flat[i] * w.flat[i]
    return out


def scaled_backward(grad, x, w, out):
    gx = np.empty_like(x)
    gw = np.empty_like(w)
    for i in range(x.size):
        gx.flat[i] = grad.flat[i] * w.flat[i]
        gw.flat[i] = grad.flat[i] * x.flat[i]
    return gx, gw


def make_product(**options):
    return jit_function(scaled_forward, scaled_backward, name="product", **options)


def double_forward(x):
    out = np.empty_like(x)
    for k in range(x.size):
        out.flat[k] = 2.0 * x.flat[k]
    return out


def double_backward(grad, x, out):
    g = np.empty_like(x)
    flat, into = grad.reshape(-1), g.reshape(-1)  # a reshape of what is not contiguous would not compile to a view
    for k in range(flat.size):
        into[k] = 2.0 * flat[k]
    return g


def make_double():
    return jit_function(double_forward, double_backward, name="double")


def tensor(values, dtype=jitgrad.float64, grad=True):
    return jitgrad.tensor(values, dtype=dtype, requires_grad=grad)
