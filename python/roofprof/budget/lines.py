"""In which line of a TOML file a key stands: the reader that Python has does not tell."""

from __future__ import annotations

import re
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Keys = tuple[str, ...]


class TomlError(ValueError):
    """Not TOML; the sentence names the line."""


def read(text: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    """What a TOML text holds, and the line of each table and key. Raises TomlError."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", str(error))
        where = f"line {found[2]}: {found[1]}" if found else f"line {text.count(chr(10)) + 1}: {error}"
        raise TomlError(where) from None
    return values, _lines(text)


def _lines(text: str) -> dict[Keys, int]:
    lines: dict[Keys, int] = {}
    table: Keys = ()
    for number, line in enumerate(text.splitlines(), 1):
        if header := re.match(r"\s*\[(?!\[)(.+)\]\s*(#.*)?$", line):
            table = _keys(f"[{header[1]}]") or table
            lines.setdefault(table, number)
        # A key may hold quoted '='.
        elif key := re.match(r"""\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^"'=#\[\],]+)+?)\s*=(?!=)""", line):
            keys = _keys(f"{key[1]} = 0")
            if keys:
                lines.setdefault((*table, *keys), number)
    return lines


def _keys(line: str) -> Keys:
    """The path that one line opens; none where it is no line of its own (inside a list of several lines)."""
    try:
        value: Any = tomllib.loads(line)
    except tomllib.TOMLDecodeError:
        return ()
    keys = []
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)
