"""``roofprof predict``: the times of a report on other devices; with ``--sweep``, those of a model at many sizes."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from roofprof.cli.parser import SWEEP
from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_report,
    add_report_options,
    add_target_options,
    add_width,
    check_files,
    check_output,
    files_of,
    output,
    print_result,
    read_report,
    whole_number,
    width,
    write_result,
)

if TYPE_CHECKING:
    from roofprof.predict.options import OptionsOfCalls
    from roofprof.predict.ranking import Ranking
    from roofprof.predict.what_if import WhatIf
    from roofprof.report.report import Report


_DESCRIPTION = """\
A count (roofprof profile TARGET --count --device meta --json r.json) or a profile is enough. With one device its whole
report is shown; with several, or --all, a table of devices sorted by time. docs/prediction.md has the model and its
errors.
"""

_USAGE = """\
%(prog)s [options] (--device CARD|FILE.json | --all) report
       %(prog)s --sweep [options] --device CARD|FILE.json target"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "predict", help="predict the times of a report on other devices", description=_DESCRIPTION, usage=_USAGE
    )
    parser.set_defaults(command=run)
    add_report(parser)
    devices = parser.add_mutually_exclusive_group(required=True)
    devices.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="CARD|FILE.json",
        help="a card, such as 'RTX 4090', or a file of roofs; repeat the option for several",
    )
    devices.add_argument("--all", dest="every", action="store_true", help="all cards that are known, sorted by time")
    parser.add_argument(
        "--what-if", action="store_true", help="the time that each module would save, and by what, on one device"
    )
    parser.add_argument(
        "--sweep",
        action="store_true",
        help="predict a TARGET instead of a report, over batch and sequence sizes: "
        "`roofprof predict --sweep --help` lists its options",
    )
    add_prediction_options(parser)
    parser.add_argument(
        "--batch", type=whole_number, metavar="N", help="samples of a call in place of those that were counted"
    )
    add_report_options(parser)


