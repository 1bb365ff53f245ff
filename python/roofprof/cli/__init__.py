"""The ``roofprof`` command. An error is one sentence and exit code 2; ``--debug`` shows the traceback."""

from __future__ import annotations

import argparse
import sys
import traceback
from collections.abc import Callable, Sequence

from roofprof._build_info import VERSION
from roofprof._report import printable_lines
from roofprof.cli import (
    calibrate,
    ceilings,
    check,
    completion,
    doctor,
    import_trace,
    manual,
    mcp,
    one_report,
    ops,
    predict,
    profile,
    run,
    several_reports,
    time,
)
from roofprof.cli.parser import SWEEP, Parser, epilog, filled, overview
from roofprof.cli.shared import CommandError, Commands, complain, discard_stdout, open_closed_streams, say

# By what they are for, as `roofprof --help` lists them.
_COMMANDS: dict[str, tuple[Callable[[Commands], None], ...]] = {
    "measure a model": (profile.add_parser, run.add_parser, time.add_parser),
    "show a report": (one_report.add_show, one_report.add_html, one_report.add_plot, one_report.add_trace),
    "import what another tool recorded": (import_trace.add_parser,),
    "compare and combine reports": (
        several_reports.add_compare,
        several_reports.add_merge,
        several_reports.add_scaling,
        check.add_parser,
    ),
    "predict other devices": (predict.add_parser, predict.add_sweep, calibrate.add_parser),
    "this machine": (ceilings.add_parser, doctor.add_parser),
    "look up": (ops.add_parser, manual.add_explain, manual.add_docs),
    "agents and shells": (mcp.add_parser, completion.add_parser),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 for a broken budget, 2 after an error, 130 when interrupted."""
    open_closed_streams()
    arguments = make_parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # of what a program under `run` printed
        discard_stdout()
        return 0
    except KeyboardInterrupt:
        say("interrupted")
        return 130
    except MemoryError:
        return complain(CommandError("there is not enough memory"))
    except RecursionError:
        return complain(CommandError("the input is nested deeper than this command can follow"))
    except Exception as error:
        expected = isinstance(error, CommandError | ValueError | OSError)
        if arguments.debug or not expected:
            print(printable_lines(traceback.format_exc()), end="", file=sys.stderr)
        return complain(error if expected else CommandError(f"this is a fault of roofprof: {error!r}"))
    return code


def make_parser() -> argparse.ArgumentParser:
    """Return the parser of all commands; each has its examples, files and exit codes."""
    parser = Parser(
        prog="roofprof",
        description="Which module wastes the machine, and by how much: a per-module roofline table of a PyTorch model.",
        epilog=overview(),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(of_all=parser)  # for completion
    parser.add_argument("--version", action="version", version=f"roofprof {VERSION}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_groups(parser, commands)
    for name, of_command in commands.choices.items():
        of_command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        of_command.description = filled(of_command.description or "")
        of_command.epilog = epilog(name)
        of_command.formatter_class = argparse.RawDescriptionHelpFormatter
    return parser


def _add_groups(parser: argparse.ArgumentParser, commands: Commands) -> None:
    """Add the commands, each group below a heading of its own, in place of one list; options stay last."""
    parser._action_groups.clear()
    for heading, adders in _COMMANDS.items():
        first = len(commands._choices_actions)
        for add in adders:
            add(commands)
        parser.add_argument_group(heading)._group_actions += commands._choices_actions[first:]
    parser._action_groups.append(parser._optionals)
    # For completion, where a command is one word.
    commands._choices_actions = [command for command in commands._choices_actions if command.dest != SWEEP]
