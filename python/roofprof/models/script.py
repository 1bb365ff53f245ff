"""TorchScript modules: the modules inside them call no hooks, so a copy of their code counts in their place."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch

from roofprof import _C
from roofprof.models.tree import ModelTree
from roofprof.state.shared_change import lock_of_process

_ROOTS = 3  # the first places of every tree: the model, and two that are not modules


def add_places(tree: ModelTree, script: torch.jit.ScriptModule, place: int) -> None:
    """Add a place for each module inside of the one at ``place``."""
    tree.scripts.append((script, place))
    path = tree.modules[place]["path"]
    places = {0: place, -1: -1}
    for number, facts in enumerate(_C.script_tree(script._c)):
        if number < _ROOTS:
            continue
        parent = places[facts["parent"]]
        full_path = f"{path}.{facts['path']}" if path else facts["path"]
        module: Any = script
        for name in facts["path"].split("."):
            module = module._modules[name]
        added = tree.add(full_path, facts["type"], parent, module, has_forward=facts["has_forward"])
        tree.modules[added] |= facts | {"path": full_path, "parent": parent, "same_as": places[facts["same_as"]]}
        places[number] = added


class Scripts:
    """The TorchScript modules of a model while it is profiled."""

    def __init__(self, tree: ModelTree, session: _C.ModuleHooks) -> None:
        self.notes: list[_C.Note] = []
        self._session = session
        self._tree = tree
        for script, place in tree.scripts:
            session.add_script(place, script._c)

    def __bool__(self) -> bool:
        return bool(self._tree.scripts)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Run, in here, the code of methods that Python calls as it was written, with a scope for each module."""
        with contextlib.ExitStack() as stack:
            for module, facts in zip(self._tree.objects, self._tree.modules, strict=True):
                if isinstance(module, torch.jit.ScriptModule):
                    for name in module._c._method_names():
                        stack.enter_context(_replaced(module, name, self._copy(module, name, facts["path"])))
            yield

    @contextlib.contextmanager
    def undoing(self) -> Iterator[None]:
        """Undo at the end what calls in here change in the modules' attributes."""
        kept = [_C.ScriptAttributes(script._c) for script, _ in self._tree.scripts]
        try:
            yield
        finally:
            for attributes in kept:
                attributes.restore()

    def _copy(self, module: torch.jit.ScriptModule, name: str, path: str) -> Callable[..., Any]:
        method = module._c._get_method(name)
        copy: Callable[..., Any] | None = None

        def call(*args: Any, **kwargs: Any) -> Any:
            nonlocal copy
            if copy is None:
                try:
                    copy = _C.InstrumentedCopy(self._session, module._c, name)
                except RuntimeError as error:
                    self.notes.append(_C.note_without_copy(path, str(error)))
                    self._session.hide_script_calls()
                    copy = method
            return copy(*args, **kwargs)

        return call


class _Replacement:
    """Stands for a module's method while profiles on some threads have it replaced: there, and nowhere else."""

    lock = lock_of_process()
    here = threading.local()

    def __init__(self, module: torch.jit.ScriptModule, name: str) -> None:
        self.users = 0
        self._method = module._c._get_method(name)
        self._name = name
        self._called = name in vars(module)  # torch keeps a method there from its first call on

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self._called = True
        return getattr(self.here, "calls", {}).get(id(self), self._method)(*args, **kwargs)

    def remove(self, module: torch.jit.ScriptModule) -> None:
        del vars(module)[self._name]
        if self._called:
            getattr(module, self._name)


def _replacement(module: torch.jit.ScriptModule, name: str) -> _Replacement | None:
    """Return the replacement of the method; None where the user has replaced the method already."""
    with _Replacement.lock:
        present = vars(module).get(name)
        if present is None or isinstance(present, torch._C.ScriptMethod):
            present = vars(module)[name] = _Replacement(module, name)
        if not isinstance(present, _Replacement):
            return None
        present.users += 1
        return present


@contextlib.contextmanager
def _replaced(module: torch.jit.ScriptModule, name: str, call: Callable[..., Any]) -> Iterator[None]:
    """Replace the method by ``call`` in here, on this thread."""
    replacement = _replacement(module, name)
    if replacement is None:
        yield
        return
    calls = vars(_Replacement.here).setdefault("calls", {})
    calls[id(replacement)] = call
    try:
        yield
    finally:
        del calls[id(replacement)]
        with _Replacement.lock:
            replacement.users -= 1
            if replacement.users == 0:
                replacement.remove(module)
