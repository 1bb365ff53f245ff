"""The parser of the commands: it answers a misspelt word with similar ones."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn


class Parser(argparse.ArgumentParser):
    """An argument parser that names the closest commands, options and choices. Its subcommands are parsed alike."""

    def _check_value(self, action: argparse.Action, value: object) -> None:
        if action.choices is not None and value not in action.choices:
            raise argparse.ArgumentError(action, f"'{value}' is not known{near(str(value), map(str, action.choices))}")

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.option_strings and arg_strings == ["--"]:  # argparse takes "--" away, and gives an empty list
            raise argparse.ArgumentError(action, "'--' is no value")
        return super()._get_values(action, arg_strings)

    def parse_known_args(  # type: ignore[override]  # the overloads of argparse's stubs
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """Parse as argparse does; refuse unknown words here, in the parser of the command, which knows its options."""
        words = list(sys.argv[1:] if args is None else args)
        if (
            words[:1] == ["predict"] and "--sweep" in words
        ):  # has options of its own, and so a parser, which is not listed
            words = ["sweep", *(word for word in words[1:] if word != "--sweep")]
        parsed, unknown = super().parse_known_args(words, namespace)
        if unknown:
            self._refuse(unknown[0])
        return parsed, unknown

    def _refuse(self, word: str) -> NoReturn:
        option = word.split("=", maxsplit=1)[0]
        if option.startswith("-"):
            self.error(f"there is no option {option}{near(option, self._option_string_actions)}")
        self.error(f"'{word}' is one argument too many")


def near(word: str, words: Iterable[str]) -> str:
    """Return what to add to the sentence that refuses a word."""
    known = list(words)
    close = difflib.get_close_matches(word, known, n=3, cutoff=0.7)
    if close:
        return f"; did you mean {' or '.join(close)}?"
    return f"; choose from {', '.join(known)}" if not word.startswith("-") else ""
