"""Fit and judge the numbers of collectives: times of NCCL on 2, 4 and 8 GPUs of one machine.

    python benchmarks/prediction/collectives.py --tables FOLDER [--write FILE]

The tables are ai-dynamo/aiconfigurator's (Apache-2.0), DEVICE_nccl_perf.csv.gz: milliseconds of a call as nccl-tests
times it. `message_size` counts elements: the same number of int8 takes half the time of half precision. Each card is
left out in turn, its architecture's own numbers with it.
"""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import roofprof
from roofprof import _C

DATA = Path(roofprof.__file__).parent / "data" / "prediction.json"
CARDS = {"a100_sxm": "A100 SXM 80GB", "h100_sxm": "H100 SXM", "b200_sxm": "B200", "l40s": "L40S"}
ROBUST = 0.2  # of log(predicted / measured)
STEP = 0.01  # of the finite differences, in logarithms
# Each number with what is known of it without these tables, and the spread of its logarithm.
NUMBERS = {
    "launch": (7e-6, 0.7),
    "step": (1e-6, 0.7),
    "of_fabric": (0.75, 0.3),
    "of_pcie": (0.65, 0.3),
    "of_memory": (0.5, 0.7),
    "ring_filling": (25e-6, 0.7),
    "ring_bytes": (1e6, 0.7),
    "direct_filling": (10e-6, 0.7),
    "direct_bytes": (5e4, 0.7),
}
BY_ARCHITECTURE = {"link_latency": (1.0, 0.3), "switch_reduction": (1.0, 0.3)}
SWITCHES_ADD = {"9.0", "10.0"}  # by NVLink SHARP


class Case(NamedTuple):
    """A row of a table."""

    card: str
    collective: str
    ranks: int
    bytes: float
    seconds: float


def cases(folder: Path) -> list[Case]:
    """Return the rows of all tables."""
    found = []
    for table, card in CARDS.items():
        with gzip.open(folder / f"{table}_nccl_perf.csv.gz", "rt") as lines:
            for row in csv.DictReader(lines):
                size = float(row["message_size"]) * {"half": 2, "int8": 1}[row["nccl_dtype"]]
                collective = row["op_name"].replace("alltoall", "all_to_all")
                found.append(Case(card, collective, int(row["num_gpus"]), size, float(row["latency"]) * 1e-3))
    return found


