"""Tables of hooks: those that each module has, those that see every module, and what registration hooks do."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._core.hooks import RemovableHandle, add_hook

HookTable = OrderedDict[int, Callable[..., Any]]
Marks = OrderedDict[int, bool]

BUFFER_REGISTRATION: HookTable = OrderedDict()
MODULE_REGISTRATION: HookTable = OrderedDict()
PARAMETER_REGISTRATION: HookTable = OrderedDict()


class GlobalHooks(NamedTuple):
    """The tables of hooks that every call of every module has to mind; `module.py` owns them."""

    forward_pre: HookTable
    forward: HookTable
    forward_with_kwargs: Marks
    forward_always: Marks
    backward_pre: HookTable
    backward: HookTable
    backward_is_full: bool | None

    def any(self) -> bool:
        """Whether there is one."""
        return bool(self.forward or self.forward_pre or self.backward or self.backward_pre)


# The tables that each module has for itself, in the order torch makes them.
CALL_TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
)
STATE_TABLES = (
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
TABLES_OF_A_MODULE = tuple((name, OrderedDict) for name in (*CALL_TABLES, *STATE_TABLES))


def registered(table: HookTable, module: Any, name: str, member: Any) -> Any:
    """What the registration hooks of `table` make of a member about to be registered as `module.name`."""
    for hook in table.values():
        replacement = hook(module, name, member)
        if replacement is not None:
            member = replacement
    return member


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` before each registration of a buffer; what it returns is registered instead."""
    return add_hook(BUFFER_REGISTRATION, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` before each registration of a child; what it returns is registered."""
    return add_hook(MODULE_REGISTRATION, hook)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` before each registration of a parameter; what it returns is registered."""
    return add_hook(PARAMETER_REGISTRATION, hook)
