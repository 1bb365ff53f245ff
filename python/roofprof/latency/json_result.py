"""Dataclasses that are written as JSON: what was observed, which is read again, and the figures that follow from it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from roofprof import _report
from roofprof.render.files import read_whole, write_whole
from roofprof.render.results import Result

if TYPE_CHECKING:
    from typing_extensions import Self

SCHEMA_VERSION = 1


class Stored(Result):
    """Written and read by the names of a dataclass's fields, times as integer nanoseconds."""

    SCHEMA: ClassVar[str]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON's data as Python values."""
        observed = {field.name: _plain(getattr(self, field.name)) for field in dataclasses.fields(self)}  # type: ignore[arg-type]
        return {"schema": self.SCHEMA, "schema_version": SCHEMA_VERSION, **self._figures(), **observed}

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the JSON text; with a path, write it there as well, whole or not at all."""
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in self.to_dict().items())
        text = "{\n" + ",\n".join(lines) + "\n}\n"
        if path is not None:
            write_whole(path, text.encode())
        return text

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the result that :meth:`to_dict` wrote. Raises ValueError where ``stored`` is something else."""
        if not isinstance(stored, dict) or stored.get("schema") != cls.SCHEMA:
            raise ValueError(f"this is no {cls.SCHEMA}: it has no such 'schema'")
        if stored.get("schema_version") != SCHEMA_VERSION:
            raise ValueError(
                f"the file is of version {stored.get('schema_version')} of {cls.SCHEMA}, and this roofprof reads "
                f"version {SCHEMA_VERSION}"
            )
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        missing = [name for name in names if name not in stored]
        if missing:
            raise ValueError(f"this {cls.SCHEMA} lacks {', '.join(missing)}")
        try:
            return cls(**{name: cls._read(name, stored[name]) for name in names})
        except (TypeError, KeyError, AttributeError) as error:
            raise ValueError(f"invalid {cls.SCHEMA} file: {error}") from error

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Return the result in a file, equal to its writer's. Raises OSError or ValueError, naming the file."""
        try:
            return cls.from_dict(json.loads(read_whole(path)))
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: {error}") from None

    @classmethod
    def _read(cls, name: str, value: Any) -> Any:
        """Return a field's value from JSON's."""
        if name == "notes":
            return tuple(_report.Note(note["code"], note["text"], note["where"]) for note in value)
        return tuple(value) if isinstance(value, list) else value

    def _figures(self) -> dict[str, Any]:
        """Return the figures that follow from the fields, for other readers."""
        raise NotImplementedError


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Stored):
        return value.to_dict()
    if isinstance(value, _report.Note):
        return {"level": value.level, "code": value.code, "where": value.where, "text": value.text}
    return value
