"""``roofprof ceilings``: the roofs of this machine, measured or published."""

from __future__ import annotations

import argparse
from pathlib import Path

from roofprof.cli.as_json import write_json
from roofprof.cli.shared import Commands, add_debug, add_width, check_can_be_written, print_text, say, width

_DESCRIPTION = """\
The peaks and bandwidths that figures are held against, measured where they are not known yet, with where each comes
from; for a GPU the published ones stand beside them.
"""


def add_parser(commands: Commands) -> None:
    """The command's options."""
    parser = commands.add_parser(
        "ceilings",
        help="measure the roofs of this machine, or show them; for a GPU with the published ones beside them",
        description=_DESCRIPTION,
    )
    parser.set_defaults(command=run)
    parser.add_argument("--device", default="cpu", help="which device, such as cuda or cuda:1 (default: cpu)")
    parser.add_argument(
        "--published",
        nargs="?",
        const="",
        metavar="CARD",
        help="the published peaks of a card, such as 'RTX 4090', instead; without a name: the cards that are known",
    )
    parser.add_argument("--again", action="store_true", help="measure again, even if they are known")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write them to a file that profile --ceilings can read"
    )
    add_width(parser)
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure where nothing is known yet, and print the roofs."""
    from roofprof import ceilings, published_peaks

    notes: list[str] = []
    if arguments.json:
        check_can_be_written(arguments.json)
    if arguments.published == "":
        write_json(arguments.json, "cards", {"cards": published_peaks.names()})
        print("\n".join(published_peaks.names()))
        return 0
    if arguments.published:
        roofs, beside = published_peaks.published(arguments.published), None
    else:
        roofs, notes = ceilings.for_device_with_notes(arguments.device, say, again=arguments.again)
        beside = published_peaks.published_for(arguments.device)
    if arguments.json:
        ceilings.save(roofs, arguments.json, notes)
        say(f"written to {arguments.json}")
    print_text(roofs.table(width(arguments), beside).rstrip("\n"))
    for note in notes:
        print_text(f"note: {note}")
    return 0
