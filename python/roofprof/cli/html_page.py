"""``roofprof html``: a report's file as one HTML page."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.as_json import add_json, write_json
from roofprof.cli.shared import CommandError, Commands, add_debug, beside, check_files, read_report, say

_DESCRIPTION = """\
One file that opens from disk without a network: the roofline, and the tree of modules, ops and kernels to sort, filter
and fold; the roofs and where they come from; what is not covered.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("html", help="write a report's JSON file as one HTML page", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("report", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the page (default: REPORT with .html)")
    add_json(parser, "what the page shows")
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the file, and write the page."""
    path: Path = arguments.output or beside(arguments.report, ".html")
    check_files([arguments.report], path, arguments.json)

    report = read_report(arguments.report)
    try:
        report.to_html(path)
    except ImportError as error:
        raise CommandError(str(error)) from error
    say(f"written to {path}")
    if arguments.json:
        from roofprof.render.page import page_content

        write_json(arguments.json, "page", page_content(report._compiled, report))
    return 0
