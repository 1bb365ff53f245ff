"""Reads what Nsight Systems recorded, as events of a trace: kernels, copies, their launches, and ranges of NVTX.

`nsys export --type sqlite` writes the tables that are read here. Names of tables and columns are those of the schema in
Nsight Systems' user guide ("SQLite schema reference").
"""

from __future__ import annotations

import json
import re
import sqlite3
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from roofprof.errors import Error

MAGIC = b"SQLite format 3\0"
_BATCH = 10_000  # rows that become one piece of text
# No event may begin at 0, which stands for "not known"; the file's times begin with the recording.
_BEGIN_NS = 1_000_000_000
# CUpti_ActivityMemcpyKind, by which copies are named as torch.profiler names them.
_COPIES = {
    1: ("HtoD", "Pageable", "Device"),
    2: ("DtoH", "Device", "Pageable"),
    8: ("DtoD", "Device", "Device"),
    9: ("HtoH", "Pageable", "Pageable"),
    10: ("PtoP", "Device", "Device"),
}
_MEMORY = ("Pageable", "Pinned", "Device", "Managed")
_PUSH_POP, _START_END = 59, 60  # NVTX_EVENTS.eventType: the two forms of ranges
# Torch's emit_nvtx appends this to an operator's name: "aten::mm, seq = 3, sizes = [[4, 4]]".
_OF_EMIT_NVTX = re.compile(r", (?:seq|op_id|sizes) = .*", re.DOTALL)


def pieces(path: Path) -> Iterator[bytes]:
    """Yield the file's events as the text of a trace, piece by piece. Raises ValueError for another database.

    Nothing in the file is run: tables alone are read, and no view, virtual table or function. No file next to it is
    read or made.
    """
    if Path(f"{path}-wal").exists() and Path(f"{path}-wal").stat().st_size:
        raise Error(f"{path}: a program still writes to it ({path.name}-wal): let it end first")
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
    try:
        tables = _Tables(connection, path.stat().st_size)
        if not tables.has("StringIds") or not tables.any_of("KERNEL", "RUNTIME", "MEMCPY"):
            raise Error(
                f"{path}: it is an SQLite database without the tables of Nsight Systems: write it with `nsys export "
                "--type sqlite`, of a report that was recorded with --trace=cuda,nvtx"
            )
        yield json.dumps({"recorder": "Nsight Systems", "deviceProperties": tables.devices()})[:-1].encode()
        yield b', "traceEvents": ['
        first = True
        for events in tables.events():
            text = ",\n".join(events)
            yield text.encode() if first else b",\n" + text.encode()
            first = False
        yield b"]}"
    except _DamageError as error:
        raise Error(f"{path}: {error}") from None
    except sqlite3.Error as error:
        why = {"interrupted": "reading it does not end"}.get(str(error), error)
        raise Error(f"{path}: it cannot be read as a database of Nsight Systems ({why})") from None
    finally:
        connection.close()


class _DamageError(Exception):
    """The file has content that an export of Nsight Systems cannot have."""


# Columns of texts; all others have whole numbers.
_TEXTS = frozenset({"value", "name", "label", "text"})
_LEAST_ROW = 4  # bytes of a row in the file
_LONGEST_VALUE = 2**26  # bytes, as of a trace's values
_STEPS_OF_A_BYTE, _MORE_STEPS = 10, 10**7  # of SQLite's machine, of which a row takes about one for each column
_STEPS_AT_ONCE = 100_000


def _allowed(action: int, _: str | None, __: str | None, ___: str | None, view: str | None) -> int:
    """Allow SQLite to read columns, but not through a view."""
    reads = {sqlite3.SQLITE_READ, sqlite3.SQLITE_SELECT, sqlite3.SQLITE_PRAGMA}
    return sqlite3.SQLITE_OK if action in reads and view is None else sqlite3.SQLITE_DENY


