"""``roofprof run``: a program as it is, and the report of a few of its steps."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from roofprof.cli.shared import (
    DASH,
    CommandError,
    Commands,
    add_report_options,
    check_output,
    files_of,
    files_of_environment,
    print_text,
    rank_of_environment,
    say,
    table,
    whole_number,
    write_files,
)
from roofprof.render.files import of_rank

if TYPE_CHECKING:
    from roofprof.profiling.script.window import Window
    from roofprof.report.report import Report

_DESCRIPTION = """\
Runs a program unchanged, as `python SCRIPT ARGUMENTS` does, and profiles some steps of its torch.nn modules: of those
that it trains, with forward, backward and optimizer, else of calls of the one with the most time in calls from outside
of all modules. Then the program goes on at full speed. The exit code is the program's; the report is written as soon
as these steps are over, else when the program has ended, also by an exception or an interrupt. All steps are of one
phase, training or evaluation. Options of roofprof stand before the script.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("run", help="run a program as it is, and profile its model", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    parser.add_argument("-m", dest="as_module", action="store_true", help="SCRIPT is a module's name, as in python -m")
    parser.add_argument(
        "--model", metavar="NAME", help="a variable of the program, a class, or Class[1], its second object"
    )
    parser.add_argument(
        "--skip", type=whole_number, metavar="N", help="steps before those that are profiled (default: 3, or fewer)"
    )
    parser.add_argument(
        "--steps", type=whole_number, default=10, metavar="N", help="how many are profiled (default: 10)"
    )
    parser.add_argument(
        "--phase",
        choices=("train", "eval"),
        help="steps that a backward is in, or others (default: training, if the program trains)",
    )
    parser.add_argument("--stop", action="store_true", help="end the program after them")
    add_report_options(parser)
    parser.add_argument("script", metavar="SCRIPT", help="a Python file")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGUMENTS", help="the program's own")


def run(arguments: argparse.Namespace) -> int:
    """Run the program, then print and write the report."""
    if arguments.steps < 1:
        raise CommandError("--steps must be 1 or more")
    if not arguments.as_module and not Path(arguments.script).is_file():
        raise CommandError(f"there is no script '{arguments.script}'")
    if DASH in (arguments.json, arguments.csv):
        raise CommandError("the program itself prints on the standard output: name files for --json and --csv")
    rank = rank_of_environment()
    stem = arguments.script.rpartition(".")[2] if arguments.as_module else Path(arguments.script).stem
    arguments.json = of_rank(arguments.json or Path(f"{stem}.roofprof.json"), rank)
    arguments.csv = arguments.csv and of_rank(arguments.csv, rank)
    check_output(arguments, [*files_of(arguments.script), *files_of_environment()])
    from roofprof.profiling.script.calls import named
    from roofprof.profiling.script.program import run_program
    from roofprof.profiling.script.window import Window, why_nothing

    written = _Written(arguments, rank)
    window = Window(
        arguments.model,
        arguments.skip,
        arguments.steps,
        phase=arguments.phase,
        complete=lambda: written.write(window),
        stop=arguments.stop,
    )
    with window:
        code = run_program(arguments.script, arguments.arguments, window.end_of_thread, as_module=arguments.as_module)
    if not window.is_ours:  # the program forked a child, which gets here as its parent does
        return code
    report = written.write(window)
    if report is None:
        say(why_nothing(window, arguments.skip))
        return code or 2
    if others := window.others():
        between = " or (between steps)" if any(row.path.endswith("(between steps)") for row in report.rows) else ""
        say(
            f"{named(others)} ran too: their work is in (outside){between}, or not counted if it was on another "
            "thread; --model chooses another module"
        )
    if not rank:  # the tables of all ranks are alike: one is printed
        print_text(table(report, arguments))
    return written.code or code


class _Written:
    """The files of a window's report, which are written as soon as there is one: the program may end in any way."""

    def __init__(self, arguments: argparse.Namespace, rank: int | None) -> None:
        self._arguments = arguments
        self._rank = rank
        self._folder = Path.cwd()
        self._report: Report | None = None
        self.code = 0

    def write(self, window: Window) -> Report | None:
        """Write the window's report, if there is one that was not written, and return it."""
        report = window.report()
        if report is None or report is self._report:
            return report
        self._report = report
        what, phase = {"train": ("step", " in training"), "eval": ("call", " in evaluation")}.get(
            window.profiled_phase or "", ("call", "")
        )
        number = f"{window.profiled} {what}{'' if window.profiled == 1 else 's'}"
        rank = "" if self._rank is None else f" on rank {self._rank}"
        say(f"profiled {number}{f' of {report.model}' if report.model else ''}{phase}{rank}")
        files = argparse.Namespace(**vars(self._arguments))
        if not _is_here(self._folder):  # the names are relative to the folder where the command was given
            files.json, files.csv = self._folder / files.json, files.csv and self._folder / files.csv
        self.code = write_files(report, files)
        return report


def _is_here(folder: Path) -> bool:
    """Return True if this folder is still the current one."""
    try:
        return Path.cwd() == folder
    except FileNotFoundError:  # the program removed it
        return False
