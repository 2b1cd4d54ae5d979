"""Views, pieces, joining, copies in another arrangement: node names, transposes, layouts, refusals."""

import numpy as np
import pytest

import jitgrad
from tests.libraries import lib

__all__ = ["lib"]


def leaf(lib, *shape):
    return lib.arange(1.0, 1 + int(np.prod(shape))).reshape(shape).clone().requires_grad_()


NODES = {
    "AliasBackward0": lambda t, x: x[...],
    "AsStridedBackward0": lambda t, x: x.as_strided((2, 2), (1, 1), 1),
    "BlockDiagBackward0": lambda t, x: t.block_diag(x, x[0]),
    "CatBackward0": lambda t, x: t.cat((x, x), 1),
    "CloneBackward0": lambda t, x: x.t().contiguous(),
    "DiagEmbedBackward0": lambda t, x: t.diag(x[0]),
    "DiagonalBackward0": lambda t, x: x.diagonal(),
    "ExpandBackward0": lambda t, x: x.expand(2, 2, 3),
    "FlipBackward0": lambda t, x: x.flip(0),
    "NarrowCopyBackward0": lambda t, x: t.narrow_copy(x, 1, 0, 2),
    "PermuteBackward0": lambda t, x: x.T,
    "RepeatBackward0": lambda t, x: x.tile(2),
    "ReshapeAliasBackward0": lambda t, x: x.t().reshape(3, 2),
    "RollBackward0": lambda t, x: x.roll(1),
    "Rot90Backward0": lambda t, x: x.rot90(),
    "SelectBackward0": lambda t, x: x[0],
    "SliceBackward0": lambda t, x: x.narrow(1, 0, 2),
    "SplitBackward0": lambda t, x: x.chunk(2)[1],
    "SplitWithSizesBackward0": lambda t, x: x.split([1, 2], 1)[0],
    "SqueezeBackward0": lambda t, x: x.squeeze(),
    "SqueezeBackward1": lambda t, x: x.squeeze(0),
    "SqueezeBackward2": lambda t, x: x.squeeze((0, 1)),
    "StackBackward0": lambda t, x: t.stack((x, x), -1),
    "TBackward0": lambda t, x: x.t(),
    "ToCopyBackward0": lambda t, x: x.double(),
    "TransposeBackward0": lambda t, x: x.mT,
    "TrilBackward0": lambda t, x: x.tril(),
    "TriuBackward0": lambda t, x: t.triu(x, 1),
    "UnbindBackward0": lambda t, x: x.unbind()[0],
    "UnfoldBackward0": lambda t, x: x.unfold(1, 2, 1),
    "UnsafeSplitBackward0": lambda t, x: x.unsafe_chunk(2)[0],
    "UnsafeViewBackward0": lambda t, x: x.t().reshape(6),
    "UnsqueezeBackward0": lambda t, x: x[None],
    "ViewBackward0": lambda t, x: x.flatten(),
}


@pytest.mark.parametrize("name", NODES)
def test_node_names(lib, name):
    y = NODES[name](lib, leaf(lib, 2, 3))
    assert y.grad_fn.name() == name


# name: call of a tensor of shape (2, 3, 4), linear
LINEAR = {
    "view": lambda t, x: x.reshape(4, 6),
    "transposed reshape": lambda t, x: x.transpose(0, 2).reshape(-1),
    "permute": lambda t, x: x.permute(2, 0, 1),
    "movedim": lambda t, x: x.movedim((0, 1), (2, 0)),
    "expand": lambda t, x: x.unsqueeze(1).expand(2, 5, 3, 4),
    "select": lambda t, x: x[:, 1],
    "slice": lambda t, x: x[:, ::2, 1:3],
    "empty slice": lambda t, x: x[:, 3:],
    "diagonal": lambda t, x: x.diagonal(-1, 1, 2),
    "unfold": lambda t, x: x.unfold(2, 3, 1),
    "as_strided overlapping": lambda t, x: x.as_strided((3, 4), (1, 2), 3),
    "as_strided of a part": lambda t, x: x[1].t().as_strided((3, 3), (1, 3)),
    "as_strided of an expanded": lambda t, x: x[:, :1].expand(2, 3, 4).as_strided((2, 4), (0, 1)),
    "unbind": lambda t, x: x.unbind(1)[2],
    "chunk": lambda t, x: x.chunk(3, 2)[1],
    "tensor_split": lambda t, x: x.tensor_split((1, 3), 2)[1],
    "cat": lambda t, x: t.cat((x, 2 * x[:, :1], x[:, :0]), 1),
    "stack": lambda t, x: t.stack((x, x), 2),
    "hstack": lambda t, x: t.hstack((x[0, 0], x[0, 1])),
    "block_diag": lambda t, x: t.block_diag(x[0], x[1, 0], x[1, 1, 1]),
    "repeat": lambda t, x: x.repeat(2, 1, 2, 1),
    "repeat_interleave": lambda t, x: x.repeat_interleave(2, 1),
    "repeat_interleave by counts": lambda t, x: x.repeat_interleave(t.tensor([2, 0, 1]), 1),
    "flip": lambda t, x: x.flip((0, 2)),
    "roll": lambda t, x: x.roll((1, -1), (0, 2)),
    "roll all": lambda t, x: x.roll(5),
    "rot90": lambda t, x: x.rot90(3, (0, 2)),
    "tril": lambda t, x: x.tril(1),
    "diag_embed": lambda t, x: t.diag_embed(x, 1, 0, 2),
    "diag": lambda t, x: t.diag(x[0], 1),
    "cast": lambda t, x: x.float(),
    "meshgrid": lambda t, x: t.meshgrid(x[0, 0], x[1, 1], indexing="xy")[1],
    "atleast": lambda t, x: t.atleast_3d(x[0, 0]),
}