class _Tables:
    """The tables of one export, which has those that it has rows for."""

    def __init__(self, connection: sqlite3.Connection, size: int) -> None:
        self._connection = connection
        self._rows_left = size // _LEAST_ROW  # a damaged file may lead to the same rows again and again
        self._steps_left = _STEPS_OF_A_BYTE * size + _MORE_STEPS
        if sys.version_info >= (3, 11):
            connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST_VALUE)
        connection.text_factory = lambda text: text.decode(errors="replace")
        connection.set_progress_handler(self._too_long, _STEPS_AT_ONCE)
        connection.set_authorizer(_allowed)
        made = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'")
        # SQLite writes this itself; a virtual table's is another.
        names = [name for name, sql in made if isinstance(sql, str) and sql.startswith("CREATE TABLE ")]
        self._columns = {
            name: {column[1] for column in connection.execute(f'PRAGMA table_info("{name}")')}
            for name in names
            if isinstance(name, str) and name.isidentifier()
        }
        self._processes: dict[int, int] = {}

    def _too_long(self) -> bool:
        self._steps_left -= _STEPS_AT_ONCE
        return self._steps_left < 0

    def has(self, table: str) -> bool:
        return table in self._columns

    def any_of(self, *kinds: str) -> bool:
        return any(self.has(f"CUPTI_ACTIVITY_KIND_{kind}") for kind in kinds)

    def devices(self) -> list[dict[str, object]]:
        """Return the devices as a trace has them."""
        keys = ("id", "name", "computeMajor", "computeMinor")  # the same names in both
        rows = self._rows("TARGET_INFO_GPU", *keys)
        return [
            {key: value for key, value in zip(keys, row, strict=True) if value is not None}
            for row in sorted(rows, key=lambda row: row[0] or 0)
        ]

    def events(self) -> Iterator[list[str]]:
        """Yield the events in batches."""
        batch: list[str] = []
        for source in (self._launches(), self._kernels(), self._copies(), self._fills(), self._ranges()):
            for event in source:
                batch.append(event)
                if len(batch) == _BATCH:
                    yield batch
                    batch = []
        if batch:
            yield batch

    def _rows(self, table: str, *columns: str, needed: int = 0) -> Iterator[tuple[Any, ...]]:
        """Yield these columns; None where the table lacks one. The first ``needed`` ones must have a value."""
        if not self.has(table):
            return
        known = self._columns[table]
        chosen = ", ".join(f'"{column}"' if column in known else "NULL" for column in columns)
        kinds = [str if column in _TEXTS else int for column in columns]
        for row in self._connection.execute(f'SELECT {chosen} FROM "{table}" NOT INDEXED'):  # noqa: S608
            self._rows_left -= 1
            if self._rows_left < 0:
                raise _DamageError("it is damaged: it has more rows than a file of its size can hold")
            for place, (value, kind) in enumerate(zip(row, kinds, strict=True)):
                if isinstance(value, kind) or (value is None and place >= needed):
                    continue
                held = "nothing" if value is None else f"a value of type {type(value).__name__}"
                wanted = "a text" if kind is str else "a whole number"
                raise _DamageError(f"{table}.{columns[place]} holds {held} where Nsight Systems writes {wanted}")
            yield row

    def _activity(self, kind: str, *columns: str) -> Iterator[tuple[Any, ...]]:
        return self._rows(f"CUPTI_ACTIVITY_KIND_{kind}", "start", "end", *columns, needed=2)

    @cached_property
    def _texts(self) -> dict[int, str]:
        return dict(self._rows("StringIds", "id", "value", needed=2))

    def _correlation(self, process: int | None, correlation: int | None) -> int:
        """Return a number that tells launches of several processes apart."""
        number = self._processes.setdefault((process or 0) >> 24, len(self._processes))
        return (number << 32) | (correlation or 0)

    def _place(
        self, device: int | None, stream: int | None, process: int | None, correlation: int | None
    ) -> dict[str, object]:
        return {"device": device or 0, "stream": stream or 0, "correlation": self._correlation(process, correlation)}

    def _launches(self) -> Iterator[str]:
        texts = self._texts
        for begin, end, thread, correlation, name in self._activity("RUNTIME", "globalTid", "correlationId", "nameId"):
            args = {"correlation": self._correlation(thread, correlation)}
            yield event("cuda_runtime", texts.get(name, "cuda"), begin, end, args, thread)

    def _kernels(self) -> Iterator[str]:
        texts = self._texts
        columns = ("demangledName", "shortName", "deviceId", "streamId", "globalPid", "correlationId")
        sizes = ("gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ")
        for begin, end, name, short, device, stream, process, correlation, *size in self._activity(
            "KERNEL", *columns, *sizes
        ):
            args = self._place(device, stream, process, correlation)
            if None not in size:
                args |= {"grid": size[:3], "block": size[3:]}
            yield event("kernel", texts.get(name) or texts.get(short) or "kernel", begin, end, args)

    def _kinds_of_memory(self) -> dict[int, str]:
        """Return how the file numbers kinds of memory: "CUDA_MEMOPR_MEMORY_KIND_PINNED", in words "Pinned"."""
        rows = self._rows("ENUM_CUDA_MEM_KIND", "id", "name", "label")
        texts = {number: (name or label or "").lower() for number, name, label in rows}
        return {number: memory for memory in _MEMORY for number, text in texts.items() if memory.lower() in text}

    def _copies(self) -> Iterator[str]:
        columns = ("copyKind", "srcKind", "dstKind", "deviceId", "streamId", "globalPid", "correlationId", "bytes")
        kinds = self._kinds_of_memory()
        for begin, end, kind, source, to, device, stream, process, correlation, size in self._activity(
            "MEMCPY", *columns
        ):
            way, default_source, default_to = _COPIES.get(kind, ("", "", ""))
            ends = kinds.get(source, default_source), kinds.get(to, default_to)
            name = f"Memcpy {way} ({ends[0]} -> {ends[1]})" if all(ends) else "Memcpy"
            args = self._place(device, stream, process, correlation) | {"bytes": size or 0}
            yield event("gpu_memcpy", name, begin, end, args)

    def _fills(self) -> Iterator[str]:
        columns = ("deviceId", "streamId", "globalPid", "correlationId", "bytes")
        for begin, end, device, stream, process, correlation, size in self._activity("MEMSET", *columns):
            args = self._place(device, stream, process, correlation) | {"bytes": size or 0}
            yield event("gpu_memset", "Memset (Device)", begin, end, args)

    def _ranges(self) -> Iterator[str]:
        texts = self._texts
        columns = ("start", "end", "eventType", "text", "textId", "globalTid")
        for begin, end, kind, text, number, thread in self._rows("NVTX_EVENTS", *columns):
            name = text or texts.get(number)
            if begin is None or end is None or not name or kind not in (_PUSH_POP, _START_END, None):
                continue
            yield event("user_annotation", _OF_EMIT_NVTX.sub("", name), begin, end, {}, thread)


def event(category: str, name: str, begin: int, end: int, args: Mapping[str, object], thread: int | None = None) -> str:
    """Return an event as torch.profiler writes it. `thread`: nsys' globalTid, with the process in its upper bits."""
    number = thread or 0
    times = f'"ts": {_microseconds(begin + _BEGIN_NS)}, "dur": {_microseconds(end - begin)}'
    place = f'"pid": {number >> 24}, "tid": {number & 0xFFFFFF}'
    named = f'"cat": "{category}", "name": {json.dumps(name)}'
    return f'{{"ph": "X", {named}, {place}, {times}, "args": {json.dumps(args)}}}'


def _microseconds(ns: int) -> str:
    """Return the time in microseconds, with all digits."""
    sign, ns = ("-", -ns) if ns < 0 else ("", ns)
    return f"{sign}{ns // 1000}.{ns % 1000:03d}"
