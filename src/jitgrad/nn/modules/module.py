"""`Module`, the base of everything in `nn`.

Its parts, in the order in which to read them: `_members.py` (what may be assigned), `_tree.py` (walking), `_calls.py`
(calls and hooks), `_state.py` (saving and loading); this file adds modes, conversions and printing.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

from ..._core.devices import device
from ..._core.dtypes import dtype, float16, float32, float64
from ..._core.hooks import RemovableHandle, add_hook
from ..._tensor import Tensor
from ..._tensor.creation import empty_like
from ...autograd import no_grad
from . import _hooks
from ._calls import Calls
from ._hooks import (
    GlobalHooks,
    HookTable,
    Marks,
    register_module_buffer_registration_hook,
    register_module_module_registration_hook,
    register_module_parameter_registration_hook,
)
from ._members import Members
from ._registry import Registry
from ._state import State, _IncompatibleKeys
from ._tree import Tree

__all__ = [
    "Module",
    "_IncompatibleKeys",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

Self = TypeVar("Self", bound="Module")

# Hooks that see every module. Here and under torch's names, because programs put fresh tables in the place of these.
_global_forward_pre_hooks: HookTable = OrderedDict()
_global_forward_hooks: HookTable = OrderedDict()
_global_forward_hooks_with_kwargs: Marks = OrderedDict()
_global_forward_hooks_always_called: Marks = OrderedDict()
_global_backward_pre_hooks: HookTable = OrderedDict()
_global_backward_hooks: HookTable = OrderedDict()
_global_is_full_backward_hook: bool | None = None  # None: there was none yet
_global_buffer_registration_hooks = _hooks.BUFFER_REGISTRATION
_global_module_registration_hooks = _hooks.MODULE_REGISTRATION
_global_parameter_registration_hooks = _hooks.PARAMETER_REGISTRATION


class Module(Calls, State, Tree, Members):
    """Base class of all modules.

    A subclass calls `super().__init__()`, assigns parameters and other modules to attributes, which registers them,
    and defines `forward`. Calling the module runs `forward` and the hooks.

    >>> import jitgrad as torch
    >>> from jitgrad import nn
    >>> class Scale(nn.Module):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.factor = nn.Parameter(torch.tensor(2.0))
    ...     def forward(self, x):
    ...         return x * self.factor
    >>> Scale()(torch.tensor([1.0, 2.0])).tolist()
    [2.0, 4.0]
    """

    training: bool
    _modules: Registry[Module | None]
    call_super_init: bool = False
    dump_patches: bool = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Create the empty tables; must be called before anything is assigned that is to be registered."""
        if not self.call_super_init:
            if kwargs:
                raise TypeError(
                    f"{type(self).__name__}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'"
                )
            if args:
                raise TypeError(
                    f"{type(self).__name__}.__init__() takes 1 positional argument but {len(args) + 1} were given"
                )
        members = self.__dict__
        members["training"] = True
        self._create_tables()
        for name, make in _hooks.TABLES_OF_A_MODULE:
            members[name] = make()
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    @staticmethod
    def _global_hooks() -> GlobalHooks:
        return GlobalHooks(
            _global_forward_pre_hooks,
            _global_forward_hooks,
            _global_forward_hooks_with_kwargs,
            _global_forward_hooks_always_called,
            _global_backward_pre_hooks,
            _global_backward_hooks,
            _global_is_full_backward_hook,
        )

    # ---- modes ----
    def train(self: Self, mode: bool = True) -> Self:
        """Put the module and its descendants into training (or evaluation) mode, which some of them mind."""
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self: Self) -> Self:
        """Put the module and its descendants into evaluation mode: `train(False)`."""
        return self.train(False)

    def requires_grad_(self: Self, requires_grad: bool = True) -> Self:
        """Let all parameters be trained, or freeze them."""
        for param in self.parameters():
            param.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Set the gradients of all parameters to None, or to zeros."""
        for param in self.parameters():
            grad = param.grad
            if grad is None:
                continue
            if set_to_none:
                param.grad = None
            else:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # ---- conversions ----
    def _apply(self: Self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        """Put `fn(tensor)` in the place of the data of every parameter, gradient and buffer."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for param in self._parameters.values():
            if param is None:
                continue
            with no_grad():
                grad = param.grad
                changed = None if grad is None else fn(grad)
                if grad is not None:
                    param.grad = None  # its dtype would not match meanwhile
                param.data = fn(param)
                if grad is not None and changed is not None:
                    grad.data = changed
                    param.grad = grad
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def apply(self: Self, fn: Callable[[Module], None]) -> Self:
        """Call `fn` on every descendant and then on the module itself; typically to initialise parameters."""
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    def to(self: Self, *args: Any, **kwargs: Any) -> Self:
        """Convert floating point parameters and buffers in place: `to(dtype)`, `to(device)`, `to(tensor)`; `memory_format` is for images alone.

        The only device is the CPU. Raises TypeError for a dtype that isn't a floating point one, RuntimeError for a device of no known
        name, AssertionError for another one.
        """
        wanted, place = kwargs.get("dtype"), kwargs.get("device")
        for arg in args:
            if isinstance(arg, dtype):
                wanted = arg
            elif isinstance(arg, Tensor):
                wanted = arg.dtype
            elif isinstance(arg, str | device):
                place = arg
        if place is not None and device(place).type != "cpu":
            self._apply(lambda t: t.to(place))
        if wanted is not None and not wanted.is_floating_point:
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={wanted}"
            )
        order = kwargs.get("memory_format")
        return self if wanted is None and order is None else self._to_dtype(wanted, order)

    def _to_dtype(self: Self, wanted: dtype | None, order: Any = None) -> Self:
        def converted(t: Tensor) -> Tensor:
            kind = wanted if wanted is not None and t.is_floating_point() else t.dtype
            return t.to(kind, memory_format=order) if order is not None and t.ndim in (4, 5) else t.to(kind)

        return self._apply(converted)

    def type(self: Self, dst_type: dtype) -> Self:
        """Convert all parameters and buffers in place, integers too."""
        return self._apply(lambda t: t.to(dst_type))

    def float(self: Self) -> Self:
        """Convert floating point parameters and buffers to float32, in place."""
        return self._to_dtype(float32)

    def double(self: Self) -> Self:
        """Convert floating point parameters and buffers to float64, in place."""
        return self._to_dtype(float64)

    def half(self: Self) -> Self:
        """Convert floating point parameters and buffers to float16, in place."""
        return self._to_dtype(float16)

    def cpu(self: Self) -> Self:
        """Nothing to do: everything is on the CPU."""
        return self

    def cuda(self: Self, device: Any = None) -> Self:
        """AssertionError where there is anything to move: there is no such device."""
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self: Self, *, device: Any, recurse: bool = True) -> Self:
        """Put memory of unknown content in the place of the data of all parameters and buffers."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self: Self) -> Self:
        """Move all parameters and buffers to memory that a forked child process shares, in place."""
        return self._apply(lambda t: t.share_memory_())

    # ---- printing ----
    def extra_repr(self) -> str:
        """What stands between the parentheses when the module is printed; subclasses define it."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = [f"({name}): {indent(repr(module))}" for name, module in self._modules.items()]
        return printed(self._get_name(), extra, children)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name[0].isdigit()]


