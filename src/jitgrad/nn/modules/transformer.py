# ruff: noqa: D102  (forward is described by its base)
"""Layers of attention and feed-forward networks, and stacks of them."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

from ..._core.dtypes import dtype as DType
from ..._tensor import Tensor
from ..._tensor.creation import full
from .. import functional as F, init
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = ["Transformer", "TransformerDecoder", "TransformerDecoderLayer", "TransformerEncoder", "TransformerEncoderLayer"]

Activation = Callable[[Tensor], Tensor]
Mask = Tensor | None


def _activation(given: str | Activation) -> Activation:
    if not isinstance(given, str):
        return given
    if given not in ("relu", "gelu"):
        raise RuntimeError(f"activation should be relu/gelu, not {given}")
    return F.relu if given == "relu" else F.gelu


class _Layer(Module):
    """Attention to `_attends` things, each in a residual branch with a norm, and a feed-forward network in one of its own."""

    _decodes = False

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int = 2048, dropout: float = 0.1, activation: str | Activation = F.relu,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        made = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "bias": bias, "batch_first": batch_first, **made}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        if self._decodes:
            self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias, **made)
        self.norm_first = norm_first
        names = ("1", "2", "3") if self._decodes else ("1", "2")
        for name in names:
            self.add_module(f"norm{name}", LayerNorm(d_model, layer_norm_eps, bias=bias, **made))
        for name in names:
            self.add_module(f"dropout{name}", Dropout(dropout))
        self.activation = _activation(activation)

    def _branch(self, x: Tensor, number: int, branch: Callable[[Tensor], Tensor]) -> Tensor:
        """x and what a branch makes of it, normalised before the branch or after the sum."""
        norm, dropout = self._modules[f"norm{number}"], self._modules[f"dropout{number}"]
        assert norm is not None
        assert dropout is not None
        if self.norm_first:
            return x + dropout(branch(norm(x)))  # type: ignore[no-any-return]
        return norm(x + dropout(branch(x)))  # type: ignore[no-any-return]

    def _feed_forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return result

    def _attend(self, attention: MultiheadAttention, x: Tensor, to: Tensor, mask: Mask, padding: Mask, causal: bool) -> Tensor:
        found: Tensor = attention(x, to, to, attn_mask=mask, key_padding_mask=padding, need_weights=False, is_causal=causal)[0]
        return found


class TransformerEncoderLayer(_Layer):
    """Self-attention, then a feed-forward network; each in a residual branch with a layer norm (before it with `norm_first`).

    Shapes as for `MultiheadAttention`. RuntimeError for an `activation` that is neither "relu", "gelu" nor a function.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.TransformerEncoderLayer(4, 2, 8)(torch.ones(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    def forward(self, src: Tensor, src_mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool = False) -> Tensor:
        x = self._branch(src, 1, lambda x: self._attend(self.self_attn, x, x, src_mask, src_key_padding_mask, is_causal))
        return self._branch(x, 2, self._feed_forward)


class TransformerDecoderLayer(_Layer):
    """Self-attention, attention to `memory`, then a feed-forward network; each in a residual branch with a layer norm.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.TransformerDecoderLayer(4, 2, 8)(torch.ones(5, 1, 4), torch.ones(7, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    _decodes = True

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None, tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None, tgt_is_causal: bool = False, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        x = self._branch(tgt, 1, lambda x: self._attend(self.self_attn, x, x, tgt_mask, tgt_key_padding_mask, tgt_is_causal))
        x = self._branch(
            x, 2, lambda x: self._attend(self.multihead_attn, x, memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        )
        return self._branch(x, 3, self._feed_forward)


class _Stack(Module):
    def __init__(self, layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = ModuleList([copy.deepcopy(layer) for _ in range(num_layers)])
        self.num_layers = num_layers
        self.norm = norm

    def _finished(self, x: Tensor) -> Tensor:
        return x if self.norm is None else self.norm(x)


class TransformerEncoder(_Stack):
    """`num_layers` copies of a layer, one after the other, and a norm at the end if one is given.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), 2)(torch.ones(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    def __init__(
        self, encoder_layer: Module, num_layers: int, norm: Module | None = None, enable_nested_tensor: bool = True, mask_check: bool = True
    ) -> None:
        super().__init__(encoder_layer, num_layers, norm)
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(self, src: Tensor, mask: Mask = None, src_key_padding_mask: Mask = None, is_causal: bool | None = None) -> Tensor:
        causal = bool(is_causal) and mask is not None
        for layer in self.layers:
            src = layer(src, src_mask=mask, src_key_padding_mask=src_key_padding_mask, is_causal=causal)
        return self._finished(src)


class TransformerDecoder(_Stack):
    """`num_layers` copies of a layer, one after the other, each of which attends to `memory`, and a norm at the end if one is given.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8), 2)(torch.ones(5, 1, 4), torch.ones(7, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__(decoder_layer, num_layers, norm)

    def forward(
        self, tgt: Tensor, memory: Tensor, tgt_mask: Mask = None, memory_mask: Mask = None, tgt_key_padding_mask: Mask = None,
        memory_key_padding_mask: Mask = None, tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        for layer in self.layers:
            tgt = layer(
                tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=bool(tgt_is_causal) and tgt_mask is not None,
                memory_is_causal=memory_is_causal,
            )  # fmt: skip
        return self._finished(tgt)


class Transformer(Module):
    """An encoder of `src`, and a decoder that goes from `tgt` and attends to what the encoder made.

    Shapes: src (S, N, d_model), tgt (T, N, d_model), with N first where `batch_first`; output as tgt. RuntimeError for sizes that don't fit.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> nn.Transformer(4, 2, 1, 1, 8)(torch.ones(7, 1, 4), torch.ones(5, 1, 4)).shape
    torch.Size([5, 1, 4])
    """

    def __init__(
        self, d_model: int = 512, nhead: int = 8, num_encoder_layers: int = 6, num_decoder_layers: int = 6, dim_feedforward: int = 2048,
        dropout: float = 0.1, activation: str | Activation = F.relu, custom_encoder: Any = None, custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5, batch_first: bool = False, norm_first: bool = False, bias: bool = True, device: Any = None,
        dtype: DType | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        shared = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias, device=device, dtype=dtype) for _ in range(2)]
        self.encoder = custom_encoder or TransformerEncoder(TransformerEncoderLayer(*shared), num_encoder_layers, norms[0])
        self.decoder = custom_decoder or TransformerDecoder(TransformerDecoderLayer(*shared), num_decoder_layers, norms[1])
        for weight in self.parameters():
            if weight.dim() > 1:
                init.xavier_uniform_(weight)
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self, src: Tensor, tgt: Tensor, src_mask: Mask = None, tgt_mask: Mask = None, memory_mask: Mask = None, src_key_padding_mask: Mask = None,
        tgt_key_padding_mask: Mask = None, memory_key_padding_mask: Mask = None, src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None, memory_is_causal: bool = False,
    ) -> Tensor:  # fmt: skip
        axis = 0 if self.batch_first else 1
        if src.dim() == 3 and src.size(axis) != tgt.size(axis):
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        result: Tensor = self.decoder(
            tgt, memory, tgt_mask=tgt_mask, memory_mask=memory_mask, tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask, tgt_is_causal=tgt_is_causal, memory_is_causal=memory_is_causal,
        )  # fmt: skip
        return result

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: DType | None = None) -> Tensor:
        """A mask (sz, sz) of -inf above the diagonal and zeros elsewhere: each place sees those up to its own."""
        return full((sz, sz), float("-inf"), device=device, dtype=dtype).triu(1)  # type: ignore[no-any-return]
