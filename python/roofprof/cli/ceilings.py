"""``roofprof ceilings``: the roofs of this machine, measured or published."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_width,
    check_files,
    print_result,
    rank_of_environment,
    say,
    width,
    write_json,
    write_result,
)

_DESCRIPTION = """\
The peaks and bandwidths that figures are held against, measured where they are not known yet, with where each comes
from; a GPU's published roofs are shown as well.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "ceilings",
        help="measure the roofs of this machine, or show them; for a GPU the published ones as well",
        description=_DESCRIPTION,
    )
    parser.set_defaults(command=run)
    parser.add_argument("--device", default="cpu", help="which device, such as cuda or cuda:1 (default: cpu)")
    parser.add_argument(
        "--published",
        nargs="?",
        const="",
        metavar="CARD",
        help="the published roofs of a card, such as 'RTX 4090' or MI300X, instead; without a name: the cards that are "
        "known, of NVIDIA's and AMD's, with the cache that all of a chip shares",
    )
    parser.add_argument("--again", action="store_true", help="measure again, even if they are known")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write them to a file that profile --ceilings can read"
    )
    parser.add_argument(
        "--network",
        action="store_true",
        help="what collectives reach between the ranks of a program: started by torchrun, on every rank",
    )
    parser.add_argument(
        "--seconds", type=_seconds, default=30.0, help="how long --network measures (default: %(default)g)"
    )
    add_width(parser)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < float("inf"):
        raise argparse.ArgumentTypeError(f"must be more than 0 seconds, not {text!r}")
    return seconds


def run(arguments: argparse.Namespace) -> int:
    """Measure where nothing is known yet, and print the roofs."""
    from roofprof.roofs import ceilings, published_peaks

    check_files([], arguments.json)
    if arguments.network:
        return _network(arguments)
    notes: list[str] = []
    if arguments.published == "":
        write_json(arguments.json, "cards", {"cards": published_peaks.names()})
        print_result(published_peaks.table(), arguments)
        return 0
    if arguments.published:
        roofs, beside = published_peaks.published(arguments.published), None
    else:
        roofs, notes = ceilings.for_device_with_notes(arguments.device, again=arguments.again)
        beside = published_peaks.published_for(arguments.device)
    write_result(arguments.json, lambda file: ceilings.save(roofs, file, notes))
    print_result(roofs.table(width(arguments), beside).rstrip("\n"), arguments)
    for note in notes:
        print_result(f"note: {note}", arguments)
    return 0


def _network(arguments: argparse.Namespace) -> int:
    """Measure the network's roof on every rank; rank 0 prints it."""
    import torch
    import torch.distributed as dist

    from roofprof.roofs import ceilings
    from roofprof.roofs.network import cache
    from roofprof.roofs.network.measure import measure

    if rank_of_environment() is None or os.environ.get("WORLD_SIZE", "1") == "1":
        raise CommandError(
            "--network measures between the ranks of a program: start it with "
            "torchrun --nproc-per-node 2 -m roofprof ceilings --network (roofprof docs ranks#the-roof-of-the-network)"
        )
    device = arguments.device
    if device == "cuda":
        device = f"cuda:{os.environ.get('LOCAL_RANK', '0')}"
        torch.cuda.set_device(device)
    ours = not dist.is_initialized()
    if ours:
        dist.init_process_group(dist.get_default_backend_for_device(device))
    try:
        known = None if arguments.again else cache.load(cache.backend_for(device), dist.get_world_size())
        all_known = torch.tensor([int(known is not None)], device=device)
        dist.all_reduce(all_known, dist.ReduceOp.MIN)
        roofs = known if known is not None and all_known.item() else measure(device, arguments.seconds, say)
        if dist.get_rank() == 0:
            write_result(arguments.json, lambda file: ceilings.save(roofs, file))
            print_result(roofs.table(width(arguments)).rstrip("\n"), arguments)
    finally:
        if ours:
            dist.destroy_process_group()
    return 0