def add_prediction_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a prediction."""
    parser.add_argument(
        "--precision", metavar="TYPE", help="fp16, bf16, fp32, ... in place of the one that was counted"
    )
    parser.add_argument("--bandwidth", type=float, default=1.0, metavar="X", help="times the device's bandwidth")
    parser.add_argument("--peak", type=float, default=1.0, metavar="X", help="times the device's peaks")
    parser.add_argument(
        "--no-autocast",
        dest="autocast",
        action="store_false",
        help="fp16 and bf16 throughout; without it parameters are taken to be in fp32, under autocast",
    )
    parser.add_argument(
        "--channels-last",
        action="store_true",
        help="model and images have their channels last in memory; compiled models see to that",
    )
    modes = parser.add_mutually_exclusive_group()
    modes.add_argument(
        "--mode",
        choices=["eager", "graph", "compiled"],
        default="eager",
        help="eager: the device waits where the host launches ops more slowly; graph: a CUDA graph is replayed; "
        "compiled: elementwise ops that follow each other are fused, and nothing waits for the host",
    )
    modes.add_argument(
        "--compiled", dest="mode", action="store_const", const="compiled", help="the same as --mode compiled"
    )
    parser.add_argument(
        "--host",
        type=_host,
        metavar="SECONDS",
        help="in which the host launches an op in eager mode; 'measured': those of this machine",
    )
    parser.add_argument(
        "--ranks", type=whole_number, default=1, metavar="N", help="devices of one machine that share the work"
    )
    parser.add_argument(
        "--parallel",
        choices=["ddp", "fsdp", "tp"],
        help="how they share it: samples (ddp), and parameters (fsdp), or the products of each block (tp); "
        "default: ddp",
    )


def _host(text: str) -> float | Literal["measured"]:
    if text == "measured":
        return "measured"
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is neither seconds nor 'measured'") from None


def prediction_options(arguments: argparse.Namespace) -> OptionsOfCalls:
    """Return the options as :meth:`Report.predict` takes them."""
    if arguments.parallel and arguments.ranks == 1:
        raise CommandError("--parallel is about several ranks: give --ranks as well")
    return {
        "precision": arguments.precision,
        "bandwidth": arguments.bandwidth,
        "peak": arguments.peak,
        "autocast": arguments.autocast,
        "channels_last": arguments.channels_last,
        "mode": arguments.mode,
        "host": arguments.host,
        "ranks": arguments.ranks,
        "parallel": arguments.parallel or "ddp",
    }


def run(arguments: argparse.Namespace) -> int:
    """Predict and print."""
    devices = arguments.device
    several = arguments.every or len(devices) > 1
    if arguments.what_if and several:
        raise CommandError("--what-if is about one device: give one --device")
    read = [arguments.report, *devices]
    if several or arguments.what_if:
        check_files(read, arguments.json)
        of_a_report = ("csv", "sort", "columns", "limit", "expand")
        for option in of_a_report:
            if getattr(arguments, option):
                raise CommandError(f"--{option} is of one device's report: give one --device, without --what-if")
    else:
        check_output(arguments, read)
    report = read_report(arguments.report)
    if several or arguments.what_if:
        return _table(report, arguments)
    predicted = report.predict(devices[0], batch=arguments.batch, **prediction_options(arguments))
    return output(predicted, arguments)


def _table(report: Report, arguments: argparse.Namespace) -> int:
    options = prediction_options(arguments)
    answers: Ranking | WhatIf
    if arguments.what_if:
        answers = what_if = report.what_if(arguments.device[0], arguments.batch, **options)
        text = what_if.table(arguments.depth, width(arguments))
    else:
        answers = ranking = report.predict_all(arguments.device, batch=arguments.batch, **options)
        text = ranking.table(width(arguments))
    write_result(arguments.json, answers.to_json)
    print_result(text, arguments)
    return 0


# ---- roofprof predict --sweep

_SWEEP = """\
Time, throughput and memory by batch and sequence length, predicted for a device that need not be there: the model is
counted on the meta device at each size. In --input, B stands for the batch and S for the sequence length: Bx3x224x224,
BxS:int64. Where no B stands, the leading dimension is the batch. A callable of --inputs gets batch and sequence.
"""


def add_sweep(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        SWEEP,
        prog=f"roofprof {SWEEP}",
        help="predict a model's times over batch and sequence sizes",
        description=_SWEEP,
    )
    parser.set_defaults(command=_sweep)
    add_target_options(parser)
    parser.add_argument("--device", required=True, metavar="CARD|FILE.json", help="for which device: 'RTX 4090'")
    parser.add_argument(
        "--batch", default="1,2,4,8,16,32,64,128,256", metavar="B,B,...", help="batch sizes (default: %(default)s)"
    )
    parser.add_argument("--sequence", metavar="S,S,...", help="sequence lengths, in place of S in --input")
    add_prediction_options(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    add_width(parser)


def _sweep(arguments: argparse.Namespace) -> int:
    """Count at each size, predict and print."""
    batches = _numbers("--batch", arguments.batch)
    sequences = _numbers("--sequence", arguments.sequence) if arguments.sequence else []
    check_files([*files_of(arguments.target), *files_of(arguments.inputs), arguments.device], arguments.json)
    if not arguments.inputs and not arguments.input:
        raise CommandError("give --input or --inputs: what a call gets")
    from roofprof.cli.profiling import model_of
    from roofprof.predict.options import roofs_of
    from roofprof.predicted_sweep import predict_sweep

    roofs = roofs_of(arguments.device)
    made_on_meta = argparse.Namespace(**{**vars(arguments), "device": "meta"})
    model = model_of(made_on_meta)
    try:
        sweep = predict_sweep(
            model,
            _maker(made_on_meta, model, has_sequences=bool(sequences)),
            roofs,
            batches,
            sequences,
            **prediction_options(arguments),
        )
    except (CommandError, ValueError):
        raise
    except Exception as error:
        raise CommandError(f"{arguments.target} raised {type(error).__name__}: {error}") from error
    write_result(arguments.json, sweep.to_json)
    print_result(sweep.table(width(arguments)), arguments)
    return 0


def _numbers(option: str, text: str) -> list[int]:
    try:
        numbers = [int(number) for number in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or min(numbers) < 1:
        raise CommandError(f"{option} takes whole numbers above 0 such as 1,2,4, not '{text}'")
    return numbers


def _maker(arguments: argparse.Namespace, model: Callable[..., Any], *, has_sequences: bool) -> Any:
    """Return the callable that makes the arguments of a call, on the meta device."""
    import torch

    from roofprof.cli.target import arguments_for, call_inputs, load_inputs, make_input, parse_dtype

    if arguments.inputs:
        function = load_inputs(arguments.inputs)

        def called(batch: int, *sequence: int) -> Any:
            with torch.device("meta"):
                value = call_inputs(arguments.inputs, lambda _: function(batch, *sequence), batch)
            return arguments_for(model, value, arguments.target, arguments.inputs)

        return called
    dtype = parse_dtype(arguments.dtype) if arguments.dtype else torch.float32
    shapes = arguments.input
    if has_sequences and not any(re.search(r"(^|x)S(x|:|$)", shape) for shape in shapes):
        raise CommandError("--sequence is put in the place of S in --input, such as --input BxS:int64; there is none")

    if not has_sequences and any(re.search(r"(^|x)S(x|:|$)", shape) for shape in shapes):
        raise CommandError(
            "--input has S for the sequence length: say which with --sequence, such as --sequence 128,512"
        )

    def made(batch: int, sequence: int = 0) -> Any:
        return tuple(make_input(_sized(shape, batch, sequence), dtype, "meta") for shape in shapes)

    return made


def _sized(shape: str, batch: int, sequence: int) -> str:
    sizes, colon, dtype = shape.partition(":")
    parts = sizes.split("x")
    if "B" not in parts:
        parts[0] = "B"
    known = {"B": str(batch), "S": str(sequence)}
    return "x".join(known.get(part, part) for part in parts) + colon + dtype
