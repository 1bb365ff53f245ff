"""What the commands share: errors of one sentence, options and width of the output, files that are written."""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import TypeAlias

from roofprof.report import Report

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"


class CommandError(Exception):
    """One sentence: what was wrong, where, what to do. The cause is the exception behind it, where there is one."""


def complain(error: BaseException) -> int:
    """Say in one line what was wrong, and return the exit code."""
    print(f"roofprof: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
    return 2


def say(line: str) -> None:
    """Progress, apart from the result on stdout."""
    print(f"roofprof: {line}", file=sys.stderr, flush=True)


def width(arguments: argparse.Namespace) -> int:
    """How many characters a line may have."""
    terminal = shutil.get_terminal_size((120, 0)).columns if sys.stdout.isatty() else 120
    return max(arguments.width or terminal, 60)


def output(report: Report, arguments: argparse.Namespace) -> None:
    """Write the files that were asked for, and print the table."""
    # Files first: a wrong choice of columns must not lose the profile.
    if arguments.json:
        report.to_json(arguments.json)
        say(f"written to {arguments.json}")
    if arguments.csv:
        report.to_csv(arguments.csv, by="kernel" if arguments.by == "kernel" else "module")
        say(f"written to {arguments.csv}")
    columns = [name.strip() for name in arguments.columns.split(",")] if arguments.columns else []
    print(
        report.table(
            depth=arguments.depth,
            sort=arguments.sort,
            columns=columns,
            by=arguments.by,
            width=width(arguments),
            limit=arguments.limit,
        )
    )


# ---- options


def add_output_options(parser: argparse.ArgumentParser) -> None:
    """Options of the commands that give a report."""
    parser.add_argument("--depth", type=int, metavar="N", help="deepest module shown")
    parser.add_argument(
        "--sort", default="", metavar="COLUMN", help="largest first by that column (default: the model's order)"
    )
    parser.add_argument("--columns", metavar="A,B,...", help="which columns to show")
    parser.add_argument(
        "--by", choices=("module", "op", "kernel"), default="module", help="a row for each module, operator or kernel"
    )
    parser.add_argument("--limit", type=int, default=0, metavar="N", help="largest number of rows shown")
    add_width(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the report as JSON")
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write its rows, or its kernels, as CSV")
    add_debug(parser)


def add_width(parser: argparse.ArgumentParser) -> None:
    """The option that :func:`width` reads."""
    parser.add_argument("--width", type=int, metavar="N", help="characters (default: the terminal's, else 120)")


def add_debug(parser: argparse.ArgumentParser) -> None:
    """The option that every command has."""
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
