"""torch's compiler, which is imported when something first needs it, perhaps in the middle of a profile."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_NAME = "torch._dynamo"


def dynamo() -> Any:
    """Return torch._dynamo where something imported it, else None: without it nothing is compiled."""
    return importlib.import_module(_NAME) if _NAME in sys.modules else None  # waits for another thread's import


@contextlib.contextmanager
def from_its_import_on(change: Callable[[], contextlib.AbstractContextManager[object]]) -> Iterator[None]:
    """Apply ``change`` in here as soon as the compiler is imported: at once, or right after its first import."""
    with contextlib.ExitStack() as made:
        if dynamo() is None:
            made.callback(_at_import.remove, made)
            _at_import.add(made, lambda: made.enter_context(change()))
        else:
            made.enter_context(change())
        yield


class _AtImport(importlib.abc.MetaPathFinder):
    """Finds torch._dynamo as the other finders do, and calls who waits for it as soon as it is imported."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: dict[object, Callable[[], object]] = {}

    def add(self, key: object, call: Callable[[], object]) -> None:
        with self._lock:
            self._waiting[key] = call
            if self not in sys.meta_path:
                sys.meta_path.insert(0, self)

    def remove(self, key: object) -> None:
        with self._lock:
            self._waiting.pop(key, None)
            if not self._waiting and self in sys.meta_path:
                sys.meta_path.remove(self)

    def imported(self) -> None:
        with self._lock:
            waiting = dict(self._waiting)
            for key, call in waiting.items():
                self.remove(key)
                call()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != _NAME:
            return None
        others = (finder.find_spec(fullname, path, target) for finder in list(sys.meta_path) if finder is not self)
        spec = next((found for found in others if found is not None), None)
        if spec is not None and spec.loader is not None:
            spec.loader = _ThenCalls(spec.loader)
        return spec


class _ThenCalls(importlib.abc.Loader):
    """Loads the module by its own loader, which the module has as ever, then calls who waits."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        created: ModuleType | None = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        _at_import.imported()


_at_import = _AtImport()
