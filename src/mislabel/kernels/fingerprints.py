"""Hashes of kernels and points that differ wherever a bit of a setting does: the bytes of numbers, never their printed form."""

from __future__ import annotations

import copyreg
import hashlib
import struct
import sys
from collections.abc import Mapping, Sequence
from collections.abc import Set as AnySet
from dataclasses import fields, is_dataclass
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from mislabel.errors import GramFileError

#: To be raised whenever kernels give other values than before for the same settings: matrices of older versions are then
#: refused instead of continued.
VALUES_VERSION = 3

#: Settings that change how long the work takes, but not what comes out.
_WITHOUT_EFFECT = ("n_jobs",)


def fingerprint(kernel: Any, X: Any, Y: Any, *layout: Any) -> str:
    """A hash of the kernel with all its settings, of everything it is applied to, and of how the result is laid out.

    Classes count by their names: a kernel of your own whose formula changes needs another name or another setting.
    """
    described = digest_of(kernel)
    if described != digest_of(kernel):
        raise GramFileError(
            f"{type(kernel).__name__} describes itself differently each time, so that its matrix could not be recognised: give "
            "it settings that stay as they are, or compute the matrix without a path."
        )
    digest = hashlib.sha256(described)
    for part in (X, Y, layout, VALUES_VERSION):
        digest.update(digest_of(part))
    return digest.hexdigest()


def digest_of(value: Any) -> bytes:
    """SHA-256 of a value of any kind, by what it is made of."""
    writer = _Writer()
    writer.add(value)
    return writer.digest.digest()


