"""`backward` and `grad`: arguments checked, seeds made, a run chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._engine import fast, hooks, modes
from .._engine.node import LEAF, Node, target
from .._engine.run import Run
from .base import TensorBase, wrap
from .views import edge_of

Array = np.ndarray[Any, Any]


def as_tuple(value: Any) -> tuple[Any, ...]:
    """A tensor, or a sequence of them, as a tuple."""
    if isinstance(value, TensorBase) or value is None:
        return (value,)
    return tuple(value)


def seed(output: Any, grad: Any, index: int) -> Any:
    """The gradient a run starts with: the one given, checked, or 1 for a scalar."""
    if grad is None:
        if output.meta.numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        if not output.meta.kind.is_floating_point:
            raise RuntimeError(f"grad can be computed only for real scalar outputs but got torch.{output.meta.kind.name}")
        return wrap(np.ones(output.meta.shape, output.meta.dtype))
    if not isinstance(grad, TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad.meta.shape != output.meta.shape:
        raise RuntimeError(f"Mismatch in shape: grad_output[{index}] has a shape of {grad.shape} and output[{index}] has a shape of {output.shape}.")
    if not grad.meta.kind.is_floating_point:
        raise RuntimeError(f"For complex Tensors, both grad_output and output are required to have the same dtype. Mismatch in dtype: grad_output[{index}] "
                           f"has a dtype of torch.{grad.meta.kind.name} and output[{index}] has a dtype of torch.{output.meta.kind.name}.")  # fmt: skip
    return grad if grad.meta.dtype == output.meta.dtype else grad.to(output.meta.kind)


def edge_required(output: Any, index: int) -> Node:
    """The edge of an output that a run starts from."""
    if not isinstance(output, TensorBase):
        raise TypeError(f"expected Tensor or GradientEdge as outputs, got {type(output).__name__}")
    edge: Node | None = edge_of(output)
    if edge is None:
        raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
    return edge


def backward_plain(tensor: Any, gradient: Any, keep: bool) -> bool:
    """The accelerated run, where it may be taken: one plain tensor with a history, its own Meta on the gradient, no hooks or modes.

    Returns whether it was.
    """
    edge = tensor.fn
    meta = tensor.meta
    if edge is None or tensor.rare is not None or hooks.HOOKED or modes.SPECIAL or edge.number == LEAF:
        return False
    if gradient is None:
        if meta.shape:
            return False
        grad = (ONES.get(meta.dtype) or ONES.setdefault(meta.dtype, np.ones((), meta.dtype))).copy()
    elif isinstance(gradient, TensorBase) and gradient.meta is meta and gradient.rare is None:
        grad = gradient.array
    else:
        return False
    if not fast.RUN.acquire(blocking=False):
        return False
    try:
        rest = fast.run(edge, grad, keep)
    finally:
        fast.RUN.release()
    if rest is not None:
        Run(keep, False)([(node, index, part if part is None else wrap(part)) for node, index, part in rest])
    return True


ONES: dict[Any, Any] = {}


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             inputs: Any = None) -> None:  # fmt: skip
    """Add the gradients of `tensors` to the `.grad` of the leaves they came from.

    `grad_tensors`: a tensor per output of its shape, or None for scalars. `inputs`: only these receive a gradient. Raises
    RuntimeError where an output takes no gradient, has the wrong shape, or was backwarded before.
    """
    outputs = as_tuple(tensors)
    grads = as_tuple(grad_tensors) if grad_tensors is not None else (None,) * len(outputs)
    if len(grads) != len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    if inputs is not None and len(as_tuple(inputs)) == 0:
        raise RuntimeError("`inputs` argument to `backward()` cannot be empty.")
    keep = create_graph if retain_graph is None else retain_graph
    edges = [edge_required(output, k) for k, output in enumerate(outputs)]
    seeds = [seed(output, grad, k) for k, (output, grad) in enumerate(zip(outputs, grads, strict=True))]
    if len(edges) == 1 and not create_graph and inputs is None and backward_plain(outputs[0], seeds[0], keep):
        return
    run_full(edges, seeds, keep, create_graph, inputs)


def run_full(edges: Sequence[Node], seeds: Sequence[Any], keep: bool, create_graph: bool, inputs: Any) -> None:
    """The full engine, accumulating into all leaves or into `inputs` only."""
    captures: dict[tuple[Node, int], list[int]] | None = None
    accumulate: frozenset[Node] = frozenset()
    wanted: list[Any] = []
    if inputs is not None:
        wanted = list(as_tuple(inputs))
        places = [(k, edge_of(x)) for k, x in enumerate(wanted)]
        for k, edge in places:
            if edge is None:
                raise RuntimeError("One of the differentiated Tensors does not require grad")
            if edge.number != LEAF and not wanted[k].retains_grad:
                pass
        accumulate = frozenset(edge for _, edge in places if edge.number == LEAF)
        captures = {}
        for k, edge in places:
            if edge.number != LEAF:
                captures.setdefault(target(edge), []).append(k)
    found = Run(keep, create_graph, captures, accumulate)(start(edges, seeds))
    for k, grad in found.items():
        if grad is not None:
            accumulate_plain(wanted[k], grad, create_graph)


def accumulate_plain(tensor: Any, grad: Any, create_graph: bool) -> None:
    """Add to the `.grad` of a tensor that is not a leaf (named in `inputs`)."""
    held = tensor._grad_slot()
    tensor._set_grad_slot(grad if held is None else held + grad)


def start(edges: Sequence[Node], seeds: Sequence[Any]) -> list[tuple[Node, int, Any]]:
    """Roots as (node, output number, gradient)."""
    return [(*target(edge), grad) for edge, grad in zip(edges, seeds, strict=True)]


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> tuple[Any, ...]:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    Returns a tuple with a tensor of each input's shape and dtype, or None for one that the outputs don't depend on, which
    needs `allow_unused=True`; `materialize_grads=True` gives zeros instead.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    allow_unused = materialize_grads if allow_unused is None else allow_unused
    outs, ins = as_tuple(outputs), as_tuple(inputs)
    given = as_tuple(grad_outputs) if grad_outputs is not None else (None,) * len(outs)
    if len(given) != len(outs):
        raise RuntimeError(f"got {len(outs)} tensors and {len(given)} gradients")
    keep = create_graph if retain_graph is None else retain_graph
    edges = [edge_required(output, k) for k, output in enumerate(outs)]
    seeds = [seed(output, one, k) for k, (output, one) in enumerate(zip(outs, given, strict=True))]
    captures: dict[tuple[Node, int], list[int]] = {}
    for k, x in enumerate(ins):
        edge = edge_of(x)
        if edge is None:
            raise RuntimeError("One of the differentiated Tensors does not require grad")
        captures.setdefault(target(edge), []).append(k)
    found = Run(keep, create_graph, captures)(start(edges, seeds))
    results = [found.get(k) for k in range(len(ins))]
    for k, (x, result) in enumerate(zip(ins, results, strict=True)):
        if result is None:
            if materialize_grads:
                results[k] = wrap(np.zeros(x.meta.shape, x.meta.dtype))
            elif not allow_unused:
                raise RuntimeError("One of the differentiated Tensors appears to not have been used in the graph. Set allow_unused=True if this is the "
                                   "desired behavior.")  # fmt: skip
    return tuple(results)
