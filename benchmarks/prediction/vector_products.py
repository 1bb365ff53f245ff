"""Fit and judge the numbers of products in fp32 on vector units: single calls on five cards.

    python benchmarks/prediction/vector_products.py --tables FOLDER [--write FILE]

The tables are NeuSight's (sitar-lab/NeuSight, MIT), linear.csv.gz and bmm.csv.gz: torch 2.1, eager, without TF32. The
outputs are M x K there, N is the inner dimension. A time goes from event to event around one call, so what the host
takes to launch it is in it: one number for all rows, which the prediction of the kernel does not have. Each card is
left out in turn. What it alone could tell of its architecture is then what is known without it: PRIORS.
"""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

import roofprof
from roofprof import _C

DATA = Path(roofprof.__file__).parent / "data" / "prediction.json"
CARDS = {
    "NVIDIA A100-PCIE-40GB": "A100 PCIe 40GB",
    "NVIDIA A100 80GB PCIe": "A100 PCIe 80GB",
    "Tesla V100-PCIE-32GB": "V100 PCIe",
    "Tesla T4": "T4",
    "NVIDIA L4": "L4",
}
TABLES = ("linear", "bmm")
ROBUST = 0.1  # of log(predicted / measured)
SHAPES = 50  # of an op, in one report: of more it does not tell them apart
STEP = 0.01  # of the finite differences, in logarithms
LAUNCH = (28e-6, 0.3)  # seconds of the host
# Each number with what is known of it without these tables, and the spread of its logarithm.
NUMBERS = {"load": (10.0, 0.5), "prologue": (8.0, 0.5)}
# Of architectures, whose numbers are those of a process and of a kind of memory. Energy per FLOP: 12 nm: V100's 250 W
# by its 14 TFLOP/s, which it holds; 7 nm: A30's 165 W by its 10.3 TFLOP/s; 4N: L20, 275 W and 39 TFLOP/s measured.
PRIORS: dict[str, tuple[tuple[str, ...], tuple[float, float]]] = {
    "vector_picojoules of 12 nm": (("7.0", "7.5"), (17.9, 0.1)),
    "vector_picojoules of 7 nm": (("8.0",), (16.0, 0.1)),
    "vector_picojoules of 4N": (("8.9", "9.0"), (7.05, 0.1)),
    "dram_picojoules of GDDR": (("6.1", "7.5", "8.6", "8.9", "12.0"), (90.0, 0.3)),
}


class Case(NamedTuple):
    """A row of a table."""

    table: str
    card: str
    shape: tuple[int, int, int, int]  # batch, rows, depth, width
    seconds: float


def cases(folder: Path) -> list[Case]:
    """Return the rows of both tables. None ran on tensor cores: the kernels' names say so."""
    found = []
    for table in TABLES:
        with gzip.open(folder / f"{table}.csv.gz", "rt") as lines:
            for row in csv.DictReader(lines):
                assert "sgemm" in row["Kernel Name"], row
                shape = tuple(int(row[name]) for name in "BMNK")
                found.append(Case(table, CARDS[row["Device"]], shape, float(row["Latency"]) * 1e-3))
    return found


