"""What may be assigned to a module, and under which name it is kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..._tensor import Tensor
from ..parameter import Buffer, Parameter
from . import _hooks
from ._registry import Registry

TABLES = ("_parameters", "_buffers", "_modules")


def type_name(value: object) -> str:
    """Name of a value's type as torch's messages give it: `int`, `torch.FloatTensor`, `package.module.Class`."""
    if isinstance(value, Tensor):
        return str(value.type())
    cls = type(value)
    return cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"


class Members:
    """Registration of parameters, buffers and children; the first of the parts that `Module` is made of."""

    _parameters: Registry[Parameter | None]
    _buffers: Registry[Tensor | None]
    _modules: Registry[Any]
    _non_persistent_buffers_set: set[str]

    if TYPE_CHECKING:
        # At run time there is none: members are plain attributes, and a class that defines __getattr__ loses the
        # interpreter's fast paths for all attributes and methods (a call of an empty module: 210 ns instead of 150).
        def __getattr__(self, name: str) -> Any: ...

    def _create_tables(self) -> None:
        members = self.__dict__
        for table in TABLES:
            members[table] = Registry(self)
        members["_non_persistent_buffers_set"] = set()

    # ---- registration ----
    def _check_name(self, kind: str, name: object, table: str) -> None:
        members = self.__dict__.get(table)
        if members is None:
            raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {type_name(name)}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain ".", got: {name}'
                if kind == "module"
                else f'{kind} name can\'t contain "."'
            )
        if name == "":
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if name not in members and hasattr(self, name):
            raise KeyError(f"attribute '{name}' already exists")

    def register_buffer(self, name: str, tensor: Tensor | None, persistent: bool = True) -> None:
        """Keep `tensor` (or None) as a buffer; `state_dict` leaves it out unless it is persistent.

        Raises KeyError for a name that is empty, has a dot or is taken, TypeError for what is no tensor.
        """
        self._check_name("buffer", name, "_buffers")
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{type_name(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._store(self._buffers, name, _hooks.registered(_hooks.BUFFER_REGISTRATION, self, name, tensor))
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def register_parameter(self, name: str, param: Parameter | None) -> None:
        """Keep `param` (or None, which says that there could be one) as a parameter.

        Raises KeyError for a name that is empty, has a dot or is taken, TypeError for what is no Parameter, ValueError
        for one that was computed from other tensors.
        """
        self._check_name("parameter", name, "_parameters")
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{type_name(param)}' object to parameter '{name}' "
                    "(torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly."
                    f" To express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _hooks.registered(_hooks.PARAMETER_REGISTRATION, self, name, param)
        self._store(self._parameters, name, param)

    def add_module(self, name: str, module: Members | None) -> None:
        """Keep `module` (or None) as a child under `name`."""
        if module is not None and not isinstance(module, Members):
            raise TypeError(f"{type_name(module)} is not a Module subclass")
        self._check_name("module", name, "_modules")
        self._store(self._modules, name, _hooks.registered(_hooks.MODULE_REGISTRATION, self, name, module))

    def register_module(self, name: str, module: Members | None) -> None:
        """Alias for `add_module`."""
        self.add_module(name, module)

    # ---- attributes ----
    def __setattr__(self, name: str, value: Any) -> None:
        if "_parameters" not in self.__dict__:
            if isinstance(value, Parameter):
                raise AttributeError("cannot assign parameters before Module.__init__() call")
            if isinstance(value, Members):
                raise AttributeError("cannot assign module before Module.__init__() call")
            super().__setattr__(name, value)
        elif isinstance(value, Parameter):
            self._forget(name, keep="_parameters")
            self.register_parameter(name, value)
        elif name in self._parameters:
            _expect_none(value, "parameter", name, "torch.nn.Parameter")
            self.register_parameter(name, None)
        elif isinstance(value, Members):
            self._forget(name, keep="_modules")
            self._store(self._modules, name, _hooks.registered(_hooks.MODULE_REGISTRATION, self, name, value))
        elif name in self._modules:
            _expect_none(value, "child module", name, "torch.nn.Module")
            self._store(self._modules, name, _hooks.registered(_hooks.MODULE_REGISTRATION, self, name, None))
        elif name in self._buffers or isinstance(value, Buffer):
            self._set_buffer(name, value)
        else:
            super().__setattr__(name, value)

    def _set_buffer(self, name: str, value: Any) -> None:
        if value is not None and not isinstance(value, Tensor):
            raise _wrong_kind(value, "buffer", name, "torch.nn.Buffer, torch.Tensor")
        persistent = value.persistent if isinstance(value, Buffer) else name not in self._non_persistent_buffers_set
        self.register_buffer(name, value, persistent)

    def _forget(self, name: str, keep: str) -> None:
        """Take `name` out of the plain attributes and of every table but `keep`."""
        for table in TABLES:
            if table != keep:
                self.__dict__[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)
        if name not in self.__dict__[keep]:
            self.__dict__.pop(name, None)

    def __delattr__(self, name: str) -> None:
        for table in TABLES:
            if name in self.__dict__.get(table, ()):
                del self.__dict__[table][name]
                self.__dict__.pop(name, None)
                self._non_persistent_buffers_set.discard(name)
                return
        super().__delattr__(name)

    # ---- copies ----
    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__.copy()

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for table in TABLES:
            self.__dict__[table] = Registry(self, state.get(table))
        for name, make in (("_non_persistent_buffers_set", set), *_hooks.TABLES_OF_A_MODULE):
            self.__dict__.setdefault(name, make())

    def _store(self, table: dict[str, Any], name: str, member: Any) -> None:
        table[name] = member
        self.__dict__[name] = member  # for a subclass whose own __setstate__ left the tables plain dictionaries


def _expect_none(value: object, kind: str, name: str, expected: str) -> None:
    if value is not None:
        raise _wrong_kind(value, kind, name, expected)


def _wrong_kind(value: object, kind: str, name: str, expected: str) -> TypeError:
    return TypeError(f"cannot assign '{type_name(value)}' as {kind} '{name}' ({expected} or None expected)")
