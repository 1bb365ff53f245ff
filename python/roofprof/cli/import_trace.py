"""``roofprof import``: a trace of torch.profiler as a report."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_json_output,
    add_output_options,
    check_output,
    files_of,
    output,
    take_json_output,
)

_DESCRIPTION = """\
Reads what torch.profiler recorded, here or on another machine, and prints the table of its modules: no GPU is needed.
Record with record_shapes=True and with_stack=True, and export with prof.export_chrome_trace("trace.json.gz");
docs/import.md says what each option of the profiler gives.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("import", help="make a report of a trace of torch.profiler", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("trace", type=Path, help="a file that export_chrome_trace wrote, .json or .json.gz")
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
    parser.add_argument("--args", metavar="ARGS", help="arguments for --model's target, as Python literals")
    parser.add_argument(
        "--input", action="append", metavar="SHAPE", help="for --model: an input, as `roofprof profile` takes it"
    )
    parser.add_argument("--inputs", metavar="FILE.py:CALLABLE", help="for --model: a callable that returns inputs")
    parser.add_argument("--dtype", help="for --model: dtype of its parameters and of --input's tensors")
    add_json_output(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the trace, and print and write its report."""
    take_json_output(arguments)
    if not arguments.model and (arguments.input or arguments.inputs or arguments.args or arguments.dtype):
        raise CommandError("--args, --input, --inputs and --dtype are for --model: name the model, or leave them out")
    of_model = [*files_of(arguments.model), *files_of(arguments.inputs)]
    check_output(arguments, [arguments.trace, arguments.device, *(arguments.capture or []), *of_model])
    from roofprof.profiling.imported import from_trace

    model = inputs = None
    if arguments.model:
        from roofprof.cli.profiling import inputs_of, model_of

        on_meta = argparse.Namespace(**{**vars(arguments), "target": arguments.model, "device": "meta"})
        inputs = inputs_of(on_meta)
        model = model_of(on_meta)
    try:
        report = from_trace(arguments.trace, model, inputs, arguments.device, arguments.steps, arguments.capture)
    except (ValueError, OSError):
        raise
    except Exception as error:
        if model is None:
            raise
        raise CommandError(f"{arguments.model} raised {type(error).__name__}: {error}") from error
    return output(report, arguments)
