"""``roofprof show``: a report's file as a table."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.shared import Commands, add_output_options, check_output, output, read_report

_DESCRIPTION = """\
Prints the table of a report, with other columns, order or depth than when it was made; or its rows as CSV.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("show", help="print a report's JSON file as a table", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the file, and print it."""
    check_output(arguments, [arguments.report])
    return output(read_report(arguments.report), arguments)
