"""Force matching in two dimensions: `python examples/lennard_jones.py`.

The pair energy is one line. Forces are its gradient by the positions, and the parameters are fitted to measured forces, so the fit needs
derivatives of derivatives: all of them are derived. Checked against the forces written out by hand and against finite differences.
"""

import time

import numpy as np

import jitgrad as torch


@torch.elementwise
def pair_energy(r2, epsilon, sigma):
    """Lennard-Jones energy of two particles at a squared distance."""
    s6 = (sigma * sigma / r2) ** 3
    return 4.0 * epsilon * (s6 * s6 - s6)


def energy(positions, epsilon, sigma, i, j):
    """The energy of all pairs (i, j)."""
    apart = positions[i] - positions[j]
    return pair_energy((apart * apart).sum(1), epsilon, sigma).sum()


def forces(positions, epsilon, sigma, i, j):
    """Minus the gradient by the positions, recorded, so that it can be differentiated again."""
    total = energy(positions, epsilon, sigma, i, j)
    return -torch.autograd.grad(total, positions, create_graph=True)[0]


def by_hand(positions, epsilon, sigma):
    """The same forces in NumPy."""
    apart = positions[:, None] - positions[None]
    r2 = (apart**2).sum(-1) + np.eye(len(positions))
    s6 = (sigma**2 / r2) ** 3
    return ((24 * epsilon * (2 * s6 * s6 - s6) / r2)[..., None] * apart).sum(1)


def system(side=4, seed=0):
    """Particles near a square lattice."""
    grid = np.stack(np.meshgrid(np.arange(side), np.arange(side)), -1).reshape(-1, 2) * 1.15
    return grid + np.random.default_rng(seed).normal(scale=0.05, size=grid.shape)


def check(positions, pairs):
    """Forces, and the derivative of a loss on them by sigma."""
    x = torch.from_numpy(positions).requires_grad_()
    sigma = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    found = forces(x, 1.3, sigma, *pairs)
    assert np.allclose(found.detach().numpy(), by_hand(positions, 1.3, 1.0))
    (slope,) = torch.autograd.grad((found**2).sum(), sigma)
    step = 1e-6
    wanted = ((by_hand(positions, 1.3, 1 + step) ** 2).sum() - (by_hand(positions, 1.3, 1 - step) ** 2).sum()) / (
        2 * step
    )
    assert abs(slope.item() - wanted) < 1e-6 * abs(wanted)
    assert pair_energy.check(points=[0.6, 0.9, 1.0, 1.4, 2.5])


def fit(positions, pairs, target, steps=300):
    """Epsilon and sigma from forces."""
    x = torch.from_numpy(positions).requires_grad_()
    log_parameters = torch.zeros(2, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.Adam([log_parameters], lr=0.02)
    measured = torch.from_numpy(target)
    times = []
    for _ in range(steps):
        start = time.perf_counter()
        optimizer.zero_grad()
        epsilon, sigma = log_parameters.exp().unbind()
        loss = ((forces(x, epsilon, sigma, *pairs) - measured) ** 2).mean().log1p()
        loss.backward(inputs=[log_parameters])
        optimizer.step()
        times.append(time.perf_counter() - start)
    return log_parameters.detach().exp().tolist(), loss.item(), sorted(times)[steps // 2]


def main():
    positions = system()
    pairs = tuple(torch.from_numpy(k) for k in np.triu_indices(len(positions), 1))
    check(positions, pairs)
    print("check: forces equal those written by hand, second derivatives equal finite differences")
    (epsilon, sigma), loss, spent = fit(positions, pairs, by_hand(positions, 0.8, 1.05))
    print(f"fit: epsilon {epsilon:.4f} (0.8), sigma {sigma:.4f} (1.05), loss {loss:.2e}")
    print(f"time: {spent * 1e6:.0f} us a step of 16 particles, 120 pairs, derivatives of forces")


if __name__ == "__main__":
    main()
