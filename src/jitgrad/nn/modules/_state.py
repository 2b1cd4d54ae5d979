"""The state of a module as a dictionary: saving it, and loading it back."""

from __future__ import annotations

import warnings
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from ..._core.hooks import RemovableHandle, add_hook
from ..._tensor import Tensor
from ...autograd import no_grad
from ..parameter import Parameter
from ._hooks import HookTable
from ._members import Members

EXTRA_STATE_KEY = "_extra_state"


class _IncompatibleKeys(NamedTuple("IncompatibleKeys", [("missing_keys", list[str]), ("unexpected_keys", list[str])])):
    """What `load_state_dict` gives back: keys that were expected and missing, and keys nobody expected."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _WithoutModule:
    """A hook that is not handed the module. A class, so that it is pickled with the module's tables."""

    def __init__(self, hook: Callable[..., Any]) -> None:
        self.hook = hook

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(*args)


class _Loading:
    """One `load_state_dict` under way: what is being loaded, and what was found wrong with it."""

    def __init__(self, state_dict: Mapping[str, Any], assign: bool) -> None:
        self.assign = assign
        self.metadata: Mapping[str, dict[str, Any]] = getattr(state_dict, "_metadata", None) or {}
        self.keys = _IncompatibleKeys([], [])
        self.errors: list[str] = []

    def load(self, module: State, state_dict: dict[str, Any], prefix: str) -> None:
        metadata = dict(self.metadata.get(prefix[:-1], {}))
        if self.assign:
            metadata["assign_to_params_buffers"] = True
        missing, unexpected = self.keys
        module._load_from_state_dict(state_dict, prefix, metadata, True, missing, unexpected, self.errors)
        for name, child in module._modules.items():
            if child is not None:
                below = f"{prefix}{name}."
                self.load(child, {k: v for k, v in state_dict.items() if k.startswith(below)}, below)
        for hook in module._load_state_dict_post_hooks.values():
            if hook(module, self.keys) is not None:
                raise AssertionError(
                    "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                    "values, if incompatible_keys need to be modified, it should be done inplace."
                )

    def check(self, name: str, strict: bool) -> None:
        errors = list(self.errors)
        if strict:
            for kind, keys in (("Unexpected", self.keys.unexpected_keys), ("Missing", self.keys.missing_keys)):
                if keys:
                    errors.insert(
                        0, f"{kind} key(s) in state_dict: {', '.join(f'{chr(34)}{k}{chr(34)}' for k in keys)}. "
                    )
        if errors:
            raise RuntimeError(f"Error(s) in loading state_dict for {name}:\n\t" + "\n\t".join(errors))


