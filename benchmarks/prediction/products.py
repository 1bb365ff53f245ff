"""Fit the numbers of matrix products to measured kernels, and judge them on cards that were left out.

    python benchmarks/prediction/products.py --measured FOLDER [--write FILE]

The tables are those of ai-dynamo/aiconfigurator (Apache-2.0): y = x w^T, captured into a graph that is replayed, so
that no host time is in them; six layers in turn, so that large weights come from memory. The numbers are fitted to
bf16. In fp8 and fp4 a row holds another kernel as well, vLLM's conversion of x: what the table takes beyond the
prediction is fitted as a + b rows + c elements of x, and what is left is judged. Scales by block (fp8_block) are left
out: torch has no op for them, and those times are the host's.
"""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

import roofprof
from roofprof import _C

DATA = Path(roofprof.__file__).parent / "data" / "prediction.json"
TABLES = {"A100 SXM 80GB": "a100_sxm", "H100 SXM": "h100_sxm", "B200": "b200_sxm", "L40S": "l40s"}
TYPES = {"bfloat16": torch.bfloat16, "fp8": torch.float8_e4m3fn, "nvfp4": torch.float4_e2m1fn_x2}
PEAKS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
BYTES = {"bfloat16": 2, "fp8": 1, "nvfp4": 0.5}  # of an element

# What is expected of each number without these measurements, and the spread of its logarithm.
SHARED: dict[tuple[str, ...], tuple[float, float]] = {
    ("product", "tile_side"): (100.0, 0.3),  # at which tensor cores take as long as their operands
    ("product", "byte_latency"): (0.6e-9, 0.3),  # a step of 128 bytes in 80 ns: a fraction of the cache's latency
    ("product", "split"): (3e-6, 0.3),  # a second kernel, or its like
    ("product", "exposed_output"): (0.3, 0.5),
    ("product", "overlap"): (2.5, 0.2),
}
OF_BANDWIDTH = (0.9, 0.05)  # of the class
# Those of each architecture. Of one that no table has they are these.
KERNELS = {"launch": (2e-6, 0.5), "of_peak": (1.0, 0.2)}
CAPABILITY = {"A100 SXM 80GB": "8.0", "H100 SXM": "9.0", "B200": "10.0", "L40S": "8.9"}