def times(of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
    """Return the predicted seconds."""
    parameters = _C.PredictionParameters(json.dumps(file))
    roofs = {card: _C.published_ceilings(card) for card in CARDS.values()}
    return np.array(
        [_C.collective_seconds(case.collective, case.bytes, case.ranks, roofs[case.card], parameters) for case in of]
    )


def is_certain(case: Case) -> bool:
    """Return whether a row is fitted to: how more than two ranks share PCIe is their host's affair."""
    return case.card != "L40S" or case.ranks == 2


class Number(NamedTuple):
    """A number that is fitted: where it stands in the file, and its prior."""

    place: dict[str, Any]
    name: str
    prior: tuple[float, float]


def numbers_of(of: Sequence[Case], content: dict[str, Any]) -> list[Number]:
    """Return the numbers that these rows tell, and remove those of architectures without rows."""
    found = [Number(content["parameters"]["collectives"], name, prior) for name, prior in NUMBERS.items()]
    seen = {_C.published_ceilings(card).facts.compute_capability for card in {case.card for case in of}}
    for architecture in content["parameters"]["achieved"]:
        for name, prior in BY_ARCHITECTURE.items():
            architecture.pop(name, None)
            told = seen & SWITCHES_ADD if name == "switch_reduction" else seen
            if architecture["compute_capability"] in told:
                found.append(Number(architecture, name, prior))
    return found


def fitted(of: Sequence[Case], file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit these rows best."""
    of = [case for case in of if is_certain(case)]
    content = copy.deepcopy(file)
    numbers = numbers_of(of, content)
    expected = np.log([number.prior[0] for number in numbers])
    spread = np.array([number.prior[1] for number in numbers])
    target = np.log([case.seconds for case in of])

    def errors(logs: np.ndarray) -> np.ndarray:
        for number, value in zip(numbers, np.exp(logs), strict=True):
            number.place[number.name] = float(value)
        return np.log(times(of, content)) - target

    logs = expected.copy()
    for _ in range(12):
        error = errors(logs)
        slopes = np.stack([(errors(logs + STEP * unit) - error) / STEP for unit in np.eye(len(logs))], axis=1)
        weight = 1 / np.sqrt(1 + (error / ROBUST) ** 2)
        curvature = (slopes * weight[:, None]).T @ slopes / ROBUST**2 + np.diag(spread**-2)
        gradient = slopes.T @ (weight * error) / ROBUST**2 + (logs - expected) / spread**2
        logs -= np.clip(np.linalg.solve(curvature, gradient), -1, 1)
    for number, value in zip(numbers, np.exp(logs), strict=True):
        number.place[number.name] = _rounded(value)
    architectures = {one["compute_capability"]: one for one in content["parameters"]["achieved"]}
    for name in BY_ARCHITECTURE:  # B300, as B200
        if name in architectures["10.0"]:
            architectures["10.3"][name] = architectures["10.0"][name]
    return content


def _rounded(value: float) -> float:
    return round(float(value), 2 - math.floor(math.log10(abs(value))))


def roofline(of: Sequence[Case]) -> np.ndarray:
    """Return wire bytes / the link's rate, times the one number that suits these rows best."""
    factors = {"all_reduce": 2}
    seconds = np.array(
        [
            factors.get(case.collective, 1)
            * (1 - 1 / case.ranks)
            * case.bytes
            / _C.published_ceilings(case.card).facts.link_bytes_per_second
            for case in of
        ]
    )
    measured = np.array([case.seconds for case in of])
    numbers = np.exp(np.linspace(-1, 7, 400))
    best = min(numbers, key=lambda number: np.median(np.abs(number * seconds / measured - 1)))
    return seconds * best


def figures(predicted: np.ndarray, measured: np.ndarray, interval: tuple[float, float]) -> str:
    """Return median and 90th percentile of the error, the median of predicted / measured, and the part inside."""
    ratio = predicted / measured
    error = np.abs(ratio - 1)
    inside = np.mean((interval[0] <= 1 / ratio) & (1 / ratio <= interval[1]))
    return f"{np.median(error):6.1%} {np.quantile(error, 0.9):6.1%} {np.median(ratio) - 1:+6.1%} {inside:4.0%}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True)
    parser.add_argument("--write", type=Path, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    rows = cases(arguments.tables)
    measured = np.array([case.seconds for case in rows])
    card_of = np.array([case.card for case in rows])
    ranks_of = np.array([case.ranks for case in rows])
    file = json.loads(DATA.read_text())
    everything = fitted(rows, file)
    left_out = np.zeros(len(rows))
    for card in CARDS.values():
        without = fitted([case for case in rows if case.card != card], file)
        left_out[card_of == card] = times([case for case in rows if case.card == card], without)
    # The interval is that of cards that were left out, without what a note calls doubtful.
    certain = np.array([is_certain(case) for case in rows])
    numbers = everything["parameters"]["collectives"]
    low, high = (_rounded(value) for value in np.quantile((measured / left_out)[certain], (0.1, 0.9)))
    numbers["low"], numbers["high"] = low, high
    shipped = times(rows, everything)
    print("median error, 90th percentile, bias, inside 80%: card left out | all fitted | wire bytes / link x number")
    for card in CARDS.values():
        for ranks in (2, 4, 8, 0):
            some = (card_of == card) & ((ranks_of == ranks) | (ranks == 0))
            plain = roofline([case for case, is_one in zip(rows, some, strict=True) if is_one])
            columns = [figures(one, measured[some], (low, high)) for one in (left_out[some], shipped[some], plain)]
            print(f"{card:14} {ranks or 'all':4}", " | ".join(columns))
    print(f"{'all':19}", figures(left_out, measured, (low, high)), "|", figures(shipped, measured, (low, high)))
    print(json.dumps(numbers))
    for architecture in everything["parameters"]["achieved"]:
        print({key: architecture[key] for key in ("compute_capability", *BY_ARCHITECTURE) if key in architecture})
        architecture["source"] = architecture.pop("source")  # the last key
    if arguments.write:
        arguments.write.write_text(json.dumps(everything, indent=1) + "\n")


if __name__ == "__main__":
    main()
