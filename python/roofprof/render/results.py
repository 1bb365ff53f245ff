"""Results besides reports, such as comparisons, latencies and predictions: how they are printed and stored."""

from __future__ import annotations

import dataclasses
import json
import math
import types
from abc import abstractmethod
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, get_args, get_origin, get_type_hints

from roofprof import _report
from roofprof._report import printable
from roofprof.errors import Error
from roofprof.render.files import read_whole, write_whole
from roofprof.render.html import Html, el, page_of

if TYPE_CHECKING:
    from typing_extensions import Self

_STYLE = (
    "white-space: pre; overflow-x: auto; font-family: monospace; font-size: 12px; line-height: 1.3; text-align: left"
)


def preformatted(text: str) -> Html:
    """Return HTML that shows a text unchanged, with all characters equally wide even where a page sets other fonts."""
    return el("pre", text, style=_STYLE)


class Result:
    """A result whose ``str`` is a table, and whose JSON begins with the name and the version of its schema."""

    SCHEMA: ClassVar[str]
    SCHEMA_VERSION: ClassVar[int] = 1
    """Grows when a key of the JSON changes its meaning."""

    # ---- shown

    @abstractmethod
    def document(self) -> _report.Document:
        """Return what is shown, as data: its paragraphs and tables, which text, page and notebook render."""

    def table(self, width: int = 120) -> str:
        """Return the document as text, in lines that are no longer than ``width``."""
        return self.document().text(width).rstrip("\n")

    def __str__(self) -> str:
        return self.table()

    def to_html(self, path: str | Path | None = None) -> str:
        """Return one page without scripts; with a path, write it there as well, whole or not at all."""
        text = page_of(self._document_of_page(), self._about(), self._picture())
        if path is not None:
            write_whole(path, text.encode())
        return text

    def _document_of_page(self) -> _report.Document:
        """Return what the page shows: all of it, where text shows a part."""
        return self.document()

    def _picture(self) -> Html | None:
        """Return the page's picture; None where it has none."""
        return None

    @abstractmethod
    def _about(self) -> str:
        """Return what the result is of, in a few words."""

    def __repr__(self) -> str:
        return f"<roofprof.{type(self).__name__} of {printable(self._about())}>"

    def _repr_html_(self) -> str:
        """Return what a notebook shows."""
        return preformatted(str(self))

    # ---- written

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON's data as Python values."""
        return with_schema(self.SCHEMA, plain(self._content()), self.SCHEMA_VERSION)

    def to_json(self, path: str | Path | None = None) -> str:
        """Return the JSON text; with a path, write it there as well, whole or not at all."""
        text = json_text(self.to_dict())
        if path is not None:
            write_whole(path, text.encode())
        return text

    def _content(self) -> dict[str, Any]:
        """Return the JSON's data without its head: the fields of a dataclass."""
        return _fields_of(self)


class StoredResult(Result):
    """A result whose JSON is read again: a dataclass of which each field has a key of the same name."""

    @classmethod
    def from_dict(cls, stored: dict[str, Any]) -> Self:
        """Return the result that :meth:`to_dict` wrote. Raises ValueError, one sentence, for anything else."""
        if not isinstance(stored, dict) or stored.get("schema") != cls.SCHEMA:
            raise Error(f"this is no {cls.SCHEMA}: it has no such 'schema'")
        version = repr(stored.get("schema_version"))
        if version != repr(cls.SCHEMA_VERSION):
            raise Error(
                f"the file is of version {version:.40} of {cls.SCHEMA}, and this roofprof reads "
                f"version {cls.SCHEMA_VERSION}"
            )
        try:
            result: Self = _made(cls, stored, "")
        except ValueError as error:
            raise Error(f"invalid {cls.SCHEMA} file: {error}") from None
        return result

    @classmethod
    def from_json(cls, path: str | Path) -> Self:
        """Return the result in a file, equal to its writer's but for the last digit of times.

        Raises OSError or ValueError, naming the file.
        """
        content = read_whole(path)
        try:
            stored = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise Error(f"{path}: this is not JSON: {error}") from None
        try:
            return cls.from_dict(stored)
        except ValueError as error:
            raise Error(f"{path}: {error}") from None


