"""The ``roofprof`` command. An error is one sentence and exit code 2; ``--debug`` shows the traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from roofprof import __version__
from roofprof.cli import (
    ceilings,
    check,
    compare,
    doctor,
    html_page,
    migrate,
    ops,
    plot,
    profile,
    run,
    show,
    time,
    trace,
)
from roofprof.cli.shared import CommandError, complain

_EPILOG = """\
examples:
  roofprof profile torchvision.models:resnet50 --input 1x3x224x224 --json r.json
  roofprof profile my_model.py:build --inputs my_model.py:example_batch
  roofprof run train.py --lr 0.1
  roofprof time torchvision.models:resnet50 --input 8x3x224x224 --batch auto
  roofprof show r.json --by op --sort time
  roofprof compare before.json after.json
  roofprof check r.json --budget budget.toml
  roofprof plot r.json -o r.svg
  roofprof trace r.json -o flame.svg
  roofprof html r.json
  roofprof ceilings --device cuda
  roofprof ops softmax --family normalization
  roofprof migrate train.py
  roofprof doctor
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code: 0, 1 for a broken budget, 2 after an error, 130 when interrupted."""
    arguments = _parser().parse_args(argv)
    command: Callable[[argparse.Namespace], int] = arguments.command
    try:
        code = command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of our output went away (head): what is left goes nowhere, silently
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (CommandError, ValueError, OSError) as error:
        if arguments.debug:
            raise
        return complain(error)
    except KeyboardInterrupt:
        print("roofprof: interrupted", file=sys.stderr)
        return 130
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="roofprof",
        description="Which module wastes the machine, and by how much: a per-module roofline table of a PyTorch model.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"roofprof {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in (profile, run, time, show, html_page, plot, trace, compare, check, ceilings, ops, migrate, doctor):
        command.add_parser(commands)
    return parser