def indent(text: str) -> str:
    """The lines of `text` after the first, moved in by two."""
    return text.replace("\n", "\n  ")


def printed(name: str, extra: list[str], children: list[str]) -> str:
    """A module as it is printed: on one line if it has no children and at most one line to say."""
    if not children and len(extra) <= 1:
        return f"{name}({extra[0] if extra else ''})"
    return f"{name}(\n  " + "\n  ".join(extra + children) + "\n)"


# ---- hooks that see every module ----
def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, args)` before the `forward` of every module, ahead of the module's own hooks."""
    return _everywhere(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after the `forward` of every module, ahead of the module's own hooks."""
    marks = [_global_forward_hooks_with_kwargs] if with_kwargs else []
    if always_call:
        marks.append(_global_forward_hooks_always_called)
    return _everywhere(_global_forward_hooks, hook, *marks)


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_output)` at the start of the backward of every module, ahead of its own hooks."""
    return _everywhere(_global_backward_pre_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` in the backward of every module, ahead of its own hooks.

    RuntimeError where there was one by `register_module_backward_hook`.
    """
    _choose_kind(full=True)
    return _everywhere(_global_backward_hooks, hook)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """The older form of `register_module_full_backward_hook`, as `Module.register_backward_hook` is of its kin."""
    _choose_kind(full=False)
    return _everywhere(_global_backward_hooks, hook)


def _choose_kind(full: bool) -> None:
    global _global_is_full_backward_hook
    if _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one of them."
        )
    _global_is_full_backward_hook = full


def _everywhere(table: HookTable, hook: Callable[..., Any], *marks: Marks) -> RemovableHandle:
    Calls._hooked = True
    return add_hook(table, hook, *marks)