class Counted:
    """The products of all cases, counted once: seconds of each on a card."""

    def __init__(self, of: Sequence[Case]) -> None:
        self.predictors: list[tuple[_C.Predictor, list[tuple[str, str]]]] = []
        products = sorted({(case.table, case.shape) for case in of})
        for first in range(0, len(products), SHAPES):
            with torch.device("meta"):
                report = roofprof.count(_run, products[first : first + SHAPES])
            counted = _C.report_from_json(report.to_json().encode())
            ops = [(op["op"], op.get("shapes", "")) for op in report.to_dict()["ops"]]
            self.predictors.append((_C.Predictor(counted, _C.PredictionOptions()), ops))

    def times(self, of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
        """Return the predicted seconds of the kernels."""
        parameters = _C.PredictionParameters(json.dumps(file))
        seconds: dict[tuple[str, tuple[str, str]], float] = {}
        for card in {case.card for case in of}:
            roofs = _C.published_ceilings(card)
            for predictor, ops in self.predictors:
                for op, time in zip(ops, predictor.op_seconds(roofs, parameters), strict=True):
                    seconds[card, op] = time
        return np.array([seconds[case.card, _op(case)] for case in of])


def _run(products: Sequence[tuple[str, tuple[int, int, int, int]]]) -> None:
    for table, (batch, rows, depth, width) in products:
        if table == "linear":
            torch.nn.functional.linear(torch.empty(rows, depth), torch.empty(width, depth), torch.empty(width))
        else:
            torch.bmm(torch.empty(batch, rows, depth), torch.empty(batch, depth, width))


def _op(case: Case) -> tuple[str, str]:
    batch, rows, depth, width = case.shape
    if case.table == "linear":
        return "aten::linear", f"{rows}x{depth}, {width}x{depth}, {width}"
    return "aten::bmm", f"{batch}x{rows}x{depth}, {batch}x{depth}x{width}"


def _places(content: dict[str, Any]) -> Iterator[tuple[list[tuple[dict[str, Any], str]], tuple[float, float]]]:
    """Yield each number's places in the file, and its prior."""
    for name, prior in NUMBERS.items():
        yield [(content["parameters"]["gpu"]["vector_product"], name)], prior
    for name, (architectures, prior) in PRIORS.items():
        yield (
            [
                (one, name.split()[0])
                for one in content["parameters"]["achieved"]
                if one["compute_capability"] in architectures
            ],
            prior,
        )


def fitted(counted: Counted, of: Sequence[Case], file: dict[str, Any]) -> tuple[dict[str, Any], float]:
    """Return the file with the numbers that suit these rows best, and the seconds of a launch."""
    content = copy.deepcopy(file)
    places = list(_places(content))
    expected = np.log([prior[0] for _, prior in places] + [LAUNCH[0]])
    spread = np.array([prior[1] for _, prior in places] + [LAUNCH[1]])
    target = np.log([case.seconds for case in of])
    groups = [(case.table, case.card) for case in of]
    rows = {group: groups.count(group) for group in set(groups)}
    share = np.array([100 / rows[group] for group in groups])  # a table of a card counts as a hundred rows

    def set_values(values: Sequence[float]) -> None:
        for (found, _), value in zip(places, values, strict=False):
            for place, name in found:
                place[name] = float(value)

    def errors(logs: np.ndarray) -> np.ndarray:
        set_values(np.exp(logs))
        return np.log(counted.times(of, content) + np.exp(logs[-1])) - target

    logs = expected.copy()
    for _ in range(10):
        error = errors(logs)
        slopes = np.stack([(errors(logs + STEP * unit) - error) / STEP for unit in np.eye(len(logs))], axis=1)
        weight = share / np.sqrt(1 + (error / ROBUST) ** 2) / ROBUST
        curvature = (slopes * weight[:, None]).T @ slopes + np.diag(spread**-2)
        step = np.linalg.solve(curvature, slopes.T @ (weight * error) + (logs - expected) / spread**2)
        logs -= np.clip(step, -0.3, 0.3)
    set_values([_rounded(value) for value in np.exp(logs)])
    return content, float(np.exp(logs[-1]))


def _rounded(value: float) -> float:
    return round(float(value), 2 - math.floor(math.log10(abs(value))))


def roofline(of: Sequence[Case]) -> np.ndarray:
    """Return max(FLOPs / peak, bytes / bandwidth), times the one number that suits these rows best."""

    def bound(case: Case) -> float:
        roofs = _C.published_ceilings(case.card)
        batch, rows, depth, width = case.shape
        flops = 2 * batch * rows * depth * width
        moved = 4 * batch * (rows * depth + depth * width + rows * width)
        peak = next(peak.operations_per_second for peak in roofs.compute if peak.dtype == "fp32")
        dram = next(level.bytes_per_second for level in roofs.memory if level.level == "DRAM")
        return max(flops / peak, moved / dram)

    seconds = np.array([bound(case) for case in of])
    measured = np.array([case.seconds for case in of])
    best = min(np.exp(np.linspace(-1, 3, 400)), key=lambda number: np.median(np.abs(number * seconds / measured - 1)))
    return seconds * best


def figures(predicted: np.ndarray, measured: np.ndarray) -> str:
    """Return median and 90th percentile of the error, and the median of predicted / measured."""
    error = np.abs(predicted / measured - 1)
    return f"{np.median(error):7.1%} {np.quantile(error, 0.9):7.1%} {np.median(predicted / measured) - 1:+7.1%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--write", type=Path, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    rows = cases(arguments.tables)
    counted = Counted(rows)
    file = json.loads(DATA.read_text())
    everything, launch = fitted(counted, rows, file)
    print(f"launch {launch * 1e6:.1f} us, {everything['parameters']['gpu']['vector_product']}")
    print(f"{'table':8} {'left out':16} rows   median     p90    bias   | nothing left out       | roofline x a number")
    for card in CARDS.values():
        without, seconds = fitted(counted, [case for case in rows if case.card != card], file)
        for table in TABLES:
            here = [case for case in rows if (case.table, case.card) == (table, card)]
            measured = np.array([case.seconds for case in here])
            left_out = figures(counted.times(here, without) + seconds, measured)
            shipped = figures(counted.times(here, everything) + launch, measured)
            simple = figures(roofline(here), measured)
            print(f"{table:8} {card:16} {len(here):4}  {left_out} | {shipped} | {simple}", flush=True)
    if arguments.write:
        arguments.write.write_text(json.dumps(everything, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
