"""The table of figures: what each attribute of a row is called and means."""

from __future__ import annotations

import copyreg
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from roofprof import _report
from roofprof.errors import Error

KINDS = ("row", "group", "kernel", "rank", "collective", "memory")


class Fields(Mapping[str, _report.Field]):
    """Every figure by its name: ``roofprof.fields["intensity"].heading`` is "AI".

    A name that several kinds of row have is that of a module's row, else of a group; ``of("kernel")`` has a kernel's.
    """

    def __init__(self) -> None:
        every = _report.fields()
        self._of = {kind: MappingProxyType({f.name: f for f in every if f.of == kind}) for kind in KINDS}
        self._first = {f.name: f for f in reversed(every)}

    def of(self, kind: str) -> Mapping[str, _report.Field]:
        """Return the figures of a "row", "group", "kernel", "rank", "collective" or "memory", in the order of files.

        Raises ValueError for other kinds.
        """
        if kind not in self._of:
            raise Error(f"there are figures of {', '.join(KINDS)}, not of {kind!r}")
        return self._of[kind]

    def __getitem__(self, name: str) -> _report.Field:
        return self._first[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._first)

    def __len__(self) -> int:
        return len(self._first)

    def __reduce__(self) -> str:
        return "fields"  # this module's, where it is unpickled

    def __repr__(self) -> str:
        return f"<roofprof.fields: {len(self)} figures of {', '.join(KINDS)}>"


fields = Fields()


def _of_kind(kind: str, name: str) -> _report.Field:
    return fields.of(kind)[name]


copyreg.pickle(_report.Field, lambda figure: (_of_kind, (figure.of, figure.name)))


def cell(figure: str, value: float | None) -> _report.Cell:
    """Return the cell of a table that shows a value as the columns of that figure do."""
    return _report.Cell(fields[figure].text(value), value)
