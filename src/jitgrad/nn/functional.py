"""Functions of neural networks, with torch's names and arguments.

Each is one call away from the op it stands for: what is checked or translated here is what torch checks in its own
`nn.functional`, and nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence

from .._core.dtypes import int64
from .._tensor import Tensor, _functions as T
from .._tensor.creation import arange, ones_like
from ..autograd import no_grad
from ._activations import (
    celu,
    celu_,
    elu,
    elu_,
    gelu,
    hardshrink,
    hardsigmoid,
    hardswish,
    hardtanh,
    hardtanh_,
    leaky_relu,
    leaky_relu_,
    log_softmax,
    logsigmoid,
    mish,
    prelu,
    relu,
    relu6,
    relu_,
    selu,
    selu_,
    sigmoid,
    silu,
    softmax,
    softmin,
    softplus,
    softshrink,
    softsign,
    tanh,
    tanhshrink,
    threshold,
    threshold_,
)
from ._attention import multi_head_attention_forward, scaled_dot_product_attention
from ._channels import (
    alpha_dropout,
    channel_shuffle,
    dropout1d,
    dropout2d,
    dropout3d,
    feature_alpha_dropout,
    instance_norm,
    local_response_norm,
    pixel_shuffle,
    pixel_unshuffle,
    rrelu,
    rrelu_,
    unfold,
)
from ._composed import bilinear, glu, group_norm, gumbel_softmax, kl_div, rms_norm
from ._losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    huber_loss,
    l1_loss,
    mse_loss,
    nll_loss,
    smooth_l1_loss,
)
from ._margins import (
    cosine_embedding_loss,
    cosine_similarity,
    gaussian_nll_loss,
    hinge_embedding_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    pairwise_distance,
    pdist,
    poisson_nll_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from ._padding import pad
from ._spatial import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
    adaptive_max_pool1d,
    adaptive_max_pool1d_with_indices,
    adaptive_max_pool2d,
    adaptive_max_pool2d_with_indices,
    adaptive_max_pool3d,
    adaptive_max_pool3d_with_indices,
    avg_pool1d,
    avg_pool2d,
    avg_pool3d,
    conv1d,
    conv2d,
    conv3d,
    conv_transpose1d,
    conv_transpose2d,
    conv_transpose3d,
    max_pool1d,
    max_pool1d_with_indices,
    max_pool2d,
    max_pool2d_with_indices,
    max_pool3d,
    max_pool3d_with_indices,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "feature_alpha_dropout",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
]

linear = T.linear


# ---- regularisation ----
def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """In training, each element is set to 0 with probability `p`, the others are divided by `1 - p`.

    Raises ValueError for a `p` that is no probability.
    """
    if p < 0.0 or p > 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")
    return T.dropout_(input, p, training) if inplace else T.dropout(input, p, training)


# ---- normalisation ----
def layer_norm(
    input: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over the last dimensions, `normalized_shape`; then `* weight + bias`.

    Raises RuntimeError unless the input ends in `normalized_shape` and weight and bias have that shape.
    """
    return T.layer_norm(input, normalized_shape, weight, bias, eps)


def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float = 0.1,
    eps: float = 1e-5,
) -> Tensor:
    """Mean 0 and variance 1 over all dimensions but the second (the channels); then `* weight + bias`.

    In training the batch's own statistics are used, and the running ones move towards them by `momentum`; otherwise
    the running ones are used. Raises ValueError for a batch of one value per channel in training.
    """
    if training:
        shape = input.shape
        if len(shape) > 1 and input.numel() == shape[1]:
            raise ValueError(f"Expected more than 1 value per channel when training, got input size {shape}")
        if eps <= 0.0:
            raise ValueError(f"batch_norm eps must be positive during training, but got {eps}")
    elif eps < 0.0:
        raise ValueError(f"batch_norm eps must be non-negative, but got {eps}")
    return T.batch_norm(input, weight, bias, running_mean, running_var, training, momentum, eps)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Divides by the p-norm along `dim`, or by `eps` where that is larger."""
    norm = input.norm(p, dim, keepdim=True).clamp_min(eps)
    unit: Tensor = input / norm.expand_as(input)
    return unit


# ---- look-up ----
def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """Rows of `weight` (count, width) that `input` (any shape, int64 or int32) names: shape (*, width).

    The row `padding_idx` gets no gradient. With `max_norm` the rows that are used are first scaled down, in place, to
    that norm at most. Raises IndexError for an index that is out of range, NotImplementedError for `sparse`.
    """
    if sparse:
        raise NotImplementedError("embedding: sparse gradients are not supported")
    if padding_idx is None:
        padding_idx = -1
    else:
        count = weight.shape[0]
        if not -count <= padding_idx < max(count, 1):
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= count
    if max_norm is not None:
        _limit_norms(weight, input, max_norm, norm_type)
    return T.embedding(weight, input, padding_idx, scale_grad_by_freq)


def _limit_norms(weight: Tensor, input: Tensor, max_norm: float, norm_type: float) -> None:
    """Scale the rows that `input` names down to `max_norm`; a row named twice is written twice, the same both times."""
    with no_grad():
        rows = input.reshape(-1)
        used = weight.index_select(0, rows)
        norms = used.norm(norm_type, 1, keepdim=True)
        weight[rows] = used * T.where(norms > max_norm, max_norm / (norms + 1e-7), ones_like(norms))


def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A one where the last dimension equals the class, zeros elsewhere: shape (*, num_classes), int64.

    The number of classes is one more than the largest class unless given. Raises RuntimeError for a negative class
    or one that is too large.
    """
    if input.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if input.numel() == 0 and num_classes <= 0:
        raise RuntimeError("Can not infer total number of classes from empty tensor.")
    low, high = (0, 0) if input.numel() == 0 else (int(input.min()), int(input.max()))
    if low < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = high + 1
    if high >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    hits: Tensor = input.unsqueeze(-1) == arange(num_classes)
    return hits.to(int64)
