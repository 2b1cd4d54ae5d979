"""Reverse-mode differentiation in sixty lines of plain Python, by the same plan as jitgrad's engine.

A *node* stands for one operation done: it knows how to turn the gradient of its result into those of its inputs
(`rule`) and which nodes those inputs came from (`edges`). A backward run counts how many gradients each node will
receive, adds them up in its *buffer*, and runs the newest node whose gradients are all there, so every node runs once
however many paths lead to it.
"""

import heapq
import itertools
import math

sequence = itertools.count()


class Node:
    def __init__(self, name, rule, edges):
        self.name, self.rule, self.edges, self.number = name, rule, edges, next(sequence)


class Number:
    """A float and the node it came from; a leaf's node adds what arrives to the leaf's `grad`."""

    def __init__(self, value, node=None):
        self.value, self.grad = value, None
        self.node = node or Node("AccumulateGrad", self.accumulate, ())

    def accumulate(self, grad):
        self.grad = grad if self.grad is None else self.grad + grad
        return ()

    def __add__(self, other):
        return record("Add", self.value + other.value, lambda g: (g, g), self, other)

    def __mul__(self, other):
        a, b = self.value, other.value
        return record("Mul", a * b, lambda g: (g * b, g * a), self, other)

    def tanh(self):
        result = math.tanh(self.value)
        return record("Tanh", result, lambda g: (g * (1 - result * result),), self)

    def backward(self):
        run(self.node, 1.0)


def record(name, value, rule, *inputs):
    return Number(value, Node(name, rule, [number.node for number in inputs]))


def run(root, seed, trace=lambda name, grad: None):
    waiting, todo = {root: 0}, [root]  # how many gradients each node is still to receive
    while todo:
        for node in todo.pop().edges:
            if node not in waiting:
                todo.append(node)
            waiting[node] = waiting.get(node, 0) + 1
    buffers, ready = {root: seed}, [(-root.number, root)]
    while ready:
        node = heapq.heappop(ready)[1]  # the newest one first
        if node.rule is None:
            raise RuntimeError("Trying to backward through the graph a second time")
        grad = buffers.pop(node)
        trace(node.name, grad)
        edges, grads = node.edges, node.rule(grad)
        if edges:
            node.rule, node.edges = None, ()  # released: what the rule had saved is freed
        for target, part in zip(edges, grads, strict=True):
            buffers[target] = buffers.get(target, 0.0) + part
            waiting[target] -= 1
            if waiting[target] == 0:
                heapq.heappush(ready, (-target.number, target))


if __name__ == "__main__":
    x, w, b = Number(2.0), Number(3.0), Number(1.0)
    y = w * x + b
    loss = y * y
    run(loss.node, 1.0, trace=lambda name, grad: print(f"{name:15} received {grad}"))
    print(f"loss {loss.value}: dloss/dw = {w.grad}, dloss/db = {b.grad}, dloss/dx = {x.grad}")
