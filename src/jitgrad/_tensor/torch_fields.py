"""What torch's nodes show of what they saved, where ours hold it under another name, or not at all.

`NAMES` has for a node torch's name of a field and the node's own, `VALUES` fields that follow from what the node knows, `FIXED` those that are
the same unless the node says otherwise. `SIZED` are the nodes that show the shape of their first input, and `PRIVATE` arguments of ops that
torch's ops don't have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

Value = Callable[[Any], Any]


def sizes(name: str) -> Value:
    """The shape of an input of the op."""
    return lambda node: shape_of(node, name)


def length(name: str, axis: int) -> Value:
    """The length of an axis of an input."""
    return lambda node: shape_of(node, name)[axis]


def shape_of(node: Any, name: str) -> tuple[int, ...]:
    """The shape of an input of the op, by its name."""
    shape: tuple[int, ...] = node.likes[node.op.inputs.index(name)].shape
    return shape


def keepdim(node: Any) -> bool:
    """Whether the axis that was reduced is still there."""
    return len(node.output_meta(0).shape) == len(node.likes[0].shape) > 0


def reduction(node: Any) -> int:
    """The number by which torch knows a reduction."""
    return ("none", "mean", "sum").index(node.static_values()["reduction"])


def dim_unless_whole(node: Any) -> Any:
    """The axes that were given; None for all of them."""
    values = node.static_values()
    return None if values["whole"] else values["dim"]


def correction_unless_whole(node: Any) -> Any:
    """The correction; None where it is the usual one of the whole tensor."""
    values = node.static_values()
    return None if values["whole"] and values["correction"] == 1 else values["correction"]


def layer_sizes(node: Any, name: str) -> tuple[int, ...]:
    """The shape of a factor of `addmm`; of a linear layer the weight is the second one, turned over."""
    if node.op.name != "_linear":
        return shape_of(node, name)
    shape = node.likes[1 if name == "mat1" else 2].shape
    return tuple(reversed(shape)) if name == "mat2" else shape


NAMES: Final[dict[str, dict[str, str]]] = {
    "AminmaxBackward0": {"min": "result0", "max": "result1"},
    "AsStridedBackward0": {"stride": "steps", "storage_offset": "start"},
    "CummaxBackward0": {"indices": "index"}, "CumminBackward0": {"indices": "index"},
    "EmbeddingBackward0": {"scale_grad_by_freq": "by_frequency"},
    "FlipBackward0": {"dims": "dim"}, "HuberLossBackward0": {"delta": "number"},
    "KthvalueBackward0": {"indices": "index"}, "LinalgCholeskyExBackward0": {"L": "result"},
    "LinalgEighBackward0": {"eigenvalues": "result0", "eigenvectors": "result1"}, "LinalgInvExBackward0": {"inverse": "result"},
    "LinalgMatrixExpBackward0": {"self": "A"}, "LinalgPinvBackward0": {"self": "A"}, "LinalgQrBackward0": {"Q": "result0", "R": "result1"},
    "LinalgSolveTriangularBackward0": {"self": "A", "unitriangular": "unit"},
    "LinalgSvdBackward0": {"U": "result0", "S": "result1", "Vh": "result2", "full_matrices": "full"},
    "LinalgVectorNormBackward0": {"ord": "order"}, "MaxBackward0": {"indices": "index"},
    "MedianBackward1": {"indices": "index"}, "MinBackward0": {"indices": "index"}, "ModeBackward0": {"indices": "index"},
    "NanmedianBackward1": {"indices": "index"}, "NativeBatchNormBackward0": {"input": "self", "result1": "mean"},
    "NativeLayerNormBackward0": {"input": "self", "result1": "mean", "result2": "rstd"}, "NllLossBackward0": {"total_weight": "total"},
    "PermuteBackward0": {"dims": "dim"}, "RollBackward0": {"dims": "dim"}, "Rot90Backward0": {"dims": "dim"}, "SliceBackward0": {"end": "stop"},
    "SmoothL1LossBackward0": {"beta": "number"}, "SortBackward0": {"indices": "index"}, "SplitWithSizesBackward0": {"split_sizes": "sizes"},
    "TopkBackward0": {"indices": "index"}, "UnfoldBackward0": {"dimension": "dim"},
}  # fmt: skip

FIXED: Final[dict[str, dict[str, Any]]] = {
    "AddBackward0": {"alpha": 1}, "ClampBackward1": {"min": None, "max": None}, "DivBackward0": {"self": None, "other": None},
    "DivBackward2": {"self": None}, "EluBackward0": {"input_scale": 1}, "EmbeddingBackward0": {"scale_grad_by_freq": False, "sparse": False},
    "GatherBackward0": {"sparse_grad": False}, "LogitBackward0": {"eps": None}, "MulBackward0": {"self": None, "other": None},
    "RsubBackward1": {"alpha": 1}, "SubBackward0": {"alpha": 1},
}  # fmt: skip

VALUES: Final[dict[str, dict[str, Value]]] = {
    "AddbmmBackward0": {"batch1_sym_argsize_0": length("batch1", 0), "batch1_sym_argsize_1": length("batch1", 1),
                        "batch2_sym_argsize_2": length("batch2", 2)},
    "AddmmBackward0": {"mat1_sym_sizes": lambda node: layer_sizes(node, "mat1"), "mat2_sym_sizes": lambda node: layer_sizes(node, "mat2")},
    "BinaryCrossEntropyBackward0": {"reduction": reduction}, "BinaryCrossEntropyWithLogitsBackward0": {"reduction": reduction},
    "DivBackward2": {"rounding_mode": lambda node: "trunc" if "trunc" in node.map.name else "floor"},
    "EmbeddingBackward0": {"weight_sym_argsize_0": length("weight", 0)}, "HuberLossBackward0": {"reduction": reduction},
    "MaskedScatterBackward0": {"source_sym_sizes": sizes("source")}, "MaxBackward0": {"keepdim": keepdim}, "MedianBackward1": {"keepdim": keepdim},
    "MinBackward0": {"keepdim": keepdim}, "MmBackward0": {"mat2_sym_sizes": lambda node: node.likes[1].shape}, "ModeBackward0": {"keepdim": keepdim},
    "NanmedianBackward1": {"keepdim": keepdim}, "NllLossBackward0": {"reduction": reduction},
    "NativeLayerNormBackward0": {"normalized_shape": lambda node: node.likes[0].shape[-node.static_values()["axes"] :]},
    "SmoothL1LossBackward0": {"reduction": reduction}, "SplitBackward0": {"split_size": lambda node: node.static_values()["sizes"][0]},
    "StdBackward0": {"dim": dim_unless_whole, "correction": correction_unless_whole},
    "VarBackward0": {"dim": dim_unless_whole, "correction": correction_unless_whole},
}  # fmt: skip

SIZED: Final = frozenset((
    "DiagonalBackward0", "ExpandBackward0", "IndexBackward0", "IndexSelectBackward0", "KthvalueBackward0", "MaxBackward0", "MeanBackward0",
    "MeanBackward1", "MedianBackward1", "MinBackward0", "MmBackward0", "ModeBackward0", "NanmedianBackward1", "RepeatBackward0", "SelectBackward0",
    "SliceBackward0", "SortBackward0", "SplitBackward0", "SplitWithSizesBackward0", "SqueezeBackward0", "SqueezeBackward1", "SqueezeBackward2",
    "SumBackward0", "SumBackward1", "TopkBackward0", "TraceBackward0", "UnfoldBackward0", "UnsafeSplitBackward0", "UnsafeSplitWithSizesBackward0",
    "UnsafeViewBackward0", "ViewBackward0",
))  # fmt: skip

PRIVATE: Final = frozenset(("axes", "key", "kind", "layout", "limit", "memory", "own", "shape", "stream", "strict", "whole"))
