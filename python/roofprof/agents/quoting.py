"""Puts the words of reports, file names and programs into answers as data: on one line, bounded, and quoted.

A file can hold any text, such as one that looks like a line of roofprof's or like a request to the reader.
"""

from __future__ import annotations

import re

from roofprof._report import printable

NAME = 80  # characters of a name; more is left out in its middle
SHORT = 24  # where many names need room
SENTENCE = 500  # of a sentence with names in it

_PLAIN = re.compile(r"[\w.:/<>()\[\],*&=+@~$%^!?#-]+")  # a path, a type, a file, an operator: no blank, no "|"


def one_line(text: str, most: int = SENTENCE) -> str:
    """Return a text, such as a message with names in it, as one line of at most ``most`` characters."""
    text = printable(text).strip()
    kept = most - len("...")
    return text if len(text) <= most else f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def quoted(text: str, most: int = NAME) -> str:
    """Return a name: as it is where it is one word, else in double quotes."""
    line = one_line(text, most)
    return line if _PLAIN.fullmatch(line) else in_quotes(line, most)


def in_quotes(text: str, most: int = SENTENCE) -> str:
    """Return a text that somebody else wrote, in double quotes; those inside of it become single ones."""
    return '"{}"'.format(one_line(text, most).replace('"', "'"))


def cell(text: str) -> str:
    """Return what a table's cell shows: quoted where it would look like several cells, or is long."""
    line = one_line(text, NAME)
    return in_quotes(line, NAME) if "|" in line or '"' in line else line
