"""`export`: a model as a module that needs NumPy alone, with its weights in an `.npz` beside it."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from .._engine import modes
from .._expr import Expr, topological
from .._expr.atoms import lower_powers
from .._tensor.base import TensorBase
from .graph import Graph
from .operations import Collect, Gemm, Map, Operation, Reduce, Rowwise, Unsupported, Value, View, contiguous_strides
from .trace import Tracer

_INFIX: Final = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!=",
                 "logical_and": "&", "logical_or": "|", "logical_xor": "^"}  # fmt: skip
_CALLS: Final = {"abs": "abs", "sign": "sign", "square": "square", "sqrt": "sqrt", "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log",
                 "log2": "log2", "log10": "log10", "log1p": "log1p", "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin",
                 "acos": "arccos", "atan": "arctan",
                 "atan2": "arctan2", "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh", "atanh": "arctanh",
                 "hypot": "hypot", "maximum": "maximum", "minimum": "minimum", "floor": "floor", "ceil": "ceil", "round": "rint", "trunc": "trunc",
                 "fmod": "fmod", "remainder": "remainder", "floor_divide": "floor_divide", "copysign": "copysign", "where": "where", "isnan": "isnan",
                 "isinf": "isinf", "isfinite": "isfinite", "logical_not": "logical_not", "logaddexp": "logaddexp",
                 "reciprocal": "reciprocal"}  # fmt: skip
_FORMS: Final = {"zmul": "np.where({0} == 0, {0}, {0} * {1})", "neg": "(-{0})",
                 "sigmoid": "(0.5 * (1.0 + np.tanh(0.5 * {0})))", "softplus": "np.logaddexp(0, {0})", "rsqrt": "(1 / np.sqrt({0}))",
                 "logsigmoid": "(-np.logaddexp(0, -{0}))", "erf": "_erf({0})", "erfc": "(1 - _erf({0}))",
                 "clamp": "np.minimum(np.maximum({0}, {1}), {2})"}  # fmt: skip

_ROWS: Final = {
    "extreme_rows": """def extreme_rows(x, largest):
    return (np.argmax if largest else np.argmin)(x, axis=-1)
