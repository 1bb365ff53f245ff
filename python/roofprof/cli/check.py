"""``roofprof check``: a report against a budget, for CI."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_json,
    add_report,
    check_dash,
    check_files,
    print_result,
    read_report,
    say,
    write_result,
)
from roofprof.render.files import write_whole

_DESCRIPTION = """\
Holds the figures of a report's total and modules against the limits of a budget, and says which are broken and by how
much. With --write it makes the budget from the report instead.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "check", help="hold a report against a budget; exit code 1 where it breaks a limit", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    add_report(parser)
    parser.add_argument("--budget", type=Path, required=True, metavar="FILE", help="the limits, as TOML")
    parser.add_argument("--baseline", type=Path, metavar="FILE", help="the report that '<= 1.05 base' is relative to")
    parser.add_argument("--write", action="store_true", help="make that budget from the report")
    parser.add_argument(
        "--margin", type=_percent, default=0.1, metavar="PERCENT", help="of times, with --write (default: 10)"
    )
    add_json(parser, "which limits are broken")


def run(arguments: argparse.Namespace) -> int:
    """Say which limits are broken, and by how much."""
    if arguments.write:
        return _write(arguments)
    check_dash(arguments.report, arguments.baseline)
    check_files([arguments.report, arguments.budget, arguments.baseline], arguments.json)
    from roofprof.budget import Budget

    budget = Budget.load(arguments.budget)
    baseline = read_report(arguments.baseline) if arguments.baseline else None
    outcome = budget.check(read_report(arguments.report), baseline)
    write_result(arguments.json, outcome.to_json)
    print_result(str(outcome), arguments)
    return 0 if outcome.kept else 1


def _write(arguments: argparse.Namespace) -> int:
    if arguments.json:
        raise CommandError("--json has what a check found: leave it out with --write")
    check_files([arguments.report, arguments.baseline], arguments.budget)
    if arguments.budget.exists():
        raise CommandError(f"'{arguments.budget}' is there already: give another file, or take it away first")
    from roofprof.budget import budget_of, doubts_about

    report = read_report(arguments.report)
    write_whole(arguments.budget, budget_of(report, arguments.margin).encode())
    doubts = doubts_about(report)
    for doubt in doubts:
        say(f"ATTENTION: {doubt}")
    say(f"written to {arguments.budget}{', from a report whose figures are in doubt' if doubts else ''}")
    return 0


def _percent(text: str) -> float:
    try:
        value = float(text.removesuffix("%"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a percentage") from None
    if not 0 <= value < 1e6:
        raise argparse.ArgumentTypeError(f"{text} must be 0 or more")
    return value / 100
