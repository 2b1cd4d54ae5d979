"""Walking a tree of modules: children, descendants, and all their parameters and buffers by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, cast

from ..._tensor import Tensor
from ..parameter import Parameter
from ._members import Members


class Tree(Members):
    """Iteration and look-up by dotted name; the third of the parts that `Module` is made of."""

    def children(self) -> Iterator[Any]:
        """Iterate over the immediate children, each once."""
        for _, module in self.named_children():
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Iterate over the immediate children with their names, each child once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Iterate over this module and all its descendants, each once unless `remove_duplicate` is False."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Iterate over this module and all its descendants with their dotted names.

        A module that is found in two places comes once, unless `remove_duplicate` is False.
        """
        if memo is None:
            memo = set()
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, prefix + ("." if prefix else "") + name, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """Iterate over the parameters, of this module alone unless `recurse`."""
        for _, param in self.named_parameters(recurse=recurse):
            yield param

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """Iterate over the parameters with their dotted names, a shared one once unless `remove_duplicate` is False."""
        return self._named_members(lambda module: module._parameters.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """Iterate over the buffers, of this module alone unless `recurse`."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """Iterate over the buffers with their dotted names, a shared one once unless `remove_duplicate` is False."""
        return self._named_members(lambda module: module._buffers.items(), prefix, recurse, remove_duplicate)

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or member in seen:
                    continue
                if remove_duplicate:
                    seen.add(member)
                yield path + ("." if path else "") + name, member

    def get_submodule(self, target: str) -> Any:
        """The module at the dotted path `target`, this one for an empty path; AttributeError if there is none."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Members):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put `module` at the dotted path `target`; with `strict` it must take the place of another."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        if not isinstance(module, Members):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        path, _, name = target.rpartition(".")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Members):
            raise AttributeError(f"`{name}` is not an nn.Module")
        parent.__setattr__(name, module)

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at the dotted path `target`; AttributeError if there is none."""
        return cast(Parameter, self._get_member(target, lambda m: m._parameters, "an nn.Parameter"))

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at the dotted path `target`; AttributeError if there is none."""
        return cast(Tensor, self._get_member(target, lambda m: m._buffers, "a buffer"))

    def _get_member(self, target: str, table: Callable[[Any], Any], what: str) -> Any:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        if table(module).get(name) is None:
            raise AttributeError(f"`{name}` is not {what}")
        return table(module)[name]

    def _get_name(self) -> str:
        return type(self).__name__
