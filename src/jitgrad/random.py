"""The random numbers' state: seeds and generators, after `torch.random`.

>>> import jitgrad
>>> jitgrad.random.manual_seed(3).initial_seed()
3
"""

from ._tensor.random import (
    Generator,
    default_generator,
    fork_rng,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]
