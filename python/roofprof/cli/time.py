"""``roofprof time``: the latency and throughput of a model's calls, at one batch size or at several."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.shared import Commands, add_debug, add_target_options, whole_number

_DESCRIPTION = """\
Latency is the time of one call; throughput is samples (or tokens) per second: those of a call / the median latency.
Nothing observes the calls. Models are in evaluation mode, and no gradients are kept.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "time", help="latency and throughput of a model, also over batch sizes", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    add_target_options(parser)
    parser.add_argument("--device", default="cpu", help="where to run (default: cpu)")
    parser.add_argument(
        "--warmup", type=whole_number, default=50, metavar="N", help="calls that are not timed (default: 50)"
    )
    parser.add_argument("--repeat", type=whole_number, default=200, metavar="N", help="timed calls (default: 200)")
    parser.add_argument(
        "--seconds",
        type=float,
        metavar="S",
        help="no further call begins after so many seconds (default: 30; of a sweep, all batches together: 120)",
    )
    parser.add_argument(
        "--samples", type=whole_number, metavar="N", help="in one call (default: the leading dimension of the inputs)"
    )
    parser.add_argument("--tokens", type=whole_number, metavar="N", help="in one call, for tokens per second")
    parser.add_argument(
        "--batch",
        metavar="B,B,...|auto",
        help="a sweep over these batch sizes; auto: 1, 2, 4, ... until throughput rises no more, or memory or time "
        "ends. Inputs are repeated or cut along their leading dimension, unless the callable of --inputs takes a batch",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON")
    parser.add_argument(
        "--plot",
        type=Path,
        metavar="FILE",
        help="draw a sweep, as the suffix says: .png, .svg, .pdf (needs matplotlib)",
    )
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Time; what does it loads torch, which --help has no time for."""
    from roofprof.cli import timing

    return timing.run(arguments)
