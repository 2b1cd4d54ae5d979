"""What is timed, once for both packages: each function takes the package and returns a step without arguments."""

from itertools import pairwise

import numpy as np

CHAIN = 100
ELEMENTS = 1_000_000
MLPS = {  # name: (sizes, batch, loss, optimizer)
    "mlp_tiny_sgd": ((2, 16, 16, 1), 32, "mse_loss", "SGD"),
    "mlp_tiny_adam": ((2, 16, 16, 1), 32, "mse_loss", "Adam"),
    "mlp_digits_adam": ((64, 128, 64, 10), 64, "cross_entropy", "Adam"),
    "mlp_mnist_sgd": ((784, 256, 10), 128, "cross_entropy", "SGD"),
    "mlp_big_sgd": ((1024, 1024, 1024, 1024, 10), 512, "cross_entropy", "SGD"),
}


def normal(*shape, seed=2):
    return np.random.Generator(np.random.PCG64(seed)).standard_normal(shape).astype("f4")


def chain(package):
    w = package.tensor(np.full(8, 1.001, "f4")).requires_grad_()
    x = package.tensor(np.linspace(0.5, 1, 8).astype("f4")).requires_grad_()

    def forward():
        y = x
        for _ in range(CHAIN):
            y = y * w
        return y

    return x, w, forward


def recorded_ops(package):
    """100 recorded multiplications of 8 elements, forward only."""
    return chain(package)[2]


def backward_nodes(package):
    """Backward through 100 multiplications of 8 elements, the graph kept."""
    x, w, forward = chain(package)
    y = forward()
    seed = package.tensor(np.ones(8, "f4"))

    def step():
        x.grad = w.grad = None
        y.backward(seed, retain_graph=True)

    return step


def op_chain(package):
    """100 recorded multiplications of 8 elements, forward and backward."""
    x, w, forward = chain(package)
    seed = package.tensor(np.ones(8, "f4"))

    def step():
        x.grad = w.grad = None
        forward().backward(seed)

    return step


def linear_layer(package):
    """Linear(16, 16) on a batch of 32, forward and backward."""
    layer = package.nn.Linear(16, 16)
    x = package.tensor(normal(32, 16))
    seed = package.tensor(normal(32, 16, seed=3))

    def step():
        layer.weight.grad = layer.bias.grad = None
        layer(x).backward(seed)

    return step


def elementwise_1m(package):
    """tanh(x) * sigmoid(x) + exp(-x * x), summed, of 1e6 elements, forward and backward."""
    x = package.tensor(normal(ELEMENTS)).requires_grad_()

    def step():
        x.grad = None
        (package.tanh(x) * package.sigmoid(x) + package.exp(-x * x)).sum().backward()

    return step


def function_1m(name):
    """One function of 1e6 float32 elements, not recorded."""

    def build(package):
        function, x = getattr(package, name), package.tensor(np.abs(normal(ELEMENTS)) + np.float32(0.01))
        return lambda: function(x)

    return build


def mlp(package, name):
    """One training step: zero_grad, forward, loss, backward, update."""
    sizes, batch, loss, optimizer = MLPS[name]
    layers = []
    for inputs, outputs in pairwise(sizes):
        layers += [package.nn.Linear(inputs, outputs), package.nn.ReLU()]
    model = package.nn.Sequential(*layers[:-1])
    update = getattr(package.optim, optimizer)(model.parameters(), lr=0.001)
    criterion = getattr(package.nn.functional, loss)
    x = package.tensor(normal(batch, sizes[0]))
    classes = np.random.Generator(np.random.PCG64(4)).integers(0, sizes[-1], batch)
    y = package.tensor(classes if loss == "cross_entropy" else normal(batch, 1, seed=5))

    def step():
        update.zero_grad()
        value = criterion(model(x), y)
        value.backward()
        update.step()
        return value

    return step


STEPS = {  # name: (builder, how many things a step does, so that the figure is for one of them)
    "recorded_op": (recorded_ops, CHAIN),
    "backward_node": (backward_nodes, CHAIN),
    "op_chain": (op_chain, 1),
    "linear_layer": (linear_layer, 1),
    **{name: (lambda package, name=name: mlp(package, name), 1) for name in MLPS},
    "elementwise_1m": (elementwise_1m, 1),
    **{f"{name}_1m": (function_1m(name), 1) for name in ("exp", "log", "tanh", "sigmoid")},
}
