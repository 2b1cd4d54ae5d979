"""The counter-based generator: published values, compiled against plain, fills that do not depend on how they are cut."""

import numpy as np
import pytest

from jitgrad._kernels import language, random as kernels
from jitgrad._kernels.language import data, words
from jitgrad._kernels.registry import kernel

MASK = 0xFFFFFFFF


def philox(counter, key):
    """Philox 4x32-10 in Python's integers, as the paper has it."""
    c, k = list(counter), list(key)
    for _ in range(10):
        a, b = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
        c = [(b >> 32) ^ c[1] ^ k[0], b & MASK, (a >> 32) ^ c[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return c


@pytest.mark.parametrize(
    ("counter", "key", "words"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([MASK] * 4, [MASK] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        ([0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344], [0xA4093822, 0x299F31D0], [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]),
    ],
)
def test_published_values(counter, key, words):
    assert philox(counter, key) == words


@kernel("uwwn")
def fill_words(target, start, seed, blocks):
    """The words of a few blocks."""
    words(data(target), start, seed, blocks)


@pytest.mark.parametrize("blocks", [0, 1, 7, 8, 9, 40])
@pytest.mark.parametrize(("start", "seed"), [(0, 0), (5, 1), (2**32 - 3, 2**64 - 1), (2**63, 67280421310721)])
def test_words(start, seed, blocks):
    wanted = [word for k in range(blocks) for word in philox([(start + k) & MASK, (start + k) >> 32, 0, 0], [seed & MASK, seed >> 32])]
    plain = np.zeros(4 * blocks, np.uint64)
    language.words(plain, start, seed, blocks)
    assert plain.tolist() == wanted
    compiled = np.zeros(4 * (blocks + 8), np.uint64)  # whole eights of blocks are written
    fill_words[np.dtype(np.uint64)](compiled, start, seed, blocks)
    assert compiled[: 4 * blocks].tolist() == wanted


def units(dtype, start, seed, count):
    flat = np.zeros(4 * (count + 2), np.uint64)
    language.words(flat, start, seed, count + 2)
    if dtype == np.float32:
        return (flat[:count] >> np.uint64(8)).astype(np.float32) * np.float32(2**-24)
    high, low = flat[0 : 2 * count : 2] >> np.uint64(5), flat[1 : 2 * count : 2] >> np.uint64(6)
    return (high.astype(np.float64) * 2**26 + low.astype(np.float64)) * 2**-53


@pytest.mark.parametrize("count", [1, 2, 3, 5, 511, 512, 1024, 1025, 4000])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_numbers_to_the_bit(dtype, count):
    out, work = np.empty(count, dtype), np.empty(kernels.CHUNK, np.uint64)
    fill = kernels.uniform_single if dtype == np.float32 else kernels.uniform_double
    fill[np.dtype(dtype)](out, 9, 3, 0.0, 1.0, work)
    assert out.tolist() == units(dtype, 3, 9, count).tolist()


def test_a_fill_may_be_cut():
    """Two fills, the second starting where the first has used up its blocks, are one longer fill."""
    work = np.empty(kernels.CHUNK, np.uint64)
    fill = kernels.uniform_single[np.dtype(np.float32)]
    whole, first, second = np.empty(3000, np.float32), np.empty(1600, np.float32), np.empty(1400, np.float32)
    fill(whole, 1, 0, 0.0, 1.0, work)
    fill(first, 1, 0, 0.0, 1.0, work)
    fill(second, 1, 400, 0.0, 1.0, work)
    assert whole.tolist() == [*first.tolist(), *second.tolist()]
