"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence


def table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Container[int] = ()) -> list[str]:
    """The lines of a table; `right`: columns of figures."""
    rules = ["---:" if column in right else "---" for column in range(len(header))]
    return [_line(header), _line(rules), *map(_line, rows)]


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"


def escaped(text: str) -> str:
    """Return the text as it can stand in one cell."""
    return text.replace("|", "\\|").replace("\n", " ")


def refused(error: str, longest: int = 90) -> str:
    """Return the words for an input that a tool refuses."""
    if "unexpected keyword argument" in error:
        return "refused: it has no parameter for it"
    return f"refused: {code(error, longest)}"


def code(text: str, longest: int = 90) -> str:
    """A tool's own words: a line of them, no longer than a cell can show."""
    text = text.replace("`", "'").strip()
    return f"`{text if len(text) <= longest else text[: longest - 1] + '…'}`"
