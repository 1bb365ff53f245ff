"""Reports of traces that torch.profiler recorded, here or on another machine."""

from __future__ import annotations

import inspect
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

from roofprof import _C
from roofprof.errors import Error, NcuError, TraceError
from roofprof.latency.batches import arguments_of
from roofprof.models.tree import has_forward_of_torch
from roofprof.profiling import nsight_compute, nsight_systems
from roofprof.profiling.captures import CaptureFile, captures_beside, given_captures
from roofprof.profiling.counted_kernels import alone, counting
from roofprof.profiling.imported_ranks import merged
from roofprof.profiling.nsight_compute import Table
from roofprof.profiling.profiler import count
from roofprof.profiling.trace_folder import traces_in as traces_in  # noqa: PLC0414 (for the command)
from roofprof.render.files import opened, why_not_writable
from roofprof.render.progress import Progress
from roofprof.report.report import Report
from roofprof.roofs import ceilings
from roofprof.roofs.published_peaks import published

if TYPE_CHECKING:
    from torch.profiler import profile as TorchProfile  # noqa: N812


class ModelCalls(NamedTuple):
    """One call of a model, counted."""

    report: Report
    calls: list[tuple[str, int]]  # of modules: the path, and the index of the call around it or -1
    # The sizes of each module's parameters, without those of modules below it, and whether its forward is torch.nn's,
    # which reads all of them.
    parameters: dict[str, tuple[list[tuple[int, ...]], bool]]


class NoModuleError(Error, TypeError):
    """The object given as the model of a trace is not a module."""


def calls_of(model: Callable[..., Any], inputs: Any) -> ModelCalls:
    """Count one call of the model; return its report, the calls of its modules and their parameters.

    Raises NoModuleError unless the model is a module, and whatever the model raises.
    """
    if not isinstance(model, torch.nn.Module):
        raise NoModuleError(f"the model of a trace is a torch.nn.Module, not a {type(model).__name__}")
    paths = {id(module): path for path, module in model.named_modules()}
    calls: list[tuple[str, int]] = []
    open_calls: list[int] = []

    def enter(module: torch.nn.Module, _: Any) -> None:
        if id(module) not in paths:
            return
        if module is model and not open_calls:  # a call that torch refused on this device is made again with fakes
            calls.clear()
        calls.append((paths[id(module)], open_calls[-1] if open_calls else -1))
        open_calls.append(len(calls) - 1)

    def leave(module: torch.nn.Module, *_: Any) -> None:
        if id(module) in paths and open_calls:
            open_calls.pop()

    hooks = [register_module_forward_pre_hook(enter), register_module_forward_hook(leave, always_call=True)]
    args, kwargs = arguments_of(() if inputs is None else inputs)
    try:
        with torch.no_grad():
            report = count(model, *args, **kwargs)
    finally:
        for hook in hooks:
            hook.remove()
    parameters = {path: (_own_parameters(part), has_forward_of_torch(part)) for path, part in model.named_modules()}
    return ModelCalls(report, calls, parameters)


def _own_parameters(module: torch.nn.Module) -> list[tuple[int, ...]]:
    return [tuple(parameter.shape) for parameter in module.parameters(recurse=False) if parameter.dim()]


_PIECE = 1 << 20  # bytes that are read at a time
_ALL_STEPS = 0, 2**63 - 1


