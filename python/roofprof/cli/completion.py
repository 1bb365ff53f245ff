"""``roofprof completion``: what a shell needs to complete commands, options and files."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from roofprof import manual
from roofprof.cli.parser import SWEEP
from roofprof.cli.shared import TABLES, CommandError, Commands, print_text
from roofprof.figures import fields

SHELLS = ("bash", "zsh", "fish", "tcsh")
# Positional arguments and options that begin with the name of a file.
_FILES = ("target", "script", "inputs", "loss", "folder")

_CARDS = {
    ("predict", "device"),
    (SWEEP, "device"),
    ("import", "device"),
    ("calibrate", "roofs"),
    ("ceilings", "published"),
}

_DESCRIPTION = """\
Prints a script that completes roofprof's commands, options, choices and files. Shells read it once: bash from
~/.local/share/bash-completion/completions/roofprof, zsh from a file _roofprof in a folder of its fpath, fish from
~/.config/fish/completions/roofprof.fish, tcsh from ~/.tcshrc.
"""


def add_parser(commands: Commands) -> None:
    """Add the command's options."""
    parser = commands.add_parser(
        "completion", help="print what a shell needs to complete roofprof's words", description=_DESCRIPTION
    )
    parser.set_defaults(command=run)
    parser.add_argument("shell", choices=SHELLS, help="which one")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    try:
        import shtab
    except ModuleNotFoundError as error:
        if error.name != "shtab":
            raise
        raise CommandError(
            "roofprof completion needs shtab: run `pip install shtab`, or take roofprof[completion]"
        ) from None
    parser: argparse.ArgumentParser = arguments.of_all
    for command, action in _actions(parser):
        if action.type is Path or action.dest in _FILES or (command, action.dest) == ("import", "model"):
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # shtab reads this attribute
        elif words := _words(command, action.dest):
            action.choices = words  # this parser parses nothing
    print_text(shtab.complete(parser, arguments.shell))
    return 0


def _words(command: str, option: str) -> list[str]:
    """Return the words for an option without fixed choices: columns, cards; empty for others."""
    if option in {"sort", "columns"}:
        return list(fields.of("row"))
    if option == "by" and command != "plot":
        return list(TABLES)
    if (command, option) == ("explain", "name"):
        return manual.names()
    if (command, option) == ("docs", "page"):
        return manual.pages()
    if (command, option) in _CARDS:
        from roofprof.roofs.published_peaks import names

        return [name.replace(" ", "") for name in names()]  # a shell splits words at spaces, names do without them
    return []


def _actions(parser: argparse.ArgumentParser, command: str = "") -> Iterator[tuple[str, argparse.Action]]:
    """Yield every option and argument with the command that takes it; "" for those before a command."""
    for action in parser._actions:
        yield command, action
        if isinstance(action, argparse._SubParsersAction):
            for name, subparser in action.choices.items():
                yield from _actions(subparser, name)