class State(Members):
    """`state_dict` and `load_state_dict`; the fourth of the parts that `Module` is made of."""

    _version: int = 1
    _state_dict_hooks: HookTable
    _state_dict_pre_hooks: HookTable
    _load_state_dict_pre_hooks: HookTable
    _load_state_dict_post_hooks: HookTable

    # ---- saving ----
    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """All parameters and persistent buffers by dotted name.

        The tensors are detached but share their memory with the module's, unless `keep_vars` asks for the very
        parameters. `prefix` goes before every name. Entries are added to `destination` if one is given.
        """
        if args:
            warnings.warn(
                "Positional args are being deprecated, use kwargs instead. Refer to "
                "https://pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module.state_dict for details.",
                FutureWarning,
                stacklevel=2,
            )
            given: tuple[Any, ...] = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            answer = hook(self, destination, prefix, local_metadata)
            if answer is not None:
                if getattr(hook, "_from_public_api", False):
                    raise RuntimeError("state_dict post-hook must return None")
                destination = answer
        return destination

    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        """Put this module's own entries into `destination`; subclasses may save more."""
        for name, param in self._parameters.items():
            if param is not None:
                destination[prefix + name] = param if keep_vars else param.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + EXTRA_STATE_KEY] = self.get_extra_state()

    def get_extra_state(self) -> Any:
        """What else belongs into the state dict; a subclass that defines it defines `set_extra_state` too."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: define get_extra_state and set_extra_state")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: define get_extra_state and set_extra_state")

    # ---- loading ----
    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> _IncompatibleKeys:
        """Copy the entries of `state_dict` into the parameters and buffers of this module and its descendants.

        With `assign` the tensors themselves are taken over, dtype and all. Gives the keys that were missing and those
        that were unexpected; with `strict` either raises RuntimeError, as a wrong shape does in any case. What fits
        has then been loaded already.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        loading = _Loading(state_dict, assign)
        loading.load(self, OrderedDict(state_dict), "")
        loading.check(type(self).__name__, strict)
        return loading.keys

    def _load_from_state_dict(
        self,
        state_dict: dict[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        """Load this module's own entries; subclasses override it to read older forms of their state."""
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        assign = bool(local_metadata.get("assign_to_params_buffers", False))
        own: dict[str, Tensor] = {name: param for name, param in self._parameters.items() if param is not None}
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                own[name] = buffer
        for name, member in own.items():
            key = prefix + name
            if key in state_dict:
                error = self._load_member(name, key, member, state_dict[key], assign)
                if error:
                    error_msgs.append(error)
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys.extend(self._unexpected(state_dict, prefix, own))

    def _load_member(self, name: str, key: str, member: Tensor, value: Any, assign: bool) -> str | None:
        """Load one entry; what stands against it, if anything does."""
        if not isinstance(value, Tensor):
            return (
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from '
                f"checkpoint but received {type(value)}"
            )
        if member.shape == () and tuple(value.shape) == (1,):
            value = value[0]
        if value.shape != member.shape:
            return (
                f"size mismatch for {key}: copying a param with shape {value.shape} from checkpoint, the shape in "
                f"current model is {member.shape}."
            )
        try:
            with no_grad():
                if not assign:
                    member.copy_(value)
                elif isinstance(member, Parameter) and not isinstance(value, Parameter):
                    self.__setattr__(name, Parameter(value, requires_grad=member.requires_grad))
                else:
                    self.__setattr__(name, value.requires_grad_(member.requires_grad))
        except Exception as error:
            return (
                f'While copying the parameter named "{key}", whose dimensions in the model are {member.shape} and '
                f"whose dimensions in the checkpoint are {value.shape}, an exception occurred : {error.args}."
            )
        return None

    def _load_extra_state(
        self, state_dict: dict[str, Any], prefix: str, strict: bool, missing: list[str], unexpected: list[str]
    ) -> None:
        key = prefix + EXTRA_STATE_KEY
        wanted = type(self).set_extra_state is not State.set_extra_state
        if wanted and key in state_dict:
            self.set_extra_state(state_dict[key])
        elif wanted and strict:
            missing.append(key)
        elif not wanted and strict and key in state_dict:
            unexpected.append(key)

    def _unexpected(self, state_dict: dict[str, Any], prefix: str, own: dict[str, Tensor]) -> list[str]:
        """Keys under `prefix` that neither this module nor a child of it knows."""
        found = []
        for key in state_dict:
            if not key.startswith(prefix) or key == prefix + EXTRA_STATE_KEY:
                continue
            first, dot, _ = key[len(prefix) :].partition(".")
            if first not in (self._modules if dot else own):
                found.append(key)
        return found

    # ---- hooks ----
    def register_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the module is saved; it may change the dict."""
        hook._from_public_api = True  # type: ignore[attr-defined]  # torch's mark, which tells the two kinds of hook apart
        return add_hook(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """The older form of `register_state_dict_post_hook`: what the hook returns becomes the state dict, for the root module."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return add_hook(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the module is saved."""
        return add_hook(self._state_dict_pre_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before the module's own entries are loaded.
        """
        return add_hook(self._load_state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Callable[..., Any], with_module: bool = False) -> RemovableHandle:
        """The older form of `register_load_state_dict_pre_hook`, whose hook gets the module only where `with_module` says so."""
        return add_hook(self._load_state_dict_pre_hooks, hook if with_module else _WithoutModule(hook))

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the module and its children are loaded.

        The hook may change the two lists of keys in place.
        """
        return add_hook(self._load_state_dict_post_hooks, hook)
