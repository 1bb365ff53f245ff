"""Kernels of torch.compile: code is compiled once more so that each kernel tells its time, its ops and their modules.

This is the only file that uses private interfaces of Inductor. INTERFACES names them, and
``tests/python/adapters/test_compiled_kernels.py`` looks for each.
"""

from __future__ import annotations

import contextlib
import copy
import importlib
import math
import re
import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType
from typing import Any
from unittest import mock

import torch

from roofprof import _C
from roofprof.models.hooks import through_the_dispatcher
from roofprof.models.source import line_of
from roofprof.models.tree import ModelTree

# The interfaces that this module needs of torch: module, dotted attribute.
INTERFACES = (
    ("torch._dynamo.eval_frame", "_callback_from_stance"),
    ("torch._dynamo.eval_frame", "_create_wrapped_callback"),
    ("torch._dynamo.eval_frame", "innermost_backend"),
    ("torch._dynamo.compiled_autograd", "AutogradCompilerInstance.create_graph_module"),
    ("torch._dynamo.convert_frame", "register_bytecode_hook"),
    ("torch._dynamo.convert_frame", "FRAME_COMPILE_COUNTER"),
    ("torch._dynamo.guards", "DeletedGuardManagerWrapper"),
    ("torch._dynamo.output_graph", "graph_break_reasons"),
    ("torch._dynamo.utils", "counters"),
    ("torch._dynamo.config", "recompile_limit"),
    ("torch._dynamo.config", "accumulated_recompile_limit"),
    ("torch._functorch.config", "enable_autograd_cache"),
    ("torch._inductor.config", "cpp.enable_kernel_profile"),
    ("torch._inductor.config", "trace.provenance_tracking_level"),
    ("torch._inductor.config", "fx_graph_cache"),
    ("torch._inductor.config", "fx_graph_remote_cache"),
    ("torch._inductor.compile_fx", "compile_fx"),
    ("torch._inductor.compile_fx", "compile_fx_inner"),
    ("torch._inductor.codecache", "get_path"),
    ("torch._inductor.codegen.cpp", "set_kernel_post_grad_provenance_tracing"),
    ("torch._inductor.codegen.triton", "set_kernel_post_grad_provenance_tracing"),
    ("torch._inductor.debug", "set_kernel_post_grad_provenance_tracing"),
    ("torch._inductor.codegen.wrapper", "PythonWrapperCodegen.generate_workspace_allocation"),
    ("torch._inductor.dependencies", "MemoryDep"),
    ("torch._inductor.dependencies", "StarDep"),
    ("torch._inductor.ir", "DeviceCopy"),
    ("torch._inductor.ir", "InplaceCopyFallback"),
    ("torch._inductor.ir", "MultiOutput"),
    ("torch._inductor.scheduler", "BaseSchedulerNode"),
    ("torch._inductor.scheduler", "OutputNode"),
    ("torch._inductor.scheduler", "Scheduler.codegen_extern_call"),
    ("torch._inductor.virtualized", "V"),
)
# Dynamo keeps roofprof's code apart from the user's by regions if torch has them (2.15), else by backends alone.
_REGIONS = (
    ("torch._dynamo.eval_frame", "set_eval_frame_isolate_recompiles_id"),
    ("torch._dynamo.eval_frame", "get_eval_frame_isolate_recompiles_id"),
    ("torch._dynamo.eval_frame", "_get_cache_entries_for_region"),
    ("torch._dynamo.eval_frame", "_next_isolate_recompiles_id"),
)
_BACKENDS = (("torch._C._dynamo.eval_frame", "_debug_get_cache_entry_list"),)

_RANGES = {"cpp.enable_kernel_profile": True}  # a range around each generated kernel
_PATCHES = {
    "trace.provenance_tracking_level": 1,  # the ops that each kernel comes from
    "fx_graph_cache": False,  # what it keeps lacks both
    "fx_graph_remote_cache": False,
}


def interfaces() -> tuple[tuple[str, str], ...]:
    """Return all that this torch must have."""
    return INTERFACES + (_REGIONS if _has(*_REGIONS[0]) else _BACKENDS)


