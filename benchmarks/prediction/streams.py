"""Fit the numbers of ops that stream their tensors to measured kernels, and judge them on cards that were left out.

    python benchmarks/prediction/streams.py --measured FOLDER [--write FILE]

The tables are those of sitar-lab/NeuSight (MIT): torch 2.1, eager, fp32, the time between two events around one call.
So each time has the launch in it, LAUNCH, which the host takes and the kernel does not.
"""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from fit import DATA, least_squares, parameters_of
from torch import nn

import roofprof
from roofprof import _C

LAUNCH = 15e-6  # seconds: what the smallest calls of all five cards take beyond their bytes and the smallest kernel
CARDS = {
    "A100 PCIe 40GB": "NVIDIA A100-PCIE-40GB",
    "A100 PCIe 80GB": "NVIDIA A100 80GB PCIe",
    "V100 PCIe": "Tesla V100-PCIE-32GB",
    "T4": "Tesla T4",
    "L4": "NVIDIA L4",
}
TABLES = ("elem", "ln", "softmax")

# What is expected of each number without these measurements, and the spread of its logarithm. Norms and softmax: some
# dozens of instructions for an element.
EXPECTED: dict[tuple[str, ...], tuple[float, float]] = {
    ("gpu", "streaming", "norm_instructions"): (50.0, 0.5),
    ("gpu", "streaming", "short_softmax_instructions"): (50.0, 0.5),
    ("gpu", "streaming", "long_softmax_instructions"): (50.0, 0.5),
    ("gpu", "streaming", "row_share"): (0.5, 0.3),
}
# The share of the bandwidth that an architecture achieves, where nothing was measured.
BANDWIDTH = (0.88, 0.1)
CAPABILITY = {"A100 PCIe 40GB": "8.0", "A100 PCIe 80GB": "8.0", "V100 PCIe": "7.0", "T4": "7.5", "L4": "8.9"}


def _norm(x: torch.Tensor) -> torch.Tensor:
    weight = torch.empty(x.shape[-1])
    return nn.functional.layer_norm(x, (x.shape[-1],), weight, weight)


