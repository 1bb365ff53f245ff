"""``roofprof trace``: a report's file as a trace or a flame graph."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.as_json import add_json, write_json
from roofprof.cli.shared import Commands, add_debug, check_files, read_report, say

FORMATS = (
    ".json or .json.gz: for Perfetto; .speedscope.json: for speedscope; .svg: a flame graph of time by module; "
    ".folded: the same as folded stacks"
)

_DESCRIPTION = f"""\
A report in the format that the file's suffix asks for ({FORMATS}). Flame graphs are made of any report with times; the
others need one that "roofprof profile --trace" or RooflineProfiler(keep_events=True) made.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "trace", help="write a report's JSON file as a trace or a flame graph", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    parser.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help=FORMATS)
    add_json(parser, "the time of each module, nested,")
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the file, and write the trace."""
    from roofprof.render.traces.export import writer_for

    check_files([arguments.report], arguments.output, arguments.json)
    write = writer_for(arguments.output)
    report = read_report(arguments.report)
    write(report, arguments.output)
    say(f"written to {arguments.output}")
    if arguments.json:
        from roofprof.render.traces.time_tree import nested, time_tree

        write_json(arguments.json, "time_tree", {"unit": "nanoseconds", "modules": nested(time_tree(report._compiled))})
    return 0