class Products(nn.Module):
    """Products of the given rows, outputs and depths."""

    def __init__(self, sizes: Sequence[tuple[int, int, int]], dtype: torch.dtype) -> None:
        super().__init__()
        self.sizes, self.dtype = sizes, dtype

    def forward(self) -> None:
        for rows, width, depth in self.sizes:
            packed = depth // 2 if self.dtype is torch.float4_e2m1fn_x2 else depth
            x, w = torch.empty(rows, packed, dtype=self.dtype), torch.empty(width, packed, dtype=self.dtype)
            if self.dtype is torch.bfloat16:
                nn.functional.linear(x, w)
                continue
            scales = [torch.empty(()), torch.empty(())]
            if self.dtype is torch.float4_e2m1fn_x2:  # one for 16 elements, in blocks of 128 x 4
                blocks = [-(-lines // 128) * 128 * -(-depth // 64) * 4 for lines in (rows, width)]
                scales = [torch.empty(number, dtype=torch.float8_e4m3fn) for number in blocks]
            torch._scaled_mm(x, w.t(), *scales, out_dtype=torch.bfloat16)  # noqa: SLF001  (torch has no other name)


class Parts(nn.Module):
    """Modules that are called one after the other."""

    def __init__(self, parts: Sequence[nn.Module]) -> None:
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for part in self.parts:
            part()
        return x


@dataclass(frozen=True)
class Cases:
    """A card's rows of one type, with their counts."""

    card: str
    dtype: str
    sizes: np.ndarray  # rows, outputs, depth of each
    seconds: np.ndarray  # measured
    predictor: _C.Predictor
    places: np.ndarray  # of each row among the predictor's ops

    def predicted(self, parameters: _C.PredictionParameters) -> np.ndarray:
        """Return the seconds of each row's kernel."""
        return np.array(self.predictor.op_seconds(_C.published_ceilings(self.card), parameters))[self.places]


def _rows(file: Path) -> Iterator[tuple[str, tuple[int, int, int], float]]:
    with gzip.open(file, "rt", newline="") as text:
        for line in csv.DictReader(text):
            yield line["gemm_dtype"], (int(line["m"]), int(line["n"]), int(line["k"])), float(line["latency"]) / 1e3


def cases(folder: Path, dtypes: Sequence[str] = ("bfloat16",)) -> list[Cases]:
    """The tables' rows as counted ops on the meta device, with measured seconds."""
    found = []
    for card, name in TABLES.items():
        rows = list(_rows(folder / "aiconfigurator" / f"{name}_gemm_perf.csv.gz"))
        for dtype in dtypes:
            measured = {sizes: seconds for of, sizes, seconds in rows if of == dtype}
            if measured:
                found.append(counted(card, dtype, measured))
    return found


def counted(card: str, dtype: str, measured: dict[tuple[int, int, int], float], **options: Any) -> Cases:
    """The products of these sizes (rows, outputs, depth) with their seconds; the options are the prediction's."""
    sizes = list(measured)
    # A module keeps the shapes of some dozens of calls of an op.
    chunks = [Products(sizes[begin : begin + 25], TYPES[dtype]) for begin in range(0, len(sizes), 25)]
    with torch.device("meta"), torch.no_grad():
        report = roofprof.count(Parts(chunks), torch.zeros(1))
    text = report.to_json().encode()
    place = {}
    for number, op in enumerate(json.loads(text)["ops"]):
        if op["op"] in ("aten::linear", "aten::_scaled_mm"):
            x, w = (tuple(map(int, shape.split("x"))) for shape in op["shapes"].split(", ")[:2])
            of_linear = op["op"] == "aten::linear"
            place[x[0], w[0] if of_linear else w[1], x[1] * (2 if op["dtype"] == "fp4" else 1)] = number
    places = np.array([place[of] for of in sizes])
    predictor = _C.Predictor(_C.report_from_json(text), _C.PredictionOptions(autocast=False, **options))
    return Cases(card, dtype, np.array(sizes, float), np.array(list(measured.values())), predictor, places)


def roofline(of: Cases) -> np.ndarray:
    """Predict max(FLOPs / peak, bytes / bandwidth) times the number that suits these rows best."""
    roofs = _C.published_ceilings(of.card).to_dict()
    peak = next(row["operations_per_second"] for row in roofs["compute"] if row["dtype"] == PEAKS[of.dtype])
    bandwidth = next(row["bytes_per_second"] for row in roofs["memory"] if row["level"] == "DRAM")
    m, n, k = of.sizes.T
    roof = np.maximum(2 * m * n * k / peak, (BYTES[of.dtype] * (m * k + n * k) + 2 * m * n) / bandwidth)
    return roof * np.exp(np.median(np.log(of.seconds / roof)))


def with_conversion(of: Cases, seconds: np.ndarray) -> np.ndarray:
    """Add the conversion of x to the seconds of products: a + b rows + c elements, as the table has it."""
    if of.dtype == "bfloat16":
        return seconds
    rows, depth = of.sizes[:, 0], of.sizes[:, 2]
    terms = np.stack([np.ones_like(rows), rows, rows * depth], axis=1)
    found = np.linalg.lstsq(terms / of.seconds[:, None], 1 - seconds / of.seconds, rcond=None)[0]
    return seconds + terms @ np.maximum(found, 0)


# ---- numbers


def place_of(content: dict[str, Any], path: tuple[str, ...]) -> dict[str, Any]:
    """The object that holds a number: below the kind, or below an architecture's entry."""
    parameters = content["parameters"]
    if path[0] == "achieved":
        return next(entry for entry in parameters["achieved"] if entry["compute_capability"] == path[1])["product"]
    if path[0] == "linear":
        return next(entry for entry in parameters["gpu"]["classes"] if entry["name"] == "linear")
    return parameters["gpu"][path[0]]


def priors(of: Sequence[Cases]) -> dict[tuple[str, ...], tuple[float, float]]:
    """Return the prior of each number that these cases say something of."""
    found = {**SHARED, ("linear", "of_bandwidth"): OF_BANDWIDTH}
    for capability in sorted({CAPABILITY[table.card] for table in of}):
        found |= {("achieved", capability, name): prior for name, prior in KERNELS.items()}
    return found


def with_values(file: dict[str, Any], paths: Sequence[tuple[str, ...]], values: Sequence[float]) -> dict[str, Any]:
    """The file's content with these numbers."""
    content = copy.deepcopy(file)
    for path, value in zip(paths, values, strict=True):
        place_of(content, path)[path[-1]] = float(f"{value:.3g}")
    return content


def parameters_of(content: dict[str, Any]) -> _C.PredictionParameters:
    return _C.PredictionParameters(json.dumps(content))


ROBUST = 0.1  # of log(predicted / measured): beyond it an error counts linearly
PRIOR = 2e-3  # what a prior's squared deviation, in its own spreads, weighs beside the mean of all errors
STEP = 0.02  # of the finite differences, in logarithms


def fitted(of: Sequence[Cases], file: dict[str, Any], steps: int = 12) -> dict[str, Any]:
    """The file with the numbers that suit these tables best, each table as much as another."""
    known = priors(of)
    paths = list(known)
    expected = np.log([known[path][0] for path in paths])
    spread = np.array([known[path][1] for path in paths])
    share = np.concatenate([np.full(len(table.seconds), 1 / len(table.seconds) / len(of)) for table in of])

    def errors(logs: np.ndarray) -> np.ndarray:
        content = copy.deepcopy(file)
        for path, value in zip(paths, np.exp(logs), strict=True):
            place_of(content, path)[path[-1]] = float(value)
        parameters = parameters_of(content)
        return np.concatenate([np.log(table.predicted(parameters) / table.seconds) for table in of])

    def cost(error: np.ndarray, logs: np.ndarray) -> float:
        deviation = ((logs - expected) / spread) ** 2
        return float(share @ (np.sqrt(1 + (error / ROBUST) ** 2) - 1) + PRIOR / 2 * deviation.sum())

    logs, damping = expected.copy(), 1e-3
    error = errors(logs)
    for _ in range(steps):
        slopes = np.stack([(errors(logs + STEP * unit) - error) / STEP for unit in np.eye(len(logs))], axis=1)
        weight = share / np.sqrt(1 + (error / ROBUST) ** 2) / ROBUST**2
        curvature = (slopes * weight[:, None]).T @ slopes + np.diag(PRIOR / spread**2)
        gradient = slopes.T @ (weight * error) + PRIOR * (logs - expected) / spread**2
        before = cost(error, logs)
        for _ in range(6):
            trial = logs - np.linalg.solve(curvature + damping * np.diag(np.diag(curvature)), gradient)
            trial_error = errors(trial)
            if cost(trial_error, trial) < before:
                break
            damping *= 8
        else:
            break
        logs, error, damping = trial, trial_error, damping / 4
        if before - cost(error, logs) < 1e-4 * before:
            break
    return with_values(file, paths, np.exp(logs))


def without(file: dict[str, Any], card: str) -> dict[str, Any]:
    """The file with what is expected of the card's architecture in place of what was measured there."""
    paths = [("achieved", CAPABILITY[card], name) for name in KERNELS]
    return with_values(file, paths, [KERNELS[path[-1]][0] for path in paths])


def interval(ratios: np.ndarray) -> tuple[float, float]:
    """Return the factors between which 80% of measured / predicted lie, each table as much as another."""
    return tuple(float(f"{value:.3g}") for value in np.quantile(ratios, (0.1, 0.9)))


def said(ratios: np.ndarray) -> str:
    """Return the errors of predicted / measured in words."""
    error = np.abs(ratios - 1)
    return f"median {np.median(error):6.1%}  p90 {np.quantile(error, 0.9):6.1%}  bias {np.median(ratios):.2f}"


def left_out(tables: Sequence[Cases], file: dict[str, Any], card: str) -> dict[str, Any]:
    """The file with numbers that know nothing of a card."""
    return fitted([table for table in tables if table.card != card], without(file, card))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, help="the folder that holds aiconfigurator/")
    parser.add_argument("--write", type=Path, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    file = json.loads(DATA.read_text())
    tables = cases(arguments.measured)
    shipped = fitted(tables, file)
    class_ = place_of(file, ("linear", "low"))
    low, high = class_["low"], class_["high"]
    for table in cases(arguments.measured, tuple(TYPES)):
        print(f"{table.card}, {table.dtype}, {len(table.seconds)} products")
        print(f"   roofline x number  {said(roofline(table) / table.seconds)}")
        for name, content in (("left out", left_out(tables, file, table.card)), ("fitted to", shipped)):
            ratios = with_conversion(table, table.predicted(parameters_of(content))) / table.seconds
            inside = np.mean((1 / ratios > low) & (1 / ratios < high))
            print(f"   {name:18} {said(ratios)}  inside {inside:.1%}  80% {interval(1 / ratios)}", flush=True)
    if arguments.write:
        arguments.write.write_text(json.dumps(shipped, indent=1) + "\n")


if __name__ == "__main__":
    main()
