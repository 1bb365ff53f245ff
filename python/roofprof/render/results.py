"""Results that print as a table: their short repr, and their text in a notebook."""

from __future__ import annotations

from abc import abstractmethod
from html import escape

_STYLE = (
    "white-space: pre; overflow-x: auto; font-family: monospace; font-size: 12px; line-height: 1.3; text-align: left"
)


def preformatted(text: str) -> str:
    """Return HTML that shows a text unchanged, with all characters equally wide even where a page sets other fonts."""
    return f'<pre style="{_STYLE}">{escape(text)}</pre>'


class Result:
    """A result whose ``str`` is a table."""

    @abstractmethod
    def _about(self) -> str:
        """Return what the result is of, in a few words."""

    def __repr__(self) -> str:
        return f"<roofprof.{type(self).__name__} of {self._about()}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return preformatted(str(self))
