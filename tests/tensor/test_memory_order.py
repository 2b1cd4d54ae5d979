"""The order of the axes in memory of copies and of new tensors: that of the original, row-major, or with the channels last."""

import pytest

from tests.libraries import lib

__all__ = ["lib"]


def laid_out(lib):
    """Tensors in all kinds of memory, with the strides of a copy that keeps the order of their axes."""
    x = lib.arange(24.0).view(2, 3, 4)
    return {
        "rows": (x, (12, 4, 1)),
        "turned": (x.permute(2, 0, 1), (1, 12, 4)),
        "with gaps": (x[:, :, ::2], (6, 2, 1)),
        "turned, with gaps": (x.permute(2, 1, 0)[::2], (1, 2, 6)),
        "expanded": (lib.arange(4.0).expand(3, 4), (4, 1)),
        "expanded in the middle": (lib.arange(6.0).view(2, 1, 3).permute(2, 1, 0).expand(3, 5, 2), (1, 3, 15)),
        "one number": (lib.tensor(2.0).expand(2, 3), (3, 1)),
        "overlapping": (lib.arange(9.0).as_strided((3, 3), (1, 1)), (3, 1)),
        "no axes": (x[0, 0, 1], ()),
    }


COPIES = {
    "clone": lambda t, x: x.clone(),
    "clone, preserving": lambda t, x: x.clone(memory_format=t.preserve_format),
    "to": lambda t, x: x.to(t.float64),
    "double": lambda t, x: x.double(),
    "to with copy": lambda t, x: x.to(x.dtype, copy=True),
    "zeros_like": lambda t, x: t.zeros_like(x),
    "ones_like": lambda t, x: t.ones_like(x, dtype=t.int64),
    "empty_like": lambda t, x: t.empty_like(x),
    "full_like": lambda t, x: t.full_like(x, 3.0),
    "rand_like": lambda t, x: t.rand_like(x),
    "randn_like": lambda t, x: t.randn_like(x),
    "randint_like": lambda t, x: t.randint_like(x, 5),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_keep_the_order_of_the_axes(lib, name):
    for what, (x, strides) in laid_out(lib).items():
        made = COPIES[name](lib, x)
        assert made.stride() == strides, what
        assert made.shape == x.shape
        assert made.storage_offset() == 0
        if "clone" in name or name in ("to", "double", "to with copy"):
            assert made.tolist() == x.tolist()
            assert made.data_ptr() != x.data_ptr()
        made.zero_()  # memory of its own
    assert lib.full_like(lib.ones(2, 3).t(), 7).tolist() == [[7.0, 7.0]] * 3


def test_row_major_copies(lib):
    x = lib.arange(6.0).view(2, 3).t()
    for made in (x.contiguous(), x.clone(memory_format=lib.contiguous_format), x.to(lib.float64, memory_format=lib.contiguous_format),
                 lib.zeros_like(x, memory_format=lib.contiguous_format), lib.t_copy(x.t()), x.reshape(6).view(3, 2),
                 x.repeat_interleave(2, dim=0)):  # fmt: skip
        assert made.is_contiguous()
        assert made.stride() == (2, 1)
    y = lib.arange(3.0)
    assert y.repeat_interleave(1, dim=0).data_ptr() != y.data_ptr()


IMAGES = [((2, 3, 4, 5), "channels_last", (60, 1, 15, 3)), ((2, 3, 1, 2, 2), "channels_last_3d", (12, 1, 12, 6, 3))]


@pytest.mark.parametrize(("shape", "order", "strides"), IMAGES)
def test_channels_last(lib, shape, order, strides):
    order = getattr(lib, order)
    x = lib.rand(*shape)
    made = [x.clone(memory_format=order), x.contiguous(memory_format=order), x.to(memory_format=order), x.to(x.dtype, memory_format=order)]
    for y in made:
        assert y.stride() == strides
        assert y.is_contiguous(memory_format=order)
        assert not y.is_contiguous()
        assert lib.equal(x, y)
        assert y.contiguous(memory_format=order) is y
        assert y.to(memory_format=order) is y
        assert y.clone().stride() == strides
    assert lib.empty(*shape, memory_format=order).stride() == strides
    assert lib.zeros_like(x, memory_format=order).stride() == strides
    assert lib.ones(x.numel()).resize_(shape, memory_format=order).stride() == strides
    assert lib.ones(2).resize_(shape, memory_format=order).stride() == strides
    assert lib.ones(x.numel()).resize_as_(y, memory_format=lib.preserve_format).stride() == strides
    assert lib.resize_as_(lib.ones(1), y, memory_format=lib.preserve_format).stride() == strides
    assert lib.ones(x.numel()).resize_as_(y).is_contiguous()


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda t: t.empty(2, 3, memory_format=t.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
        (lambda t: t.ones(2, 3).clone(memory_format=t.channels_last_3d), RuntimeError, "required rank 5 tensor to use channels_last"),
        (lambda t: t.zeros_like(t.ones(2), memory_format=t.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
        (lambda t: t.ones(4).resize_(2, 2, memory_format=t.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
        (lambda t: t.ones(2, 3).to(memory_format=t.channels_last), RuntimeError, "required rank 4 tensor to use channels_last format"),
        (lambda t: t.empty(2, memory_format=t.preserve_format), RuntimeError, "unsupported memory format Preserve"),
        (lambda t: t.ones(4).resize_(2, 2, memory_format=t.preserve_format), RuntimeError, "Unsupported memory format"),
        (lambda t: t.ones(2, 3).t().contiguous(memory_format=t.preserve_format), RuntimeError, "preserve memory format is unsupported by the"),
        (lambda t: t.ones(2).clone(memory_format=3), TypeError, "argument 'memory_format' must be torch.memory_format, not int"),
    ],
)  # fmt: skip
def test_formats_that_do_not_fit(lib, call, error, words):
    with pytest.raises(error, match=words):
        call(lib)


def test_gradients_through_copies(lib):
    x = lib.arange(6.0).view(2, 3).requires_grad_()
    weights = lib.arange(6.0).view(3, 2)
    for copy in (x.t().clone(), x.t().double(), x.t().clone(memory_format=lib.contiguous_format)):
        (grad,) = lib.autograd.grad((copy * weights).sum(), x)
        assert grad.tolist() == weights.t().tolist()
        assert grad.dtype == x.dtype
    y = x.t().clone()
    y.mul_(2)
    (grad,) = lib.autograd.grad((y * y).sum(), x)
    assert grad.tolist() == (8 * x).tolist()
    assert y.grad_fn.name() == "MulBackward0"
    assert x.t().clone().grad_fn.name() == "CloneBackward0"
    image = lib.ones(1, 2, 2, 2, requires_grad=True)
    (image.contiguous(memory_format=lib.channels_last) * 3).sum().backward()
    assert image.grad.flatten().tolist() == [3.0] * 8


def test_formats_of_casts_and_modules(lib):
    x = lib.rand(2, 3, 4, 5)
    order = lib.channels_last
    for made in (x.float(memory_format=order), x.double(memory_format=order), x.half(memory_format=order), x.cpu(memory_format=order)):
        assert made.stride() == (60, 1, 15, 3)
    assert x.long(memory_format=lib.preserve_format).stride() == x.stride()
    assert x.float(memory_format=lib.contiguous_format) is x
    with pytest.raises(RuntimeError, match="required rank 4 tensor to use channels_last format"):
        lib.ones(2).double(memory_format=order)
    layers = lib.nn.Sequential(lib.nn.Conv2d(3, 4, 2), lib.nn.Flatten(), lib.nn.Linear(48, 2))
    before = layers(x)
    assert layers.to(memory_format=order) is layers
    assert layers[0].weight.stride() == (12, 1, 6, 3)
    assert layers[2].weight.is_contiguous()
    assert lib.allclose(layers(x.contiguous(memory_format=order)), before, atol=1e-5)
    layers.to(lib.float64, memory_format=lib.contiguous_format)
    assert layers[0].weight.dtype == lib.float64
    assert layers[0].weight.is_contiguous()
