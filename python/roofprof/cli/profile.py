"""``roofprof profile``: run a model on inputs of a shape, and print or write its report."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.one_report import FORMATS
from roofprof.cli.shared import Commands, add_report_options, add_target_options, whole_number

TRAIN_HELP = (
    "training mode: each call is a training step, which drops gradients, then goes forward and back from a loss; steps "
    "are warmed up and repeated as calls are, no optimizer runs"
)

_DESCRIPTION = """\
Calls a model, counts what every module computes and moves, times it, and prints the table: what bounds each module, its
share of the roof and the time that it wastes.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser("profile", help="profile a model", description=_DESCRIPTION)
    parser.set_defaults(command=run)
    add_target_options(parser)
    parser.add_argument(
        "--device", default="cpu", help="where to run (default: cpu); meta: shapes alone, counted and not timed"
    )
    calls = parser.add_mutually_exclusive_group()
    calls.add_argument("--count", action="store_true", help="one call, counted and not timed; no roofs are measured")
    calls.add_argument("--train", action="store_true", help=TRAIN_HELP)
    parser.add_argument(
        "--loss",
        metavar="FILE.py:CALLABLE",
        help="of --train: a callable that takes the model's output and returns a scalar tensor (default: the output "
        "named 'loss', else the sum of the floating-point outputs)",
    )
    parser.add_argument(
        "--warmup",
        type=whole_number,
        metavar="N",
        help="calls that are not timed (default: 3, or as many as begin in 2.5 seconds; of ranks: 3)",
    )
    parser.add_argument(
        "--repeat",
        type=whole_number,
        metavar="N",
        help="timed calls (default: at most 10 or 5 seconds; of ranks: 5; 0: one call is counted)",
    )
    parser.add_argument(
        "--counters",
        default="auto",
        choices=["auto", "off", "modules", "flops"],
        help="of a GPU: bytes by kernel (auto), executed FLOPs too (flops), bytes by module (modules), nothing (off)",
    )
    parser.add_argument(
        "--compiled-kernels",
        action="store_true",
        help="of compiled code: compile it once more and tell each kernel's time and ops; modules in it get their time",
    )
    parser.add_argument("--ceilings", type=Path, metavar="FILE", help="roofs to use instead of this machine's own")
    parser.add_argument("--trace", type=Path, metavar="FILE", help=f"write a trace as well; {FORMATS}")
    add_report_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Profile. The code that does so loads torch, so it is imported here: --help needs no torch."""
    from roofprof.cli import profiling

    return profiling.run(arguments)
