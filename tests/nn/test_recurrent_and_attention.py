"""Recurrent layers and attention: against their own definitions, and beside torch."""

import math

import numpy as np
import pytest

import jitgrad
from jitgrad import nn
from tests.libraries import lib

__all__ = ["lib"]
normal = np.random.default_rng(0).normal


def values(*shape):
    return normal(size=shape)


def twins(make):
    """A module of ours in double precision and torch's with the same weights."""
    torch = pytest.importorskip("torch")
    theirs, ours = make(torch.nn).double(), make(nn).double()
    ours.load_state_dict({key: jitgrad.tensor(value.numpy()) for key, value in theirs.state_dict().items()})
    return ours, theirs


def flat(found):
    return [found] if hasattr(found, "shape") else [] if found is None else [x for one in found for x in flat(one)]


def agree(make, *inputs, **named):
    """Results, gradients of inputs and weights, printing."""
    modules = twins(make)
    assert repr(modules[0]) == repr(modules[1])
    found = []
    for t, module in zip((jitgrad, pytest.importorskip("torch")), modules, strict=True):
        made = [
            tuple(t.tensor(x, requires_grad=True) for x in one) if isinstance(one, tuple) else t.tensor(one, requires_grad=True) for one in inputs
        ]
        outs = flat(module(*made, **{key: t.tensor(value) if isinstance(value, np.ndarray) else value for key, value in named.items()}))
        sum((out * out * (k + 1)).sum() for k, out in enumerate(outs)).backward()
        found.append([out.detach().numpy() for out in outs] + [x.grad.numpy() for x in flat(made)] + [p.grad.numpy() for p in module.parameters()])
    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-9)


# ---- recurrent
@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, (5, 2, 3)), ({"num_layers": 2, "bidirectional": True}, (5, 2, 3)), ({"batch_first": True, "bias": False}, (2, 5, 3)), ({}, (5, 3)),
    ],
)  # fmt: skip
def test_layers(name, options, shape):
    agree(lambda n: getattr(n, name)(3, 4, **options), values(*shape))


def test_states_and_projections():
    agree(lambda n: n.RNN(3, 4, nonlinearity="relu"), values(5, 2, 3), values(1, 2, 4))
    agree(lambda n: n.LSTM(3, 4, 2, proj_size=2), values(5, 2, 3), (values(2, 2, 2), values(2, 2, 4)))
    agree(lambda n: n.GRU(3, 4), values(5, 3), values(1, 4))


@pytest.mark.parametrize("name", ["RNNCell", "LSTMCell", "GRUCell"])
def test_cells(name):
    state = (values(2, 4), values(2, 4)) if name == "LSTMCell" else values(2, 4)
    for bias in (True, False):
        agree(lambda n: getattr(n, name)(3, 4, bias=bias), values(2, 3), state)  # noqa: B023
        agree(lambda n: getattr(n, name)(3, 4, bias=bias), values(3))  # noqa: B023


@pytest.mark.parametrize("name", ["RNN", "LSTM", "GRU"])
def test_a_layer_is_its_cell_again_and_again(lib, name):
    layer, cell = getattr(lib.nn, name)(3, 4), getattr(lib.nn, f"{name}Cell")(3, 4)
    cell.load_state_dict({key.removesuffix("_l0"): value for key, value in layer.state_dict().items()})
    x = lib.randn(5, 2, 3)
    out, final = layer(x)
    state = None
    for step, expected in zip(x, out, strict=True):
        state = cell(step, state)
        assert lib.allclose(state[0] if name == "LSTM" else state, expected, atol=1e-6)
    assert lib.allclose((final[0] if name == "LSTM" else final)[0], out[-1])