def with_schema(schema: str, content: dict[str, Any], version: int = 1) -> dict[str, Any]:
    """Return the data of a JSON file: its head, then its content."""
    return {"schema": schema, "schema_version": version, **content}


def json_text(stored: dict[str, Any]) -> str:
    """Return the text of a JSON file. Raises ValueError for numbers that JSON does not have."""
    return json.dumps(stored, indent=1, allow_nan=False) + "\n"


def stored_as(key: str, scale: float | None = None) -> dict[str, Any]:
    """Return the metadata of a field that JSON has under another name and times ``scale``: 1e9 for nanoseconds."""
    return {"key": key, "scale": scale}


def plain(value: Any) -> Any:
    """Return a value as JSON has it: dataclasses and notes by their names, null for numbers that are not finite."""
    if isinstance(value, Result):
        return value.to_dict()
    if isinstance(value, _report.Note):
        return {"level": value.level, "code": value.code, "where": value.where, "text": value.text}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields_of(value)
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _fields_of(value: Any) -> dict[str, Any]:
    """Return the fields of a dataclass as JSON has them."""
    return {
        _key(field): plain(_scaled(getattr(value, field.name), field.metadata.get("scale")))
        for field in dataclasses.fields(value)
    }


def _key(field: dataclasses.Field[Any]) -> str:
    key: str = field.metadata.get("key", field.name)
    return key


def _scaled(value: Any, scale: float | None) -> Any:
    if scale is None or value is None:
        return value
    return {name: of * scale for name, of in value.items()} if isinstance(value, dict) else value * scale


# ---- read


def _read(kind: Any, stored: Any, where: str) -> Any:
    """Return a value of that type from JSON's. Raises ValueError, saying where the JSON has something else."""
    items = get_args(kind)
    if get_origin(kind) is tuple:
        listed = _checked(stored, (list,), where)
        return tuple(_read(items[0], item, f"{where}[{place}]") for place, item in enumerate(listed))
    if get_origin(kind) is dict:
        return {key: _read(items[1], item, f"{where}.{key}") for key, item in _checked(stored, (dict,), where).items()}
    if kind is _report.Note:
        names = {"code": str, "text": str, "where": tuple[str, ...]}
        return _report.Note(**_named(names, stored, where))
    if dataclasses.is_dataclass(kind):
        return _made(kind, stored, where)
    if len(items) == 2 and items[1] is types.NoneType:
        return None if stored is None else _read(items[0], stored, where)
    return _checked(stored, items or (kind,), where)


def _made(kind: Any, stored: Any, where: str) -> Any:
    """Return a dataclass from an object with its names."""
    fields, types_of = dataclasses.fields(kind), get_type_hints(kind)
    values = _named({_key(field): types_of[field.name] for field in fields}, stored, where)
    scales = {field: field.metadata.get("scale") for field in fields}
    return kind(**{field.name: _scaled(values[_key(field)], scale and 1 / scale) for field, scale in scales.items()})


def _named(kinds: dict[str, Any], stored: Any, where: str) -> dict[str, Any]:
    """Return the values of an object's keys, each of the given type; further keys are for other readers."""
    missing = [key for key in kinds if key not in _checked(stored, (dict,), where or "it")]
    if missing:
        raise Error(f"{where or 'it'} lacks {', '.join(missing)}")
    return {key: _read(kind, stored[key], f"{where}.{key}".lstrip(".")) for key, kind in kinds.items()}


def _checked(stored: Any, kinds: tuple[type, ...], where: str) -> Any:
    if type(stored) not in kinds and not (type(stored) is int and float in kinds):
        raise Error(f"{where} is no {' or '.join(_KINDS[kind] for kind in kinds)}")
    return stored


_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "object"}
