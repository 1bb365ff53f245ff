"""``roofprof profile``: run a model on inputs of a shape, and print or write its report."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.shared import Commands, add_output_options, whole_number

TRAIN_HELP = (
    "training mode: each call is a training step, which drops gradients, then goes forward and back from a loss; steps "
    "are warmed up and repeated as calls are, no optimizer runs"
)


def add_parser(commands: Commands) -> None:
    """The command's options."""
    parser = commands.add_parser("profile", help="profile a model")
    parser.set_defaults(command=run)
    parser.add_argument(
        "target",
        help="package.module:callable or file.py:callable (a module, or what makes one); or a TorchScript or .pt2 file",
    )
    parser.add_argument(
        "--args",
        metavar="ARGS",
        help="what the target is called with, as Python literals, such as '\"resnet50\", num_classes=10'",
    )
    parser.add_argument(
        "--input",
        action="append",
        metavar="SHAPE",
        help="one positional input, such as 1x3x224x224 or 1x128:int64; repeat the option for further inputs",
    )
    parser.add_argument(
        "--inputs",
        metavar="FILE.py:CALLABLE",
        help="a callable that returns the inputs: one value, a tuple, or (tuple, dict of keywords)",
    )
    parser.add_argument(
        "--dtype",
        help="dtype of the model's parameters and of --input's tensors (default: the model's own; float32)",
    )
    parser.add_argument(
        "--device", default="cpu", help="where to run (default: cpu); meta: shapes alone, counted and not timed"
    )
    parser.add_argument("--count", action="store_true", help="one call, counted and not timed; no roofs are measured")
    parser.add_argument("--train", action="store_true", help=TRAIN_HELP)
    parser.add_argument(
        "--loss",
        metavar="FILE.py:CALLABLE",
        help="of --train: a callable that takes the model's output and returns a scalar tensor (default: the output "
        "named 'loss', else the sum of the floating-point outputs)",
    )
    parser.add_argument(
        "--warmup", type=whole_number, default=3, metavar="N", help="calls that are not timed (default: 3)"
    )
    parser.add_argument(
        "--repeat", type=whole_number, metavar="N", help="timed calls (default: at most 10 or 5 seconds)"
    )
    parser.add_argument(
        "--counters",
        default="auto",
        choices=["auto", "off", "modules", "flops"],
        help="of a GPU: bytes by kernel (auto), executed FLOPs too (flops), bytes by module (modules), nothing (off)",
    )
    parser.add_argument("--ceilings", type=Path, metavar="FILE", help="roofs to use instead of this machine's own")
    add_output_options(parser)


def run(arguments: argparse.Namespace) -> int:
    """Profile; what does it loads torch, which --help has no time for."""
    from roofprof.cli import profiling

    return profiling.run(arguments)
