"""Fit and judge the numbers of fused attention: prompts and decoding on four cards.

    python benchmarks/prediction/attention.py --tables FOLDER [--write FILE]

The tables are those of ai-dynamo/aiconfigurator (Apache-2.0), *_context_attention_perf and
*_generation_attention_perf: vLLM's attention operator in a replayed CUDA graph, so no host time is in it, and the
tensors are in the last cache if they fit. The operator also writes the new keys and values to its cache. Rows with a
sliding window or a cache in fp8 are left out, which torch's attention does not have, and heads deeper than 256, which
it has no fused kernel for. Each card is left out in turn. The kernels of its generation may then be fitted to the
other card that has kernels of the same design.
"""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import itertools
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
CARDS = {"a100_sxm": "A100 SXM 80GB", "h100_sxm": "H100 SXM", "b200_sxm": "B200", "l40s": "L40S"}
TABLES = {"context": "prompts", "generation": "decoding"}
DEEPEST = 256
ROBUST = 0.1  # of log(predicted / measured)
PRIOR = 2e-3  # what a prior's squared deviation, in its own spreads, weighs beside the mean of all errors
SHAPES = 50  # of an op, in one report: of more it does not tell them apart
STEP = 0.01  # of the finite differences, in logarithms
# Each number with what is known of it without these tables, and the spread of its logarithm.
SHARED = {
    "of_dram": (0.95, 0.1),
    "of_cache": (0.45, 0.3),
    "copies": (0.6, 0.3),
    "tile_of_cache": (1.5, 0.5),
    "cache_share": (0.9, 0.1),
    "ramp": (5e-6, 0.5),
    "head_bandwidth": (1.5e12, 0.7),
}
OF_KERNELS = {
    "of_peak": (0.95, 0.1),
    "score_operations": (6.0, 0.3),
    "tile_cycles": (1500.0, 0.7),
    "item_cycles": (6000.0, 0.5),
    "tail": (0.6, 0.3),
    "decoding_cycles": (3000.0, 0.7),
    "second_cycles": (5000.0, 0.5),
}
KERNELS = {"serial": ("A100 SXM 80GB", "L40S"), "overlapped": ("H100 SXM", "B200")}
# Seconds of the smallest call, by architecture. Those without a table have that of the nearest one.
LAUNCH = (8e-6, 0.3)
LAUNCHES = {
    "A100 SXM 80GB": ("6.0", "7.0", "7.5", "8.0", "8.7"),
    "L40S": ("6.1", "8.6", "8.9", "12.0"),
    "H100 SXM": ("9.0",),
    "B200": ("10.0", "10.3"),
}


class Case(NamedTuple):
    """A row of a table: shapes of queries, and of keys and values."""

    table: str
    card: str
    query: tuple[int, int, int, int]
    key: tuple[int, int, int, int]
    seconds: float

    @property
    def shapes(self) -> str:
        """Return the shapes as a count has them."""
        query, key = ("x".join(map(str, shape)) for shape in (self.query, self.key))
        return f"{query}, {key}, {key}"

    @property
    def copied(self) -> int:
        """Return the bytes that are read and written where the new keys and values are copied to the cache."""
        batch, heads, _, depth = self.key
        return 2 * 2 * 2 * batch * heads * self.query[2] * depth


def copying_bandwidth(case: Case, file: dict[str, Any]) -> float:
    """Return that of DRAM or, where all fits into it, of the last cache."""
    roofs = _C.published_ceilings(case.card)
    numbers = file["parameters"]["gpu"]["attention"]
    cache, dram = sorted(roofs.memory, key=lambda level: level.level == "DRAM")
    if case.copied < cache.capacity_bytes * numbers["cache_share"]:
        return float(cache.bytes_per_second * numbers["of_cache"] * numbers["copies"])
    return float(dram.bytes_per_second * numbers["of_dram"] * numbers["copies"])


def cases(folder: Path) -> list[Case]:
    """Return the rows that torch's attention can express."""
    found = []
    for card, name in CARDS.items():
        for kind, table in TABLES.items():
            with gzip.open(folder / "aiconfigurator" / f"{card}_{kind}_attention_perf.csv.gz", "rt") as lines:
                for row in csv.DictReader(lines):
                    depth = int(row["head_dim"])
                    if int(row.get("window_size", 0)) or row["kv_cache_dtype"] != "bfloat16" or depth > DEEPEST:
                        continue
                    batch, heads, key_heads = (int(row[n]) for n in ("batch_size", "num_heads", "num_key_value_heads"))
                    queries = int(row["isl"])
                    keys = queries if kind == "context" else int(row["step"]) + 1
                    shapes = (batch, heads, queries, depth), (batch, key_heads, keys, depth)
                    found.append(Case(table, name, *shapes, float(row["latency"]) * 1e-3))
    return found


class Counted:
    """The calls of all cases, counted once: seconds of each on a card."""

    def __init__(self, of: Sequence[Case]) -> None:
        self.predictors: list[tuple[_C.Predictor, list[str]]] = []
        calls = list({case.shapes: case for case in of}.values())
        for first in range(0, len(calls), SHAPES):
            with torch.device("meta"):
                report = roofprof.count(_run, calls[first : first + SHAPES])
            counted = _C.report_from_json(report.to_json().encode())
            shapes = [op.get("shapes", "") for op in report.to_dict()["ops"]]
            self.predictors.append((_C.Predictor(counted, _C.PredictionOptions(autocast=False)), shapes))

    def times(self, of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
        """Return the predicted seconds."""
        parameters = _C.PredictionParameters(json.dumps(file))
        seconds: dict[tuple[str, str], float] = {}
        for card in {case.card for case in of}:
            roofs = _C.published_ceilings(card)
            for predictor, shapes in self.predictors:
                for shape, time in zip(shapes, predictor.op_seconds(roofs, parameters), strict=True):
                    seconds[card, shape] = time
        return np.array([seconds[case.card, case.shapes] + case.copied / copying_bandwidth(case, file) for case in of])


def _run(calls: Sequence[Case]) -> None:
    for case in calls:
        tensors = (torch.empty(shape, dtype=torch.bfloat16) for shape in (case.query, case.key, case.key))
        causal = case.table == "prompts"
        torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=causal, enable_gqa=True)