def _of_two(call: Callable[..., torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return call(x, torch.empty_like(x))


def _of_one(call: Callable[..., torch.Tensor], x: torch.Tensor) -> torch.Tensor:
    return call(x, 1.5)


# Names as in the tables; those that end with u take a number in place of the second tensor.
OPS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    **{call.__name__: partial(_of_two, call) for call in (torch.add, torch.mul, torch.div, torch.pow)},
    **{f"{call.__name__}u": partial(_of_one, call) for call in (torch.add, torch.mul, torch.div, torch.pow)},
    "relu": torch.relu,
    "tanh": torch.tanh,
    "gelu": nn.functional.gelu,
    "ln": _norm,
    "softmax": partial(torch.softmax, dim=-1),
}

Key = tuple[str, int, int]  # op, rows, width


class Calls(nn.Module):
    """Calls of ops on tensors of the given sizes."""

    def __init__(self, keys: Sequence[Key]) -> None:
        super().__init__()
        self.keys = keys

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for op, rows, width in self.keys:
            OPS[op](torch.empty(rows, width))
        return x


@dataclass(frozen=True)
class Cases:
    """A card's rows of one table, with their counts."""

    card: str
    table: str
    keys: list[Key]
    seconds: np.ndarray  # measured
    predictor: _C.Predictor
    places: np.ndarray  # of each row among the predictor's ops

    def predicted(self, parameters: _C.PredictionParameters) -> np.ndarray:
        """Return the seconds of each call, its launch with it."""
        seconds = self.predictor.op_seconds(_C.published_ceilings(self.card), parameters)
        return np.array(seconds)[self.places] + LAUNCH

    @property
    def bytes(self) -> np.ndarray:
        """Return the bytes that each call must move."""
        tensors = np.array([3 if op in ("add", "mul", "div", "pow") else 2 for op, _, _ in self.keys])
        return 4.0 * tensors * np.array([rows * width for _, rows, width in self.keys])


def cases(folder: Path) -> list[Cases]:
    """The tables' rows as counted ops on the meta device, with measured seconds."""
    measured: dict[tuple[str, str], dict[Key, float]] = {}
    for table in TABLES:
        with gzip.open(folder / "neusight" / f"{table}.csv.gz", "rt", newline="") as text:
            for line in csv.DictReader(text):
                key = line["OPName"], int(line["B"]), int(line["H"])
                measured.setdefault((line["Device"], table), {})[key] = float(line["Latency"]) / 1e3
    keys = sorted({key for rows in measured.values() for key in rows})
    predictor, places = _counted(keys)
    return [
        Cases(card, table, [*rows], np.array([*rows.values()]), predictor, np.array([places[key] for key in rows]))
        for card, device in CARDS.items()
        for table in TABLES
        for rows in [measured[device, table]]
    ]


def _counted(keys: Sequence[Key]) -> tuple[_C.Predictor, dict[Key, int]]:
    # A module keeps the shapes of some dozens of calls of an op, which have to be of one key to be told apart.
    by_op = [[key for key in keys if key[0] == op] for op in OPS]
    chunks = [of[begin : begin + 25] for of in by_op for begin in range(0, len(of), 25)]
    with torch.device("meta"), torch.no_grad():
        report = roofprof.count(nn.Sequential(*map(Calls, chunks)), torch.zeros(1))
    text = report.to_json().encode()
    with_work = [number for number, op in enumerate(json.loads(text)["ops"]) if op["work"]["write_bytes"]]
    in_order = [key for chunk in chunks for key in chunk]
    assert len(with_work) == len(in_order), "each call is an op of the report"
    predictor = _C.Predictor(_C.report_from_json(text), _C.PredictionOptions(autocast=False))
    return predictor, dict(zip(in_order, with_work, strict=True))


def roofline(of: Cases) -> np.ndarray:
    """Predict bytes / bandwidth times the number that suits these rows best."""
    levels = _C.published_ceilings(of.card).to_dict()["memory"]
    roof = of.bytes / next(row["bytes_per_second"] for row in levels if row["level"] == "DRAM")
    return roof * np.exp(np.median(np.log(of.seconds / roof)))


def place_of(content: dict[str, Any], path: Sequence[str]) -> dict[str, Any]:
    """The object that holds a number: below the kind of device, or an architecture's."""
    place = content["parameters"]
    if path[0] == "achieved":
        return next(entry for entry in place["achieved"] if entry["compute_capability"] == path[1])
    for key in path[:-1]:
        place = place[key]
    return place


def with_values(file: dict[str, Any], paths: Sequence[tuple[str, ...]], values: Sequence[float]) -> dict[str, Any]:
    """The file's content with these numbers."""
    content = copy.deepcopy(file)
    for path, value in zip(paths, values, strict=True):
        place_of(content, path)[path[-1]] = float(value)
    return content


def fitted(of: Sequence[Cases], file: dict[str, Any]) -> dict[str, Any]:
    """The file with the numbers that suit these tables best, each call as much as another.

    The bandwidth of 8.9 is RTX 4090's. Of it inline ECC leaves L4 0.85 in these tables, and L40S 0.92 in products that
    read their weights (ai-dynamo/aiconfigurator): `inline_ecc` is between the two.
    """
    capabilities = sorted({CAPABILITY[table.card] for table in of} - {"8.9"})
    known = {**EXPECTED, **{("achieved", capability, "dram"): BANDWIDTH for capability in capabilities}}
    paths = list(known)

    def errors(logs: np.ndarray) -> np.ndarray:
        parameters = parameters_of(with_values(file, paths, np.exp(logs)))
        return np.concatenate([np.log(table.predicted(parameters) / table.seconds) for table in of])

    calls = sum(len(table.seconds) for table in of)
    values = least_squares(errors, [known[path] for path in paths], np.full(calls, 1 / calls))
    return with_values(file, paths, [float(f"{value:.3g}") for value in values])


def left_out(of: Sequence[Cases], file: dict[str, Any], card: str) -> dict[str, Any]:
    """The file with numbers that know nothing of a card."""
    if card != "L4":
        file = with_values(file, [("achieved", CAPABILITY[card], "dram")], [BANDWIDTH[0]])
    return fitted([table for table in of if table.card != card], file)


def said(ratios: np.ndarray) -> str:
    """Return the errors of predicted / measured in words."""
    error = np.abs(ratios - 1)
    return f"median {np.median(error):6.1%}  p90 {np.quantile(error, 0.9):6.1%}  bias {np.median(ratios):.2f}"


def class_of(content: dict[str, Any], table: str) -> dict[str, Any]:
    name = {"elem": "elementwise", "ln": "row_norm", "softmax": "softmax"}[table]
    return next(entry for entry in content["parameters"]["gpu"]["classes"] if entry["name"] == name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, help="the folder that holds neusight/")
    parser.add_argument("--write", type=Path, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    file = json.loads(DATA.read_text())
    tables = cases(arguments.measured)
    everything = fitted(tables, file)
    print({path[-1]: place_of(everything, path)[path[-1]] for path in EXPECTED})
    unseen = {card: parameters_of(left_out(tables, file, card)) for card in CARDS}
    ratios: dict[str, list[np.ndarray]] = {name: [] for name in TABLES}
    for table in tables:
        ratio = table.predicted(unseen[table.card]) / table.seconds
        ratios[table.table].append(ratio)
        limits = class_of(file, table.table)
        inside = np.mean((1 / ratio > limits["low"]) & (1 / ratio < limits["high"]))
        print(f"{table.card}, {table.table}, {len(table.seconds)} calls")
        print(f"   roofline x number  {said(roofline(table) / table.seconds)}")
        print(f"   left out           {said(ratio)}  inside {inside:.1%}")
        print(f"   fitted to          {said(table.predicted(parameters_of(everything)) / table.seconds)}", flush=True)
    for name, of_table in ratios.items():
        together = np.concatenate(of_table)
        low, high = np.quantile(1 / together, (0.1, 0.9))
        print(f"{name}, all cards, each left out: {said(together)}  80%: {low:.3g} to {high:.3g}")
    if arguments.write:
        arguments.write.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