class _Writer:
    """Feeds values to a hash, each with its kind and its size, so that no two sequences of values look the same."""

    def __init__(self) -> None:
        self.digest = hashlib.sha256()
        self._above: list[int] = []  # what the current value is part of: a value may contain itself

    def _put(self, kind: str, content: Any = b"") -> None:
        content = memoryview(content).cast("B") if len(content) else memoryview(b"")
        self.digest.update(f"{kind}:{content.nbytes};".encode())
        self.digest.update(content)

    def _put_all(self, kind: str, values: Sequence[Any]) -> None:
        self._put(kind, str(len(values)).encode())
        for value in values:
            self.add(value)

    def add(self, value: Any) -> None:
        """One value and all that it consists of."""
        if self._add_plain(value):
            return
        if id(value) in self._above:
            self._put("itself", str(len(self._above) - self._above.index(id(value))).encode())
            return
        self._above.append(id(value))
        try:
            self._add_composed(value)
        finally:
            self._above.pop()

    def _add_plain(self, value: Any) -> bool:
        """Values without parts; returns whether it was one."""
        if value is None:
            self._put("none")
        elif isinstance(value, bool | np.bool_):
            self._put("bool", b"1" if value else b"0")
        elif isinstance(value, int | np.integer):
            self._put("int", str(int(value)).encode())
        elif isinstance(value, float):
            self._put("float", struct.pack("<d", value))
        elif isinstance(value, str):
            self._put("str", value.encode("utf-8", "surrogatepass"))
        elif isinstance(value, bytes | bytearray):
            self._put("bytes", value)
        elif isinstance(value, type):
            self._put("class", _name(value))
        elif isinstance(value, ModuleType):
            self._put("module", value.__name__.encode())
        elif isinstance(value, np.ufunc):
            self._put("ufunc", value.__name__.encode())
        else:
            return False
        return True

    def _add_composed(self, value: Any) -> None:
        own = getattr(value, "fingerprint", None)
        if isinstance(value, np.ndarray | np.generic):
            self._add_array(np.asarray(value))
        elif isinstance(value, list | tuple):
            self._put("items", _name(type(value)))
            self._put_all("count", value)
        elif isinstance(value, Mapping):
            self._add_in_order("mapping", [(digest_of(key), value[key]) for key in value])
        elif isinstance(value, AnySet):
            self._add_in_order("set", [(digest_of(item), None) for item in value])
        elif callable(own):
            self._put("own", _name(type(value)))
            self.add(own())
        elif callable(getattr(value, "get_params", None)):
            # What is not set changes nothing.
            settings = value.get_params(deep=False)
            kept = {name: item for name, item in settings.items() if name not in _WITHOUT_EFFECT and item is not None}
            self._put("kernel", _name(type(value)))
            self.add(kept)
        elif is_dataclass(value):
            self._put("dataclass", _name(type(value)))
            self.add({item.name: getattr(value, item.name) for item in fields(value)})
        elif isinstance(value, FunctionType | MethodType | BuiltinFunctionType | CodeType):
            self._add_function(value)
        else:
            self._add_reduced(value)

    def _add_array(self, array: np.ndarray) -> None:
        self._put("array", repr((array.dtype.descr, array.shape)).encode())
        if array.dtype.hasobject:
            self._put_all("objects", array.ravel().tolist())
        else:
            self._put("data", np.ascontiguousarray(array).reshape(-1).view(np.uint8))

    def _add_in_order(self, kind: str, items: list[tuple[bytes, Any]]) -> None:
        self._put(kind, str(len(items)).encode())
        for key, item in sorted(items, key=lambda pair: pair[0]):
            self._put("key", key)
            self.add(item)

    def _add_function(self, value: Any) -> None:
        """What a function computes: its code and, where it is not part of a module, the global values it refers to."""
        if isinstance(value, MethodType):
            self._put("method")
            self._put_all("parts", [value.__self__, value.__func__])
        elif isinstance(value, BuiltinFunctionType):
            owner = None if isinstance(value.__self__, ModuleType) else value.__self__
            self._put("builtin", f"{value.__module__}.{value.__qualname__}".encode())
            self.add(owner)
        elif isinstance(value, CodeType):
            self._put("code", value.co_code)
            self._put_all("parts", [value.co_consts, value.co_names, value.co_varnames, value.co_freevars])
        else:
            self._put("function", f"{value.__module__}.{value.__qualname__}".encode())
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            self._put_all("parts", [value.__code__, value.__defaults__, value.__kwdefaults__, cells])
            if not _is_importable(value):
                names = [name for name in _names_in(value.__code__) if name in value.__globals__]
                self._put_all("globals", [(name, value.__globals__[name]) for name in names])

    def _add_reduced(self, value: Any) -> None:
        """Any other object, by the parts from which pickle would make it again."""
        try:
            parts = value.__reduce_ex__(4)
        except Exception as error:  # whatever an object's own method raises
            raise _unknown(value) from error
        self._put("object", _name(type(value)))
        if isinstance(parts, str):
            self.add(parts)
            return
        maker, arguments, *rest = parts
        self.add(maker if maker is not copyreg.__newobj__ else "new")  # type: ignore[attr-defined]
        self.add(arguments)
        for number, part in enumerate(rest):
            # State as it is; items of lists and dictionaries come as iterators.
            self.add(part if part is None or number == 0 else list(part) if number < 3 else part)


def _is_importable(function: FunctionType) -> bool:
    """Whether another process gets the same function by its name, from a module that is no script."""
    module = sys.modules.get(function.__module__)
    return function.__module__ != "__main__" and getattr(module, function.__qualname__, None) is function


def _names_in(code: CodeType) -> list[str]:
    """Names that a function or one inside it may look up."""
    inner = [name for item in code.co_consts if isinstance(item, CodeType) for name in _names_in(item)]
    return sorted({*code.co_names, *inner})


def _name(kind: type) -> bytes:
    return f"{kind.__module__}.{kind.__qualname__}".encode()


def _unknown(value: Any) -> GramFileError:
    return GramFileError(
        f"a {type(value).__name__} among the kernel's settings or the points cannot be told apart from others of its kind, so "
        "that a matrix in a file could be mistaken for another: give it a method fingerprint() that returns bytes, or "
        "compute the matrix without a path."
    )