def roofline(case: Case) -> float:
    """Return max(FLOPs / peak, bytes / bandwidth) of the published roofs; causal scores count half."""
    roofs = _C.published_ceilings(case.card)
    batch, heads, queries, depth = case.query
    scores = batch * heads * queries * (case.key[2] / 2 if case.table == "prompts" else case.key[2])
    moved = 4 * (math.prod(case.query) + math.prod(case.key))
    peak = next(peak.operations_per_second for peak in roofs.compute if peak.dtype == "bf16")
    dram = next(level.bytes_per_second for level in roofs.memory if level.level == "DRAM")
    return max(4 * scores * depth / peak, moved / dram)


def _places(
    file: dict[str, Any], cards: set[str]
) -> Iterator[tuple[list[tuple[dict[str, Any], str]], tuple[float, float]]]:
    """Yield each number's places in the file, and its prior. Where a card is left out, its sibling tells its launch."""
    attention = file["parameters"]["gpu"]["attention"]
    for name, prior in SHARED.items():
        yield [(attention, name)], prior
    for kernels, known in KERNELS.items():
        for name, prior in OF_KERNELS.items():
            yield [(attention[kernels], name)], prior
        told = [card for card in known if card in cards]
        for card in told:
            architectures = [one for other in known if other == card or other not in told for one in LAUNCHES[other]]
            places = [one for one in file["parameters"]["achieved"] if one["compute_capability"] in architectures]
            yield [(place, "attention_launch") for place in places], LAUNCH


def fitted(counted: Counted, of: Sequence[Case], file: dict[str, Any], steps: int = 15) -> dict[str, Any]:
    """Return the file with the numbers that suit these rows best; each table of a card counts the same."""
    content = copy.deepcopy(file)
    known = list(_places(content, {case.card for case in of}))
    expected = np.log([prior[0] for _, prior in known])
    spread = np.array([prior[1] for _, prior in known])
    target = np.log([case.seconds for case in of])
    groups = [(case.table, case.card) for case in of]
    rows = {group: groups.count(group) for group in set(groups)}
    share = np.array([1 / rows[group] / len(rows) for group in groups])

    def errors(logs: np.ndarray) -> np.ndarray:
        for (places, _), value in zip(known, np.exp(logs), strict=True):
            for place, name in places:
                place[name] = float(f"{value:.6g}")
        return np.log(counted.times(of, content)) - target

    def cost(error: np.ndarray, logs: np.ndarray) -> float:
        deviation = ((logs - expected) / spread) ** 2
        return float(np.sum(share * (np.sqrt(1 + (error / ROBUST) ** 2) - 1)) + PRIOR / 2 * deviation.sum())

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
    errors(np.log([float(f"{value:.3g}") for value in np.exp(logs)]))
    return content


def set_interval(counted: Counted, of: Sequence[Case], file: dict[str, Any]) -> None:
    """Set low and high of the class: the mean over the tables of what 10% and 90% of their times are below."""
    ratio = np.array([case.seconds for case in of]) / counted.times(of, file)
    tables = [
        [(case.card, case.table) == table for case in of]
        for table in itertools.product(CARDS.values(), TABLES.values())
    ]
    classes = file["parameters"]["gpu"]["classes"]
    place = next(one for one in classes if one["name"] == "attention")
    for key, quantile in (("low", 0.1), ("high", 0.9)):
        place[key] = float(f"{np.mean([np.quantile(ratio[table], quantile) for table in tables]):.3g}")


def figures(predicted: np.ndarray, measured: np.ndarray) -> str:
    """Return median and 90th percentile of |predicted / measured - 1|, and the median of predicted / measured."""
    ratio = predicted / measured
    error = np.abs(ratio - 1)
    return f"{np.median(error):7.1%} {np.quantile(error, 0.9):7.1%} {np.median(ratio):7.3f}"


def judge(counted: Counted, of: Sequence[Case], file: dict[str, Any], shipped: dict[str, Any]) -> None:
    """Print the errors with each card left out, with the fitted numbers, and those of the roofline times one number."""
    print(
        f"{'card':13} {'table':9} rows   left out: median, p90, ratio   fitted to all            roofline x one number"
    )
    for card in CARDS.values():
        without = fitted(counted, [case for case in of if case.card != card], file)
        for table in TABLES.values():
            rows = [case for case in of if (case.card, case.table) == (card, table)]
            measured = np.array([case.seconds for case in rows])
            roof = np.array([roofline(case) for case in rows])
            roof *= np.exp(np.median(np.log(measured / roof)))
            columns = [counted.times(rows, without), counted.times(rows, shipped), roof]
            print(f"{card:13} {table:9} {len(rows):5}", *(figures(column, measured) for column in columns), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=Path, required=True, help="the folder with the folder aiconfigurator")
    parser.add_argument("--write", type=Path, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    file = json.loads(DATA.read_text())
    of = cases(arguments.tables)
    counted = Counted(of)
    shipped = fitted(counted, of, file)
    print(json.dumps(shipped["parameters"]["gpu"]["attention"], indent=1))
    set_interval(counted, of, shipped)
    if arguments.write:
        arguments.write.write_text(json.dumps(shipped, indent=1) + "\n")
    judge(counted, of, file, shipped)


if __name__ == "__main__":
    main()
