"""Lines of the user's code, as reports name them: short, and without the folders of the machine."""

from __future__ import annotations

import contextlib
import functools
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch


def line_of(file: str, number: int | str) -> str:
    """Return "FILE:LINE", FILE relative to the folder of its import or the current one; "" if it is not a file."""
    return f"{name}:{number}" if (name := _short(file)) else ""


@functools.lru_cache(maxsize=4096)
def _short(file: str) -> str:
    try:
        path, here = Path(file).absolute(), Path.cwd()
        if not path.is_file():  # code of exec, of a notebook's cell, generated code
            return ""
    except (OSError, ValueError):  # the current folder is gone, or the file must not be looked at
        return ""
    known = [Path(entry) for entry in sys.path if entry and isinstance(entry, str)]
    folders = [folder for folder in (here, *known) if path.is_relative_to(folder)]
    return path.relative_to(max(folders, key=lambda folder: len(folder.parts))).as_posix() if folders else path.name


# ---- forwards


def line_of_forward(kind: type, forward: Any) -> str:
    """Return where a module's forward is written, "FILE:LINE".

    "" where it is torch's own, generated or not Python's, and where it is not certain: behind a decorator that does not
    name what it wraps.

    kind: the module's class; forward: the class's, or the one that the module has itself.
    """
    if str(getattr(forward, "__module__", "")).startswith("torch."):
        return ""
    function = _written(kind, forward)
    if function is None:
        return ""
    code = function.__code__
    return "" if _is_of_library(code.co_filename) else line_of(code.co_filename, code.co_firstlineno)


@functools.lru_cache(maxsize=4096)
def _is_of_library(file: str) -> bool:
    """Return whether Python or torch brings the file: what wraps a forward there says nothing of the user's code."""
    path = Path(file)
    of_python = path.is_relative_to(sysconfig.get_path("stdlib")) and "-packages" not in file
    return of_python or any(path.is_relative_to(folder) for folder in torch.__path__)


_MOST_WRAPPERS = 1000  # around a forward; more are taken for an endless loop


def _written(kind: type, forward: Any) -> types.FunctionType | None:
    """Return the function that somebody wrote as the forward; None where that is not certain."""
    function = forward
    for _ in range(_MOST_WRAPPERS):
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif isinstance(function, functools.partial):
            function = function.func
        elif isinstance(function, types.MethodType):
            function = function.__func__
        else:
            break
    else:
        return None
    if not isinstance(function, types.FunctionType):
        return None
    of_class = any(function.__qualname__ == f"{base.__qualname__}.{function.__name__}" for base in kind.__mro__)
    if of_class and _has_its_own_name(function):
        return function
    # The function has another name than the class gives it: if it holds others, it may be a wrapper of one of them.
    return None if any(map(_may_be_wrapped, _held(function))) else function


def _has_its_own_name(function: types.FunctionType) -> bool:
    """Return whether the function is written under its name: a decorator may rename its wrapper like the function."""
    code = function.__code__
    written = getattr(code, "co_qualname", None)
    if written is None:  # before Python 3.11
        return code.co_name == function.__name__ and not any(map(_may_be_wrapped, _held(function)))
    return bool(written == function.__qualname__)


def _held(function: types.FunctionType) -> Iterator[Any]:
    """Yield the values of a function's defaults and closure, and the items of those that are containers."""
    held = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    for cell in function.__closure__ or ():
        with contextlib.suppress(ValueError):  # nothing was assigned yet
            held.append(cell.cell_contents)
    for value in held:
        yield value
        if isinstance(value, dict):
            yield from value.values()
        elif isinstance(value, (list, tuple, set)):
            yield from value


def _may_be_wrapped(value: Any) -> bool:
    """Return whether a wrapper of such a value would call it: a function, or an object that is called like one."""
    if isinstance(value, functools.partialmethod):
        return True
    return callable(value) and not isinstance(value, _NEVER_WRAPPED)


# Types of values that the user's own forward may call, but that no decorator is given.
_NEVER_WRAPPED = (
    type,
    types.BuiltinFunctionType,
    torch.nn.Module,
    torch._ops.OpOverloadPacket,
    torch._ops.OpOverload,
)
