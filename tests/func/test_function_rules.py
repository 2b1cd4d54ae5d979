"""Custom Functions mapped over a batch: their own rule, a generated one, or none."""

import pytest

import jitgrad


def product(lib, **members):
    """A Function of two tensors, called once per sample unless it has a rule."""
    seen = []

    def vmap(info, in_dims, x, y):
        seen.append((tuple(info), info.batch_size, in_dims))
        whole = [a if dim is None else a.movedim(dim, 0) for a, dim in zip((x, y), in_dims, strict=True)]
        return made.apply(*whole), 0

    def backward(ctx, grad):
        x, y = ctx.saved_tensors
        return grad * y, grad * x

    parts = {"forward": lambda x, y: x * y, "setup_context": lambda ctx, inputs, output: ctx.save_for_backward(*inputs), "backward": backward}
    own = members or {"vmap": staticmethod(vmap)}
    made = type(lib.autograd.Function)("Product", (lib.autograd.Function,), {name: staticmethod(one) for name, one in parts.items()} | own)
    return made, seen


def test_the_rule_is_called_with_the_whole_batch(lib):
    x = lib.arange(6.0).reshape(2, 3)
    made, seen = product(lib)
    assert lib.func.vmap(made.apply)(x, x).tolist() == (x * x).tolist()
    assert lib.func.vmap(made.apply, in_dims=(1, None), randomness="same")(x, x[:, 0]).tolist() == (x.t() * x[:, 0]).tolist()
    assert lib.func.vmap(made.apply, in_dims=-1, out_dims=1)(x, x).tolist() == (x * x).tolist()
    assert seen == [((2, "error"), 2, (0, 0)), ((3, "same"), 3, (1, None)), ((3, "error"), 3, (1, 1))]


def test_a_result_without_a_batch_axis(lib):
    made, _ = product(lib, vmap=staticmethod(lambda info, in_dims, x, y: (lib.ones(3), None)))
    assert lib.func.vmap(made.apply)(lib.ones(2, 3), lib.ones(2, 3)).tolist() == [[1.0] * 3] * 2


def test_a_generated_rule(lib):
    x = lib.arange(6.0).reshape(2, 3)
    made, _ = product(lib, generate_vmap_rule=True)
    assert lib.func.vmap(made.apply)(x, x).tolist() == (x * x).tolist()
    assert lib.func.vmap(lib.func.grad(lambda a: made.apply(a, a).sum()))(x).tolist() == (2 * x).tolist()


def test_what_has_no_rule_or_two(lib):
    x = lib.ones(2, 3)
    made, _ = product(lib, generate_vmap_rule=False)
    with pytest.raises(RuntimeError, match="You tried to vmap over Product, but it does not have vmap support"):
        lib.func.vmap(made.apply)(x, x)
    made, _ = product(lib, generate_vmap_rule=True, vmap=staticmethod(lambda info, in_dims, x, y: (x, 0)))
    with pytest.raises(RuntimeError, match="You tried to vmap over Product, but it has both generate_vmap_rule=True and an overridden vmap"):
        lib.func.vmap(made.apply)(x, x)


def test_without_a_rule_inside_another_function():
    made, _ = product(jitgrad, generate_vmap_rule=False)  # torch refuses: here it is called once per sample
    x = jitgrad.arange(6.0).reshape(2, 3)
    assert jitgrad.vmap(lambda a: made.apply(a, a))(x).tolist() == (x * x).tolist()
