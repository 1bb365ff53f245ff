"""``roofprof scaling``: one program on different numbers of ranks."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_debug,
    add_width,
    check_dash,
    check_files,
    print_result,
    read_stdin,
    width,
    write_result,
)

_DESCRIPTION = """\
Reports of one program on 1, 2, 4 and more ranks beside each other: speed-up, efficiency, and what the loss consists
of. Each is a merged report; that of a program of one process counts as one rank.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "scaling", help="say how a program scales over its ranks, and what is lost", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
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
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read the files, write what was asked for, and print how they scale."""
    check_dash(*arguments.reports)
    check_files(arguments.reports, arguments.json, arguments.html, arguments.plot)
    if arguments.plot and arguments.plot.suffix.lower() not in {".png", ".svg", ".pdf"}:
        raise CommandError(f"cannot draw '{arguments.plot}': a plot's file ends in .svg, .png or .pdf")
    if arguments.plot and importlib.util.find_spec("matplotlib") is None:
        raise CommandError("--plot needs matplotlib: run `pip install roofprof[plot]`")
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
