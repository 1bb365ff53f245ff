"""torch.compile: what it wrapped, and how to profile it without a trace of the profiler in what it compiles."""

from __future__ import annotations

import contextlib
import importlib
import importlib.abc
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import Any

import torch

from roofprof import _C
from roofprof.models.hooks import ModuleHooks
from roofprof.models.tree import ModelTree
from roofprof.state.shared_change import SharedChange

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
    """Finds torch._dynamo as the other finders do, and calls the waiting functions as soon as it is imported."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._waiting: dict[object, Callable[[], object]] = {}

    def add(self, key: object, call: Callable[[], object]) -> None:
        with self._lock:
            self._waiting[key] = call
            finders = sys.meta_path
            if finders is not None and self not in finders:  # None: the interpreter ends, and imports nothing more
                finders.insert(0, self)

    def remove(self, key: object) -> None:
        with self._lock:
            self._waiting.pop(key, None)
            finders = sys.meta_path
            if not self._waiting and finders is not None and self in finders:
                finders.remove(self)

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
    """Loads the module by its own loader, which the module keeps, then calls the waiting functions."""

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


def original(value: Any) -> Any:
    """Return the module or function that torch.compile wrapped, the module of a ``forward``; other values unchanged."""
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
    """Return True for a module that was compiled in place."""
    return getattr(module, "_compiled_call_impl", None) is not None


def compiled_places(tree: ModelTree) -> set[int]:
    """Return the places of modules that were compiled, and of all below them."""
    compiled = {place for _, _, place in tree.wrappers}
    for place, module in enumerate(tree.objects):
        if module is not None and (is_compiled(module) or tree.modules[place]["parent"] in compiled):
            compiled.add(place)
    return compiled


def compiled_with_its_hooks(tree: ModelTree) -> list[torch.nn.Module]:
    """Return the modules of torch's own types that were compiled in place, except those inside other compiled code.

    torch compiles only the forward of a user's module. For a module of torch's types it compiles the call, which looks
    for hooks (torch's ``OptimizedModule._should_wrap_module_call_impl``): it compiles that again when it finds other
    hooks than before. A torch without this function does not compile such calls, and they go on as they were.
    """
    if not _compiles_hooks():
        return []
    compiled = compiled_places(tree)
    wrapped = {place for _, _, place in tree.wrappers}
    return [
        module
        for place, module in enumerate(tree.objects)
        if module is not None
        and _is_compiled_with_hooks(module)
        and place not in wrapped
        and tree.modules[place]["parent"] not in compiled
    ]


def _compiles_hooks() -> bool:
    compiler = dynamo()
    return compiler is not None and hasattr(compiler.eval_frame.OptimizedModule, "_should_wrap_module_call_impl")


def _is_compiled_with_hooks(module: torch.nn.Module) -> bool:
    return is_compiled(module) and type(module).__module__.startswith("torch.nn.")


def _called_with_its_hooks() -> list[torch.nn.Module]:
    """Return those of these modules that are being called on this thread and do not have the replaced call yet."""
    found: list[torch.nn.Module] = []
    frame = sys._getframe() if _compiles_hooks() else None
    while frame is not None:
        if frame.f_code is torch.nn.Module._wrapped_call_impl.__code__:
            module = frame.f_locals["self"]
            if _is_compiled_with_hooks(module) and not isinstance(module._compiled_call_impl, _CalledWithout):
                found.append(module)
        frame = frame.f_back
    return list({id(module): module for module in found}.values())


@dataclass
class _Amounts:
    """Counts the compiler's runs, those that made no graph, and their seconds."""

    count: int = 0
    in_vain: int = 0  # of these: no graph was made
    seconds: float = 0.0


def _number_of(count: int, what: str) -> str:
    return f"{count} {what}" if count == 1 else f"{count} {what}s"


def _graphs_made() -> int:
    """Return how many graphs Dynamo has made."""
    return int(dynamo().utils.counters["stats"]["unique_graphs"])


def _makes_graphs(of: Sequence[Any]) -> bool:
    """Return whether Dynamo compiles a function, by the trigger that torch passes to its callbacks."""
    trigger = getattr(of[0], "callback_trigger", None) if of else None
    return getattr(trigger, "name", "") == "DYNAMO"


# ---- ranges around compiled code


@contextlib.contextmanager
def _ranges_reported(*, all_are_regions: bool) -> Iterator[None]:
    """Tell the observer which ranges of compiled code call a graph: of what is compiled already, and meanwhile.

    Where Dynamo finds nothing to compile it also makes code with a range, and that calls everything as it is.
    ``all_are_regions``: that too counts as compiled code.
    """
    compiler = dynamo()
    convert_frame: Any = compiler.convert_frame
    with contextlib.suppress(AttributeError, TypeError):  # a torch that keeps them elsewhere
        for code in _codes_seen(convert_frame):
            for entry in compiler.eval_frame._debug_get_cache_entry_list(code):
                _C.tell_compiled_range(entry.trace_annotation, all_are_regions or _calls_graph(entry.code))

    def made(_: CodeType, code: CodeType) -> None:
        number = torch._guards.CompileContext.current_compile_id()
        if number is not None:
            _C.tell_compiled_range(f"Torch-Compiled Region: {number}", all_are_regions or _calls_graph(code))

    hook = convert_frame.register_bytecode_hook(made)
    try:
        yield
    finally:
        hook.remove()


def _codes_seen(convert_frame: Any) -> list[CodeType]:
    seen = [code() for code in list(convert_frame.input_codes.seen)]
    return [code for code in seen if code is not None]


def _calls_graph(code: CodeType) -> bool:
    return any(name.startswith("__compiled_fn") for name in code.co_names)


class Compilations:
    """Watches the compiler while a profile runs.

    The compiler would compile the profiler's hooks into the code, and what it tries out is not the model's work: hooks
    are off and the session pauses while it runs. So no hook is called in the call in which a module is compiled with
    its hooks: ``missed`` is called with the outermost such module.
    """

    def __init__(
        self,
        session: _C.ModuleHooks | None = None,
        with_hooks: Sequence[torch.nn.Module] = (),
        missed: Callable[[torch.nn.Module], None] | None = None,
    ) -> None:
        self.amounts = _Amounts()
        self._hooks: ModuleHooks | None = None
        self._with_hooks = with_hooks
        self._called_without: list[_CalledWithout] = []
        self.eager = False
        self.calls_packages = False  # compiled code calls AOTInductor packages, whose calls are not seen there
        self._session = session
        self._missed = missed
        self._started = 0.0
        self._graphs = 0

    @property
    def count(self) -> int:
        """The number of times that the compiler ran."""
        return self.amounts.count

    @property
    def seconds(self) -> float:
        """The seconds for which the compiler ran."""
        return self.amounts.seconds

    @contextlib.contextmanager
    def as_eager(self) -> Iterator[None]:
        """Run compiled code in here as it was before compilation; compiled code stays compiled."""
        self.eager = True
        try:
            with from_its_import_on(_forced_eager):
                yield
        finally:
            self.eager = False

    @contextlib.contextmanager
    def kept_from(self, hooks: ModuleHooks) -> Iterator[None]:
        """Hide ``hooks`` in here from compilations, and from calls of modules that were compiled with their hooks."""
        self._hooks = hooks
        try:
            for module in [] if self.eager else self._with_hooks:
                self._call_without_hooks(module)
            yield
        finally:
            self._hooks = None
            while self._called_without:
                self._called_without[-1].put_back()
                self._called_without.pop()

    def _call_without_hooks(self, module: torch.nn.Module) -> None:
        """Call the module without hooks from its next call on."""
        call = vars(module)["_compiled_call_impl"]
        if not isinstance(call, _CalledWithout):
            call = _CalledWithout(module, call)
        self._called_without.append(call.put())

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Count and time each compilation in here."""
        with from_its_import_on(self._called_back):
            yield

    @contextlib.contextmanager
    def _called_back(self) -> Iterator[None]:
        handler = dynamo().callback_handler
        try:
            with _kept_by_resets():
                _watching.append(self)
                self._register(handler)
                with _ranges_reported(all_are_regions=self.calls_packages):
                    yield
        finally:
            if self in _watching:
                _watching.remove(self)
            _remove(handler.remove_start_callback, self._start)
            _remove(handler.remove_end_callback, self._end)

    def _register(self, handler: Any) -> None:
        handler.register_start_callback(self._start)
        handler.register_end_callback(self._end)

    def note(self, *, timed: bool) -> list[_C.Note]:
        """Return a note on the compilations, if there were any."""
        if self.count == 0:
            return []
        place = "which is in the row (outside)" if timed else "which is in none of the times"
        took = f"meanwhile, in {self.seconds:.1f} s, {place}"
        in_vain = self.amounts.in_vain
        if in_vain == self.count:
            text = (
                f"torch.compile looked at {_number_of(in_vain, 'function')} {took}, and found nothing there that it "
                "could compile: all of it runs as it is"
            )
            return [_C.Note("compiled-meanwhile", text)]
        text = f"torch.compile compiled {_number_of(self.count - in_vain, 'time')} {took}"
        if in_vain:
            text += f"; of {_number_of(in_vain, 'further function')} it could compile nothing"
        return [_C.Note("compiled-meanwhile", text)]

    def _start(self, *of: object) -> None:
        self.amounts.count += 1
        # Backwards and kernels are compiled apart, for graphs that are there.
        self._graphs = _graphs_made() if _makes_graphs(of) else -1
        self._started = time.perf_counter()
        if self._hooks is not None:
            found = _called_with_its_hooks()
            for module in found:
                self._call_without_hooks(module)
            if found and self._missed is not None:
                self._missed(found[-1])
            self._hooks.suspend(traced=True)
            if self._session is not None:
                self._session.pause()

    def _end(self, *_: object) -> None:
        self.amounts.seconds += time.perf_counter() - self._started
        if self._graphs == _graphs_made():
            self.amounts.in_vain += 1
        if self._hooks is not None:
            if self._session is not None:
                self._session.resume()
            self._hooks.resume()


class _CalledWithout:
    """The compiled call of a module that was compiled with its hooks; calls roofprof's around it, not in it."""

    def __init__(self, module: torch.nn.Module, call: Callable[..., Any]) -> None:
        self._module, self._call = module, call
        self._users = 0

    def put(self) -> _CalledWithout:
        """Replace the compiled call until it is put back as often."""
        self._users += 1
        vars(self._module)["_compiled_call_impl"] = self
        return self

    def put_back(self) -> None:
        self._users -= 1
        if self._users == 0:
            vars(self._module)["_compiled_call_impl"] = self._call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        result = None
        for hooks in list(ModuleHooks.registered):
            hooks.enter(self._module, args)
        around = list(ModuleHooks.registered)  # a window of `roofprof run` may have opened a block
        for hooks in around:
            hooks.suspend()
        try:
            result = self._call(*args, **kwargs)
        finally:
            for hooks in around:
                hooks.resume()
                hooks.leave(self._module, args, kwargs, result)
        return result


_forced_eager = SharedChange(lambda: torch.compiler.set_stance("force_eager"))


_watching: list[Compilations] = []


@contextlib.contextmanager
def _registered_after_resets() -> Iterator[None]:
    """Register the watchers again whenever torch.compiler.reset() has removed all callbacks."""
    handler = dynamo().callback_handler
    clear = handler.clear

    def cleared() -> None:
        try:
            clear()
        finally:
            for compilations in _watching.copy():  # another thread may begin to watch
                compilations._register(handler)

    handler.clear = cleared
    try:
        yield
    finally:
        if vars(handler).get("clear") is cleared:
            del handler.clear


_kept_by_resets = SharedChange(_registered_after_resets)


def _remove(remover: Callable[[Any], None], callback: Callable[[Any], None]) -> None:
    with contextlib.suppress(ValueError):  # somebody removed it
        remover(callback)