@pytest.mark.parametrize("layout", ["contiguous", "transposed"])
@pytest.mark.parametrize("name", LINEAR)
def test_the_transpose_is_the_transpose(lib, name, layout):
    """<A x, v> = <x, A' v>, and the transpose of the transpose gives A again."""
    call, rng = LINEAR[name], np.random.default_rng(1)
    if "as_strided" in name and layout != "contiguous":
        pytest.skip("reads memory that is not the tensor's")
    array = rng.standard_normal((2, 3, 4)) if layout == "contiguous" else rng.standard_normal((4, 3, 2)).T
    x = lib.from_numpy(array).requires_grad_()
    y = call(lib, x)
    v = lib.from_numpy(rng.standard_normal(y.shape)).to(y.dtype).requires_grad_()
    (back,) = lib.autograd.grad(y, x, v, create_graph=True)
    assert back.shape == x.shape
    scale = 1e-5 if y.dtype == lib.float32 else 1e-12
    assert np.isclose((y * v).sum().item(), (x * back).sum().item(), atol=10 * scale)
    (again,) = lib.autograd.grad(back, v, x.detach())
    assert np.allclose(again.detach().numpy(), y.detach().numpy(), atol=scale)


def test_views_share_memory_and_copies_do_not(lib):
    x = leaf(lib, 2, 3).detach()
    for y in (
        x.t(),
        x.view(3, 2),
        x.flatten(),
        x[0],
        x.diagonal(),
        x.expand(2, 2, 3),
        x.unfold(1, 2, 1),
        x.squeeze(),
        x.unbind()[0],
        x.T,
        x[None],
    ):
        assert y._is_view()
        assert y._base is x
        assert y.t_ is not None
        assert np.shares_memory(y.numpy(), x.numpy())
    for y in (
        x.clone(),
        x.flip(0),
        x.repeat(1, 1),
        x[[0]],
        x.t().contiguous(),
        x.t().reshape(6),
        x.tril(),
        x.roll(1),
        x.to(x.dtype, copy=True),
    ):
        assert not y._is_view()
        assert not np.shares_memory(y.numpy(), x.numpy())
    assert x.contiguous() is x
    assert x.to(lib.float32) is x
    assert x.float() is x


def test_rearranged_copies_are_contiguous_whatever_they_copy():
    x = leaf(jitgrad, 2, 3).t()
    for y in (
        x.flip(0),
        x.roll(1),
        x.tril(),
        x.repeat(1, 1),
        jitgrad.cat((x, x)),
        x[[0, 1]],
    ):
        assert y.is_contiguous()
        assert y.array.flags.owndata or y.array.base.flags.owndata