def from_trace(
    trace: str | os.PathLike[str] | TorchProfile | Sequence[str | os.PathLike[str]],
    model: Callable[..., Any] | ModelCalls | None = None,
    inputs: Any = None,
    *,
    device: str | os.PathLike[str] | _C.Ceilings | None = None,
    steps: str | tuple[int, int] | None = None,
    ncu: str | os.PathLike[str] | None = None,
    capture: str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None = None,
) -> Report:
    """Return the report of what ran while torch.profiler recorded a trace: no GPU is needed, nor the model.

    trace: the file that ``export_chrome_trace`` wrote (JSON, also packed by gzip), or a ``torch.profiler.profile`` that
    has ended. Record with ``record_shapes=True`` and ``with_stack=True``: docs/import.md. What ``nsys export --type
    sqlite`` wrote gives times of kernels and of NVTX's ranges. Of a list of files, one for each rank of a program, the
    merged report (:func:`roofprof.merge`); all options but ``ncu`` hold for each of them.
    model, inputs: the model that was recorded, and its inputs as ``roofprof.count`` takes them (a tuple of arguments,
    or a pair of a tuple and a dict of keywords): rows get the names of its attributes, and its parameters. The model is
    counted once; on the meta device that costs nothing. What ``calls_of`` returned stands for both.
    device: the device whose roofs limit the rows: a card ("H100 SXM"), a file of roofs, or Ceilings; None: the
    published roofs of the device that the trace names.
    steps: which of ProfilerStep's steps, "3", "1-3" or (1, 3), by their numbers; "mean": the mean of all of them; None:
    everything that was recorded, in steps and outside.
    ncu: what Nsight Compute printed (``ncu --csv``, also packed by gzip) in another run of the same program: kernels
    get the bytes and operations that it counted. docs/counters.md says how they are matched.
    capture: the trace, or the traces, that were recorded while the graphs were captured that this one replays: their
    kernels get operators, modules and work (trace-contents.md). None: those in the folder capture_traces next to
    the trace; "none": no capture.
    Raises ValueError, one sentence, if it is not a trace of torch.profiler, and OSError for a file that cannot be read.
    """
    chosen = _ALL_STEPS if steps == "mean" else _steps(steps)
    mean = steps == "mean"
    roofs = _roofs(device)
    captures = given_captures(capture)
    called = model if model is None or isinstance(model, ModelCalls) else calls_of(model, inputs)
    if ncu is not None and isinstance(trace, (list, tuple)):
        raise Error("ncu counted one process: give the trace of its rank, not those of several")
    if isinstance(trace, (list, tuple)):
        return merged([Path(path) for path in trace], lambda path: _read(path, roofs, chosen, mean, called, captures))
    if not isinstance(trace, (str, os.PathLike)):
        return _of_profiler(trace, lambda path: _read(path, roofs, chosen, mean, called, captures, ncu))
    return _read(Path(trace), roofs, chosen, mean, called, captures, ncu)


def from_ncu(path: str | os.PathLike[str], device: str | os.PathLike[str] | _C.Ceilings | None = None) -> Report:
    """Return the report of the kernels that Nsight Compute ran: their times, counted bytes and operations, and roofs.

    path: what ``ncu --csv`` printed, also packed by gzip; ``roofprof import --help`` shows the command. Without a trace
    of the program, nothing is known of its operators and modules: ``report.kernels`` has what there is.
    device: the device whose roofs limit the kernels, as :func:`from_trace` takes it.
    Raises ValueError, one sentence, if it is not such a text, and OSError for a file that cannot be read.
    """
    file = Path(path)
    roofs = _roofs(device)
    table = _counted(file)
    with _refusing(file):
        trace, counters = alone(table)
        reader = _C.TraceReader()
        reader.feed(trace.encode())
        return Report(reader.report(roofs, counters=counters, alone=True))


def trace_handler(path: str | os.PathLike[str], **options: Any) -> Callable[[TorchProfile], None]:
    """Return a function for ``torch.profiler.profile(on_trace_ready=...)``, which writes each trace's report to a file.

    path: of the report's JSON; "{step}" in it stands for the step at which the trace was ready, "{rank}" for the rank
    in a distributed program (0 without one). Without "{step}" a later trace replaces the one before.
    options: those of :func:`from_trace`, but ``trace``.
    Raises ValueError or TypeError at once for a path that cannot be written and for wrong options. What goes wrong
    later, when a trace is ready, is a warning: the program that is profiled goes on.
    """
    name = os.fspath(path)
    inspect.signature(from_trace).bind(None, **options)
    if options.get("steps") != "mean":
        _steps(options.get("steps"))
    options["device"] = _roofs(options.get("device"))
    folder = os.path.dirname(name)  # noqa: PTH120
    if "{step}" not in folder and (why := why_not_writable(Path(_filled(name, 0)))):
        raise Error(f"cannot write '{name}': {why}")

    def write(profiler: TorchProfile) -> None:
        written = _filled(name, getattr(profiler, "step_num", 0))
        try:
            from_trace(profiler, **options).to_json(written)
        except Exception as error:
            warnings.warn(f"roofprof: no report was written to '{written}': {_first_line(error)}", stacklevel=2)

    return write


