"""The lines of the keys in a TOML file: Python's reader does not report them."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

from roofprof._report import printable

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Keys = tuple[str, ...]

# Python's reader needs memory and stack for what is nested, and a budget nests no deeper than modules.GLOB.FIGURE.
_DEEPEST = 20
# A string or comment without its end extends to the end of the text or line, so each character is read once in any
# text.
_TOKEN = re.compile(
    r"(?P<comment>#[^\n]*)"
    r'|(?P<long>"""(?:\\.|[^\\])*?(?:"""|\Z)|\'\'\'.*?(?:\'\'\'|\Z))'
    r'|(?P<quoted>"(?:\\.|[^"\\\n])*"?|\'[^\'\n]*\'?)'
    r"|(?P<mark>[\[\]{}=.,\n])"
    r"|(?P<bare>[^\s#\"'\[\]{}=.,]+)",
    re.DOTALL,
)


class TomlError(ValueError):
    """The text is not TOML; the message names the line."""


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def read(text: str) -> tuple[dict[str, Any], dict[Keys, int]]:
    """Return the content of a TOML text, and the line of each table and key. Raises TomlError."""
    lines = _lines(text)
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.fullmatch(r"(.*) \(at line (\d+), column \d+\)", printable(str(error)))
        where = f"line {found[2]}: {found[1]}" if found else f"line {text.count(chr(10)) + 1}: {printable(str(error))}"
        raise TomlError(where) from None
    except ValueError:
        raise TomlError("a number has more digits than Python reads") from None
    return values, lines


def _lines(text: str) -> dict[Keys, int]:
    """Return the line of each table and key; any lines for texts other than TOML. Raises TomlError for deep nesting."""
    lines: dict[Keys, int] = {}
    table: Keys = ()
    for statement in _statements(text):
        keys, line = _keys(statement), statement[0].line
        if statement[0].text == "[":
            table = keys
            lines.setdefault(table, line)
        elif any(token.text == "=" for token in statement if token.kind == "mark"):
            lines.setdefault((*table, *keys), line)
    return lines


def _statements(text: str) -> Iterator[list[_Token]]:
    """Yield the tokens of each "key = value" and "[table]", however many lines it takes."""
    statement: list[_Token] = []
    depth, dots, is_value = 0, 0, False
    for token in _tokens(text):
        if token.kind == "mark":
            dots = dots + 1 if token.text == "." else 0
        if dots >= _DEEPEST:
            raise TomlError(f"line {token.line}: a key has more than {_DEEPEST} parts")
        if token.text == "\n" and not (is_value and depth > 0):
            if statement:
                yield statement
            statement, depth, is_value = [], 0, False
            continue
        if token.kind == "mark":
            depth += (token.text in "[{") - (token.text in "]}")
            is_value = is_value or token.text == "="
            if depth > _DEEPEST:
                raise TomlError(f"line {token.line}: lists and tables are nested more than {_DEEPEST} deep")
        statement.append(token)
    if statement:
        yield statement


def _tokens(text: str) -> Iterator[_Token]:
    line = 1
    for found in _TOKEN.finditer(text):
        kind = found.lastgroup or ""
        if kind != "comment":
            yield _Token(kind, found[0], line)
        line += found[0].count("\n")


def _keys(statement: list[_Token]) -> Keys:
    """Return the path of a statement's key."""
    keys: list[str] = []
    for token in statement:
        if token.text == "=":
            break
        if token.kind in {"bare", "quoted"}:
            keys.append(_unquoted(token.text) if token.kind == "quoted" else token.text)
    return tuple(keys)


def _unquoted(text: str) -> str:
    if "\\" not in text or text[0] == "'":
        return text[1:-1]
    try:
        return str(tomllib.loads(f"key = {text}")["key"])
    except ValueError:  # the reader reports that for the whole text
        return text
