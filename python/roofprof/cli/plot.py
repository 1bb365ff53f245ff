"""``roofprof plot``: a report's file as a picture."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from roofprof.cli.as_json import add_json, write_json
from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_debug,
    beside,
    check_dash,
    check_files,
    read_report,
    say,
)

_DESCRIPTION = """\
A report as a picture, SVG, PNG or PDF by the file's suffix. The roofline has FLOP/s over FLOPs per byte under the roofs
of the machine; "--kind time" has the time that the bytes need over the time that the FLOPs need.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("plot", help="draw a report's JSON file as a roofline", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the picture's file (default: the report's name with .svg)"
    )
    parser.add_argument(
        "--by", choices=("module", "op", "kernel"), default="module", help="a dot for each module, operator or kernel"
    )
    parser.add_argument("--kind", choices=("roofline", "time"), default="roofline", help="which plot")
    parser.add_argument("--before", type=Path, metavar="REPORT", help="an earlier report: arrows lead from its dots")
    parser.add_argument(
        "--expand", action="store_true", help="a dot for each of several equal siblings, in place of one for all"
    )
    add_json(parser, "the dots and roofs")
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the reports, and draw."""
    from roofprof.render.plots.plot import check, views_of

    path = arguments.output or beside(arguments.report, ".svg")
    check_dash(arguments.report, arguments.before)
    check_files([arguments.report, arguments.before], path, arguments.json)
    check(path, arguments.by, arguments.kind)
    report = read_report(arguments.report)
    before = read_report(arguments.before) if arguments.before else None
    try:
        report.plot(path, by=arguments.by, kind=arguments.kind, before=before, expand=arguments.expand)
    except ImportError as error:
        raise CommandError(str(error)) from error
    say(f"written to {path}")
    if arguments.json:
        views = views_of(report, arguments.by, before, expand=arguments.expand)
        drawn, earlier = (dataclasses.asdict(view) if view else None for view in views)
        write_json(arguments.json, "roofline", {"report": drawn, "before": earlier})
    return 0
