"""The state of an optimizer as a dictionary: saving it, and loading it back."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable
from copy import deepcopy
from itertools import chain
from typing import Any

from .._core.hooks import RemovableHandle, add_hook
from .._tensor import Tensor

HookTable = OrderedDict[int, Callable[..., Any]]

HOOK_TABLES = (
    "_optimizer_step_pre_hooks",
    "_optimizer_step_post_hooks",
    "_optimizer_state_dict_pre_hooks",
    "_optimizer_state_dict_post_hooks",
    "_optimizer_load_state_dict_pre_hooks",
    "_optimizer_load_state_dict_post_hooks",
)


class State:
    """`state_dict` and `load_state_dict` of an optimizer."""

    defaults: dict[str, Any]
    state: defaultdict[Any, Any]
    param_groups: list[dict[str, Any]]
    _optimizer_step_pre_hooks: HookTable
    _optimizer_step_post_hooks: HookTable
    _optimizer_state_dict_pre_hooks: HookTable
    _optimizer_state_dict_post_hooks: HookTable
    _optimizer_load_state_dict_pre_hooks: HookTable
    _optimizer_load_state_dict_post_hooks: HookTable

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in HOOK_TABLES:
            self.__dict__.setdefault(table, OrderedDict())

    def state_dict(self) -> dict[str, Any]:
        """`state`, by the parameters' positions, and `param_groups` with positions in the place of parameters.

        The tensors are the optimizer's own, not copies.
        """
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        place = _places(self.param_groups)
        packed: dict[str, Any] = {
            "state": {place[id(k)] if isinstance(k, Tensor) else k: v for k, v in self.state.items()},
            "param_groups": [
                {**{k: v for k, v in group.items() if k != "params"}, "params": [place[id(p)] for p in group["params"]]}
                for group in self.param_groups
            ],
        }
        for hook in self._optimizer_state_dict_post_hooks.values():
            replacement = hook(self, packed)
            packed = packed if replacement is None else replacement
        return packed

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state: options of the groups, and per parameter what it holds, cast to the parameter's dtype.

        Raises ValueError when groups or their sizes differ; nothing is changed then.
        """
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            replacement = hook(self, state_dict)
            state_dict = state_dict if replacement is None else replacement
        saved = deepcopy(state_dict["param_groups"])
        _check_sizes(self.param_groups, saved)
        params = dict(
            zip(
                chain.from_iterable(group["params"] for group in saved),
                chain.from_iterable(group["params"] for group in self.param_groups),
                strict=True,
            )
        )
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            param = params.get(key)
            state[key if param is None else param] = value if param is None else _fitting(param, value)
        for group, new in zip(self.param_groups, saved, strict=True):
            new["params"] = group["params"]
            if "param_names" in group:
                new.setdefault("param_names", group["param_names"])
        self.__setstate__({"state": state, "param_groups": saved})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    # ---- hooks ----
    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before the state is saved."""
        return add_hook(self._optimizer_state_dict_pre_hooks, hook, prepend=prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` after the state is saved; what it returns, if anything, replaces it."""
        return add_hook(self._optimizer_state_dict_post_hooks, hook, prepend=prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before a state is loaded; what it returns, if anything, is loaded."""
        return add_hook(self._optimizer_load_state_dict_pre_hooks, hook, prepend=prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after a state is loaded."""
        return add_hook(self._optimizer_load_state_dict_post_hooks, hook, prepend=prepend)


def _places(groups: list[dict[str, Any]]) -> dict[int, int]:
    """The position of each parameter, counted through all groups; of one that comes twice the first."""
    place: dict[int, int] = {}
    for position, param in enumerate(chain.from_iterable(group["params"] for group in groups)):
        place.setdefault(id(param), position)
    return place


def _check_sizes(groups: list[dict[str, Any]], saved: list[dict[str, Any]]) -> None:
    if len(groups) != len(saved):
        raise ValueError("loaded state dict has a different number of parameter groups")
    if any(len(group["params"]) != len(new["params"]) for group, new in zip(groups, saved, strict=True)):
        raise ValueError(
            "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
        )


def _fitting(param: Tensor, value: Any, key: Any = None) -> Any:
    """A saved value with copies of its tensors, in the parameter's dtype; the count of steps keeps its own.

    torch shares memory with the saved state where the dtypes agree, so that two optimizers write into one buffer.
    """
    if isinstance(value, Tensor):
        kept = key == "step" or not param.is_floating_point()
        return value.clone() if kept else value.to(param.dtype, copy=True)
    if isinstance(value, dict):
        return {k: _fitting(param, v, k) for k, v in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_fitting(param, v) for v in value)  # type: ignore[call-arg]
    return value