""",
    "order_rows": """def order_rows(x, k, descending):
    if descending:
        return (x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable"))[..., ::-1][..., :k]
    return np.argsort(x, axis=-1, kind="stable")[..., :k]
""",
    "sum_rows": """def sum_rows(x, _):
    return np.cumsum(x, axis=-1, dtype=np.float64)
""",
    "product_rows": """def product_rows(x, *_):
    return np.cumprod(x, axis=-1, dtype=np.float64)
""",
}  # what `_kernels/program_rows.py` says, in NumPy; what only a backward asks for is not there
_HEAD: Final = '''"""A model exported by jitgrad. It needs NumPy and the file of its weights beside it.

    predict({arguments})

Arguments: {shapes}.
"""

import math
from pathlib import Path

import numpy as np

WEIGHTS = dict(np.load(Path(__file__).with_suffix(".npz")))


def _read(memory, shape, strides, offset, *terms):
    """Elements of a flat array: at offset + the sum of positions times strides + index arrays times theirs."""
    flat = np.ascontiguousarray(memory).reshape(-1)
    if not terms:
        return np.lib.stride_tricks.as_strided(flat[offset:], shape, [step * flat.itemsize for step in strides])
    at = offset + sum(index * step for index, step in terms)
    for axis, (n, step) in enumerate(zip(shape, strides)):
        at = at + (np.arange(n) * step).reshape([n if k == axis else 1 for k in range(len(shape))])
    return flat[at]


def _put(base, part, strides, offset, add, *terms):
    """A copy of an array with a part written, or added, at places given as in `_read`."""
    full = np.array(base)
    at = _read(np.arange(full.size), part.shape, strides, offset) if not terms else offset + sum(index * step for index, step in terms)
    if terms:
        for axis, (n, step) in enumerate(zip(part.shape, strides)):
            at = at + (np.arange(n) * step).reshape([n if k == axis else 1 for k in range(part.ndim)])
    (np.add.at if add else np.put)(full.reshape(-1), at, part)
    return full


_erf = np.vectorize(math.erf, otypes=[float])


{functions}def predict({arguments}):
    """The model's output."""
'''


class NumpyWriter:
    """Writes the operations of a graph as NumPy statements."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.lines: list[str] = []
        self.weights: dict[str, Any] = {}
        self.functions: set[str] = set()

    def view(self, view: View) -> str:
        """The spelling of an array read through a view."""
        value = view.value
        if view.constant is not None:
            return f"np.full({view.shape}, {view.constant!r}, np.{value.dtype})"
        if value.source is not None and value.source.kind == "position":
            return f"_read(np.arange({1 + sum((n - 1) * s for n, s in zip(view.shape, view.strides, strict=True))}), {view.shape}, {view.strides}, 0)"
        if view.is_whole:
            return value.label
        terms = "".join(f", ({self.view(term.index)}, {term.stride})" for term in view.terms)
        return f"_read({value.label}, {view.shape}, {view.strides}, {view.offset}{terms})"

    def operation(self, op: Operation) -> None:
        out = op.outs[0]
        if isinstance(op, Map):
            text = self.expression(op)
            text = (
                f"np.asarray({text}).astype(np.{out.dtype})"
                if out.dtype in (op.compute, np.bool_)
                else f"({text}).astype(np.{out.dtype})"
            )
            text = f"np.broadcast_to({text}, {out.shape})"
        elif isinstance(op, Reduce):
            kind = {"sum": "sum", "max": "max", "min": "min"}[op.kind]
            wide = ", dtype=np.float64" if op.kind == "sum" and op.operand.value.dtype.kind == "f" else ""
            text = f"np.{kind}({self.view(op.operand)}, axis={op.axes}{wide})"
            text = f"np.asarray({text}{f' / {op.divisor!r}' if op.divisor != 1 else ''}).astype(np.{out.dtype}).reshape({out.shape})"
        elif isinstance(op, Gemm):
            text = f"{self.view(op.a)} @ {self.view(op.b)}"
        elif isinstance(op, Collect):
            base = f"np.zeros({out.shape}, np.{out.dtype})" if op.base is None else self.view(op.base)
            terms = "".join(f", ({self.view(term.index)}, {term.stride})" for term in op.terms)
            text = f"_put({base}, {self.view(op.part)}, {op.strides}, {op.offset}, {op.add}{terms})"
        elif isinstance(op, Rowwise) and op.function in _ROWS and (op.function in ("extreme_rows", "order_rows") or not any(op.numbers)):
            self.functions.add(op.function)
            given = [f"{self.view(x)}.reshape({op.rows}, {op.length})" for x in op.operands] + [str(number) for number in op.numbers]
            text = f"{op.function}({', '.join(given)}).astype(np.{out.dtype}).reshape({out.shape})"
        else:
            raise NotImplementedError(f"{out.name} can't be exported")
        self.lines.append(f"{out.label} = {text}")

    def expression(self, op: Map) -> str:
        """A Map's expression on whole arrays."""
        (root,) = lower_powers(op.expr)
        names: dict[Expr, str] = {}
        for node in topological(root):
            parts = [names[arg] for arg in node.args]
            if node.op == "const":
                value = node.value
                names[node] = repr(value) if math.isfinite(value) else f"float('{value!r}')"
            elif node.op == "var":
                text = self.view(op.operands[node.name])
                kind = op.operands[node.name].value.dtype
                names[node] = (
                    text
                    if kind in (op.compute, np.bool_) or node.name in op.raw
                    else f"{text}.astype(np.{op.compute})"
                )
            elif node.op in _INFIX:
                names[node] = f"({parts[0]} {_INFIX[node.op]} {parts[1]})"
            elif node.op in _CALLS:
                names[node] = f"np.{_CALLS[node.op]}({', '.join(parts)})"
            elif node.op in _FORMS:
                names[node] = _FORMS[node.op].format(*parts)
            else:
                raise NotImplementedError(f"{node.op} can't be exported")
        return names[root]

    def source(self, value: Value) -> None:
        """Where a value from outside comes from."""
        source = value.source
        assert source is not None
        if source.kind == "arg":
            self.lines.append(f"{value.label} = np.ascontiguousarray(x{source.position}, np.{value.dtype})")
        elif source.kind in ("captured", "constant"):
            self.weights[value.label] = source.tensor.array if source.kind == "captured" else source.array
            self.lines.append(f"{value.label} = WEIGHTS[{value.label!r}]")


def export(model: Callable[..., Any], example: Any, path: str | os.PathLike[str]) -> Path:
    """Write a model as a Python module that needs only NumPy, and its weights as `.npz` beside it.

    `example` is an input of the shape that the module will take, or a tuple of several. Returns the path of the module, whose `predict` takes and
    gives NumPy arrays. Raises NotImplementedError, naming what it is, for a model that can't be expressed so.

    >>> import tempfile, pathlib, jitgrad as torch
    >>> from jitgrad import nn
    >>> model = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
    >>> torch.export(model, torch.ones(1, 3), pathlib.Path(tempfile.mkdtemp()) / "model.py").name
    'model.py'
    """
    tensors = [example] if isinstance(example, TensorBase) else list(example)
    tracer = Tracer(tensors)
    was = modes.set_grad(False)
    try:
        with tracer:
            result = model(*tensors)
            results: Sequence[Any] = result if isinstance(result, (tuple, list)) else [result]
            if not tracer.broken:
                values = [tracer.graph.value_of(tracer.view(x)) for x in results]
    except Unsupported as why:
        tracer.give_up(str(why))
    finally:
        modes.set_grad(was)
    if tracer.broken:
        raise NotImplementedError(f"this model can't be exported: {tracer.broken}")
    if tracer.writes():
        raise NotImplementedError("this model can't be exported: it changes its buffers; call model.eval() first")
    return write(tracer.graph, tensors, values, isinstance(result, (tuple, list)), Path(path))


def write(graph: Graph, tensors: Sequence[Any], values: Sequence[Value], several: bool, path: Path) -> Path:
    """The two files."""
    writer = NumpyWriter(graph)
    needed = needed_values(values)
    for value in graph.sources:
        if value.number in needed:
            writer.source(value)
    for op in graph.operations:
        if any(out.number in needed for out in op.outs):
            writer.operation(op)
    arguments = ", ".join(f"x{k}" for k in range(len(tensors)))
    shapes = "; ".join(f"x{k} {x.array.dtype}{list(x.array.shape)}" for k, x in enumerate(tensors))
    checks = [
        f"if np.shape(x{k}) != {x.array.shape}:\n        raise ValueError('x{k} must have shape {x.array.shape}')"
        for k, x in enumerate(tensors)
    ]
    functions = "".join(f"{_ROWS[name]}\n\n" for name in sorted(writer.functions))
    result = ", ".join(f"np.array({value.label})" for value in values)
    body = [*checks, *writer.lines, f"return ({result},)" if several else f"return {result}"]
    path.write_text(
        _HEAD.replace("{arguments}", arguments).replace("{shapes}", shapes).replace("{functions}", functions)
        + "".join(f"    {line}\n" for line in body)
    )
    np.savez(path.with_suffix(".npz"), **writer.weights)
    return path


def needed_values(values: Sequence[Value]) -> set[int]:
    """The numbers of all values that some depend on."""
    found: set[int] = set()
    todo = list(values)
    while todo:
        value = todo.pop()
        if value.number in found:
            continue
        found.add(value.number)
        for view in value.op.reads if value.op is not None else ():
            todo += [view.value, *(term.index.value for term in view.terms)]
    return found


__all__ = ["contiguous_strides", "export"]