def why_not() -> str:
    """Return why this torch cannot tell the kernels of compiled code; "" where it can."""
    lacking = [f"{module}.{path}" for module, path in interfaces() if not _has(module, path)]
    return f"this torch ({torch.__version__}) has no {', '.join(lacking)}: these tell them" if lacking else ""


def _has(module: str, path: str) -> bool:
    try:
        value: Any = importlib.import_module(module)
        for name in path.split("."):
            value = getattr(value, name)
    except (ImportError, AttributeError):
        return False
    return True


@dataclass
class _Kernel:
    """A call of a kernel in generated code."""

    name: str
    nodes: list[torch.fx.Node]
    generated: bool = False  # False: an operator
    prepared_for: list[torch.fx.Node] = field(default_factory=list)  # ops that operators run, for which it makes inputs
    moved: tuple[int, int] | None = None  # bytes that generated code reads and writes; None: not known


@dataclass
class _Graph:
    kernels: list[_Kernel] = field(default_factory=list)
    path: Path | None = None  # of the generated code
    sizes: set[tuple[int, ...]] = field(default_factory=set)  # that it was called with, where some are symbolic


@dataclass
class CompiledAgain:
    """The code that :func:`compiled_for_kernels` compiled, and what Dynamo reported while it did."""

    graphs: list[_Graph] = field(default_factory=list)
    breaks: dict[tuple[str, str], int] = field(default_factory=dict)  # by place and reason
    versions: dict[str, int] = field(default_factory=dict)  # of the user's own compiled code, by function
    guards: int = 0
    seconds: float = 0.0
    on_device: bool = False  # whose kernels tell their times, so that nothing of it is timed
    others: set[str] = field(default_factory=set)  # backends that are not Inductor
    ratios: list[float] = field(default_factory=list)  # of an observed call's time to that of the code as it was
    backward: dict[str, torch.fx.Node] = field(default_factory=dict)  # of compiled autograd's last capture, by name
    _aside: bool = False
    _region: int = -1  # of Dynamo's, that the code is in
    _codes: set[CodeType] = field(default_factory=set)

    @property
    def met_compiler(self) -> bool:
        """True if Dynamo looked at code that ran, even if it compiled none of it."""
        return bool(self._codes or self.breaks)

    @contextlib.contextmanager
    def put_aside(self) -> Iterator[None]:
        """Run the user's own compiled code in here."""
        self._aside = True
        try:
            yield
        finally:
            self._aside = False

    def facts(self, tree: ModelTree) -> list[dict[str, Any]]:
        """Return the graphs as the compiled part reads them."""
        places = {id(module): place for place, module in reversed(list(enumerate(tree.objects))) if module is not None}
        work = _Works()
        with through_the_dispatcher():
            return [_facts_of(graph, places, work) for graph in self.graphs]

    def notes(self) -> list[_C.Note]:
        """Return the notes on the compilation."""
        notes = []
        if self.graphs:
            graphs = "1 graph" if len(self.graphs) == 1 else f"{len(self.graphs)} graphs"
            versions = [f"{name} has {count} versions" for name, count in self.versions.items() if count > 1]
            purpose = "tell" if self.on_device else "time"
            text = (
                f"compiled again in {self.seconds:.1f} s to {purpose} its kernels: {graphs}, {self.guards} guards; "
                "that is in none of the times, and the compiled code is as it was"
            )
            if self.ratios:
                ratio = statistics.median(self.ratios)
                text += (
                    f"; a call of the model with that code takes {ratio:.2f} times the time of a call with your own "
                    "code, made right before it (the median of such pairs)"
                )
            if versions:
                text += f"; it was compiled more than once: {', '.join(versions)}"
            notes.append(_C.Note("compiled-again", text))
        if self.breaks:
            total = sum(self.breaks.values())
            where = "; ".join(f"{place}: {why}" for place, why in list(self.breaks)[:5])
            more = f"; and {len(self.breaks) - 5} more" if len(self.breaks) > 5 else ""
            times = "1 graph break" if total == 1 else f"{total} graph breaks"
            notes.append(_C.Note("graph-breaks", f"{times}: {where}{more}"))
        if self.others:
            notes.append(
                _C.Note(
                    "no-kernels",
                    f"no kernels of code that {', '.join(sorted(self.others))} compiled: Inductor alone tells them",
                )
            )
        elif not self.graphs:
            where = "the note graph-breaks says where" if self.breaks else "TORCH_LOGS=graph_breaks says where"
            notes.append(no_kernels(f"{_NOTHING_COMPILED}; {where}"))
        return notes


