"""Calling a module: the bare call, the call with hooks, and the registration of both kinds of hook."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._core.hooks import RemovableHandle, add_hook
from ..._tensor import Tensor
from ...autograd._module_hooks import BackwardHook
from ._hooks import GlobalHooks, HookTable, Marks
from ._legacy import hook_node

_MISSING: Any = object()


class Calls:
    """`module(...)`; the second of the parts that `Module` is made of."""

    _backward_pre_hooks: HookTable
    _backward_hooks: HookTable
    _forward_hooks: HookTable
    _forward_hooks_with_kwargs: Marks
    _forward_hooks_always_called: Marks
    _forward_pre_hooks: HookTable
    _forward_pre_hooks_with_kwargs: Marks

    # True on an instance that has hooks, and on the class while there are global ones; a call without hooks tests this
    # one flag. Handles remove hooks behind its back, so `_call_with_hooks` lowers it when it finds none.
    _hooked = False

    # Whether the hooks in `_backward_hooks` are full ones (None: there were none yet); a module has one kind or the other.
    _is_full_backward_hook: bool | None = None

    if TYPE_CHECKING:

        @staticmethod
        def _global_hooks() -> GlobalHooks: ...

    def __call__(self, input: Any = _MISSING, /, *args: Any, **kwargs: Any) -> Any:
        # One positional argument is the common call: as a named one it costs 150 ns where *args alone costs 220.
        if self._hooked:
            return self._call_with_hooks(args if input is _MISSING else (input, *args), kwargs)
        if not args and not kwargs and input is not _MISSING:
            return self.forward(input)
        return self.forward(**kwargs) if input is _MISSING else self.forward(input, *args, **kwargs)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes; every subclass defines it, with whatever arguments it likes."""
        raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    # ---- the call with hooks ----
    def _call_with_hooks(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        everywhere = self._global_hooks()
        if not self._any_call_hook():
            self.__dict__.pop("_hooked", None)
            if not everywhere.any():
                Calls._hooked = False
                return self.forward(*args, **kwargs)
        call = _HookedCall(self, everywhere, args, kwargs)
        try:
            return call.run()
        except Exception:
            call.run_always_called()
            raise

    def _any_call_hook(self) -> bool:
        return bool(self._forward_hooks or self._forward_pre_hooks or self._backward_hooks or self._backward_pre_hooks)

    # ---- registration ----
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before each `forward`; what it returns, if not None, replaces the arguments.

        With `with_kwargs` the hook is called with `(module, args, kwargs)` and may return `(new_args, new_kwargs)`;
        with `prepend` it runs before the others.
        """
        self._hooked = True
        marks = [self._forward_pre_hooks_with_kwargs] if with_kwargs else []
        return add_hook(self._forward_pre_hooks, hook, *marks, prepend=prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after each `forward`; what it returns, if not None, replaces the output.

        With `with_kwargs` the hook is called with `(module, args, kwargs, output)`; with `always_call` it runs even if
        the call raises, with an output of None if there is none yet; with `prepend` it runs before the others.
        """
        self._hooked = True
        marks = [self._forward_hooks_with_kwargs] if with_kwargs else []
        if always_call:
            marks.append(self._forward_hooks_always_called)
        return add_hook(self._forward_hooks, hook, *marks, prepend=prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the module's inputs are known.

        Both are tuples with an entry for each positional input or output, None where it is no tensor. What the hook
        returns, if not None, replaces `grad_input` in what is still to be computed. Neither tuple's tensors may be
        changed in place. RuntimeError where the module has a hook by `register_backward_hook`.
        """
        self._choose_kind(full=True)
        return add_hook(self._backward_hooks, hook, prepend=prepend)

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` at the node that made the module's (first) output: an older form.

        `grad_input` belongs to that one node, which is the module's input only where `forward` is a single op.
        RuntimeError where the module has a hook by `register_full_backward_hook`, which is the one to use.
        """
        self._choose_kind(full=False)
        return add_hook(self._backward_hooks, hook)

    def _choose_kind(self, full: bool) -> None:
        if self._is_full_backward_hook is (not full):
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of them."
            )
        self._is_full_backward_hook = full
        self._hooked = True

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the module's outputs are known.

        What it returns, if not None, replaces them for the backward of the module.
        """
        self._hooked = True
        return add_hook(self._backward_pre_hooks, hook, prepend=prepend)


class _HookedCall:
    """One call of a module that has hooks; its stages run in the order they are written in."""

    def __init__(self, module: Any, everywhere: GlobalHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.module = module
        self.everywhere = everywhere
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.always_called: set[int] = set()

    def run(self) -> Any:
        module = self.module
        backward = self._backward_hooks(full=True)
        backward_pre = (*self.everywhere.backward_pre.values(), *module._backward_pre_hooks.values())
        at_node = self._backward_hooks(full=False)
        self._run_pre_hooks()
        watcher = None
        if backward or backward_pre:
            watcher = BackwardHook(module, backward, backward_pre)
            self.args = watcher.setup_input_hook(self.args)
        self.result = module.forward(*self.args, **self.kwargs)
        self._run_forward_hooks()
        if watcher is not None:
            if not isinstance(self.result, Tensor | tuple):
                warnings.warn(
                    "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors"
                    f" but received {type(self.result)}",
                    stacklevel=4,
                )
            self.result = watcher.setup_output_hook(self.result)
        if at_node:
            hook_node(module, at_node, self.args, self.result)
        return self.result

    def _backward_hooks(self, full: bool) -> tuple[Callable[..., Any], ...]:
        everywhere, module = self.everywhere, self.module
        return (
            *(everywhere.backward.values() if everywhere.backward_is_full is full else ()),
            *(module._backward_hooks.values() if module._is_full_backward_hook is full else ()),
        )

    def _run_pre_hooks(self) -> None:
        module = self.module
        for key, hook in (*self.everywhere.forward_pre.items(), *module._forward_pre_hooks.items()):
            if key not in module._forward_pre_hooks_with_kwargs:
                answer = hook(module, self.args)
                if answer is not None:
                    self.args = answer if isinstance(answer, tuple) else (answer,)
                continue
            answer = hook(module, self.args, self.kwargs)
            if answer is None:
                continue
            if not (isinstance(answer, tuple) and len(answer) == 2):
                raise RuntimeError(
                    f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {answer}."
                )
            self.args, self.kwargs = answer

    def _run_forward_hooks(self) -> None:
        for key, hook in (*self.everywhere.forward.items(), *self.module._forward_hooks.items()):
            self._run_forward_hook(key, hook)

    def _run_forward_hook(self, key: int, hook: Callable[..., Any]) -> None:
        module = self.module
        everywhere = self.everywhere
        if key in module._forward_hooks_always_called or key in everywhere.forward_always:
            self.always_called.add(key)
        if key in module._forward_hooks_with_kwargs or key in everywhere.forward_with_kwargs:
            answer = hook(module, self.args, self.kwargs, self.result)
        else:
            answer = hook(module, self.args, self.result)
        if answer is not None:
            self.result = answer

    def run_always_called(self) -> None:
        """After an exception: the hooks that asked to be called whatever happens and haven't been."""
        for marks, hooks, what in (
            (self.everywhere.forward_always, self.everywhere.forward, "global module"),
            (self.module._forward_hooks_always_called, self.module._forward_hooks, "module"),
        ):
            for key, hook in hooks.items():
                if key not in marks or key in self.always_called:
                    continue
                try:
                    self._run_forward_hook(key, hook)
                except Exception as error:
                    warnings.warn(
                        f"{what} forward hook with ``always_call=True`` raised an exception that was silenced as "
                        f"another error was raised in forward: {error}",
                        stacklevel=4,
                    )
