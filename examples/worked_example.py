"""The graph behind a backward pass, looked at: `python examples/worked_example.py`.

Its picture is docs/images/worked_example.svg.
"""

import jitgrad as torch

x = torch.tensor(2.0)
w = torch.tensor(3.0, requires_grad=True)
b = torch.tensor(1.0, requires_grad=True)
y = w * x + b
loss = y * y

print(loss.grad_fn)  # the node that made it: a multiplication
print(loss.grad_fn.next_functions)  # both its inputs came from the addition
print(y.grad_fn.next_functions)  # which got a product and the leaf b
print(y.grad_fn.next_functions[0][0].next_functions)  # the product got the leaf w, and x, which needs no gradient
print(w.is_leaf, y.is_leaf)

loss.backward()
print(w.grad, b.grad)  # d(y^2)/dw = 2 y x = 28, d(y^2)/db = 2 y = 14

try:
    loss.backward()  # what the nodes had saved is gone
except RuntimeError as why:
    print(f"RuntimeError: {why}")

with torch.no_grad():  # nothing is recorded in here
    z = w * x
print(z.requires_grad, z.grad_fn)


class StraightThroughClamp(torch.autograd.Function):
    """clamp(x, 0, 1) whose gradient passes as if nothing had been cut off."""

    @staticmethod
    def forward(ctx, x):
        return x.clamp(0.0, 1.0)

    @staticmethod
    def backward(ctx, grad):
        return grad


v = torch.tensor([5.0, 0.5], requires_grad=True)
c = StraightThroughClamp.apply(v)
print(c.grad_fn.name())
(c * torch.tensor([20.0, 10.0])).sum().backward()
print(v.grad)  # clamp's own gradient would be 0 and 10