REFUSED = [
    (lambda t, x: x.view(4, 2), RuntimeError, r"shape '\[4, 2\]' is invalid for input of size 6"),
    (lambda t, x: x.t().view(-1), RuntimeError, "view size is not compatible with input tensor's size and stride"),
    (lambda t, x: x.reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
    (
        lambda t, x: x.expand(3, 3),
        RuntimeError,
        r"The expanded size of the tensor \(3\) must match the existing size \(2\)",
    ),
    (lambda t, x: x.permute(0), RuntimeError, "number of dimensions in the tensor input does not match"),
    (lambda t, x: x.permute(0, 0), RuntimeError, "duplicate dims are not allowed"),
    (lambda t, x: x[None].t(), RuntimeError, r"t\(\) expects a tensor with <= 2 dimensions, but self is 3D"),
    (
        lambda t, x: x[0].mT,
        RuntimeError,
        "tensor.mT is only supported on matrices or batches of matrices. Got 1-D tensor.",
    ),
    (lambda t, x: x.flatten(1, 0), RuntimeError, r"flatten\(\) has invalid args: start_dim cannot come after end_dim"),
    (lambda t, x: x.unflatten(1, (2, 2)), RuntimeError, r"unflatten: Provided sizes \[2, 2\] don't multiply up"),
    (lambda t, x: x.movedim((0, 0), (0, 1)), RuntimeError, "movedim: repeated dim in `source`"),
    (
        lambda t, x: x.select(0, 2),
        IndexError,
        r"select\(\): index 2 out of range for tensor of size \[2, 3\] at dimension 0",
    ),
    (lambda t, x: x.narrow(1, 1, 3), RuntimeError, r"start \(1\) \+ length \(3\) exceeds dimension size \(3\)"),
    (lambda t, x: x.split([1, 1]), RuntimeError, None),
    (lambda t, x: x.split([1, 2]), RuntimeError, "split_with_sizes expects split_sizes to sum exactly to 2"),
    (lambda t, x: x.split(0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
    (lambda t, x: x.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
    (lambda t, x: x.sum().unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda t, x: x.diagonal(0, 1, 1), RuntimeError, "diagonal dimensions cannot be identical 1, 1"),
    (lambda t, x: x.unfold(1, 4, 1), RuntimeError, "maximum size for tensor at dimension 1 is 3 but size is 4"),
    (lambda t, x: x.as_strided((7,), (1,)), RuntimeError, "are out of bounds for storage of size 24"),
    (
        lambda t, x: t.cat((x, x[:, :1])),
        RuntimeError,
        "Sizes of tensors must match except in dimension 0. Expected size 3 but got size 1 for tensor number 1",
    ),
    (lambda t, x: t.cat((x, x[0])), RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
    (lambda t, x: t.cat([]), ValueError, "expected a non-empty list of Tensors"),
    (lambda t, x: t.cat(x), TypeError, r"argument 'tensors' \(position 1\) must be tuple of Tensors, not Tensor"),
    (lambda t, x: t.cat((x, 3)), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
    (
        lambda t, x: t.stack((x, x[0])),
        RuntimeError,
        r"stack expects each tensor to be equal size, but got \[2, 3\] at entry 0 and \[3\] at entry 1",
    ),
    (lambda t, x: x.repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller"),
    (lambda t, x: x.flip((0, 0)), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda t, x: x.roll((1, 2)), RuntimeError, "shifts and dimensions must align"),
    (lambda t, x: x[0].tril(), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
    (lambda t, x: t.diag(x[None]), RuntimeError, r"diag\(\): Supports 1D or 2D tensors. Got 3D"),
    (
        lambda t, x: x.transpose(0, 2),
        IndexError,
        r"Dimension out of range \(expected to be in range of \[-2, 1\], but got 2\)",
    ),
    (lambda t, x: x.to("cuda"), AssertionError, "Torch not compiled with CUDA enabled"),
    (lambda t, x: x.type("foo"), ValueError, "invalid type: 'foo'"),
]


@pytest.mark.parametrize(("call", "error", "words"), [case for case in REFUSED if case[2]])
def test_refusals(lib, call, error, words):
    with pytest.raises(error, match=words):
        call(lib, leaf(lib, 2, 3))


def test_cat_promotes_and_casts_gradients_back(lib):
    x, y = leaf(lib, 2), leaf(lib, 3).detach().double().requires_grad_()
    z = lib.cat((x, y, lib.arange(2), lib.zeros(0)))
    assert z.dtype == lib.float64
    z.sum().backward()
    assert x.grad.dtype == lib.float32
    assert y.grad.dtype == lib.float64


def test_casts(lib):
    x = lib.tensor([300.5, -1.5, 0.0])
    assert x.long().tolist() == [300, -1, 0]
    assert x.bool().tolist() == [True, True, False]
    assert x.int().byte().tolist() == [44, 255, 0]
    assert x.type() == "torch.FloatTensor"
    assert (
        x.type("torch.DoubleTensor").dtype
        == x.to(lib.ones(1).double()).dtype
        == x.to("cpu", lib.float64).dtype
        == lib.float64
    )
    y = leaf(lib, 2)
    assert not y.long().requires_grad
    y.half().sum().backward()
    assert y.grad.dtype == lib.float32


def test_empty_and_0d(lib):
    empty = lib.zeros(2, 0, requires_grad=True)
    for y in (
        empty.t(),
        empty.flip(0),
        empty.repeat(1, 2),
        lib.cat((empty, empty)),
        empty.reshape(0, 5),
        empty.expand(3, 2, 0),
        empty.tril(),
    ):
        y.sum().backward()
    assert empty.grad.shape == (2, 0)
    point = lib.tensor(2.0, requires_grad=True)
    for y in (
        point.expand(3),
        point.reshape(1, 1),
        point.repeat(2),
        point.flip(0),
        point.roll(1),
        point.unfold(0, 1, 1),
        point.t(),
        lib.stack((point, point)),
    ):
        y.sum().backward()
    assert point.grad.item() == 3 + 1 + 2 + 1 + 1 + 1 + 1 + 2


def test_a_view_of_another_dtype_shares_bytes(lib):
    x = lib.tensor([1.0, -2.0])
    bits = x.view(lib.int32)
    assert bits.tolist() == [1065353216, -1073741824]
    bits[0] = 0
    assert x.tolist() == [0, -2]
    assert x.view(lib.uint8).shape == (8,)
    with pytest.raises(RuntimeError, match="must be divisible by 2 to view Float as Double"):
        lib.zeros(3).view(lib.float64)
