"""``roofprof import``: a trace of torch.profiler as a report, and what Nsight Compute counted."""

from __future__ import annotations

import argparse
import glob
import os
from pathlib import Path
from typing import Any

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_report_options,
    add_trust,
    check_output,
    files_of,
    output,
    say,
    with_article,
)

_DESCRIPTION = """\
Reads what torch.profiler recorded, here or on another machine, and prints the table of its modules: no GPU is needed.
Record with record_shapes=True and with_stack=True, and export with prof.export_chrome_trace("trace.json.gz");
docs/trace-contents.md says what each option of the profiler gives.

--ncu adds what Nsight Compute counted in another run of the same program: the bytes that really moved, and the
operations that were executed; without a trace it shows the kernels alone. docs/counters.md says how they are matched.
"""
_NCU = """\
ncu reads what is needed, and nothing else, with
  ncu --csv --page raw --print-units base --cache-control none --clock-control none \\
    --log-file metrics.csv --metrics '{all}' \\
    python train.py

Bytes alone take one pass, in which no kernel has to be repeated:
  --metrics '{memory}'
"""

# The columns of kernels by default where there is only ncu's table.
_OF_KERNELS = "percent_of_time,total,instances,flops,dram_bytes,l2_bytes,l1_bytes,dram_intensity,bound,percent_of_roof"


def _metrics(*sets: str) -> str:
    """Return ncu's expression for the metrics of these sets; those that a chip does not have match nothing."""
    from roofprof import _report

    names = _report.counter_metrics()
    return rf"regex:^({'|'.join(_alternatives(names[of_set]) for of_set in sets)})\.sum$"


def _alternatives(names: list[str]) -> str:
    """Return an expression that matches these names alone, without what all begin and end with written out."""
    begin = os.path.commonprefix(names)  # noqa: RUF071
    end = os.path.commonprefix([name[len(begin) :][::-1] for name in names])[::-1]  # noqa: RUF071
    if not begin:
        return "|".join(names)
    return f"{begin}({'|'.join(name[len(begin) : len(name) - len(end)] for name in names)}){end}"


