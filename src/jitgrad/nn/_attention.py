"""Attention: weights by likeness of queries and keys, and means of values by these weights."""

from __future__ import annotations

import math
from typing import Any

from .._core.dtypes import bool_
from .._tensor import Tensor, _functions as T
from .._tensor.creation import ones, zeros

__all__ = ["multi_head_attention_forward", "scaled_dot_product_attention"]


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ key.T * scale + mask) @ value`.

    Shapes: query (*, L, E), key (*, S, E), value (*, S, V); output (*, L, V). The mask broadcasts to (*, L, S): booleans say what takes
    part, numbers are added; `is_causal` lets each place see those up to its own. `scale` is 1 / sqrt(E) unless given. With `enable_gqa`
    keys and values of fewer heads (third axis from the end) are shared. RuntimeError for a mask with `is_causal`.
    """
    if is_causal and attn_mask is not None:
        raise RuntimeError("_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True")
    if enable_gqa:
        key = key.repeat_interleave(query.size(-3) // key.size(-3), -3)
        value = value.repeat_interleave(query.size(-3) // value.size(-3), -3)
    if is_causal:
        attn_mask = ones(query.size(-2), key.size(-2), dtype=bool_).tril()
    weights = _weights(query * (1 / math.sqrt(query.size(-1)) if scale is None else scale), key, attn_mask)
    result: Tensor = (T.dropout(weights, dropout_p, True) if dropout_p > 0 else weights).matmul(value)
    return result


def _weights(query: Tensor, key: Tensor, mask: Tensor | None) -> Tensor:
    likeness = query.matmul(key.transpose(-2, -1))
    if mask is None:
        return likeness.softmax(-1)
    weights: Tensor
    if mask.dtype is bool_:
        # a row that may look at nothing gets zeros, as in torch
        weights = likeness.masked_fill(~mask, -math.inf).softmax(-1)
        weights = T.where(mask.any(-1, keepdim=True), weights, 0.0)
    else:
        weights = (likeness + mask).softmax(-1)
    return weights


def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """Attention of several heads over (L, N, E) and (S, N, E), or without the axis N; see `MultiheadAttention`.

    Gives the output and the weights, averaged over the heads if asked, or None.
    """
    alone = query.dim() == 2
    if alone:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    if width != embed_dim_to_check:
        raise AssertionError(f"was expecting embedding dimension of {embed_dim_to_check}, but got {width}")
    if is_causal and attn_mask is None:
        raise RuntimeError("Need attn_mask if specifying the is_causal hint.")
    separate = (q_proj_weight, k_proj_weight, v_proj_weight) if use_separate_proj_weight else None
    q, k, v = _projected((query, key, value), in_proj_weight, in_proj_bias, separate)
    added = int(bias_k is not None) + int(add_zero_attn)
    if bias_k is not None and bias_v is not None:
        k, v = T.cat([k, bias_k.repeat(1, batch, 1)]), T.cat([v, bias_v.repeat(1, batch, 1)])
    size = width // num_heads
    q = q.reshape(length, batch * num_heads, size).transpose(0, 1)
    k, v = (_heads(x, given, batch * num_heads, size) for x, given in ((k, static_k), (v, static_v)))
    if add_zero_attn:
        k, v = (T.cat([x, zeros(batch * num_heads, 1, size, dtype=x.dtype)], 1) for x in (k, v))
    mask = _merged(attn_mask, key_padding_mask, (batch, num_heads, length, k.size(1)), added, q)
    weights = _softmax(q * (1 / math.sqrt(size)), k, mask)
    used = T.dropout(weights, dropout_p, training) if dropout_p > 0 and training else weights
    out = used.matmul(v).transpose(0, 1).reshape(length * batch, width)
    out = T.linear(out, out_proj_weight, out_proj_bias).view(length, batch, width)
    shown = used.view(batch, num_heads, length, k.size(1)) if need_weights else None
    if shown is not None and average_attn_weights:
        shown = shown.mean(1)
    if alone:
        return out.squeeze(1), None if shown is None else shown.squeeze(0)
    return out, shown


def _projected(given: tuple[Tensor, Tensor, Tensor], weight: Any, bias: Any, separate: Any) -> list[Tensor]:
    weights = separate if separate is not None else weight.chunk(3)
    biases = (None, None, None) if bias is None else bias.chunk(3)
    return [T.linear(x, w, b) for x, w, b in zip(given, weights, biases, strict=True)]


def _heads(x: Tensor, given: Tensor | None, heads: int, size: int) -> Tensor:
    return x.reshape(x.size(0), heads, size).transpose(0, 1) if given is None else given


def _softmax(q: Tensor, k: Tensor, mask: Tensor | None) -> Tensor:
    likeness: Tensor = q.matmul(k.transpose(-2, -1))
    likeness = likeness if mask is None else likeness + mask
    return likeness.softmax(-1)


def _merged(attn_mask: Tensor | None, padding: Tensor | None, shape: tuple[int, ...], added: int, like: Tensor) -> Tensor | None:
    """One mask of numbers to add, in the shape (N * heads, L, S) or one that broadcasts to it. In the given ones True means: not this."""
    batch, heads, length, places = shape
    masks = []
    if attn_mask is not None:
        mask = _numbers(attn_mask, like)
        if mask.dim() == 2:
            mask = mask.unsqueeze(0)
        expected = ((1, length, places - added), (batch * heads, length, places - added))
        if tuple(mask.shape) not in expected:
            raise RuntimeError(f"The shape of the {attn_mask.dim()}D attn_mask is {attn_mask.shape}, but should be {expected[mask.size(0) != 1]}.")
        masks.append(mask)
    if padding is not None:
        if tuple(padding.shape) != (batch, places - added):
            raise AssertionError(f"expecting key_padding_mask shape of {(batch, places - added)}, but got {padding.shape}")
        numbers = _numbers(padding, like).view(batch, 1, 1, places - added).expand(batch, heads, 1, places - added)
        masks.append(numbers.reshape(batch * heads, 1, places - added))
    if not masks:
        return None
    total = masks[0] if len(masks) == 1 else masks[0] + masks[1]
    return T.cat([total, zeros(*total.shape[:2], added, dtype=total.dtype)], 2) if added else total


def _numbers(mask: Tensor, like: Tensor) -> Tensor:
    if mask.dtype is not bool_:
        return mask
    numbers: Tensor = zeros(mask.shape, dtype=like.dtype).masked_fill(mask, -math.inf)
    return numbers