def _filled(name: str, step: int) -> str:
    return name.replace("{step}", str(step)).replace("{rank}", str(_rank()))


def _rank() -> int:
    import torch.distributed as dist

    return dist.get_rank() if dist.is_available() and dist.is_initialized() else 0


def _of_profiler(profiler: Any, read: Callable[[Path], Report]) -> Report:
    if not hasattr(profiler, "export_chrome_trace"):
        raise TraceError(
            f"a trace is the path of a file or a torch.profiler.profile that has ended, not a {type(profiler).__name__}"
        )
    with tempfile.TemporaryDirectory(prefix="roofprof-") as folder:
        path = Path(folder) / "trace.json"
        try:
            profiler.export_chrome_trace(str(path))
        except (AssertionError, AttributeError, RuntimeError) as error:  # AttributeError: it is still recording
            why = "" if isinstance(error, AttributeError) else f" ({_first_line(error)})"
            raise TraceError(
                f"the profiler gives no trace{why}: it must have ended, and gives it once; give from_trace the file if "
                "it was exported before"
            ) from error
        return read(path)


def _read(
    path: Path,
    roofs: _C.Ceilings | None,
    steps: tuple[int, int] | None,
    mean: bool,
    called: ModelCalls | None,
    captures: list[CaptureFile] | None,
    ncu: str | os.PathLike[str] | None = None,
) -> Report:
    counters = None if ncu is None else counting(_counted(Path(ncu)))
    reader = _reader_of(path)
    files = captures_beside(path, reader.batches_of_replays(), reader.rank) if captures is None else captures
    captured = [(file.name, _reader_of(file.path), file.batch, file.given) for file in files]
    model, calls, parameters = (None, [], {}) if called is None else called
    counted = None if model is None else model._compiled
    with _refusing(path, ncu), Progress(text=f"costing the operators of {path.name}"):
        return Report(reader.report(roofs, steps, mean, counted, calls, parameters, captured, counters))


def _reader_of(path: Path) -> _C.TraceReader:
    """Return a reader that was fed the whole file."""
    reader = _C.TraceReader()
    with (
        _refusing(path),
        Progress(text=f"reading {path.name}"),
        opened(path, "the file that export_chrome_trace wrote") as file,
    ):
        begin = file.read(len(nsight_systems.MAGIC))
        if begin == nsight_systems.MAGIC:
            for piece in nsight_systems.pieces(path):
                reader.feed(piece)
        else:
            reader.feed(begin)
            while piece := file.read(_PIECE):
                reader.feed(piece)
    return reader


def _counted(path: Path) -> Table:
    with _refusing(path), opened(path, "what ncu --csv printed") as file:
        return nsight_compute.read(file)


@contextmanager
def _refusing(path: Path, ncu: str | os.PathLike[str] | None = None) -> Iterator[None]:
    """Raise what reading a file raises as a sentence that names it. ncu: the table, where it is another file."""
    try:
        yield
    except _C.TraceError as error:
        raise TraceError(f"{path}: {error} (roofprof docs import#how-to-record)") from None
    except NcuError as error:
        raise NcuError(f"{path if ncu is None else Path(ncu)}: {error} (roofprof docs counters)") from None


def _roofs(device: str | os.PathLike[str] | _C.Ceilings | None) -> _C.Ceilings | None:
    if device is None or isinstance(device, _C.Ceilings):
        return device
    name = os.fspath(device)
    return ceilings.load(name) if name.endswith(".json") else published(name)


def _steps(steps: str | tuple[int, int] | None) -> tuple[int, int] | None:
    if steps is None:
        return None
    try:
        if isinstance(steps, str):
            first, dash, last = steps.partition("-")
            chosen = int(first), int(last if dash else first)
        else:
            first_step, last_step = steps
            chosen = int(first_step), int(last_step)
    except (TypeError, ValueError):
        chosen = 1, 0
    if not 0 <= chosen[0] <= chosen[1] < 2**63:
        raise Error(f"steps are given as '3' or '1-3', by ProfilerStep's numbers, or as 'mean', not as {steps!r}")
    return chosen


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0]