def test_dropout_between_layers(lib):
    lib.manual_seed(0)
    layer = lib.nn.GRU(2, 3, 2, dropout=1.0)
    x = lib.ones(4, 1, 2)
    nothing = lib.nn.GRU(3, 3)
    nothing.load_state_dict({key.replace("l1", "l0"): value for key, value in layer.state_dict().items() if "l1" in key})
    assert lib.allclose(layer(x)[0], nothing(lib.zeros(4, 1, 3))[0])
    layer.eval()
    assert not lib.allclose(layer(x)[0], nothing(lib.zeros(4, 1, 3))[0])
    with pytest.warns(UserWarning, match="dropout option adds dropout after all but last recurrent layer"):
        lib.nn.RNN(1, 1, dropout=0.5)


def test_recurrent_refuses(lib):
    n, ones = lib.nn, lib.ones
    for call, error, words in (
        (lambda: n.RNN(2, 3.5), TypeError, "hidden_size should be of type int, got: float"),
        (lambda: n.RNN(2, 3, bias=1), TypeError, "bias should be of type bool, got: int"),
        (lambda: n.RNN(2, 0), ValueError, "hidden_size must be greater than zero"),
        (lambda: n.RNN(2, 3, dropout=2), ValueError, r"dropout should be a number in range \[0, 1\]"),
        (lambda: n.RNN(2, 3, nonlinearity="foo"), ValueError, "Unknown nonlinearity 'foo'. Select from 'tanh' or 'relu'"),
        (lambda: n.LSTM(2, 3, proj_size=4), ValueError, "proj_size has to be smaller than hidden_size"),
        (lambda: n.GRU(2, 3, proj_size=1), ValueError, "proj_size argument is only supported for LSTM, not RNN or GRU"),
        (lambda: n.RNN(2, 3)(ones(2)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        (lambda: n.RNN(2, 3)(ones(2, 2, 5)), RuntimeError, r"input.size\(-1\) must be equal to input_size. Expected 2, got 5"),
        (lambda: n.RNN(2, 3)(ones(2, 2, 2), ones(1, 2, 5)), RuntimeError, r"Expected hidden size \(1, 2, 3\), got \[1, 2, 5\]"),
        (lambda: n.RNN(2, 3)(ones(4, 2), ones(1, 1, 3)), RuntimeError, "For unbatched 2-D input, hx should also be 2-D but got 3-D tensor"),
        (lambda: n.LSTM(2, 3)(ones(4, 1, 2), (ones(1, 3), ones(1, 3))), RuntimeError, "For batched 3-D input, hx and cx should also be 3-D but got"),
        (lambda: n.RNN(2, 3)(ones(4, 1, 2, dtype=lib.float64)), ValueError, "RNN input dtype .* does not match weight dtype"),
        (lambda: n.RNN(2, 3)(ones(0, 1, 2)), RuntimeError, "Expected sequence length to be larger than 0 in RNN"),
        (lambda: n.RNNCell(2, 3)(ones(2, 2, 2)), ValueError, "RNNCell: Expected input to be 1D or 2D, got 3D instead"),
        (lambda: n.RNNCell(2, 3)(ones(2, 5)), RuntimeError, "input has inconsistent input_size: got 5 expected 2"),
        (lambda: n.LSTMCell(2, 3)(ones(3, 2), (ones(2, 3), ones(2, 3))), RuntimeError, "Input batch size 3 doesn't match hidden0 batch size 2"),
        (lambda: n.MultiheadAttention(5, 2), AssertionError, "embed_dim must be divisible by num_heads"),
    ):
        with pytest.raises(error, match=words):
            call()


# ---- attention
@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({}, {}), ({"bias": False, "batch_first": True}, {"average_attn_weights": False}), ({"add_bias_kv": True, "add_zero_attn": True}, {}),
        ({}, {"need_weights": False}),
        ({}, {"attn_mask": np.triu(np.ones((5, 5), bool), 1), "key_padding_mask": np.array([[False] * 4 + [True]] * 2)}),
        ({}, {"attn_mask": values(4, 5, 5)}),
    ],
)  # fmt: skip
def test_attention(options, named):
    shape = (2, 5, 4) if options.get("batch_first") else (5, 2, 4)
    agree(lambda n: n.MultiheadAttention(4, 2, **options), values(*shape), values(*shape), values(*shape), **named)


