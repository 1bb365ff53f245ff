"""``roofprof compare``, ``merge`` and ``scaling``: what several reports say together."""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.cli.shared import (
    DASH,
    Commands,
    add_report_options,
    add_width,
    check_dash,
    check_files,
    check_output,
    check_plot,
    output,
    print_result,
    read_report,
    read_stdin,
    say,
    whole_number,
    width,
    write_result,
)

if TYPE_CHECKING:
    from roofprof.report.report import Report


# ---- compare

_COMPARE = """\
Time, work, bound and wasted time in two reports, of the total and of each module. A change of a time is called one
only beyond the noise that the repeats' spreads give.
"""


def add_compare(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("compare", help="say what changed from one report to another", description=_COMPARE)
    parser.set_defaults(command=_compare)
    parser.add_argument("before", type=Path, help="a file that --json or Report.to_json wrote; - is the standard input")
    parser.add_argument("after", type=Path, help="another one")
    parser.add_argument("--all", dest="every", action="store_true", help="show the modules without a change too")
    parser.add_argument(
        "--limit",
        type=whole_number,
        default=0,
        metavar="N",
        help="most modules shown, the largest changes of time (default, and 0: all)",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the comparison as JSON")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write it as one HTML page")
    add_width(parser)


def _compare(arguments: argparse.Namespace) -> int:
    """Read both files, write the requested ones, and print the changes."""
    check_dash(arguments.before, arguments.after)
    check_files([arguments.before, arguments.after], arguments.json, arguments.html)
    from roofprof.report.comparison import compare

    before, after = (read_report(path) for path in (arguments.before, arguments.after))
    comparison = compare(before, after, names=(str(arguments.before), str(arguments.after)))
    for path, write in ((arguments.json, comparison.to_json), (arguments.html, comparison.to_html)):
        write_result(path, write)
    print_result(comparison.table(width(arguments), arguments.limit, every=arguments.every), arguments)
    return 0


# ---- merge

_MERGE = """\
Reports of the ranks of one program become one: work and times are sums over ranks, each row has its time on the
fastest and on the slowest rank, and `--by rank` prints the table of ranks. Files are read one after the other.
"""


def add_merge(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("merge", help="make one report of those of several ranks", description=_MERGE)
    parser.set_defaults(command=_merge)
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
    add_report_options(parser, "-o", "--output")


def _merge(arguments: argparse.Namespace) -> int:
    """Read the files, merge them, print and write what came of it."""
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


# ---- scaling

_SCALING = """\
Reports of one program on 1, 2, 4 and more ranks beside each other: speed-up, efficiency, and what the loss consists
of. Each is a merged report; that of a program of one process counts as one rank.
"""


def add_scaling(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "scaling", help="say how a program scales over its ranks, and what is lost", description=_SCALING
    )
    parser.set_defaults(command=_scaling)
    parser.add_argument(
        "reports",
        type=Path,
        nargs="+",
        metavar="REPORT",
        help="one for each number of ranks, in any order; one may be -, the standard input",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write it as JSON")
    parser.add_argument("-o", "--html", type=Path, metavar="FILE", help="write it as one HTML page")
    parser.add_argument(
        "--plot", type=Path, metavar="FILE", help="draw it, as the suffix says: .png, .svg, .pdf (needs matplotlib)"
    )
    add_width(parser)


def _scaling(arguments: argparse.Namespace) -> int:
    """Read the files, write the requested ones, and print how they scale."""
    check_dash(*arguments.reports)
    check_files(arguments.reports, arguments.json, arguments.html, arguments.plot)
    check_plot(arguments.plot)
    from roofprof.report.scaling.scaling import scaling

    found = scaling(read_stdin(arguments.reports))
    for path, write in (
        (arguments.json, found.to_json),
        (arguments.html, found.to_html),
        (arguments.plot, found.plot),
    ):
        write_result(path, write)
    print_result(found.table(width(arguments)), arguments)
    return 0
