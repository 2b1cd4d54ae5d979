"""`Optimizer`, the base of all: parameter groups, the step and its hooks. `_state.py` saves and loads."""

from __future__ import annotations

import functools
import warnings
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from .._core.hooks import RemovableHandle, add_hook
from .._engine import modes
from .._tensor import Tensor
from ..autograd import enable_grad
from ._state import HOOK_TABLES, State
from ._update import Recipe, plan_of, update_recorded
from .rules import Rule

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]

Params = Iterable[Any]
Group = dict[str, Any]
Plan = tuple[Rule, tuple[bool, ...], tuple[str, ...], Sequence[Any]]
Step = TypeVar("Step", bound=Callable[..., Any])

_PRE_HOOKS: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_POST_HOOKS: OrderedDict[int, Callable[..., Any]] = OrderedDict()


class _Required:
    """Stands for the default of an option that has none."""

    def __repr__(self) -> str:
        return "<required parameter>"


required: Any = _Required()


class Optimizer(State):
    """Base class of the optimizers.

    A subclass defines `_update(group)`, or `step(closure)` as a whole. `param_groups` is a list of dictionaries, each
    with its `params` and options; `state` maps a parameter to a dictionary of what the optimizer remembers of it.

    Args:
        params: parameters, (name, parameter) pairs, or dictionaries that are groups.
        defaults: the options of a group that doesn't set its own.
    """

    # True on an instance that has step hooks, and on the class while there are global ones.
    _hooked = False
    _opt_called = False  # read by the schedulers

    def __init__(self, params: Params, defaults: Group) -> None:
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.defaults = defaults
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[Group] = []
        for table in HOOK_TABLES:
            self.__dict__[table] = OrderedDict()
        groups = list(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        for group in groups if isinstance(groups[0], dict) else [{"params": groups}]:
            self.add_param_group(group)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("step")
        if own is not None:
            cls.step = _with_hooks(own)  # type: ignore[method-assign]

    # ---- the step ----
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient.

        `closure`, if given, computes the loss anew (gradients included), which is then returned.
        """
        if self._hooked:
            return _step_with_hooks(self, Optimizer._step, (self,) if closure is None else (self, closure), {})
        return self._step(closure)

    def _step(self, closure: Callable[[], Any] | None = None) -> Any:
        loss = None
        if closure is not None:
            with enable_grad():
                loss = closure()
        tracer = modes.tracer()
        for group in self.param_groups:
            if group.get("differentiable"):
                with enable_grad():
                    update_recorded(self, group)
            elif tracer is None:
                self._update(group)
            else:
                tracer.updated(self, group)
        self._opt_called = True
        return loss

    def _update(self, group: Group) -> None:
        """Update the parameters of one group."""
        raise NotImplementedError

    def _begin(self, p: Tensor, group: Group) -> dict[str, float]:
        """Give a parameter its state, if it has none; returns the numbers of the rule that are others in its first step."""
        return {}

    def _plan(self, p: Tensor, group: Group) -> Plan:
        """The next step of a parameter, whose state it begins: the rule, its flags, the names of its state, its numbers."""
        recipe: Recipe = self._recipe(group)  # type: ignore[attr-defined]
        return plan_of(recipe, self, p, group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zeros in place."""
        if set_to_none:
            for group in self.param_groups:
                for param in group["params"]:
                    param._set_grad_slot(None)  # as `param.grad = None`, which checks first what it is given
            return
        for param in chain.from_iterable(group["params"] for group in self.param_groups):
            grad = param.grad
            if grad is not None:
                if grad.grad_fn is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # ---- groups ----
    def add_param_group(self, param_group: Group) -> None:
        """Add a group, options that it doesn't set getting their defaults.

        Raises TypeError for what is no dictionary of tensors in an ordered collection, ValueError for tensors that
        aren't leaves or that another group has.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params = param_group["params"] = _take_names(param_group)
        for param in params:
            if not isinstance(param, Tensor):
                raise TypeError(
                    "optimizer can only optimize Tensors, but one of the params is " + type(param).__qualname__
                )
            if not (param.is_leaf or param.retains_grad or self.defaults.get("differentiable")):
                raise ValueError("can't optimize a non-leaf Tensor")
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            param_group.setdefault(name, default)
        if len(params) != len(set(params)):
            warnings.warn(
                "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error; "
                "see github.com/pytorch/pytorch/issues/40967 for more information",
                stacklevel=3,
            )
        self._check_against_others(param_group)
        self.param_groups.append(param_group)

    def _check_against_others(self, param_group: Group) -> None:
        named = "param_names" in param_group
        if any(("param_names" in group) != named for group in self.param_groups):
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{'with' if named else 'without'} names to the optimizer"
            )
        known = {param for group in self.param_groups for param in group["params"]}
        if not known.isdisjoint(param_group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines.extend(f"    {name}: {group[name]}" for name in sorted(group) if name != "params")
        return "\n".join(lines) + "\n)"

    # ---- hooks ----
    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return new `(args, kwargs)`."""
        self._hooked = True
        return add_hook(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        self._hooked = True
        return add_hook(self._optimizer_step_post_hooks, hook)


def _take_names(group: Group) -> list[Any]:
    """The group's parameters as a list; names that came with them go into the group's `param_names`."""
    params = group["params"]
    if isinstance(params, Tensor):
        return [params]
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    params = list(params)
    named = [param for param in params if isinstance(param, tuple)]
    if not named:
        return params
    if len(named) != len(params):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    group["param_names"] = [name for name, _ in named]
    return [param for _, param in named]


def _with_hooks(step: Step) -> Step:
    """A subclass's own `step`, hooks run around it."""

    @functools.wraps(step)
    def hooked(self: Optimizer, *args: Any, **kwargs: Any) -> Any:
        if self._hooked:
            return _step_with_hooks(self, step, (self, *args), kwargs)
        result = step(self, *args, **kwargs)
        self._opt_called = True
        return result

    return hooked  # type: ignore[return-value]


def _step_with_hooks(
    optimizer: Optimizer, step: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    before = (*_PRE_HOOKS.values(), *optimizer._optimizer_step_pre_hooks.values())
    if not (before or optimizer._optimizer_step_post_hooks or _POST_HOOKS):  # all were removed by their handles
        optimizer.__dict__.pop("_hooked", None)
        Optimizer._hooked = False
    for hook in before:
        answer = hook(optimizer, args, kwargs)
        if answer is None:
            continue
        if not (isinstance(answer, tuple) and len(answer) == 2):
            raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {answer}.")
        args, kwargs = answer
    result = step(*args, **kwargs)
    optimizer._opt_called = True
    for hook in (*optimizer._optimizer_step_post_hooks.values(), *_POST_HOOKS.values()):
        hook(optimizer, args, kwargs)
    return result


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer."""
    Optimizer._hooked = True
    return add_hook(_PRE_HOOKS, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer."""
    Optimizer._hooked = True
    return add_hook(_POST_HOOKS, hook)
