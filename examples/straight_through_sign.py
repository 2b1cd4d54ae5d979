"""Binary weights by a straight-through sign: `python examples/straight_through_sign.py`.

The sign's own derivative is zero, so a network of signs would learn nothing. The partial that is given instead lets the gradient pass where the
weight is small. A layer of 64 x 10 signs, one bit each, then tells handwritten digits apart.
"""

import time

import jitgrad as torch
from jitgrad.cli.digits import split_digits
from jitgrad.optim import Adam


@torch.elementwise
def hard_sign(w):
    """1 or -1."""
    return torch.where(w >= 0, 1.0, -1.0)


@hard_sign.partial("w")
def through(w):
    """The gradient passes between -1 and 1, as if the function had been clamp."""
    return torch.where(abs(w) <= 1, 1.0, 0.0)


def check():
    """The values, and the gradient that was asked for."""
    w = torch.tensor([-2.0, -0.5, 0.0, 0.5, 2.0], requires_grad=True)
    hard_sign(w).backward(torch.tensor([1.0, 10.0, 100.0, 1000.0, 10000.0]))
    assert hard_sign(w).tolist() == [-1.0, -1.0, 1.0, 1.0, 1.0]
    assert w.grad.tolist() == [0.0, 10.0, 100.0, 1000.0, 0.0]


def main():
    check()
    print("check: values are signs, gradients those of a clamp")
    torch.manual_seed(0)
    train, test = split_digits()
    images, labels = torch.from_numpy(train.images), torch.from_numpy(train.labels)
    weight = (torch.randn(10, 64) * 0.1).requires_grad_()
    scale = torch.full((10,), 0.1).requires_grad_()
    bias = torch.zeros(10).requires_grad_()
    optimizer = Adam([weight, scale, bias], lr=0.02)

    def scores(x):
        return (x @ hard_sign(weight).t()) * scale + bias

    times = []
    for _ in range(300):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(scores(images), labels)
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    with torch.no_grad():
        right = (scores(torch.from_numpy(test.images)).argmax(1) == torch.from_numpy(test.labels)).float().mean().item()
    print(f"640 one-bit weights: loss {loss.item():.3f}, held-out accuracy {right:.1%}")
    print(f"time: {sorted(times)[150] * 1e6:.0f} us a step of 1,438 scans")


if __name__ == "__main__":
    main()
