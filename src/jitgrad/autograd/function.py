"""Custom Functions: an op given by its `forward` and its `backward`, in torch's two styles.

`forward(ctx, *args)`, or `forward(*args)` with `setup_context(ctx, inputs, output)`; both run without recording. `backward(ctx, *grads)` gets
a gradient per output, C-contiguous and writable, and returns one per argument. A backward that builds a graph runs it recorded, so a
Function whose backward is made of differentiable ops can be differentiated any number of times.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from sys import getrefcount
from typing import TYPE_CHECKING, Any, ClassVar, Final

from .._core.late import LateModule
from .._engine import anomaly, modes, versions
from .._engine.node import Node, next_number
from .._tensor.base import TensorBase
from .._tensor.views import edge_of
from ._context import FunctionCtx
from ._nesting import filled, flat, flat_with_none, mapped
from ._node import BackwardCFunction
from ._outputs import among, link_all, link_new, unlink_all
from ._refusals import note_inputs, once_differentiable, stores_attributes

if TYPE_CHECKING:
    from . import _tangents
else:
    _tangents = LateModule("jitgrad.autograd._tangents")

ALONE: Final = 2  # what `getrefcount` says of an object that one local variable refers to

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "FunctionMeta", "InplaceFunction", "NestedIOFunction", "once_differentiable"]


class FunctionMeta(type):
    """Gives every Function its node class, `<name>Backward`, and looks up once which of the two styles it has."""

    _backward_cls: type[BackwardCFunction]
    _ctx_cls: type[FunctionCtx]
    _split: bool
    _stashes: bool  # whether it may put tensors on the context other than by `save_for_backward`
    _intermediates: dict[str, bool]  # which attributes of the context depend on the inputs, as far as it is known
    _gives_vjp: bool
    _ordinary: bool  # whether its backward is called `backward`, takes the gradients one by one, and may read what is saved again
    _defaults: bool  # whether arguments that are left out have to be filled in (torch does so in the second style only)

    def __init__(cls, name: str, bases: tuple[type, ...], attributes: dict[str, Any]) -> None:
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(name + "Backward", (BackwardCFunction,), {"__slots__": (), "_forward_cls": cls, "__module__": __name__})
        cls._ctx_cls = type(name + "Backward", (FunctionCtx,), {"__module__": __name__})
        derived = any(isinstance(base, FunctionMeta) for base in bases)  # not `Function` itself
        cls._split = cls.setup_context is not Function.setup_context if derived else False  # type: ignore[attr-defined]
        cls._gives_vjp = derived and cls.vjp is not Function.vjp  # type: ignore[attr-defined]
        special = any(getattr(cls, name, False) for name in ("boxed_grads_call", "clear_saved_tensors_on_access"))
        cls._ordinary = not (cls._gives_vjp or special)
        cls._stashes = stores_attributes(cls.setup_context if cls._split else cls.forward)  # type: ignore[attr-defined]
        cls._intermediates = {}
        cls._defaults = cls._split and bool(getattr(cls.forward, "__defaults__", None))  # type: ignore[attr-defined]


class Alone(Node):
    """What an instance of a Function has for a node: nothing leads to it, nor from it."""

    __slots__ = ()
    outputs = 0

    def __init__(self) -> None:
        self.number = next_number()
        self.buf = self.rare = self.vc = None

    def edges(self) -> tuple[Node, ...]:
        return ()


class Function(FunctionCtx, metaclass=FunctionMeta):
    """Base of custom Functions; call them with `apply`.

    >>> import jitgrad
    >>> class Square(jitgrad.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         ctx.save_for_backward(x)
    ...         return x * x
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         (x,) = ctx.saved_tensors
    ...         return 2 * x * grad
    >>> x = jitgrad.tensor(3.0, requires_grad=True)
    >>> Square.apply(x).backward()
    >>> x.grad
    tensor(6.)
    """

    needs_input_grad: Any = None
    _backward_cls: ClassVar[type[BackwardCFunction]]
    _ctx_cls: ClassVar[type[FunctionCtx]]
    _split: ClassVar[bool]
    _stashes: ClassVar[bool]
    _intermediates: ClassVar[dict[str, bool]]
    _gives_vjp: ClassVar[bool]
    _ordinary: ClassVar[bool]
    _defaults: ClassVar[bool]
    clear_saved_tensors_on_access = False
    boxed_grads_call = False
    generate_vmap_rule = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warnings.warn(f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should invoke them on the "
                      "class itself. Instantiating an autograd function will raise an error in a future version of PyTorch.",
                      DeprecationWarning, stacklevel=2)  # fmt: skip

    def _own_node(self) -> Any:
        node = self.__dict__.get("_alone")
        if node is None:
            node = self.__dict__["_alone"] = Alone()
        return node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Refused: Functions are called with `apply`."""
        raise RuntimeError("Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd function with "
                           "static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)")  # fmt: skip

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """To be given by the subclass: the op. Its first argument is `ctx`, unless `setup_context` is given too."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """May be given by the subclass: saves what backward needs, after `forward(*args)`."""
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """To be given by the subclass: a gradient per output to a gradient (or None) per argument."""
        raise NotImplementedError("You must implement either the backward or vjp method for your custom autograd.Function to use it with "
                                  "backward mode AD.")  # fmt: skip

    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """May be given by the subclass, for forward mode: a tangent per argument to a tangent per output."""
        raise NotImplementedError("You must implement the jvp function for custom autograd.Function to use it with forward mode AD.")

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """May be given by the subclass: what it does under `vmap`."""
        raise NotImplementedError("To use autograd.Function with vmap, you must either override the vmap staticmethod or set "
                                  "generate_vmap_rule=True.")  # fmt: skip

    @classmethod
    def _only_vjp(cls) -> Callable[..., Any]:
        if cls.backward is not Function.backward:
            raise RuntimeError("Implementing both 'backward' and 'vjp' for a custom Function is not allowed. "
                               "You should only implement one of them.")  # fmt: skip
        return cls.vjp

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Call the Function on tensors and other values, and record it where a tensor takes a gradient."""
        if kwargs or cls._defaults:
            args = cls._positional(args, kwargs)
        if modes.SPECIAL and modes.LOCAL.level is not None:
            return _tangents.apply_dual(cls, args)
        edges: list[Node | None] = []
        needs: list[bool] = []
        tensors: list[bool] = []
        for x in args:
            is_tensor = isinstance(x, TensorBase)
            fn = (x.fn if x.rare is None else edge_of(x)) if is_tensor else None
            if is_tensor:
                edges.append(fn)
            needs.append(fn is not None)
            tensors.append(is_tensor)
        ctx = _tangents.fresh_context(cls._ctx_cls) if modes.SPECIAL else cls._ctx_cls()
        ctx.needs_input_grad = tuple(needs)
        local = modes.LOCAL
        was = local.grad
        if was:  # `modes.set_grad(False)`, spelled out
            modes.NO_GRAD.append(None)
            local.grad = False
        try:
            output = cls.forward(ctx, *args) if not cls._split else cls._forward_and_setup(ctx, args)
        finally:
            if local.grad is not was:
                modes.set_grad(was)
        if not was or True not in needs or (modes.SPECIAL and modes.LOCAL.inference):
            return cls._finish_plain(ctx, args, output)
        node = cls._backward_cls()
        node.ctx = ctx
        node._edges = edges
        node.arity = count = len(edges)
        if count == 1:
            node.e0 = edges[0]
        elif count == 2:
            node.e0, node.e1 = edges
        else:
            node.arity = -1
        node.tensors = tensors
        node.all_tensors = count == len(args)
        node.epoch = versions.WRITES
        node.number = next_number()
        node.buf = node.rare = None
        if cls._stashes or modes.SPECIAL:
            cls._note(node, ctx, args)
        if (isinstance(output, TensorBase) and output.rare is None and output.fn is None
                and ctx.dirty_tensors is None and ctx.non_differentiable is None and not among(output, args)):  # fmt: skip
            # a float32 or float64 tensor that is neither an input nor a view
            node.vc = output.vc
            node.meta = output.meta
            node.outputs = 1
            node.likes = (output.meta,)
            output.fn = node
            if ctx.to_save is not None:
                ctx._keep(node)
            if getrefcount(output) > ALONE:  # somebody else refers to it: `ctx.y = output`, perhaps
                ctx._hide_outputs((output,), node)
            return output
        return cls._finish(node, ctx, args, output)

    @classmethod
    def _note(cls, node: BackwardCFunction, ctx: FunctionCtx, args: tuple[Any, ...]) -> None:
        """What only some nodes have to remember of the call."""
        if modes.SPECIAL and modes.LOCAL.anomaly is not None:
            anomaly.note(node)
        if cls._stashes and ctx.dirty_tensors is None:
            note_inputs(ctx, args)

    @classmethod
    def _forward_and_setup(cls, ctx: FunctionCtx, args: tuple[Any, ...]) -> Any:
        try:
            output = cls.forward(*args)
        except TypeError:
            inspect.signature(cls.forward).bind(*args)  # says what is wrong with them, if that is it
            raise
        cls.setup_context(ctx, args, output)
        return output

    @classmethod
    def _positional(cls, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Keyword arguments and defaults of `forward` put in their places."""
        signature = inspect.signature(cls.forward)
        bound = signature.bind(*args, **kwargs) if cls._split else signature.bind(None, *args, **kwargs)
        if cls._split:
            bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(f"{cls.__name__}.apply() takes no keyword-only arguments")
        return bound.args if cls._split else bound.args[1:]

    @classmethod
    def _finish_plain(cls, ctx: FunctionCtx, args: tuple[Any, ...], output: Any) -> Any:
        outputs = output if type(output) is tuple else (output,)
        done = unlink_all(ctx, args, outputs)
        return tuple(done) if type(output) is tuple else done[0]

    @classmethod
    def _finish(cls, node: BackwardCFunction, ctx: FunctionCtx, args: tuple[Any, ...], output: Any) -> Any:
        outputs = output if type(output) is tuple else (output,)
        node.vc = None
        special = ctx.dirty_tensors is not None or ctx.non_differentiable is not None or ctx._is_pure_view
        if not special and link_new(node, args, outputs):
            if ctx.to_save is not None:
                ctx._keep(node)
            for x in outputs:
                if getrefcount(x) > ALONE + 1:  # the tuple refers to it, too
                    ctx._hide_outputs(outputs, node)
                    break
            return output
        node.meta = next((x.meta for x in outputs if isinstance(x, TensorBase)), None)  # type: ignore[assignment]
        done = link_all(node, ctx, args, outputs)
        if ctx.to_save is not None:
            ctx._keep(node)
        ctx._hide_outputs(done, node)
        return tuple(done) if type(output) is tuple else done[0]


class InplaceFunction(Function):
    """Kept for programs that name it; the same as `Function`."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


class NestedIOFunction(Function):
    """Kept for programs that name it: what is given and returned may be lists, tuples and dicts of tensors, which it lays out flat.

    Its methods belong to instances, and those can't be called any more: write a `Function`, which may take and return tuples.
    """

    def _do_forward(self, *input: Any) -> Any:
        self._nested_input = input
        output = super()._do_forward(*flat(input))  # type: ignore[misc]  # there is none, as in torch
        return filled(output, self._nested_output)

    def _do_backward(self, gradients: Any, retain_variables: bool) -> Any:
        self.retain_variables = retain_variables
        result = super()._do_backward(gradients, retain_variables)  # type: ignore[misc]  # likewise
        if not retain_variables:
            del self._nested_output, self._to_save_nested
        return result

    __call__ = _do_forward

    def forward(self, *args: Any) -> Any:  # type: ignore[override]
        """`forward_extended` of the input, whose tensors are detached; its tensors as a tuple."""
        nested = mapped(lambda x: x.data, self._nested_input)
        result = self.forward_extended(*nested)  # type: ignore[func-returns-value]
        del self._nested_input
        self._nested_output = result
        return flat(result)

    def backward(self, *gradients: Any) -> Any:  # type: ignore[override]
        """`backward_extended` of the gradients, nested as the output was; its tensors as a tuple."""
        result = self.backward_extended(*filled(gradients, self._nested_output))  # type: ignore[func-returns-value]
        return flat_with_none(result)

    def save_for_backward(self, *args: Any) -> None:
        """Keep a nesting of tensors."""
        self.to_save = flat(args)
        self._to_save_nested = args

    @property
    def saved_tensors(self) -> Any:
        """What was kept, nested as it was."""
        return filled(super().saved_tensors, self._to_save_nested)

    def mark_dirty(self, *args: Any, **kwargs: Any) -> None:
        """Name the inputs that are written to."""
        self.dirty_tensors = flat((args, kwargs))

    def mark_non_differentiable(self, *args: Any, **kwargs: Any) -> None:
        """Name the outputs that take no gradient."""
        self.non_differentiable = flat((args, kwargs))

    def forward_extended(self, *input: Any) -> None:
        """To be given by the subclass."""
        raise NotImplementedError

    def backward_extended(self, *grad_output: Any) -> None:
        """To be given by the subclass."""
        raise NotImplementedError
