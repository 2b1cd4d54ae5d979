"""A training step compiled as a whole: forward, backward and Adam in one program.

python examples/compile_step.py
"""

import time

import jitgrad as torch
from jitgrad import nn, optim
from jitgrad.nn import functional as F


def make():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 1))
    optimizer = optim.Adam(model.parameters(), lr=0.01)

    def step(x, y):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return step


def microseconds(step, x, y, count=500):
    began = time.perf_counter()
    for _ in range(count):
        step(x, y)
    return (time.perf_counter() - began) / count * 1e6


def main():
    x = torch.randn(32, 2)
    y = torch.sin(x.sum(1, keepdim=True))
    eager, compiled = make(), torch.compile(make())
    began = time.perf_counter()
    compiled(x, y)
    print(f"first call, trace and compilation: {time.perf_counter() - began:.2f} s")
    eager(x, y)
    for name, step in (("eager", eager), ("compiled", compiled)):
        print(f"{name}: {microseconds(step, x, y):.1f} us a step, loss {step(x, y).item():.4f}")
    print(compiled.explain())


if __name__ == "__main__":
    main()