class _Help(argparse.Action):
    """Prints the help with ncu's command: only here the names of metrics are needed."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        ncu = _NCU.format(all=_metrics("memory", "sass", "tensor"), memory=_metrics("memory"))
        parser.description = f"{parser.description}\n\n{ncu}"
        parser.print_help()
        parser.exit()


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "import", help="make a report of a trace of torch.profiler", description=_DESCRIPTION, add_help=False
    )
    parser.add_argument("-h", "--help", action=_Help, nargs=0, help="show this help message and exit")
    parser.set_defaults(command=run)
    parser.add_argument(
        "trace",
        type=Path,
        nargs="*",
        help="a file that export_chrome_trace wrote, .json or .json.gz, of each rank one for a merged report, or the "
        "folder in which they lie; or one that `nsys export --type sqlite` wrote",
    )
    parser.add_argument(
        "--ncu",
        type=Path,
        metavar="FILE.csv",
        help="what `ncu --csv` printed of the same program, .csv or .csv.gz: kernels get the bytes and operations that "
        "it counted",
    )
    parser.add_argument(
        "--device",
        metavar="CARD|FILE.json",
        help="the device whose roofs rows are compared with, such as 'H100 SXM' (default: the device in the trace)",
    )
    parser.add_argument(
        "--steps",
        metavar="FIRST-LAST|mean",
        help="the numbers of the ProfilerStep steps to take, or their mean (default: all that was recorded)",
    )
    parser.add_argument(
        "--capture",
        action="append",
        metavar="FILE|none",
        help="a trace of the capture of the graphs that this one replays, several times for several "
        "(default: those in capture_traces beside the trace)",
    )
    parser.add_argument(
        "--model",
        metavar="TARGET",
        help="the recorded model, as `roofprof profile` takes it: rows get its names and parameters",
    )
    add_trust(parser)
    parser.add_argument("--args", metavar="ARGS", help="arguments for --model's target, as Python literals")
    inputs = parser.add_mutually_exclusive_group()
    inputs.add_argument(
        "--input", action="append", metavar="SHAPE", help="for --model: an input, as `roofprof profile` takes it"
    )
    inputs.add_argument("--inputs", metavar="FILE.py:CALLABLE", help="for --model: a callable that returns inputs")
    parser.add_argument("--dtype", help="for --model: dtype of its parameters and of --input's tensors")
    add_report_options(parser, "-o", "--output")
    parser.set_defaults(by=None)


def _expanded(paths: list[Path]) -> list[Path]:
    """Return the files; a pattern that the shell left as it is stands for those that it matches."""
    files = []
    for path in paths:
        is_pattern = set(str(path)) & set("*?[") and not path.exists()
        found = sorted(map(Path, glob.glob(str(path)))) if is_pattern else [path]  # noqa: PTH207
        if not found:
            raise CommandError(f"no file matches {path}")
        files += found
    return files


def _without_folders(paths: list[Path]) -> list[Path]:
    """Return the files, and of a folder the latest trace of each rank; print which files of a folder are left out."""
    files = []
    for path in paths:
        if not path.is_dir():
            files.append(path)
            continue
        from roofprof.profiling.imported import traces_in

        try:
            found = traces_in(path)
        except OSError as error:
            raise CommandError(f"cannot read {path}: {error.strerror}") from None
        except ValueError as error:
            raise CommandError(str(error)) from None
        for sentence in found.left_out:
            say(sentence)
        files += found.traces
    return files


def run(arguments: argparse.Namespace) -> int:
    """Read the trace, and print and write its report."""
    if not arguments.trace and arguments.ncu is None:
        raise CommandError("give the trace to read, or what ncu counted (--ncu FILE.csv), or both")
    if not arguments.trace and (arguments.model or arguments.steps):
        raise CommandError("--model and --steps are for a trace: give it too, as ncu's table has neither")
    arguments.by = arguments.by or ("module" if arguments.trace else "kernel")
    if not arguments.trace and arguments.by == "kernel":
        arguments.columns = arguments.columns or _OF_KERNELS
    if not arguments.model and (arguments.input or arguments.inputs or arguments.args or arguments.dtype):
        raise CommandError("--args, --input, --inputs and --dtype are for --model: name the model, or leave them out")
    of_model = [*files_of(arguments.model), *files_of(arguments.inputs)]
    traces = _without_folders(_expanded(arguments.trace))
    check_output(arguments, [*traces, arguments.ncu, arguments.device, *(arguments.capture or []), *of_model])
    from roofprof.profiling.imported import NoModuleError, calls_of, from_ncu, from_trace

    if not traces:
        return output(from_ncu(arguments.ncu, arguments.device), arguments)
    model = None
    if arguments.model:
        from roofprof.cli.profiling import called

        on_meta = argparse.Namespace(**{**vars(arguments), "target": arguments.model, "device": "meta"})
        given, inputs = called(on_meta)
        try:
            model = calls_of(given, inputs)
        except NoModuleError as error:
            raise CommandError(f"{arguments.model}: {error}") from error
        except Exception as error:
            raise CommandError(
                f"{arguments.model} raised {type(error).__name__} when it was called on the meta device with "
                f"{_words_of(*inputs)}, to name the rows: {_first_line(error)}"
            ) from error
    trace = traces if len(traces) > 1 else traces[0]
    report = from_trace(
        trace,
        model,
        device=arguments.device,
        steps=arguments.steps,
        ncu=arguments.ncu,
        capture=arguments.capture,
    )
    return output(report, arguments)


def _words_of(args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return what a call was given, in short: "a tensor of 1x3x224x224 (float32), mask=True"."""
    given = [_word_of(value) for value in args] + [f"{name}={_word_of(value)}" for name, value in kwargs.items()]
    return ", ".join(given) or "no arguments"


def _word_of(value: Any) -> str:
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if shape is not None and dtype is not None:
        return f"a tensor of {'x'.join(map(str, shape)) or 'no dimensions'} ({str(dtype).removeprefix('torch.')})"
    return repr(value) if isinstance(value, (bool, int, float, str, type(None))) else with_article(type(value).__name__)


def _first_line(error: Exception) -> str:
    return next(iter(str(error).strip().splitlines()), "it does not say why")
