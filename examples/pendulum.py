"""A damped pendulum fitted to a noisy recording: `python examples/pendulum.py`.

The integrator (Runge-Kutta of order four) is one loop, its reverse another; the reverse walks back over the states that the forward kept. Checked by
`opcheck` and against the period of small swings; then stiffness and damping are found from 400 noisy angles.
"""

import math
import time

import numpy as np
from numba import njit

import jitgrad as torch


@njit
def slope(angle, speed, stiffness, damping):
    return speed, -damping * speed - stiffness * math.sin(angle)


@torch.jit_function
def swing(start, parameters, dt, steps):
    """Angles of a pendulum that starts at (angle, speed) = start, with parameters (stiffness, damping)."""
    angles = np.empty(steps, start.dtype)
    states = np.empty((steps, 2), start.dtype)  # for the way back
    a, v = start[0], start[1]
    k, c = parameters[0], parameters[1]
    for i in range(steps):
        states[i, 0], states[i, 1] = a, v
        a1, v1 = slope(a, v, k, c)
        a2, v2 = slope(a + 0.5 * dt * a1, v + 0.5 * dt * v1, k, c)
        a3, v3 = slope(a + 0.5 * dt * a2, v + 0.5 * dt * v2, k, c)
        a4, v4 = slope(a + dt * a3, v + dt * v3, k, c)
        a += dt / 6.0 * (a1 + 2.0 * a2 + 2.0 * a3 + a4)
        v += dt / 6.0 * (v1 + 2.0 * v2 + 2.0 * v3 + v4)
        angles[i] = a
    return angles, states


@njit
def slope_back(ga, gv, angle, speed, stiffness, damping):
    """Gradients by angle, speed, stiffness, damping of ga * angle' + gv * speed'."""
    return -gv * stiffness * math.cos(angle), ga - gv * damping, -gv * math.sin(angle), -gv * speed


@swing.backward
def swing_backward(grad, start, parameters, dt, steps, angles, states):
    k, c = parameters[0], parameters[1]
    ga, gv, gk, gc = 0.0, 0.0, 0.0, 0.0
    for i in range(steps - 1, -1, -1):
        ga += grad[i]
        a, v = states[i, 0], states[i, 1]
        a1, v1 = slope(a, v, k, c)
        b, w = a + 0.5 * dt * a1, v + 0.5 * dt * v1
        a2, v2 = slope(b, w, k, c)
        d, x = a + 0.5 * dt * a2, v + 0.5 * dt * v2
        a3, v3 = slope(d, x, k, c)
        e, y = a + dt * a3, v + dt * v3
        pa, pv, pk, pc = slope_back(dt / 6.0 * ga, dt / 6.0 * gv, e, y, k, c)
        qa, qv, qk, qc = slope_back(dt / 3.0 * ga + dt * pa, dt / 3.0 * gv + dt * pv, d, x, k, c)
        ra, rv, rk, rc = slope_back(dt / 3.0 * ga + 0.5 * dt * qa, dt / 3.0 * gv + 0.5 * dt * qv, b, w, k, c)
        sa, sv, sk, sc = slope_back(dt / 6.0 * ga + 0.5 * dt * ra, dt / 6.0 * gv + 0.5 * dt * rv, a, v, k, c)
        ga, gv = ga + pa + qa + ra + sa, gv + pv + qv + rv + sv
        gk, gc = gk + pk + qk + rk + sk, gc + pc + qc + rc + sc
    into_start, into_parameters = np.empty_like(start), np.empty_like(parameters)
    into_start[0], into_start[1] = ga, gv
    into_parameters[0], into_parameters[1] = gk, gc
    return into_start, into_parameters


def double(*values):
    return torch.tensor(values, dtype=torch.float64)


def check():
    """A small swing without damping is a cosine; `opcheck` for the derivatives."""
    angles = swing(double(1e-4, 0.0), double(4.0, 0.0), 0.01, 500).numpy()
    assert np.allclose(angles, 1e-4 * np.cos(2.0 * 0.01 * np.arange(1, 501)), atol=1e-11)
    torch.opcheck(swing, double(0.8, -0.3), double(3.0, 0.2), 0.05, 20, skip=("size 0", "0-d", "NaN and infinity"))


def fit(recorded, dt, rounds=300):
    """Parameters by Adam, the last loss, and the time of a step (the median: the first one compiles)."""
    unknown = [double(0.5, 0.0).requires_grad_(), double(8.0, 0.0).requires_grad_()]
    optimizer = torch.optim.Adam(unknown, lr=0.05)
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        optimizer.zero_grad()
        loss = ((swing(*unknown, dt, len(recorded)) - recorded) ** 2).mean()
        loss.backward()
        optimizer.step()
        times.append(time.perf_counter() - start)
    return unknown[1].tolist(), loss.item(), sorted(times)[rounds // 2]


def main():
    check()
    print("check: a small swing is a cosine, derivatives pass opcheck")
    truth = swing(double(1.2, 0.0), double(9.0, 0.25), 0.02, 400)
    recorded = truth + torch.from_numpy(np.random.default_rng(0).normal(scale=0.02, size=400))
    (stiffness, damping), loss, spent = fit(recorded, 0.02)
    print(f"fit: stiffness {stiffness:.3f} (9), damping {damping:.4f} (0.25), error {math.sqrt(loss):.4f} (noise 0.02)")
    print(f"time: {spent * 1e6:.0f} us a step: 400 Runge-Kutta steps forward and back, loss and Adam")


if __name__ == "__main__":
    main()
