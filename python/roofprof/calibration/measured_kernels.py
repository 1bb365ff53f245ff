"""Measured times of kernels: products in a table, or the ops of a report that a GPU ran."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from roofprof import _report
from roofprof.errors import Error
from roofprof.render.files import opened

if TYPE_CHECKING:
    from roofprof.report.report import Report

# The columns that a table may give seconds in, and what its figures are multiplied by. ai-dynamo/aiconfigurator's
# tables have `latency`, in milliseconds.
TIMES = {"seconds": 1.0, "ms": 1e-3, "us": 1e-6, "latency": 1e-3}
_DTYPES = {
    "bf16": "bfloat16",
    "fp16": "float16",
    "half": "float16",
    "fp32": "float32",
}
_MOST = 2**30
_CALLS = 25  # of one module
_MOST_PRODUCTS = 100_000  # each is counted
_LONGEST_LINE = 2**16


@dataclass(frozen=True)
class MeasuredKernels:
    """Ops of one report, and the measured seconds of some of them."""

    predictor: _report.Predictor
    places: tuple[int, ...]  # of the measured ops among the report's
    classes: tuple[str, ...]  # of each measured op; "linear in fp32" are other kernels than "linear"
    shapes: tuple[str, ...]
    seconds: tuple[float, ...]  # of all its calls together

    def predicted(self, roofs: _report.Ceilings, parameters: _report.PredictionParameters) -> list[float]:
        """Return the predicted seconds of the measured ops."""
        seconds = self.predictor.op_seconds(roofs, parameters)
        return [seconds[place] for place in self.places]


def of_report(report: Report) -> MeasuredKernels:
    """Return the ops of a report whose kernels were timed on a GPU.

    Raises ValueError for a report that has no times of a device's kernels.
    """
    content = report.to_dict()
    if not content["device_timed"] or "prediction" in content:
        raise Error("its times are not those of a GPU's kernels: nothing can be learned of them")
    return _measured(report._compiled, content)


def _measured(report: _report.Report, content: dict[str, Any]) -> MeasuredKernels:
    predictor = _report.Predictor(report, _report.PredictionOptions(autocast=False))
    found = [
        (place, kernels, f"{op['op']} {op['dtype']} {op['shapes']}", op["time_ns"] / 1e9)
        for place, (op, of_class) in enumerate(zip(content["ops"], predictor.op_classes(), strict=True))
        if (kernels := _kernels_of(of_class, op["dtype"])) and op.get("time_ns")
    ]
    places, classes, shapes, seconds = zip(*found, strict=True) if found else ((), (), (), ())
    return MeasuredKernels(predictor, places, classes, shapes, seconds)


def _kernels_of(of_class: str, dtype: str) -> str:
    """Return the kind of kernels; "" for kinds without numbers to fit, such as products in fp8."""
    if of_class not in ("linear", "batched_matmul") or dtype in ("bf16", "fp16"):
        return of_class
    return f"{of_class} in fp32" if dtype == "fp32" else ""


def of_table(path: Path) -> MeasuredKernels:
    """Return the products of a table: a CSV file, gzipped or not, of y = x w^T with x of m x k and w of n x k.

    It has the columns m, n, k, dtype (or gemm_dtype) and one of TIMES; it may have others. Rows of types that torch has
    no product of are left out. Raises ValueError, one sentence, for a table that lacks a column, has a cell that is no
    number, or has no row that can be used.
    """
    try:
        measured = _rows_of(path)
    except (UnicodeDecodeError, csv.Error) as error:
        raise Error(f"{path}: it is no table in CSV: {error}") from None
    if not measured:
        raise Error(f"{path}: no row has a type that a product can be measured in: {', '.join(_DTYPES)}")
    return products(measured)


def _rows_of(path: Path) -> dict[str, dict[tuple[int, int, int], float]]:
    measured: dict[str, dict[tuple[int, int, int], float]] = {}
    with opened(path, "a table of measured kernels") as file:
        lines = csv.DictReader(_lines_of(io.TextIOWrapper(file, newline="", encoding="utf-8-sig"), path))
        names = lines.fieldnames = [name.strip() for name in lines.fieldnames or []]
        unit = next((name for name in TIMES if name in names), None)
        dtype_column = next((name for name in ("dtype", "gemm_dtype") if name in names), None)
        lacking = [name for name in ("m", "n", "k") if name not in names]
        if dtype_column is None:
            lacking.append("dtype")
        if unit is None:
            lacking.append("seconds (or ms, us)")
        if unit is None or dtype_column is None or lacking:
            raise Error(f"{path}: the table of products lacks the column {', '.join(lacking)}")
        for number, line in enumerate(lines, 2):
            try:
                sizes = (int(line["m"]), int(line["n"]), int(line["k"]))
                seconds = float(line[unit]) * TIMES[unit]
            except (TypeError, ValueError):
                raise Error(f"{path}: line {number} has a size or a time that is no number") from None
            if min(sizes) < 1 or not 0 < seconds < float("inf"):
                raise Error(f"{path}: line {number} has a size or a time that is not above 0")
            if max(sizes) >= _MOST:
                raise Error(f"{path}: line {number} has a size of {_MOST} or more, which no product has")
            name = (line[dtype_column] or "").strip().lower().removeprefix("torch.")
            dtype = _DTYPES.get(name, name)
            if dtype in _DTYPES.values():
                measured.setdefault(dtype, {})[sizes] = seconds
            if sum(map(len, measured.values())) > _MOST_PRODUCTS:
                raise Error(f"{path}: it has more than {_MOST_PRODUCTS:,} products: give a part of them")
    return measured


def _lines_of(text: io.TextIOWrapper, path: Path) -> Iterator[str]:
    number = 0
    while line := text.readline(_LONGEST_LINE):
        number += 1
        if len(line) == _LONGEST_LINE:
            raise Error(f"{path}: line {number} has {_LONGEST_LINE:,} characters or more, which no table has")
        yield line


def products(measured: dict[str, dict[tuple[int, int, int], float]]) -> MeasuredKernels:
    """Return products y = x w^T as counted ops: by torch's name of the type, seconds by (m, n, k)."""
    import torch
    from torch import nn

    def run(call: tuple[str, tuple[int, int, int]]) -> None:
        dtype, (rows, width, depth) = getattr(torch, call[0]), call[1]
        nn.functional.linear(torch.empty(rows, depth, dtype=dtype), torch.empty(width, depth, dtype=dtype))

    report, places = counted_calls([(dtype, sizes) for dtype, rows in measured.items() for sizes in rows], run)
    content = report.to_dict()
    for place, seconds in zip(places, (one for rows in measured.values() for one in rows.values()), strict=True):
        content["ops"][place]["time_ns"] = 1e9 * seconds
    return _measured(report._compiled, content)


Call = TypeVar("Call")


def counted_calls(calls: Sequence[Call], run: Callable[[Call], object]) -> tuple[Report, list[int]]:
    """Return the count of calls on the meta device, and the place of each among its ops.

    All calls must differ from each other. ``run`` makes a call of one op, and of no other that writes anything.
    """
    import torch
    from torch import nn

    from roofprof.profiling.profiler import count

    class Calls(nn.Module):
        def __init__(self, chosen: Sequence[Call]) -> None:
            super().__init__()
            self.chosen = chosen

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for call in self.chosen:
                run(call)
            return x

    # A module keeps the shapes of some dozens of calls of an op.
    parts = [Calls(calls[begin : begin + _CALLS]) for begin in range(0, len(calls), _CALLS)]
    with torch.device("meta"), torch.no_grad():
        report = count(nn.Sequential(*parts), torch.zeros(1))
    ops = report.to_dict()["ops"]
    return report, [place for place, op in enumerate(ops) if op["work"]["write_bytes"]]
