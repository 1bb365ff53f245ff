"""Texts that act on a reader or hide from one, put at each place of a report, and whether any is left."""

from __future__ import annotations

import re
import sys
import unicodedata
from typing import Any

# Colours, the clipboard (OSC 52), C1, the end of a line, Unicode's separators, what turns a line around, what is hidden
# (zero widths, a soft hyphen, fillers, selectors, tags), and marks that pile up on a letter.
HIDDEN = "\u200b\u200d\u2060\u2063\ufeff\u00ad\u061c\u3164\ufe00\ufe0f\U000e0101\U000e0041\U000e007f"
MARKS = "e" + "\u0301\u0489\u20dd" * 20
POISON = f"\x1b[31m\x1b]52;c;eA==\x07\x9b1m\x85\x7f\r\n\u2028\u202e\u2066\x00{HIDDEN}{MARKS}"
NAME = f"b\u00e9{POISON}\u6f22"


def acts_or_hides(char: str) -> bool:
    """By Unicode's own tables: what controls, separates lines, turns the direction, or is ignored where it is shown."""
    if unicodedata.category(char) in {"Cc", "Zl", "Zp"}:
        return True
    name = unicodedata.name(char, "")
    if unicodedata.category(char) == "Cf":  # but for signs that are seen, and the layout of hieroglyphs
        return not name.startswith(
            (
                "ARABIC NUMBER",
                "ARABIC SIGN",
                "ARABIC FOOT",
                "ARABIC END",
                "ARABIC DISPUTED",
                "ARABIC POUND",
                "ARABIC PIASTRE",
                "SYRIAC",
                "KAITHI",
                "EGYPTIAN",
            )
        )
    ignored = (
        "VARIATION SELECTOR",
        "HANGUL FILLER",
        "SEONG FILLER",
        "JUNGSEONG FILLER",
        "GRAPHEME JOINER",
        "FREE VARIATION",
        "VOWEL INHERENT",
    )
    return any(word in name for word in ignored)


ACTED_ON = {char for char in map(chr, range(sys.maxunicode + 1)) if acts_or_hides(char)}
SHAPE_EMOJI = {"\u200d", "\ufe0e", "\ufe0f"}  # allowed where they stand between their symbols
FLOOD = re.compile("[\u0300-\u036f\u0483-\u0489\u20d0-\u20ff]{5}")


DERIVED = {
    "rows",
    "total",
    "kernels",
    "memory_at_peak",
    "coverage",
    "units",
    "generator",
    "findings",
}  # written, never read


def places(value: Any, path: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    """Where texts stand: the values and the keys; of a list all items are one place."""
    if isinstance(value, str):
        return {path}
    if isinstance(value, list):
        return set().union(*(places(item, (*path, None)) for item in value))
    if isinstance(value, dict):
        inside = set().union(*(places(item, (*path, key)) for key, item in value.items()))
        return inside | {(*path, "environment of which a key")} if path[-1:] == ("environment",) else inside
    return set()


def poisoned(value: Any, path: tuple[Any, ...]) -> Any:
    """The same with poison at that place."""
    if not path:
        return f"{value}{NAME}"
    if isinstance(value, list):
        return [poisoned(item, path[1:]) for item in value]
    if not isinstance(value, dict):
        return value
    if path[0] == "environment of which a key":
        return value | {NAME: NAME}
    return {key: poisoned(item, path[1:]) if key == path[0] else item for key, item in value.items()}


def check_harmless(text: str, where: Any) -> None:
    for line in text.split("\n"):
        assert not ACTED_ON & set(line), (where, line)
        assert not FLOOD.search(line), (where, line)
