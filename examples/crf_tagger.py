"""A linear-chain conditional random field that learns to colour Python source: `python examples/crf_tagger.py`.

The text is the standard library's own (it comes with Python, under the PSF's licence), the tag of each character what `tokenize`
says of it: keyword, name, number, string, comment, operator, blank. A kernel computes the negative log-likelihood of whole lines in log
space, where a forbidden transition is -inf; its reverse gives posterior minus truth. Checked against the sum over all tag sequences and
by `opcheck`.
"""

import fnmatch
import io
import itertools
import keyword
import math
import time
import tokenize

import numpy as np
from numba import njit

import jitgrad as torch

TAGS = ("blank", "keyword", "name", "number", "string", "comment", "operator")
WINDOW = 2  # characters seen on each side


@njit
def log_sum(values):
    """log(sum(exp)); -inf where all are."""
    high = values.max()
    if high == -np.inf:
        return high
    total = 0.0
    for k in range(values.size):
        total += math.exp(values[k] - high)
    return high + math.log(total)


@torch.jit_function
def crf_loss(scores, moves, tags, ends):
    """Negative log-likelihood of all lines: scores (n, k) of each character, moves (k, k) from tag to tag, ends of the lines."""
    n, k = scores.shape
    ahead = np.empty((n, k), scores.dtype)  # log weight of all ways to reach a tag
    row = np.empty(k, scores.dtype)
    loss, start = 0.0, 0
    for end in ends:
        for i in range(start, end):
            for b in range(k):
                if i == start:
                    ahead[i, b] = scores[i, b]
                else:
                    for a in range(k):
                        row[a] = ahead[i - 1, a] + moves[a, b]
                    ahead[i, b] = log_sum(row) + scores[i, b]
            loss -= scores[i, tags[i]]
            if i > start:
                loss -= moves[tags[i - 1], tags[i]]
        if end > start:
            loss += log_sum(ahead[end - 1])
        start = end
    result = np.empty(1, scores.dtype)  # the sum is in float64; the loss has the dtype of the scores
    result[0] = loss
    return result[0], ahead


@crf_loss.backward
def crf_loss_backward(grad, scores, moves, tags, ends, loss, ahead):
    k = scores.shape[1]
    into_scores, into_moves = np.zeros_like(scores), np.zeros_like(moves)
    behind = np.empty(k, scores.dtype)  # log weight of all ways on from a tag
    row = np.empty(k, scores.dtype)
    before = np.empty(k, scores.dtype)
    start = 0
    for end in ends:
        if end == start:
            continue
        total = log_sum(ahead[end - 1])
        behind[:] = 0.0
        for i in range(end - 1, start - 1, -1):
            for b in range(k):
                into_scores[i, b] = grad * math.exp(ahead[i, b] + behind[b] - total)
            into_scores[i, tags[i]] -= grad
            if i > start:
                for a in range(k):
                    for b in range(k):
                        row[b] = moves[a, b] + scores[i, b] + behind[b]
                        into_moves[a, b] += grad * math.exp(ahead[i - 1, a] + row[b] - total)
                    before[a] = log_sum(row)
                into_moves[tags[i - 1], tags[i]] -= grad
                behind[:] = before
        start = end
    return into_scores, into_moves


@njit
def best_tags(scores, moves, ends):
    """The likeliest tags of each line (Viterbi)."""
    n, k = scores.shape
    best, source = scores.copy(), np.zeros((n, k), np.int64)
    tags = np.empty(n, np.int64)
    start = 0
    for end in ends:
        for i in range(start + 1, end):
            for b in range(k):
                source[i, b] = np.argmax(best[i - 1] + moves[:, b])
                best[i, b] += best[i - 1, source[i, b]] + moves[source[i, b], b]
        if end > start:
            tags[end - 1] = np.argmax(best[end - 1])
            for i in range(end - 1, start, -1):
                tags[i - 1] = source[i, tags[i]]
        start = end
    return tags


