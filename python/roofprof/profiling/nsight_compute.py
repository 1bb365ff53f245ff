"""Reads what Nsight Compute prints with ``--csv``: the kernels that it ran, and the metrics that it read of each."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from operator import itemgetter
from typing import BinaryIO, NamedTuple

from roofprof import _report
from roofprof._report import printable
from roofprof.errors import NcuError

DURATION, CYCLES, RATE = "gpu__time_duration.sum", "sm__cycles_elapsed.avg", "sm__cycles_elapsed.avg.per_second"
# All instructions of the tensor cores' pipe, and those of them that are HFMA2, which some chips run there.
TENSOR_INSTRUCTIONS = "sm__inst_executed_pipe_tensor.sum"
TENSOR_HALF_FMA = "sm__inst_executed_pipe_tensor_op_hmma_type_hfma2.sum"
_DEVICE = "device__attribute_display_name"
_METRICS = _report.counter_metrics()
_WANTED = {
    *(f"{name}.sum" for names in _METRICS.values() for name in names),
    *(f"sm__{name.removeprefix('smsp__')}.sum" for name in _METRICS["sass"]),  # of older tables
    *(DURATION, CYCLES, RATE, TENSOR_INSTRUCTIONS, TENSOR_HALF_FMA),
}


class Kernel(NamedTuple):
    """One launch of a kernel, as ncu or a trace has it."""

    name: str
    grid: tuple[int, ...]  # three sizes; empty: not known
    block: tuple[int, ...]
    ranges: tuple[str, ...]  # of NVTX, the outermost first
    time_ns: int = 0  # in a trace
    process: str = ""
    device: int = 0


@dataclass
class Table:
    """All that ncu printed."""

    kernels: list[Kernel] = field(default_factory=list)
    # Each metric's value for each kernel, in bytes, nanoseconds or ncu's base unit; NaN: not known.
    metrics: dict[str, list[float]] = field(default_factory=dict)
    device: str = ""  # its name; empty: the table does not have it
    capability: str = ""  # of the device: "9.0"; empty: the table does not have it
    rounded: bool = False  # values have prefixes ("1.57 Mbyte"), so ncu has rounded them
    notes: list[tuple[str, str]] = field(default_factory=list)  # code and text


def shown(text: str) -> str:
    """Return the beginning of a text from a file, as a sentence has it."""
    text = printable(text)
    return text if len(text) <= 40 else text[:40] + "..."


def many(count: int, one: str, more: str) -> str:
    """Return "1 row", "3 rows"."""
    return f"{count} {one if count == 1 else more}"


# ---- values

_PREFIXES = {"": 1.0, "K": 1e3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "m": 1e-3, "n": 1e-9}
_PREFIXES |= {"u": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "Ki": 2.0**10, "Mi": 2.0**20, "Gi": 2.0**30, "Ti": 2.0**40}
_SECONDS, _HERTZ = ("second", "seconds", "sec", "s"), ("hz", "Hz")
_BYTES, _COUNTS = ("byte", "bytes", "B"), ("inst", "instructions", "op", "ops", "math_op", "cycle", "cycles")
_NUMBER = re.compile(r"-?([0-9]{1,3}(,[0-9]{3})+|[0-9]+)(\.[0-9]*)?([eE][-+]?[0-9]+)?")
_OTHER_LOCALE = re.compile(r"[-0-9.,]*(,|\..*\.)[-0-9.,]*")
_SIZES = re.compile(r"\(([0-9,]{1,13}?), *([0-9,]{1,13}?), *([0-9,]{1,13}?)\)")


def _factor(unit: str, bases: tuple[str, ...]) -> float:
    """Return the factor that the prefix of a unit stands for; 0 if the unit is of another kind."""
    known = (_PREFIXES.get(unit[: -len(base)], 0.0) for base in bases if unit.endswith(base))
    return next(filter(None, known), 0.0)


def _scale(metric: str, unit: str) -> tuple[float, bool]:
    """Return the factor of values in that unit, 0 if it is of another kind; and whether the unit has a prefix."""
    if metric == DURATION:
        return 1e9 * _factor(unit, _SECONDS), unit not in ("ns", "nsecond")  # the base unit is the nanosecond
    if metric == RATE and "/" in unit:
        cycles, _, time = unit.partition("/")
        counts, per = _factor(cycles, _COUNTS), _factor(time, _SECONDS)
        return (counts / per if per else 0.0), (counts, per) != (1, 1)
    kind = _HERTZ if metric == RATE else _BYTES if "bytes" in metric else _COUNTS
    factor = 1.0 if kind is _COUNTS and not unit else _factor(unit, kind)
    return factor, factor != 1


@lru_cache(65536)
def _number(text: str) -> float:
    """Return 1234.5 for "1,234.5", not a number for other texts. Raises NcuError for one of another locale."""
    text = text.strip()
    if _NUMBER.fullmatch(text):
        value = float(text.replace(",", ""))
        return value if math.isfinite(value) else math.nan
    if _OTHER_LOCALE.fullmatch(text):
        why = f"its numbers are those of a locale with another decimal point, such as '{shown(text)}'"
        raise NcuError(f"{why}: run ncu with LC_ALL=C")
    return math.nan


def _sizes(text: str) -> tuple[int, ...]:
    """Return (256, 1, 1) for "(256, 1, 1)"; nothing for other texts."""
    found = _SIZES.fullmatch(text)
    sizes = [int(part.replace(",", "") or 0) for part in found.groups()] if found else [0]
    return tuple(sizes) if all(0 < size < 2**31 for size in sizes) else ()


def _ranges(cell: str) -> Iterator[str]:
    """Yield "a" for `1  "<default domain>:a:none:none:none:none:none:none"`, and so each range in the cell."""
    for one in cell.split('"')[1::2] or [cell]:
        domain, _, name = re.sub(r"^\s*[0-9]+:", "", one).partition(":")
        if domain and name:
            yield name.rsplit(":", 6)[0]


@lru_cache(65536)
def _kernel(name: str, process: str, device: str, grid: str, block: str, *nvtx: str) -> Kernel:
    ranges = dict.fromkeys(name for cell in nvtx for name in _ranges(cell))
    number = int(device[:9]) if device.isdecimal() else 0
    return Kernel(name, _sizes(grid), _sizes(block), tuple(ranges), 0, process, number)


# ---- the text

_LONGEST_LINE = 2**20
_NVTX = ("thread Domain:Push/Pop_Range", "Id:Domain:Start/Stop_Range")  # how the names of these columns begin
_OF_KERNEL = ("Kernel Name", "Process ID", "Device", "Grid Size", "Block Size")


class _Reader:
    def __init__(self, file: BinaryIO) -> None:
        self._text = io.TextIOWrapper(file, "utf-8-sig", "replace", newline="")
        self._complaint = self._last = ""  # the last error or warning of ncu's, and the last line of the table
        self._speaks = False
        self._damaged = 0
        self._at: dict[str, int] = {}  # columns
        self._of_kernel: list[int] = []  # those that tell kernels apart
        # Each metric and unit, with the kernels that have values, and these values.
        self._cells: dict[tuple[str, str], tuple[list[int], list[str]]] = defaultdict(lambda: ([], []))
        self._table = Table()

    def _lines(self) -> Iterator[str]:
        """Yield the lines of the table; those that begin with "==" are messages of ncu's."""
        while line := self._text.readline(_LONGEST_LINE + 1):
            if len(line) > _LONGEST_LINE:
                raise NcuError("one of its lines is longer than 1 MB, which no table has")
            if not line.startswith("=="):
                self._last = line
                yield line
                continue
            self._speaks = True
            kind, _, text = line.partition("== ")
            if kind in ("==ERROR", "==WARNING"):
                self._complaint = f": ncu says '{shown(text.strip())}'"

    def _header(self, lines: Iterator[str]) -> list[str]:
        begins = ""
        for line in lines:
            fields = next(csv.reader([line])) if "Kernel Name" in line else []
            if "Kernel Name" in fields:
                return fields
            begins = begins or line.strip()
        if not begins and not self._speaks:
            raise NcuError("it is empty")
        if begins.startswith(("{", "[")):
            raise NcuError("it is JSON and not what `ncu --csv` prints")
        how = ' as `ncu --csv` prints it with a column "Kernel Name": `roofprof import --help` shows the command'
        raise NcuError("it has no table of kernels" + (self._complaint or how))

    def _rows(self, lines: Iterator[str], header: list[str], least: int) -> Iterator[list[str]]:
        header, whole = [*header, ""], True
        for row in csv.reader(lines):
            row.append("")
            if not (whole := least < len(row) <= len(header)):
                self._damaged += any(map(str.strip, row))
            elif row != header:
                row.extend([""] * (len(header) - len(row)))
                yield row
        if self._last.strip() and not self._last.endswith("\n") and (not whole or self._last.count('"') % 2):
            raise NcuError("it is cut off: its last row is not whole")

    def _field(self, row: list[str], column: str) -> str:
        return row[self._at.get(column, -1)].strip()  # rows end with an empty text

    def _add_kernel(self, row: list[str]) -> None:
        table, device = self._table, self._field(row, "Device")  # a number or a name
        table.device = self._field(row, _DEVICE) or device * (not device.isdecimal()) or table.device
        table.capability = self._field(row, "CC") or table.capability
        table.kernels.append(_kernel(*[row[column].strip() for column in self._of_kernel]))

    def read(self) -> Table:
        header = self._header(lines := self._lines())
        for index, name in enumerate(header):
            self._at.setdefault(name, index)
        nvtx = [index for index, name in enumerate(header) if name.startswith(_NVTX)]
        self._of_kernel = [*(self._at.get(name, -1) for name in _OF_KERNEL), *nvtx]
        if "Metric Name" not in header:
            self._take_kernels(self._rows(lines, header, len(header)))
        elif "Metric Value" not in header:
            raise NcuError("it sums several kernels up (--print-summary): let ncu print each of them, without that")
        else:  # whose rows end before the columns of rules
            self._take_metrics(self._rows(lines, header, self._at["Metric Value"] + 1))
        return self._finished()

    def _take_kernels(self, rows: Iterator[list[str]]) -> None:
        """Take a row for each kernel, below one of units."""
        units = next(rows, None)
        if units is None or self._field(units, "ID") or self._field(units, "Kernel Name"):
            raise NcuError("its table has no row of units below the names of the columns, as ncu writes it")
        texts = {name: list[str]() for name in self._at if name in _WANTED}
        columns = [(self._at[name], column.append) for name, column in texts.items()]
        for row in rows:
            self._add_kernel(row)
            for index, append in columns:
                append(row[index])
        every = list(range(len(self._table.kernels)))
        self._cells |= {(name, self._field(units, name)): (every, column) for name, column in texts.items()}

    def _take_metrics(self, rows: Iterator[list[str]]) -> None:
        """Take a row for each kernel and metric."""
        columns = ("Process ID", "ID", "Metric Name", "Metric Unit", "Metric Value")
        of_row = itemgetter(*(self._at.get(column, -1) for column in columns))
        last, place = None, -1
        for row in rows:
            process, number, name, unit, value = of_row(row)
            if last != (last := (process, number)):
                self._add_kernel(row)
                place += 1
            name = DURATION if name == "Duration" else name  # as sections call it
            if name in _WANTED:
                places, texts = self._cells[name, unit]
                places.append(place)
                texts.append(value)
            elif name == _DEVICE:
                self._table.device = value

    def _finished(self) -> Table:
        table, unread = self._table, list[tuple[str, str, str]]()
        if not table.kernels:
            raise NcuError("its table has no kernels" + self._complaint)
        if {metric for metric, _ in self._cells} <= {DURATION, CYCLES, RATE}:
            why = "its table has none of the metrics of bytes and operations"
            raise NcuError(f"{why}: `roofprof import --help` shows the command")
        for (metric, unit), (places, texts) in self._cells.items():
            values = table.metrics.setdefault(metric, [math.nan] * len(table.kernels))
            factor, prefixed = _scale(metric, unit.strip())
            for place, number, text in zip(places, map(_number, texts), texts, strict=True):
                if number >= 0 and factor:
                    values[place] = factor * number
                elif text.strip() not in ("", "n/a", "N/A", "nan"):
                    unread.append((metric, text, unit))
            table.rounded |= prefixed and any(value > 0 for value in values)
        table.metrics = {name: values for name, values in table.metrics.items() if not all(map(math.isnan, values))}
        if self._damaged:
            rows = many(self._damaged, "row of ncu's table has", "rows of ncu's table have")
            table.notes.append(("ncu-lacks", f"{rows} too few or too many fields: left out"))
        for metric, text, unit in unread[:1]:
            such = f"such as {metric} = {shown(text)} {shown(unit) or 'without a unit'}"
            count = many(len(unread), "value of ncu's", "values of ncu's")
            table.notes.append(("ncu-lacks", f"{count} could not be read, {such}"))
        return table


def read(file: BinaryIO) -> Table:
    """Return the table in ncu's text. Raises NcuError, one sentence, if the text has no counters."""
    begin = file.peek(3)  # type: ignore[attr-defined]
    if begin.startswith(b"NVR"):
        how = "`ncu --import FILE --csv --page raw --print-units base --log-file metrics.csv`"
        raise NcuError(f"it is a report of Nsight Compute and not its text: write that with {how}")
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise NcuError("it is text in UTF-16, as PowerShell's > writes it: let ncu write the file itself (--log-file)")
    try:
        return _Reader(file).read()
    except csv.Error as error:
        raise NcuError(f"its table cannot be read as CSV ({error})") from None
