"""Matrix products: `gemm` with shapes read from the Buffers, and the fused kernels of a linear layer."""

from __future__ import annotations

from typing import Any

from .language import data, dim, gemm, offset, real, release, restore, size
from .registry import REASSOCIATE, kernel


@kernel("bnbnb")
def matmul(a: Any, transpose_a: int, b: Any, transpose_b: int, out: Any) -> None:
    """out = op(a) @ op(b), C-contiguous matrices; a flag of 1 transposes. An inner length of 0 gives zeros."""
    m = dim(out, 0)
    n = dim(out, 1)
    k = dim(a, 0) if transpose_a else dim(a, 1)
    pa = data(a)
    pb = data(b)
    pc = data(out)
    token = release(m * n * k)
    if m > 0 and n > 0:
        if k == 0:
            for i in range(m * n):
                pc[i] = real(0)
        else:
            gemm(transpose_a, transpose_b, m, n, k, real(1), pa, dim(a, 1), pb, dim(b, 1), real(0), pc, n)
    restore(token)


@kernel("bnbnb")
def batched_matmul(a: Any, transpose_a: int, b: Any, transpose_b: int, out: Any) -> None:
    """out[i] = op(a[i]) @ op(b[i]) for C-contiguous stacks of matrices."""
    count = dim(out, 0)
    m = dim(out, 1)
    n = dim(out, 2)
    k = dim(a, 1) if transpose_a else dim(a, 2)
    pa = data(a)
    pb = data(b)
    pc = data(out)
    token = release(count * m * n * k)
    if m > 0 and n > 0 and k == 0:
        for i in range(count * m * n):
            pc[i] = real(0)
    elif m > 0 and n > 0:
        for i in range(count):
            gemm(
                transpose_a,
                transpose_b,
                m,
                n,
                k,
                real(1),
                offset(pa, i * m * k),
                dim(a, 2),
                offset(pb, i * n * k),
                dim(b, 2),
                real(0),
                offset(pc, i * m * n),
                n,
            )
    restore(token)


@kernel("bbb")
def linear(x: Any, weight: Any, out: Any) -> None:
    """out[i, j] = sum_k x[i, k] * weight[j, k]; x's leading axes are taken together."""
    k = dim(weight, 1)
    n = dim(weight, 0)
    m = size(x) // k if k > 0 else 0
    px = data(x)
    pw = data(weight)
    po = data(out)
    total = size(out)
    token = release(total * k)
    if k == 0:
        for i in range(total):
            po[i] = real(0)
    elif m > 0 and n > 0:
        gemm(0, 1, m, n, k, real(1), px, k, pw, k, real(0), po, n)
    restore(token)


@kernel("bbbb")
def linear_bias(x: Any, weight: Any, bias: Any, out: Any) -> None:
    """out[i, j] = bias[j] + sum_k x[i, k] * weight[j, k]; x's leading axes are taken together."""
    k = dim(weight, 1)
    n = dim(weight, 0)
    total = size(out)
    m = total // n if n > 0 else 0
    px = data(x)
    pw = data(weight)
    pb = data(bias)
    po = data(out)
    token = release(total * k)
    for i in range(m):
        row = i * n
        for j in range(n):
            po[row + j] = pb[j]
    if k > 0 and m > 0:
        gemm(0, 1, m, n, k, real(1), px, k, pw, k, real(1), po, n)
    restore(token)


@kernel("bb", fast=REASSOCIATE)
def column_sum(x: Any, out: Any) -> None:
    """out[j] = sum_i x[i, j]; the leading axes of x are taken together."""
    n = size(out)
    m = size(x) // n if n > 0 else 0
    px = data(x)
    po = data(out)
    token = release(m * n)
    for j in range(n):
        po[j] = real(0)
    for i in range(m):
        row = i * n
        for j in range(n):
            po[j] += px[row + j]
    restore(token)


@kernel("bbbbbbn", fast=REASSOCIATE)
def linear_backward(grad: Any, x: Any, weight: Any, gx: Any, gw: Any, gb: Any, wanted: int) -> None:
    """The gradients of a linear layer that `wanted` asks for: 1 gx = grad @ weight, 2 gw = grad.T @ x, 4 gb = column sums.

    Leading axes are taken together. A buffer that isn't wanted may be any array.
    """
    n = dim(weight, 0)
    k = dim(weight, 1)
    total = size(grad)
    m = total // n if n > 0 else 0
    pg = data(grad)
    token = release(total * k)
    if wanted & 1 and m > 0 and k > 0:
        gemm(0, 0, m, k, n, real(1), pg, n, data(weight), k, real(0), data(gx), k)
    if wanted & 2 and n > 0 and k > 0:
        if m > 0:
            gemm(1, 0, n, k, m, real(1), pg, n, data(x), k, real(0), data(gw), k)
        else:
            pw = data(gw)
            for i in range(n * k):
                pw[i] = real(0)
    if wanted & 4:
        pb = data(gb)
        for j in range(n):
            pb[j] = real(0)
        for i in range(m):
            row = i * n
            for j in range(n):
                pb[j] += pg[row + j]
    restore(token)
