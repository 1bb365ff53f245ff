"""``roofprof compare``: the changes from one report to another."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_debug,
    add_width,
    check_dash,
    check_files,
    print_result,
    read_report,
    whole_number,
    width,
    write_result,
)

_DESCRIPTION = """\
Time, work, bound and wasted time in two reports, of the total and of each module. A change of a time is called one
only beyond the noise that the repeats' spreads give.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "compare", help="say what changed from one report to another", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    parser.add_argument("before", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--all", dest="every", action="store_true", help="show the modules without a change too")
    parser.add_argument(
        "--limit", type=whole_number, default=0, metavar="N", help="most modules shown, the largest changes of time"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the comparison as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as one HTML page")
    add_width(parser)
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read both files, write the requested ones, and print the changes."""
    if arguments.limit < 0:
        raise CommandError("--limit must be 0 or more")
    check_dash(arguments.before, arguments.after)
    check_files([arguments.before, arguments.after], arguments.json, arguments.html)
    from roofprof.report.comparison import compare

    before, after = (read_report(path) for path in (arguments.before, arguments.after))
    comparison = compare(before, after, names=(str(arguments.before), str(arguments.after)))
    for path, write in ((arguments.json, comparison.to_json), (arguments.html, comparison.to_html)):
        write_result(path, write)
    print_result(comparison.table(width(arguments), arguments.limit, every=arguments.every), arguments)
    return 0
