"""`backward` and `grad`: arguments checked, seeds made, a run chosen."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._engine import fast, modes
from .._engine.node import LEAF, Node, Nowhere, target
from .._engine.reentry import run_at_depth
from .._engine.run import Run
from .._engine.shown import SHOWN, verify_all
from .._ops import joining
from .base import TensorBase, wrap
from .edges import GradientEdge
from .gradients import chosen_of
from .views import edge_of

Array = np.ndarray[Any, Any]
Output = tuple[Node, int]
ONES: dict[Any, Any] = {}
_SEVERAL = (list, tuple)


def backward_plain(tensor: Any, gradient: Any, keep: bool) -> bool:
    """The accelerated run, where it may be taken: one plain tensor with a history, its own Meta on the gradient, no hooks or modes.

    Returns whether it was.
    """
    if SHOWN:
        verify_all()
    edge = tensor.fn
    meta = tensor.meta
    if edge is None or tensor.rare is not None or modes.SPECIAL or modes.RUNNING or edge.number == LEAF or edge.rare is not None:
        return False
    if gradient is None:
        if meta.shape:
            return False
        grad = (ONES.get(meta.dtype) or ONES.setdefault(meta.dtype, np.ones((), meta.dtype))).copy()
    elif isinstance(gradient, TensorBase) and gradient.meta is meta and gradient.rare is None:
        grad = gradient.array
    else:
        return False
    return accelerated(edge, grad, keep)


class Roots(Node):
    """What an accelerated run from several tensors starts at: a node that all of them would be inputs of."""

    __slots__ = ("ends", "grads")

    def __init__(self, ends: list[Node], grads: list[Array]) -> None:
        self.ends, self.grads = ends, grads
        self.buf = self.rare = None

    def edges(self) -> Sequence[Node]:
        return self.ends

    def apply(self, grad: Any, keep: bool) -> Any:
        return self.grads


def backward_several(outputs: Sequence[Any], given: Sequence[Any], keep: bool) -> bool:
    """The accelerated run from several plain tensors with gradients of their Metas, where it may be taken. Returns whether it was."""
    if modes.SPECIAL or modes.RUNNING or len(outputs) != len(given):
        return False
    ends, grads = [], []
    for tensor, grad in zip(outputs, given, strict=True):
        if not isinstance(tensor, TensorBase) or not isinstance(grad, TensorBase) or tensor.rare is not None:
            return False
        fn = tensor.fn
        if fn is None or fn.number == LEAF or grad.rare is not None or grad.meta is not tensor.meta:
            return False
        ends.append(fn)
        grads.append(grad.array)
    return accelerated(Roots(ends, grads), None, keep)


def accelerated(root: Node, grad: Any, keep: bool) -> bool:
    """Take the accelerated run, unless another thread has it. Returns whether it was taken."""
    if not fast.RUN.acquire(blocking=False):
        return False
    entered = None
    try:
        rest = fast.run(root, grad, keep)
        entered = fast.ENTERED
        if rest is None and entered is not None:
            for function in entered.after_all or ():
                function()
    finally:
        if fast.ENTERED is not None:
            fast.leave()
        fast.RUN.release()
    if rest is not None:
        full = Run(keep, False)
        if entered is not None:
            full.after_all = entered.after_all or []
        full([(node, index, part if part is None else wrap(part)) for node, index, part in rest])
    return True


def warn_of_circle() -> None:
    """Once in a process, unless `set_warn_always` says otherwise: leaf, gradient and graph keep each other alive."""
    global _WARNED
    if not _WARNED or modes.LOCAL.warn_always:
        _WARNED = True
        warnings.warn("Using backward() with create_graph=True will create a reference cycle between the parameter and its gradient which can "
                      "cause a memory leak. We recommend using autograd.grad when creating the graph to avoid this. If you have to use this "
                      "function, make sure to reset the .grad fields of your parameters to None after use to break the cycle and avoid the leak.",
                      UserWarning, stacklevel=4)  # fmt: skip


_WARNED = False


def backward(tensors: Any, grad_tensors: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
             grad_variables: Any = None, inputs: Any = None) -> None:  # fmt: skip
    """Add the gradients of `tensors` to the `.grad` of the leaves they came from.

    `tensors`: a tensor or `GradientEdge`, or several. `grad_tensors`: a tensor of its shape per output, or None for scalars. `inputs`: only
    these receive a gradient. Raises RuntimeError where an output takes no gradient, has the wrong shape, or was backwarded before.
    """
    if grad_variables is not None:
        warnings.warn("`grad_variables` is deprecated. Use `grad_tensors` instead.", FutureWarning, stacklevel=2)
        if grad_tensors is not None:
            raise RuntimeError("`grad_tensors` and `grad_variables` (deprecated) arguments both passed to `backward()`. "
                               "Please only use `grad_tensors`.")  # fmt: skip
        grad_tensors = grad_variables
    if create_graph:
        warn_of_circle()
    elif (inputs is None and type(tensors) in _SEVERAL and type(grad_tensors) in _SEVERAL and len(tensors) > 1
          and backward_several(tensors, grad_tensors, bool(retain_graph))):  # fmt: skip
        return
    wanted = None if inputs is None else inputs_of(inputs, "backward")
    outputs = as_tuple(tensors)
    seeds = seeds_of(outputs, grad_tensors, batched=False)
    keep = create_graph if retain_graph is None else retain_graph
    if wanted is None:
        if not create_graph:
            if len(outputs) > 1:
                done = backward_several(outputs, [grad for _, _, grad in seeds], keep)
            else:
                done = len(outputs) == 1 and isinstance(outputs[0], TensorBase) and backward_plain(outputs[0], seeds[0][2], keep)
            if done:
                return
        start(Run(keep, create_graph), seeds)
        return
    edges = [accumulated_edge(x) for x in wanted]
    start(Run(keep, create_graph, {}, frozenset(node for node, _ in edges)), seeds)


def grad(outputs: Any, inputs: Any, grad_outputs: Any = None, retain_graph: bool | None = None, create_graph: bool = False,
         only_inputs: bool = True, allow_unused: bool | None = None, is_grads_batched: bool = False,
         materialize_grads: bool = False) -> Any:  # fmt: skip
    """The gradients of `outputs` with respect to `inputs`, without touching any `.grad`.

    Returns a tuple (a dict for a dict) with a tensor of each input's shape and dtype, or None for one that the outputs don't
    depend on, which needs `allow_unused=True`; `materialize_grads=True` gives zeros instead. With `is_grads_batched` the first axis of each
    of `grad_outputs` counts the gradients to be sent, and the results have that axis too.
    """
    if materialize_grads and allow_unused is False:
        raise ValueError("Expected allow_unused to be True or not passed when materialize_grads=True, but got: allow_unused=False.")
    unused = materialize_grads if allow_unused is None else allow_unused
    outs = as_tuple(outputs)
    wanted = inputs_of(inputs, "grad")
    if not only_inputs:
        warnings.warn("only_inputs argument is deprecated and is ignored now (defaults to True). To accumulate gradient for other "
                      "parts of the graph, please use torch.autograd.backward.", FutureWarning, stacklevel=2)  # fmt: skip
    seeds = seeds_of(outs, grad_outputs, is_grads_batched)
    keep = create_graph if retain_graph is None else retain_graph
    edges = [captured_edge(x) for x in wanted]
    results = batched(edges, seeds, keep, create_graph) if is_grads_batched else capture(edges, seeds, keep, create_graph)
    for index, (x, result) in enumerate(zip(wanted, results, strict=True)):
        if result is None and materialize_grads:
            if not isinstance(x, TensorBase):
                raise RuntimeError("materialize_grads cannot be used when the given input is a GradientEdge")
            results[index] = wrap(np.zeros(x.meta.shape, x.meta.dtype)).requires_grad_(create_graph)
        elif result is None and not unused:
            raise RuntimeError(f"The differentiated Tensor at index {index} appears to not have been used in the graph. "
                               "Set allow_unused=True if this is the desired behavior.")  # fmt: skip
    return dict(zip(inputs, results, strict=True)) if isinstance(inputs, dict) else tuple(results)


# ---- runs
def start(run: Run, seeds: Sequence[tuple[Node, int, Any]]) -> dict[int, Any]:
    """Run, on another stack where backwards are nested so deep that this one might not suffice."""
    if SHOWN:
        verify_all()
    found: dict[int, Any] = run_at_depth(lambda: run(seeds))
    return found


def capture(edges: list[Output], seeds: Sequence[tuple[Node, int, Any]], keep: bool, create_graph: bool) -> list[Any]:
    """The gradients of outputs of nodes, None where none came."""
    captures: dict[Output, list[int]] = {}
    for place, edge in enumerate(edges):
        captures.setdefault(edge, []).append(place)
    found = start(Run(keep, create_graph, captures), seeds)
    return [found.get(place) for place in range(len(edges))]


def batched(edges: list[Output], seeds: Sequence[tuple[Node, int, Any]], keep: bool, create_graph: bool) -> list[Any]:
    """One run per gradient along the first axis; the results stacked."""
    (count,) = {grad.meta.shape[0] for _, _, grad in seeds if grad is not None} or {0}
    rows = [capture(edges, [(node, index, grad[k]) for node, index, grad in seeds], keep or k < count - 1, create_graph) for k in range(count)]
    return [None if parts[0] is None else joining.stack(parts) for parts in zip(*rows, strict=True)]


# ---- arguments
def as_tuple(value: Any) -> tuple[Any, ...]:
    """A tensor or an edge, or a sequence of them, as a tuple."""
    if isinstance(value, (TensorBase, GradientEdge)):
        return (value,)
    return tuple(value)


def inputs_of(inputs: Any, name: str) -> tuple[Any, ...]:
    """What gradients are asked for, as a tuple."""
    if isinstance(inputs, (TensorBase, GradientEdge)):
        return (inputs,)
    if isinstance(inputs, Mapping) and type(inputs) is not dict:
        raise TypeError(f"`inputs` argument to `{name}()` must be a dict, not {type(inputs).__name__}. Other Mapping types are not supported.")
    wanted = tuple(inputs.values() if isinstance(inputs, dict) else inputs)
    if not wanted:
        raise RuntimeError(f"`inputs` argument to `{name}()` cannot be empty.")
    for x in wanted:
        if not isinstance(x, (TensorBase, GradientEdge)):
            raise RuntimeError(f"all inputs have to be Tensors or GradientEdges, but got {type(x).__name__}")
    return wanted


def captured_edge(x: Any) -> Output:
    """The output of a node that is a tensor's gradient."""
    if isinstance(x, GradientEdge):
        return x.node, x.output_nr
    edge = edge_of(x)
    if edge is None:
        raise RuntimeError("One of the differentiated Tensors does not require grad")
    return target(edge)