def tagged(text):
    """Characters (code points below 128) and tags of a source text, and where its lines end; lines of long strings are left out."""
    lines = text.splitlines()
    tags = [np.zeros(len(line), np.int64) for line in lines]
    kinds = {tokenize.NUMBER: 3, tokenize.STRING: 4, tokenize.COMMENT: 5, tokenize.OP: 6}
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        kind = kinds.get(token.type, 0)
        if token.type == tokenize.NAME:
            kind = 1 if keyword.iskeyword(token.string) else 2
        if token.start[0] == token.end[0] <= len(lines):
            tags[token.start[0] - 1][token.start[1] : token.end[1]] = kind
        else:
            tags[token.start[0] - 1 : token.end[0]] = [np.empty(0, np.int64)] * (token.end[0] - token.start[0] + 1)
    kept = [(line, tag) for line, tag in zip(lines, tags, strict=False) if len(line) == len(tag) > 0]
    characters = np.array([min(ord(c), 127) for line, _ in kept for c in line], np.int64)
    return characters, np.concatenate([tag for _, tag in kept]), np.cumsum([len(line) for line, _ in kept])


def windows(characters):
    """For each character its neighbourhood, as row numbers of one table of weights."""
    padded = np.pad(characters, WINDOW)
    return np.stack([padded[k : k + len(characters)] + 128 * k for k in range(2 * WINDOW + 1)], 1)


def check():
    """Beside the sum over all tag sequences, with a forbidden transition in it."""
    rng = np.random.default_rng(0)
    scores, moves = (torch.from_numpy(rng.normal(size=shape)) for shape in ((4, 3), (3, 3)))
    moves[0, 1] = -math.inf
    scores.requires_grad_()
    tags, ends = torch.tensor([2, 1, 1, 0]), torch.tensor([3, 4])
    totals = []
    for way in itertools.product(range(3), repeat=3):
        totals.append(sum(scores[i, way[i]] for i in range(3)) + sum(moves[way[i], way[i + 1]] for i in range(2)))
    truth = scores[0, 2] + scores[1, 1] + scores[2, 1] + moves[2, 1] + moves[1, 1]
    wanted = torch.logsumexp(torch.stack(totals), 0) - truth + torch.logsumexp(scores[3], 0) - scores[3, 0]
    loss = crf_loss(scores, moves, tags, ends)
    assert abs(loss.item() - wanted.item()) < 1e-12
    found, right = (torch.autograd.grad(x, scores)[0] for x in (loss, wanted))
    assert float((found - right).abs().max()) < 1e-12
    moves[0, 1] = 0.3
    torch.opcheck(crf_loss, scores, moves.requires_grad_(), tags, ends, skip=("ties", "NaN and infinity"))


def train(sample, rounds=40, chain=True):
    """Weights of the window and of the moves, by Adam, the last loss, and the time of a step (the median: the first one compiles).

    Without `chain` each character is tagged by itself.
    """
    characters, tags, ends = sample
    rows, tags = torch.from_numpy(windows(characters)), torch.from_numpy(tags)
    ends = torch.from_numpy(ends if chain else np.arange(1, len(characters) + 1))
    table = torch.zeros((2 * WINDOW + 1) * 128, len(TAGS), requires_grad=True)
    moves = torch.zeros(len(TAGS), len(TAGS), requires_grad=True)
    optimizer = torch.optim.Adam([table, moves], lr=0.1)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        optimizer.zero_grad()
        scores = torch.nn.functional.embedding(rows, table).sum(1)
        loss = crf_loss(scores, moves, tags, ends) / len(characters)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return table.detach(), moves.detach(), loss.item(), sorted(times)[rounds // 2]


def accuracy(sample, table, moves):
    """How many characters get their tag."""
    characters, tags, ends = sample
    scores = torch.nn.functional.embedding(torch.from_numpy(windows(characters)), table).sum(1)
    return float((best_tags(scores.numpy(), moves.numpy(), ends) == tags).mean())


def main():
    check()
    print("check: loss and gradient equal the sum over all tag sequences, -inf included; opcheck passes")
    learn, judge = (tagged(read(module)) for module in (tokenize, fnmatch))
    table, moves, loss, spent = train(learn)
    alone, *_ = train(learn, chain=False)
    print(f"trained on {len(learn[0]):,} characters: loss {loss:.3f}")
    right, apart = accuracy(judge, table, moves), accuracy(judge, alone, moves * 0)
    print(f"held-out source: {right:.1%} of characters, {apart:.1%} without the chain")
    print(f"time: {spent * 1e3:.1f} ms a step of {len(learn[0]):,} characters")


def read(module):
    """The source text of a module."""
    with open(module.__file__, encoding="utf-8") as file:
        return file.read()


if __name__ == "__main__":
    main()
