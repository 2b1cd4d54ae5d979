"""The quick call of an elementwise function keeps what its first call keeps, and no more."""

import pytest

import jitgrad

FUNCTIONS = {
    "product": lambda x, y: x * y,
    "one side": lambda x, y: x * x + x * y,
    "quotient": lambda x, y: x / y,
}


@pytest.mark.parametrize("needs", [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_is_kept(name, needs):
    function = jitgrad.elementwise(FUNCTIONS[name])
    kept = []
    for call in range(4):
        x, y = (jitgrad.tensor([1.0, 2.0], requires_grad=need) for need in needs)
        packed = []
        if call < 3:
            z = function(x, y)
            packed = [value is y.array for _, value, _ in z.grad_fn.kept_values()]
        else:
            with jitgrad.autograd.graph.saved_tensors_hooks(
                lambda t, y=y, packed=packed: packed.append(t is y) or t, lambda t: t
            ):
                z = function(x, y)
        kept.append(sorted(packed))
    assert kept[0] == kept[1] == kept[2] == kept[3]


def test_what_no_gradient_needs_may_be_written_to():
    function = jitgrad.elementwise(lambda x, y: x * y)
    for _ in range(4):
        w, y = jitgrad.tensor([1.0, 2.0], requires_grad=True), jitgrad.tensor([3.0, 4.0])
        z = function(w, y)
        with jitgrad.no_grad():
            w.mul_(10)
        z.sum().backward()
        assert w.grad.tolist() == [3.0, 4.0]
        z = function(w, y)
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.sum().backward()
