"""``roofprof predict``: the times of a report on other devices."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_debug,
    add_report_options,
    check_files,
    check_output,
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


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "predict", help="predict the times of a report on other devices", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    parser.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    parser.add_argument(
        "--device",
        action="append",
        default=[],
        metavar="CARD|FILE.json",
        help="a card, such as 'RTX 4090', or a file of roofs; repeat the option for several",
    )
    parser.add_argument("--all", dest="every", action="store_true", help="all cards that are known, sorted by time")
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
    add_debug(parser)


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
        "--compiled", action="store_true", help="elementwise ops that follow each other are fused, as compilers do"
    )


def prediction_options(arguments: argparse.Namespace) -> OptionsOfCalls:
    """Return the options as :meth:`Report.predict` takes them."""
    return {
        "precision": arguments.precision,
        "bandwidth": arguments.bandwidth,
        "peak": arguments.peak,
        "autocast": arguments.autocast,
        "compiled": arguments.compiled,
    }


def run(arguments: argparse.Namespace) -> int:
    """Predict and print."""
    devices = arguments.device
    if arguments.every and devices:
        raise CommandError("give either --device or --all, not both")
    if not arguments.every and not devices:
        raise CommandError("say for which device: --device 'RTX 4090', --device roofs.json or --all")
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
