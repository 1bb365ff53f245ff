"""torch.compile: what it wrapped, and how to profile it without a trace of the profiler in what it compiles."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from roofprof import _C
from roofprof._adapters.dynamo import dynamo, from_its_import_on
from roofprof._state.shared_change import SharedChange

if TYPE_CHECKING:
    from roofprof._model.hooks import ModuleHooks
    from roofprof._model.tree import ModelTree


def original(value: Any) -> Any:
    """The module or function that torch.compile wrapped, the module of a ``forward``; anything else is itself."""
    compiler = dynamo()
    if compiler is None:
        return value
    if isinstance(value, torch.nn.Module):
        while isinstance(value, compiler.eval_frame.OptimizedModule):
            value = value._orig_mod
        return value
    function = getattr(value, "_torchdynamo_orig_callable", value)
    owner = getattr(function, "__self__", None)
    return owner if isinstance(owner, torch.nn.Module) and function is not value else function


def is_compiled(module: torch.nn.Module) -> bool:
    """Whether the module was compiled in place."""
    return getattr(module, "_compiled_call_impl", None) is not None


def compiled_places(tree: ModelTree) -> set[int]:
    """Places of modules that were compiled, and of all below them."""
    compiled = {place for _, _, place in tree.wrappers}
    for place, module in enumerate(tree.objects):
        if module is not None and (is_compiled(module) or tree.modules[place]["parent"] in compiled):
            compiled.add(place)
    return compiled


def compiled_with_its_hooks(tree: ModelTree) -> list[torch.nn.Module]:
    """Modules of torch's own types that were compiled in place, but for those inside of other compiled code.

    Of user's types torch compiles the forward, of these the call with its look for hooks (torch's
    ``OptimizedModule._should_wrap_module_call_impl``): where it finds other hooks than before, it compiles anew.
    A torch without that compiles nothing of theirs, and their calls go on as they were.
    """
    compiler = dynamo()
    if compiler is None or not hasattr(compiler.eval_frame.OptimizedModule, "_should_wrap_module_call_impl"):
        return []
    compiled = compiled_places(tree)
    wrapped = {place for _, _, place in tree.wrappers}
    return [
        module
        for place, module in enumerate(tree.objects)
        if module is not None
        and is_compiled(module)
        and type(module).__module__.startswith("torch.nn.")
        and place not in wrapped
        and tree.modules[place]["parent"] not in compiled
    ]


@contextlib.contextmanager
def packaged(model: object, session: _C.Session) -> Iterator[None]:
    """A call of the model; of an AOTInductor package, that is a compiled region which has no twin."""
    if type(model).__name__ != "AOTICompiledModel":
        yield
        return
    session.enter_compiled()
    try:
        yield
    finally:
        session.leave_compiled()


class Compilations:
    """Watches the compiler while a profile runs.

    The profiler's hooks would become part of what is compiled, and what the compiler tries out is no work of the
    model's: hooks are off and the session pauses while it runs.
    """

    def __init__(self, session: _C.Session, with_hooks: list[torch.nn.Module]) -> None:
        self.count = 0
        self.seconds = 0.0
        self._hooks: ModuleHooks | None = None
        self._with_hooks = with_hooks
        self._eager = False
        self._session = session
        self._started = 0.0

    @contextlib.contextmanager
    def as_eager(self) -> Iterator[None]:
        """In here, what was compiled runs as it was before; what is compiled by then stays so."""
        self._eager = True
        try:
            with from_its_import_on(_forced_eager):
                yield
        finally:
            self._eager = False

    @contextlib.contextmanager
    def kept_from(self, hooks: ModuleHooks) -> Iterator[None]:
        """In here, compilations and the calls of modules that were compiled with their hooks do not find these."""
        modules = [] if self._eager else self._with_hooks
        calls = [vars(module)["_compiled_call_impl"] for module in modules]
        self._hooks = hooks
        try:
            for module, call in zip(modules, calls, strict=True):
                vars(module)["_compiled_call_impl"] = _called_without(hooks, module, call)
            yield
        finally:
            self._hooks = None
            for module, call in zip(modules, calls, strict=True):
                vars(module)["_compiled_call_impl"] = call

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Every compilation in here is counted and kept apart."""
        with from_its_import_on(self._called_back):
            yield

    @contextlib.contextmanager
    def _called_back(self) -> Iterator[None]:
        handler = dynamo().callback_handler
        handler.register_start_callback(self._start)
        handler.register_end_callback(self._end)
        try:
            yield
        finally:
            _remove(handler.remove_start_callback, self._start)
            _remove(handler.remove_end_callback, self._end)

    def note(self, *, timed: bool) -> list[_C.Note]:
        """What the reader should know of them."""
        if self.count == 0:
            return []
        times = "1 time" if self.count == 1 else f"{self.count} times"
        place = "which is in the row (outside)" if timed else "which is in none of the times"
        text = f"torch.compile compiled {times} meanwhile, in {self.seconds:.1f} s, {place}"
        return [_C.Note("compiled-meanwhile", text)]

    def _start(self, *_: object) -> None:
        self.count += 1
        self._started = time.perf_counter()
        if self._hooks is not None:
            self._hooks.suspend()
            self._session.pause()

    def _end(self, *_: object) -> None:
        self.seconds += time.perf_counter() - self._started
        if self._hooks is not None:
            self._session.resume()
            self._hooks.resume()


def _called_without(hooks: ModuleHooks, module: torch.nn.Module, call: Callable[..., Any]) -> Callable[..., Any]:
    """The module's compiled call, around which the hooks are called instead of in it."""

    def observed(*args: Any, **kwargs: Any) -> Any:
        result = None
        hooks.enter(module)
        hooks.suspend()
        try:
            result = call(*args, **kwargs)
        finally:
            hooks.resume()
            hooks.leave(module, args, kwargs, result)
        return result

    return observed


_forced_eager = SharedChange(lambda: torch.compiler.set_stance("force_eager"))


def _remove(remover: Callable[[Any], None], callback: Callable[[Any], None]) -> None:
    with contextlib.suppress(ValueError):  # torch.compiler.reset() cleared them all
        remover(callback)
