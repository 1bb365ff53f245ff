"""``roofprof merge``: reports of several ranks as one."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.cli.shared import (
    DASH,
    Commands,
    add_json_output,
    add_output_options,
    check_dash,
    check_output,
    output,
    read_stdin,
    say,
    take_json_output,
)

if TYPE_CHECKING:
    from roofprof.report.report import Report

_DESCRIPTION = """\
Reports of the ranks of one program become one: work and times are sums over ranks, each row has its time on the
fastest and on the slowest rank, and `--by rank` prints the table of ranks. Files are read one after the other.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("merge", help="make one report of those of several ranks", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument(
        "reports",
        type=Path,
        nargs="+",
        metavar="REPORT",
        help="what each rank's report was written to; one may be -, the standard input",
    )
    parser.add_argument(
        "--skip-bad",
        action="store_true",
        help="name each file that cannot be merged with the others, and merge the rest",
    )
    add_json_output(parser)
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the files, merge them, print and write what came of it."""
    take_json_output(arguments)
    check_dash(*arguments.reports)
    check_output(arguments, arguments.reports)
    from roofprof.report.ranks.merge import merge

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        merged = merge(_given(arguments), skip_bad=arguments.skip_bad)
    for warning in caught:
        say(str(warning.message).removeprefix("roofprof: "))
    return output(merged, arguments)


def _given(arguments: argparse.Namespace) -> list[Report | Path]:
    try:
        return read_stdin(arguments.reports)
    except (ValueError, OSError) as error:
        if not arguments.skip_bad:
            raise
        say(f"left out: {error}")
        return [path for path in arguments.reports if path != DASH]
