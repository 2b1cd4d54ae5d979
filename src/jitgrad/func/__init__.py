"""Functions of functions: derivatives, maps over a batch, calls of modules with other parameters.

They nest in any order, and outputs and inputs may be tuples, lists and dictionaries of tensors.

>>> import jitgrad
>>> from jitgrad.func import grad, vmap
>>> grad(grad(jitgrad.sin))(jitgrad.tensor(0.0))
tensor(-0.)
>>> vmap(grad(lambda x: (x**2).sum()))(jitgrad.tensor([[1.0], [2.0]]))
tensor([[2.],
        [4.]])
"""

from ._forward import hessian, jacfwd, jvp, linearize
from ._modules import functional_call, stack_module_state
from ._reverse import grad, grad_and_value, jacrev, vjp
from ._vmap import vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
