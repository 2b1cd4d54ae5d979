"""Modules as functions of their parameters: `functional_call`, `stack_module_state`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from .._ops import joining


def functional_call(module: Any, parameter_and_buffer_dicts: Any, args: Any = None, kwargs: Mapping[str, Any] | None = None, *,
                    tie_weights: bool = True, strict: bool = False) -> Any:  # fmt: skip
    """Call a module with other parameters and buffers, given by name in a dictionary or several; afterwards it has its own again.

    Members that are tied to one given are exchanged with it (`tie_weights`); `strict` refuses missing and unexpected names. ValueError for a name
    given twice.

    >>> import jitgrad
    >>> layer = jitgrad.nn.Linear(2, 1)
    >>> jitgrad.func.functional_call(layer, {"weight": jitgrad.ones(1, 2), "bias": jitgrad.zeros(1)}, jitgrad.ones(2))
    tensor([2.])
    """
    given = together(parameter_and_buffer_dicts)
    members = places_of(module)
    if strict:
        check_names(module, given, members)
    values = tied(members, given) if tie_weights else dict(given)
    arguments = () if args is None else args if isinstance(args, tuple) else (args,)
    with exchanged(module, values, members) as after:
        result = module(*arguments, **(kwargs or {}))
    source = parameter_and_buffer_dicts if isinstance(parameter_and_buffer_dicts, dict) else {}
    source.update({name: value for name, value in after.items() if name in source})  # members that the call itself exchanged
    return result


def together(dicts: Any) -> dict[str, Any]:
    """One dictionary of several."""
    if isinstance(dicts, dict):
        return dicts
    if not isinstance(dicts, Sequence):
        raise ValueError(f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}")
    if not all(isinstance(one, dict) for one in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    repeated = [name for name, count in Counter(name for one in dicts for name in one).items() if count > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for one in dicts for name, value in one.items()}


def places_of(module: Any) -> dict[str, tuple[Any, str]]:
    """For the full name of each parameter and buffer the table it is kept in, and its name there."""
    return {f"{prefix}.{name}" if prefix else name: (table, name)
            for prefix, part in module.named_modules(remove_duplicate=False)
            for table in (part._parameters, part._buffers) for name, value in table.items() if value is not None}  # fmt: skip


def check_names(module: Any, given: Mapping[str, Any], members: Mapping[str, Any]) -> None:
    """RuntimeError unless exactly the members are given."""
    words = []
    unexpected, missing = [name for name in given if name not in members], [name for name in members if name not in given]
    if unexpected:
        words.append(f"Unexpected key(s): {', '.join(map(repr, unexpected))}.")
    if missing:
        words.append(f"Missing key(s): {', '.join(map(repr, missing))}.")
    if words:
        separator = "\n\t"
        raise RuntimeError(f"Error(s) in reparametrizing for {type(module).__name__}:{separator}{separator.join(words)}")


def tied(members: Mapping[str, tuple[Any, str]], given: Mapping[str, Any]) -> dict[str, Any]:
    """What is given, also for the members that are the same tensor as one given. ValueError where two of those are given differently."""
    groups: dict[int, list[str]] = {}
    for name, (table, own) in members.items():
        groups.setdefault(id(table[own]), []).append(name)
    values = dict(given)
    for names in groups.values():
        named = [name for name in names if name in given]
        if len({id(given[name]) for name in named}) > 1:
            raise ValueError(f"functional_call got multiple values for keys {sorted(named)}, which are tied. Consider using tie_weights=False")
        if named:
            values.update(dict.fromkeys(names, given[named[0]]))
    return values


@contextmanager
def exchanged(module: Any, values: Mapping[str, Any], members: Mapping[str, tuple[Any, str]]) -> Iterator[dict[str, Any]]:
    """Let a module have other members; yields a dictionary that has them as they are at the end. Unknown names are ignored."""
    held = {name: members[name][0][members[name][1]] for name in values if name in members}
    after: dict[str, Any] = {}
    try:
        for name in held:
            table, own = members[name]
            table[own] = values[name]
        yield after
    finally:
        for name, value in held.items():
            table, own = members[name]
            after[name] = table[own]
            table[own] = value


def stack_module_state(models: Sequence[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The parameters and the buffers of several modules of one class, stacked by name: leaves that `vmap` may map over.

    RuntimeError for no modules, or such of different classes or modes.
    """
    if not len(models):
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) > 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return ({name: stacked([one[name] for one in parameters], name) for name in parameters[0]},
            {name: stacked([one[name] for one in buffers], name) for name in buffers[0]})  # fmt: skip


def stacked(tensors: list[Any], name: str) -> Any:
    """A leaf of tensors that all, or none, take a gradient."""
    takes = {x.requires_grad for x in tensors}
    if len(takes) > 1:
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    result = joining.stack(tensors)
    return result.detach().requires_grad_() if takes == {True} else result