def accumulated_edge(x: Any) -> Output:
    """The same for one whose `.grad` is wanted: a tensor that is not a leaf retains its gradient from now on."""
    if isinstance(x, GradientEdge):
        return x.node, x.output_nr
    x.retain_grad()
    return target(edge_of(x))


def seeds_of(outputs: tuple[Any, ...], given: Any, batched: bool) -> list[tuple[Node, int, Any]]:
    """What a run starts from: node, output number and gradient for each output."""
    grads = as_tuple(given) if given is not None else (None,) * len(outputs)
    checked = [seed(output, one, k, batched) for k, (output, one) in enumerate(zip(outputs, grads, strict=False))]
    if len(grads) < len(outputs):
        raise RuntimeError(f"got {len(outputs)} tensors and {len(grads)} gradients")
    return [(*edge_required(output, k), one) for k, (output, one) in enumerate(zip(outputs, checked, strict=True))]


def edge_required(output: Any, index: int) -> Output:
    """The node and output number that a run starts from."""
    if isinstance(output, GradientEdge):
        return output.node, output.output_nr
    edge = edge_of(output)
    if edge is None or type(edge) is Nowhere:
        raise RuntimeError(f"element {index} of tensors does not require grad and does not have a grad_fn")
    return target(edge)


def seed(output: Any, grad: Any, index: int, batched: bool) -> Any:
    """The gradient a run starts with: the one given, checked, or 1 for a scalar; None for an output that takes none."""
    if isinstance(output, GradientEdge):
        meta: Any = output.node.output_meta(output.output_nr)
        if batched:
            raise RuntimeError("Batched grads are not supported with GradientEdge")
    elif isinstance(output, TensorBase):
        meta = output.meta
    else:
        raise AssertionError("Expected output to be a torch.Tensor")
    if grad is None:
        if isinstance(output, TensorBase) and not output.requires_grad:
            return None
        if meta.numel != 1:
            raise RuntimeError("grad can be implicitly created only for scalar outputs")
        return wrap(np.ones(meta.shape, meta.dtype))
    if not isinstance(grad, TensorBase):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(grad).__name__}")
    if grad.meta is meta and not batched:
        return grad
    check_shape(grad, meta, index, batched)
    if grad.meta.dtype == meta.dtype or (isinstance(output, TensorBase) and chosen_of(output) is not meta.kind):
        return grad  # the run gives it the dtype that was chosen
    return grad.to(meta.kind)  # type: ignore[attr-defined]


def check_shape(grad: Any, meta: Any, index: int, batched: bool) -> None:
    """RuntimeError for a gradient that has not its output's shape."""
    shape = grad.shape[1:] if batched else grad.shape
    if tuple(shape) == meta.shape:
        return
    where = f"grad_output[{index}] has a shape of {shape} and output[{index}] has a shape of {type(shape)(meta.shape)}."
    if batched:
        raise RuntimeError("If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of "
                           "the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
                           f"{where} If you only want some tensors in `grad_output` to be considered batched, consider using vmap.")  # fmt: skip
    raise RuntimeError(f"Mismatch in shape: {where}")
