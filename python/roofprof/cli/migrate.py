"""``roofprof migrate``: programs that import other tools, with roofprof's drop-in modules instead."""

from __future__ import annotations

import argparse
import difflib
import io
import tokenize
from pathlib import Path
from typing import TYPE_CHECKING, Any

from roofprof.cli.shared import (
    CommandError,
    Commands,
    add_debug,
    add_json,
    check_can_be_written,
    check_files,
    print_result,
    say,
    write_json,
)
from roofprof.render.files import read_whole, write_whole

if TYPE_CHECKING:
    from roofprof.cli.rewriting import Migration

_DESCRIPTION = """\
Shows what to change in programs that use thop, fvcore, torchstat, torchsummary, torchinfo, ptflops, calflops,
DeepSpeed's flops profiler or torch.utils.flop_counter: their imports become those of roofprof.compat, whose figures are
in the same convention. What cannot be changed is listed with its line.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "migrate", help="show what to change in programs that use other tools", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE.py", help="programs")
    parser.add_argument("--write", action="store_true", help="write the changes into the files")
    add_json(parser, "what changes, and what does not,")
    add_debug(parser)


def run(arguments: argparse.Namespace) -> int:
    """Read all files, print the differences, and write them where that is wanted. Nothing is written if one is bad."""
    check_files(arguments.files, arguments.json)
    found = _read(arguments.files, to_write=arguments.write)
    changed = [(path, migration.source) for path, source, migration in found if migration.source != source]
    for path, source, migration in found:
        if difference := _difference(path, source, migration.source):
            print_result(difference, arguments)
    for path, _, migration in found:
        for left in migration.left:
            print_result(f"{path}:{left.line}: left as it is: {left.text}", arguments)
    for path, text in changed if arguments.write else []:
        write_whole(path, text)
        say(f"written to {path}")
    write_json(arguments.json, "migration", {"files": _stored(found)})
    if not changed:
        say("nothing to change")
    elif not arguments.write:
        say(f"{len(changed)} of {len(found)} files would change: --write changes them")
    return 0


def _read(paths: list[Path], *, to_write: bool) -> list[tuple[Path, bytes, Migration]]:
    try:
        from roofprof.cli.rewriting import migrated
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] != "libcst":
            raise
        raise CommandError(
            "roofprof migrate needs libcst: run `pip install libcst`, or take roofprof[migrate]"
        ) from None
    found = []
    for path in paths:
        source = read_whole(path)
        try:
            migration = migrated(source)
        except ValueError as error:
            raise CommandError(f"{path}: {error}") from None
        if to_write and migration.source != source:
            check_can_be_written(path)
        found.append((path, source, migration))
    return found


def _difference(path: Path, before: bytes, after: bytes) -> str:
    encoding, _ = tokenize.detect_encoding(io.BytesIO(before).readline)
    old, new = (text.decode(encoding, "replace").splitlines() for text in (before, after))
    return "\n".join(difflib.unified_diff(old, new, str(path), str(path), lineterm=""))


def _stored(found: list[tuple[Path, bytes, Migration]]) -> list[dict[str, Any]]:
    return [
        {
            "file": str(path),
            "difference": _difference(path, source, migration.source),
            "left": [vars(left) for left in migration.left],
        }
        for path, source, migration in found
    ]