def no_kernels(why: str) -> _C.Note:
    """Return the note that compiled code has no kernels, with the reason."""
    return _C.Note("no-kernels", f"no kernels of compiled code: {why}")


_NOTHING_COMPILED = (
    "torch.compile made none of what ran, and called it as it is, as it does with functions that are disabled and with "
    "one that breaks the graph inside a loop"
)


class _Backend:
    """Inductor, with the user's options, and a range around each kernel."""

    def __init__(self, config: dict[str, Any], again: CompiledAgain, session: _C.ModuleHooks) -> None:
        self._config = config
        self._again = again
        self._session = session

    def __call__(self, graph: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Any:
        from torch._inductor.compile_fx import compile_fx

        patches = self._config | _PATCHES | ({} if self._again.on_device else _RANGES)
        return compile_fx(graph, inputs, inner_compile=self._compile, config_patches=patches, **kwargs)

    def _tell_backward(self, graph: torch.fx.GraphModule) -> None:
        """Give nodes of compiled autograd the modules of AOTAutograd's nodes, which their lines of code name.

        The lines are "aot2_mm = ..." in a copy of AOTAutograd's code, and "... AccumulateGrad([aot2_mm], ..." where
        a gradient is added up.
        """
        for node in graph.graph.nodes:
            trace = node.meta.get("stack_trace") or ""
            copied = re.search(r"^\s+(?=aot\w+ = )|AccumulateGrad\(\[(?=aot)", trace, re.MULTILINE)
            name = re.compile(r"\w+").match(trace, copied.end()) if copied else None
            original = self._again.backward.get(name[0]) if name else None
            if original is None:
                continue
            modules = original.meta.get("nn_module_stack") or original.meta.get("fwd_nn_module_stack")
            if modules:  # else it is the backward of whoever called the code
                node.meta["nn_module_stack"] = modules

    def _compile(self, module: torch.fx.GraphModule, inputs: Sequence[Any], **kwargs: Any) -> Any:
        from torch._inductor import codecache
        from torch._inductor.compile_fx import compile_fx_inner

        number, graph = len(self._again.graphs), _Graph()
        self._again.graphs.append(graph)
        self._tell_backward(module)
        with _kernels_into(graph):
            compiled: Any = compile_fx_inner(module, inputs, **kwargs)
        _leave_operators_to_their_calls(graph)
        key = getattr(compiled, "cache_key", None)
        if key:
            graph.path = Path(codecache.get_path(key, "py")[2])
        inner, session = getattr(compiled, "current_callable", None), self._session
        if inner is not None:

            def observed(arguments: Any) -> Any:
                graph.sizes.add(tuple(of for of in arguments if isinstance(of, int)))
                session.enter_graph(number)
                try:
                    return inner(arguments)
                finally:
                    session.leave_graph()

            compiled.current_callable = observed
        return compiled


@contextlib.contextmanager
def compiled_for_kernels(session: _C.ModuleHooks, *, on_device: bool = False) -> Iterator[CompiledAgain]:
    """Run in here, in place of code that torch.compile made, other code with a range around each kernel.

    ``on_device``: its kernels run on a GPU, so they need no ranges.

    It is compiled at its first calls, and Dynamo keeps it apart from the user's. In the end it is forgotten, and what
    Dynamo counts is as it was.
    """
    convert_frame, eval_frame, output_graph, utils, compiled_autograd = map(
        _torch,
        (
            "_dynamo.convert_frame",
            "_dynamo.eval_frame",
            "_dynamo.output_graph",
            "_dynamo.utils",
            "_dynamo.compiled_autograd",
        ),
    )
    again = CompiledAgain(on_device=on_device)
    backends: dict[int, tuple[Any, Any]] = {}  # the user's, and the callback that stands for it
    callback_from_stance = eval_frame._callback_from_stance

    def replaced(callback: Any) -> Any:
        callback = callback_from_stance(callback)
        if callback is None or callback is False or again._aside:
            return callback
        backend: Any = eval_frame.innermost_backend(callback)
        if id(backend) not in backends:
            if getattr(backend, "compiler_name", "") == "inductor" or backend is _inductor():
                ours = eval_frame._create_wrapped_callback(_Backend(getattr(backend, "config", {}), again, session))
                backends[id(backend)] = (backend, ours)
            else:
                again.others.add(str(getattr(backend, "compiler_name", getattr(backend, "__name__", "another"))))
                backends[id(backend)] = (backend, callback)
        return backends[id(backend)][1]

    def note_code(code: CodeType, _: CodeType) -> None:
        again._codes.add(code)

    capture = compiled_autograd.AutogradCompilerInstance
    create_graph = capture.create_graph_module

    def created(instance: Any, name: str) -> Any:
        # If several modules called a graph, Dynamo does not say whose backward each copy is: take graphs called once.
        once = {f"aot{graph}" for graph, uses in instance.aot_id_counter.items() if uses == 1}
        nodes = instance.fx_tracer.graph.nodes
        again.backward = {node.name: node for node in nodes if node.name.split("_")[0] in once}
        return create_graph(instance, name)

    counters = copy.deepcopy(utils.counters)
    compilations = copy.copy(convert_frame.FRAME_COMPILE_COUNTER)
    breaks = len(output_graph.graph_break_reasons)
    hook = convert_frame.register_bytecode_hook(note_code)
    try:
        with (
            mock.patch.object(eval_frame, "_callback_from_stance", replaced),
            _in_a_region(again),
            mock.patch.object(capture, "create_graph_module", created),
            torch._dynamo.config.patch(recompile_limit=1 << 20, accumulated_recompile_limit=1 << 20),
            _torch("_functorch.config").patch(enable_autograd_cache=False),
        ):
            yield again
    finally:
        hook.remove()
        _keep_breaks(again, output_graph.graph_break_reasons[breaks:])
        _forget(again)
        del output_graph.graph_break_reasons[breaks:]
        convert_frame.FRAME_COMPILE_COUNTER.clear()
        convert_frame.FRAME_COMPILE_COUNTER.update(compilations)
        utils.counters.clear()
        utils.counters.update(counters)


def _keep_breaks(again: CompiledAgain, reasons: Sequence[Any]) -> None:
    """Keep where and why graphs broke, also where nothing was left to make a graph of."""
    for reason in reasons:
        text = str(reason.reason).strip()
        why = text.splitlines()[0]
        function = re.search(r"<(?:bound method|function) (\S+)", text)
        if function and "disable" in why:  # only the explanation says which one
            why += f" {function[1]}"
        key = _place_of_break(reason.user_stack, function[1] if function else ""), why
        again.breaks[key] = again.breaks.get(key, 0) + 1


def _place_of_break(stack: Sequence[Any], function: str) -> str:
    """Return the line of the user's that broke the graph; where torch itself calls a function, that function's name."""
    of_torch = str(Path(torch.__file__).parent)
    frames = [frame for frame in stack if not frame.filename.startswith(of_torch)]
    if frames:
        return f"{Path(frames[-1].filename).name}:{frames[-1].lineno}"
    if function:
        return f"the call of {function}"
    return f"{Path(stack[-1].filename).name}:{stack[-1].lineno}" if stack else "unknown"


def _inductor() -> Any:
    from torch._dynamo.backends.registry import lookup_backend

    return lookup_backend("inductor")


def _torch(module: str) -> Any:
    return importlib.import_module(f"torch.{module}")


@contextlib.contextmanager
def _in_a_region(again: CompiledAgain) -> Iterator[None]:
    """Compile in a separate region (``isolate_recompiles``), if this torch has regions.

    Older versions need none: their Dynamo does not use code that another backend compiled.
    """
    if not _has(*_REGIONS[0]):
        yield
        return
    eval_frame = _torch("_dynamo.eval_frame")
    again._region = next(eval_frame._next_isolate_recompiles_id)
    before = eval_frame.get_eval_frame_isolate_recompiles_id()
    set_region = eval_frame.set_eval_frame_isolate_recompiles_id

    def set_ours(users_region: int) -> Any:
        return set_region(users_region if again._aside else again._region)

    try:
        with mock.patch.object(eval_frame, "set_eval_frame_isolate_recompiles_id", set_ours):
            yield
    finally:
        set_region(before)


def _entries_of(code: CodeType, region: int) -> tuple[list[Any], list[Any]]:
    """Return Dynamo's cache entries of a function: roofprof's, and the user's."""
    if region >= 0:
        of_region = _torch("_dynamo.eval_frame")._get_cache_entries_for_region
        ours, users = (of_region(code, of) for of in (region, -1))
        return list(ours), list(users)
    entries = _torch("_C._dynamo.eval_frame")._debug_get_cache_entry_list(code)
    ours = [entry for entry in entries if isinstance(entry.backend, _Backend)]
    return ours, [entry for entry in entries if entry not in ours]


def _forget(again: CompiledAgain) -> None:
    """Remove from Dynamo the code compiled for roofprof, and count the user's versions of the same functions."""
    from torch._dynamo import guards

    for code in again._codes:
        ours, users = _entries_of(code, again._region)
        for entry in ours:
            manager: Any = entry.guard_manager
            again.guards += len(manager.code_parts)
            manager.extra_state.invalidate(entry, guards.DeletedGuardManagerWrapper("roofprof has timed its kernels"))
        if len(users) > 1 and not code.co_filename.startswith(str(Path(torch.__file__).parent)):
            again.versions[code.co_name] = len(users)


# ---- what Inductor says of a kernel while it writes the code


@contextlib.contextmanager
def _kernels_into(graph: _Graph) -> Iterator[None]:
    """Keep each call of a kernel that Inductor writes in here."""
    from torch._inductor import debug, ir, scheduler
    from torch._inductor.codegen import cpp, triton, wrapper

    tell = debug.set_kernel_post_grad_provenance_tracing
    write_call = scheduler.Scheduler.codegen_extern_call
    allocate = wrapper.PythonWrapperCodegen.generate_workspace_allocation

    def reported(node_schedule: Any, kernel_name: str, is_extern: bool = False) -> Any:
        graph.kernels.append(
            _called_outside(node_schedule, kernel_name) if is_extern else _generated(node_schedule, kernel_name)
        )
        return tell(node_schedule, kernel_name, is_extern)

    def written(of: Any, node: Any) -> None:
        before = len(graph.kernels)
        write_call(of, node)
        if len(graph.kernels) == before and not isinstance(node.node, ir.MultiOutput):
            graph.kernels.append(_called_unreported(node.node))

    def allocated(code: Any, workspace: Any) -> None:
        if workspace.zero_mode.name != "UNINITIALIZED" and workspace.get_name() not in code.allocated_workspaces:
            graph.kernels.insert(len(graph.kernels) - 1, _Kernel("aten::zero_", []))  # for the kernel reported last
        allocate(code, workspace)

    with (
        mock.patch.object(debug, "set_kernel_post_grad_provenance_tracing", reported),
        mock.patch.object(cpp, "set_kernel_post_grad_provenance_tracing", reported),
        mock.patch.object(triton, "set_kernel_post_grad_provenance_tracing", reported),
        mock.patch.object(scheduler.Scheduler, "codegen_extern_call", written),
        mock.patch.object(wrapper.PythonWrapperCodegen, "generate_workspace_allocation", allocated),
    ):
        yield


def _called_outside(node: Any, name: str) -> _Kernel:
    """Return a call of an operator: "extern_kernels.addmm", "torch.ops.aten.convolution_backward.default"."""
    parts = name.split(".")
    op = "::".join(parts[2:4]) if parts[:2] == ["torch", "ops"] else f"aten::{parts[-1]}"
    return _Kernel(op, _origins_of(node))


def _called_unreported(node: Any) -> _Kernel:
    """Return a call that Inductor does not report, such as one of an operator which changes its input."""
    from torch._inductor import ir

    overload = getattr(node, "op_overload", None)
    if isinstance(overload, torch._ops.OpOverload):
        name = str(overload._schema.name)
    else:
        copies = isinstance(node, (ir.DeviceCopy, ir.InplaceCopyFallback))
        name = "aten::copy_" if copies else f"inductor::{type(node).__name__}"
    return _Kernel(name, _origins_of(node))


def _origins_of(node: Any) -> list[torch.fx.Node]:
    return [node.origin_node] if node.origin_node is not None else list(node.origins)


def _leave_operators_to_their_calls(graph: _Graph) -> None:
    """Take ops that are called as operators out of generated kernels, which prepare their inputs."""
    called = set()
    for kernel in graph.kernels:
        if not kernel.generated:
            own = [node for node in kernel.nodes if _target_name(node) == kernel.name]
            kernel.nodes = own or kernel.nodes
            called |= {node.name for node in own}
    for kernel in graph.kernels:
        if kernel.generated:
            kernel.prepared_for = [node for node in kernel.nodes if node.name in called]
            kernel.nodes = [node for node in kernel.nodes if node.name not in called]


def _target_name(node: torch.fx.Node) -> str:
    """Return "aten::addmm" for a call of an overload of it."""
    return str(node.target._schema.name) if isinstance(node.target, torch._ops.OpOverload) else ""


def _generated(schedule: Sequence[Any], name: str) -> _Kernel:
    from torch._inductor.scheduler import BaseSchedulerNode

    # Schedules of a GPU's kernels have marks in between, and nodes that are several.
    nodes: list[Any] = [
        node for entry in schedule if isinstance(entry, BaseSchedulerNode) for node in entry.get_nodes()
    ]
    origins = {
        origin.name: origin
        for node in nodes
        if node.node is not None
        for origin in node.node.origins
        if origin.op != "placeholder"  # an input that it copies
    }
    return _Kernel(name, list(origins.values()), generated=True, moved=_moved(nodes))


def _moved(nodes: Sequence[Any]) -> tuple[int, int] | None:
    """Return the bytes that must be read and written: what comes from elsewhere, and what is used elsewhere."""
    names = {node.get_name() for node in nodes}
    buffers = {buffer.get_name(): buffer for node in nodes for buffer in node.get_outputs()}
    reads = {name: parts for name, parts in _accesses(nodes, "reads").items() if name not in buffers}
    writes = {
        name: parts
        for name, parts in _accesses(nodes, "writes").items()
        if name in buffers and _is_used_outside(buffers[name], names)
    }
    try:
        return _bytes_of(reads), _bytes_of(writes)
    except _NoSizeError:
        return None


def _accesses(nodes: Sequence[Any], kind: str) -> dict[str, set[Any]]:
    """Return the parts of each buffer that are read or written, each part once."""
    from torch._inductor.dependencies import MemoryDep, StarDep

    found: dict[str, set[Any]] = {}
    for node in nodes:
        # Outside of templates, a dependency on a whole buffer (StarDep) only orders nodes: it is not an access.
        kinds = (MemoryDep, StarDep) if node.is_template() else MemoryDep
        for access in getattr(node.read_writes, kind):
            if isinstance(access, kinds):
                part = access.normalize() if isinstance(access, MemoryDep) else access
                found.setdefault(access.name, set()).add(part)
    return found


def _is_used_outside(buffer: Any, nodes: set[str]) -> bool:
    """Return whether others than these nodes read what was written, or the caller does."""
    from torch._inductor.scheduler import OutputNode

    users = [user.node for user in buffer.users if not user.is_weak]
    return bool(buffer.get_mutations()) or any(
        isinstance(user, OutputNode) or user.get_name() not in nodes for user in users
    )


def _bytes_of(accesses: dict[str, set[Any]]) -> int:
    from torch._inductor.virtualized import V

    total = 0
    for name, accessed in accesses.items():
        elements = min(_size(V.graph.get_numel(name)), sum(map(_elements_of, accessed)))
        total += elements * V.graph.get_dtype(name).itemsize
    return total


def _elements_of(access: Any) -> int:
    """Return how many elements are accessed at most; indices that are read (of an embedding) count each."""
    if hasattr(access, "size") and access.is_indirect():
        return math.prod(map(_size, access.size))
    return _size(access.get_numel())


class _NoSizeError(Exception):
    """A size depends on data."""


def _size(size: Any) -> int:
    from torch._inductor.virtualized import V

    found = int(V.graph.sizevars.optimization_hint(size, fallback=-1))
    if found < 0:
        raise _NoSizeError
    return found


# ---- the work of a kernel, and the modules that it is of


class _Works:
    """Counts the work of a graph's nodes; it dispatches each distinct call once on the meta device."""

    def __init__(self) -> None:
        self._known: dict[str, _C.OpsWork] = {}

    def of(self, node: torch.fx.Node) -> _C.OpsWork:
        if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
            work = _C.OpsWork()
            work.costed = not isinstance(node.target, torch._ops.HigherOrderOperator)
            return work
        try:
            args, kwargs = torch.fx.node.map_arg((node.args, dict(node.kwargs)), lambda of: _on_meta(of.meta["val"]))
        except KeyError:  # a node without a value
            return _unknown()
        target, args, kwargs = _as_aten(node.target, args, kwargs)
        if "device" in kwargs:
            kwargs = {**kwargs, "device": torch.device("meta")}
        key = f"{target} {torch.utils._pytree.tree_map(_description, (args, kwargs))}"
        if key not in self._known:
            self._known[key] = self._counted(target, args, kwargs)
        return self._known[key]

    @staticmethod
    def _counted(target: Callable[..., Any], args: Any, kwargs: Any) -> _C.OpsWork:
        try:
            with torch.no_grad():
                return _C.work_of(lambda: target(*args, **kwargs))
        except Exception:  # whatever an operator raises without data
            return _unknown()


def _as_aten(target: Any, args: Any, kwargs: dict[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Return the operator that does the same, of those that Inductor has its own for."""
    if target is torch.ops.prims.convert_element_type.default:
        return torch.ops.aten._to_copy.default, args[:1], {"dtype": args[1]}
    if target is torch.ops.prims.iota.default:
        return torch.ops.aten.arange.default, args[:1], {"dtype": kwargs.get("dtype"), "device": "meta"}
    return target, args, kwargs


def _unknown() -> _C.OpsWork:
    work = _C.OpsWork()
    work.lower_limit = True
    return work


def _on_meta(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        sizes, strides = ([_number(of) for of in these] for these in (value.shape, value.stride()))
        return torch.empty_strided(sizes, strides, dtype=value.dtype, device="meta")
    if isinstance(value, (list, tuple)):
        return type(value)(_on_meta(of) for of in value)
    return _number(value)


def _number(value: Any) -> Any:
    """Return the value that a symbolic number had when it was compiled; others as they are."""
    hint = getattr(getattr(value, "node", None), "hint", None)
    return value if hint is None else hint


def _description(value: Any) -> Any:
    return (tuple(value.shape), value.stride(), value.dtype) if isinstance(value, torch.Tensor) else repr(value)


_CALLER = -1  # the module whose code was compiled
_UNKNOWN = -2

# Dynamo notes these facts about an op; an op that AOTAutograd adds has none of them.
_PROVENANCE = ("nn_module_stack", "fwd_nn_module_stack", "source_fn_stack", "fwd_source_fn_stack", "stack_trace")


def _module_of(node: torch.fx.Node, places: dict[int, int]) -> int | None:
    """Return the place of the innermost module that ran when the op was called; None: nobody called it."""
    noted = [key for key in _PROVENANCE if node.meta.get(key)]
    if not noted:
        return None
    # Compiled autograd traces the code of backward graphs, which calls no modules.
    if noted == ["stack_trace"] and 'File "<eval_with_key>' in node.meta["stack_trace"]:
        return _UNKNOWN
    stack = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    for key in reversed(list(stack)):  # the module's identity, and "@1" for its second call
        found = re.match(r"\d+", str(key))
        if found and int(found[0]) in places:
            return places[int(found[0])]
    return _CALLER


def _op_name(node: torch.fx.Node) -> str:
    op = node.meta.get("original_aten") or node.target
    return str(op._schema.name) if isinstance(op, torch._ops.OpOverload) else str(getattr(op, "__name__", op))


def _source_of(nodes: Sequence[torch.fx.Node]) -> str:
    for node in nodes:
        lines = re.findall(r'File "([^"]+)", line (\d+)', node.meta.get("stack_trace") or "")
        if lines:
            return line_of(*lines[-1])
    return ""


def _facts_of(graph: _Graph, places: dict[int, int], work: _Works) -> dict[str, Any]:
    code, one_size = _Code(graph.path), len(graph.sizes) < 2
    return {
        "kernels": [_facts_of_kernel(kernel, places, work, code, one_size) for kernel in graph.kernels],
    }


def _facts_of_kernel(
    kernel: _Kernel, places: dict[int, int], works: _Works, code: _Code, one_size: bool
) -> dict[str, Any]:
    total = _C.OpsWork()
    total.costed = one_size and (kernel.moved is not None if kernel.generated else bool(kernel.nodes))
    names: dict[str, bool] = {}  # whether it does anything
    by_module: dict[int, list[int]] = {}
    for node in kernel.nodes or kernel.prepared_for:
        work = _C.OpsWork()  # of a weight's other layout for a convolution
        if kernel.nodes:
            work = works.of(node)
            name = _op_name(node)
            names[name] = names.get(name, False) or work.operations > 0 or work.lower_limit or not work.costed
        total.add(work)
        module = _module_of(node, places)
        if module is not None:
            sums = by_module.setdefault(module, [0, 0, 0])
            for i, amount in enumerate((work.operations, work.bytes, 1)):
                sums[i] += amount
    # Share by operations if each module that moves bytes has some (an embedding has none), else by bytes, or by ops.
    moving = [sums for sums in by_module.values() if sums[0] or sums[1]]
    measure = 2 if not moving else 0 if all(sums[0] for sums in moving) else 1
    parts = {place: sums[measure] for place, sums in by_module.items() if sums[measure]}
    if _UNKNOWN in parts:  # then so is the module around all of them
        parts = {}
    whole = sum(parts.values())
    line = code.line_of(kernel)
    return {
        "name": kernel.name,
        "range": code.range_at(line) if kernel.generated else kernel.name,  # on a GPU there is none
        "ops": [name for name, works_ in names.items() if works_] or list(names),
        "parts": [(place, amount / whole) for place, amount in parts.items()],
        "code": code.place(line),
        "source": _source_of(kernel.nodes or kernel.prepared_for),
        "work": total,
        "moved": kernel.moved,
    }


class _Code:
    """The generated code, in which lines are looked up."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        try:
            self._lines = path.read_text().splitlines() if path else []
        except OSError:
            self._lines = []
        self._next: dict[str, int] = {}

    def line_of(self, kernel: _Kernel) -> int:
        """Return the line of a kernel's definition, or of an operator's next call; 0 where it is not found."""
        wanted = f"{kernel.name} = " if kernel.generated else f".{kernel.name.split('::')[-1]}"
        start = 0 if kernel.generated else self._next.get(wanted, 0)
        for number in range(start, len(self._lines)):
            line = self._lines[number]
            if line.startswith(wanted) if kernel.generated else wanted in line and not line.lstrip().startswith("#"):
                self._next[wanted] = number + 1
                return number + 1
        return 0

    def range_at(self, line: int) -> str:
        """Return the name of the range that the kernel opens which is defined there."""
        for text in self._lines[line:] if line else []:
            if found := re.search(r'RAIIAtenRecordFunctionHandle \w+\("([^"]+)"', text):
                return found[1]
        return ""

    def place(self, line: int) -> str:
        """Return "FILE:LINE"; "" where it is not known."""
        return f"{self._path}:{line}" if line else ""