def test_attention_to_other_sizes_and_without_batch():
    agree(lambda n: n.MultiheadAttention(4, 2, kdim=3, vdim=6), values(5, 2, 4), values(7, 2, 3), values(7, 2, 6))
    agree(lambda n: n.MultiheadAttention(4, 2), values(5, 4), values(7, 4), values(7, 4))


def test_scaled_products(lib):
    F = lib.nn.functional
    q, k, v = (lib.tensor(values(2, 3, 4)) for _ in range(3))
    expected = (q @ k.transpose(-2, -1) / math.sqrt(4)).softmax(-1) @ v
    assert lib.allclose(F.scaled_dot_product_attention(q, k, v), expected)
    mask = lib.tensor([[True, False, False], [True, True, False], [True, True, True]])
    causal = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    assert lib.allclose(causal, F.scaled_dot_product_attention(q, k, v, mask))
    assert lib.allclose(causal[:, 0], v[:, 0])
    added = lib.zeros(3, 3, dtype=lib.float64).masked_fill(~mask, -math.inf)
    assert lib.allclose(causal, F.scaled_dot_product_attention(q, k, v, added))
    nothing = F.scaled_dot_product_attention(q, k, v, mask & lib.tensor([[False], [True], [True]]))
    assert nothing[:, 0].abs().sum().item() == 0
    with pytest.raises(RuntimeError, match="Explicit attn_mask should not be set when is_causal=True"):
        F.scaled_dot_product_attention(q, k, v, mask, is_causal=True)


# ---- transformers
OPTIONS = {"dim_feedforward": 8, "dropout": 0.0}


@pytest.mark.parametrize("more", [{}, {"norm_first": True, "activation": "gelu", "batch_first": True, "bias": False}])
def test_transformer_layers(more):
    options = {**OPTIONS, **more}
    agree(lambda n: n.TransformerEncoderLayer(4, 2, **options), values(5, 2, 4))
    agree(lambda n: n.TransformerDecoderLayer(4, 2, **options), values(5, 2, 4), values(*((5, 3, 4) if more else (7, 2, 4))))


def test_transformer_stacks():
    mask = np.triu(np.full((5, 5), -np.inf), 1)
    one = {**OPTIONS, "batch_first": True}
    agree(lambda n: n.TransformerEncoder(n.TransformerEncoderLayer(4, 2, **one), 2, n.LayerNorm(4)), values(2, 5, 4), mask=mask)
    agree(lambda n: n.TransformerDecoder(n.TransformerDecoderLayer(4, 2, **OPTIONS), 2), values(5, 2, 4), values(7, 2, 4), tgt_mask=mask)
    agree(lambda n: n.Transformer(4, 2, 1, 1, **one), values(2, 7, 4), values(2, 5, 4), tgt_mask=mask)


def test_transformers_refuse(lib):
    whole = lib.nn.Transformer(4, 2, 1, 1, 8, batch_first=True)
    with pytest.raises(RuntimeError, match="the batch number of src and tgt must be equal"):
        whole(lib.ones(1, 5, 4), lib.ones(2, 5, 4))
    with pytest.raises(RuntimeError, match="the feature number of src and tgt must be equal to d_model"):
        whole(lib.ones(5, 1, 3), lib.ones(5, 1, 3))
    with pytest.raises(RuntimeError, match="activation should be relu/gelu, not foo"):
        lib.nn.TransformerEncoderLayer(4, 2, activation="foo")
    mask = lib.nn.Transformer.generate_square_subsequent_mask(2)
    assert mask.tolist() == [[0, -math.inf], [0, 0]]


def test_a_place_sees_no_later_one(lib):
    layer = lib.nn.TransformerEncoderLayer(4, 2, 8, 0.0)
    mask = lib.nn.Transformer.generate_square_subsequent_mask(3)
    x = lib.randn(3, 1, 4, requires_grad=True)
    layer(x, src_mask=mask, is_causal=True)[0].sum().backward()
    assert x.grad[1:].abs().sum().item() == 0
