"""The scripts of this folder share these: numbers of prediction.json and their fit, counted calls, lines of errors."""

from __future__ import annotations

import argparse
import copy
import csv
import gzip
import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

import roofprof
from roofprof import _C
from roofprof.calibration import least_squares
from roofprof.calibration.measured_kernels import counted_calls

# Cards as they are known here, and as the tables of ai-dynamo/aiconfigurator and sitar-lab/NeuSight have them.
AICONFIGURATOR = {"A100 SXM 80GB": "a100_sxm", "H100 SXM": "h100_sxm", "B200": "b200_sxm", "L40S": "l40s"}
NEUSIGHT = {
    "A100 PCIe 40GB": "NVIDIA A100-PCIE-40GB",
    "A100 PCIe 80GB": "NVIDIA A100 80GB PCIe",
    "V100 PCIe": "Tesla V100-PCIE-32GB",
    "T4": "Tesla T4",
    "L4": "NVIDIA L4",
}

DATA = Path(roofprof.__file__).parent / "data" / "prediction.json"


def rows_of(table: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a packed table."""
    with gzip.open(table, "rt", newline="") as text:
        yield from csv.DictReader(text)


def capability_of(card: str) -> str:
    """Return the card's compute capability."""
    return _C.published_ceilings(card).facts.compute_capability


# A number stands there in `parameters`; entries of lists go by their name or compute capability.
Place = tuple[str, ...]
Prior = tuple[float, float]  # a number as it is expected without measurements, and the spread of its logarithm
Numbers = Mapping[tuple[Place, ...], Prior]  # by all the places of each


def holder_of(content: dict[str, Any], place: Place) -> dict[str, Any]:
    """Return the object that holds a number."""
    found: Any = content["parameters"]
    for key in place[:-1]:
        if isinstance(found, list):
            found = next(one for one in found if key in (one.get("name"), one.get("compute_capability")))
        else:
            found = found[key]
    return found


def with_values(
    file: dict[str, Any], numbers: Iterable[tuple[Place, ...]], values: Iterable[float], digits: int = 3
) -> dict[str, Any]:
    """Return the file's content with these numbers."""
    content = copy.deepcopy(file)
    for places, value in zip(numbers, values, strict=True):
        for place in places:
            holder_of(content, place)[place[-1]] = rounded(value, digits)
    return content


def rounded(value: float, digits: int = 3) -> float:
    return float(f"{value:.{digits}g}")


def parameters_of(content: dict[str, Any]) -> _C.PredictionParameters:
    return _C.PredictionParameters(json.dumps(content))


def fitted(
    file: dict[str, Any],
    numbers: Numbers,
    predicted: Callable[[dict[str, Any]], np.ndarray],
    measured: np.ndarray,
    weights: np.ndarray | None = None,
    **how: Any,
) -> dict[str, Any]:
    """Return the file with the numbers by which the predicted seconds come closest to the measured ones."""

    def trial(values: Sequence[float]) -> np.ndarray:
        return predicted(with_values(file, numbers, values, digits=12))

    return with_values(file, numbers, least_squares.fitted(trial, measured, [*numbers.values()], weights, **how))


class Table(Protocol):
    """A card's rows of one table."""

    @property
    def seconds(self) -> np.ndarray:
        """Return the measured ones."""

    def predicted(self, parameters: _C.PredictionParameters) -> np.ndarray:
        """Return the seconds of each row."""


def fitted_to_tables(
    file: dict[str, Any], numbers: Numbers, tables: Sequence[Table], weights: np.ndarray | None = None, **how: Any
) -> dict[str, Any]:
    """Return the file with the numbers that suit these tables best."""

    def predicted(content: dict[str, Any]) -> np.ndarray:
        parameters = parameters_of(content)
        return np.concatenate([table.predicted(parameters) for table in tables])

    return fitted(file, numbers, predicted, np.concatenate([table.seconds for table in tables]), weights, **how)


def shares(groups: Sequence[Hashable]) -> np.ndarray:
    """Return weights of rows by which each group of them weighs the same."""
    rows = Counter(groups)
    return np.array([1 / rows[group] / len(rows) for group in groups])


# ---- calls on the meta device


class Counted:
    """Calls of one op each, all different, that were counted once: what each takes on any card."""

    def __init__(self, calls: Sequence[Hashable], run: Callable[[Any], object], **options: Any) -> None:
        report, ops = counted_calls(calls, run)
        self.place = dict(zip(calls, ops, strict=True))
        self.predictor = _C.Predictor(report._compiled, _C.PredictionOptions(**options))  # noqa: SLF001

    def seconds(self, card: str, calls: Iterable[Hashable], parameters: _C.PredictionParameters) -> np.ndarray:
        """Return the predicted seconds of each call's kernel."""
        seconds = self.predictor.op_seconds(_C.published_ceilings(card), parameters)
        return np.array(seconds)[[self.place[call] for call in calls]]

    def seconds_by_card(
        self, cards: Sequence[str], calls: Sequence[Hashable], parameters: _C.PredictionParameters
    ) -> np.ndarray:
        """Return the predicted seconds of each call's kernel on the card of each."""
        return seconds_by_card(dict.fromkeys(cards, self), cards, calls, parameters)

    def margins(self, card: str, calls: Iterable[Hashable], parameters: _C.PredictionParameters) -> np.ndarray:
        """Return both ends of each kernel's interval, as factors on its seconds."""
        margins = self.predictor.op_margins(_C.published_ceilings(card), parameters)
        return np.array(margins)[[self.place[call] for call in calls]]


def seconds_by_card(
    counted: Mapping[str, Counted], cards: Sequence[str], calls: Sequence[Hashable], parameters: _C.PredictionParameters
) -> np.ndarray:
    """Return the predicted seconds of each call's kernel on its card; `counted` has the calls of each card."""
    of = np.array(cards)
    seconds = np.zeros(len(calls))
    for card in set(cards):
        here = np.flatnonzero(of == card)
        seconds[here] = counted[card].seconds(card, [calls[place] for place in here], parameters)
    return seconds


def roofline(roofs: _C.Ceilings, dtype: str, operations: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Return max(operations / peak, bytes / bandwidth)."""
    peak = next(peak.operations_per_second for peak in roofs.compute if peak.dtype == dtype)
    bandwidth = next(level.bytes_per_second for level in roofs.memory if level.level == "DRAM")
    return np.maximum(operations / peak, moved / bandwidth)


def op_rooflines(roofs: _C.Ceilings, ops: Sequence[dict[str, Any]], size: float = 1) -> np.ndarray:
    """Return max(operations / peak, bytes / bandwidth) of a report's ops, of elements `size` as large."""
    peaks = {peak.dtype: peak.operations_per_second for peak in roofs.compute}
    bandwidth = next(level.bytes_per_second for level in roofs.memory if level.level == "DRAM")
    works = [op["work"] for op in ops]
    compute = [sum(n / peaks.get(dtype, peaks["fp32"]) for dtype, n in work["operations"].items()) for work in works]
    moved = np.array([work["read_bytes"] + work["write_bytes"] for work in works], float)
    return np.maximum(compute, size * moved / bandwidth)


# ---- errors


@dataclass(frozen=True)
class Line:
    """A card's measured times in one table, and what is predicted of them."""

    table: str
    card: str
    kinds: Sequence[str]  # of each time: those of one kind are judged together where the worst ones are listed
    measured: np.ndarray
    roofline: np.ndarray  # before the one number that it is multiplied by
    shipped: np.ndarray
    margins: np.ndarray  # both ends of each shipped interval, as factors
    left_out: np.ndarray | None = None  # by numbers that know nothing of the card
    left_out_margins: np.ndarray | None = None  # if those are not to come from the errors on the other cards
    kernels: int = 0  # those behind the times, if more than one each

    @property
    def unseen(self) -> np.ndarray:
        """Return the prediction that knows least of the card."""
        return self.shipped if self.left_out is None else self.left_out


def inside(predicted: np.ndarray, margins: np.ndarray, measured: np.ndarray) -> float:
    """Return the part of the measured times that are inside their intervals."""
    ratio = measured / predicted
    return float(np.mean((margins[:, 0] <= ratio) & (ratio <= margins[:, 1])))


def interval_of(others: Sequence[Line], rows: int) -> np.ndarray:
    """Return the interval that holds 80% of measured / predicted of other cards, each left out and as weighty."""
    # Each card gives as many ratios as another.
    ratios = [np.quantile(line.measured / line.unseen, np.linspace(0, 1, 201)) for line in others]
    return np.tile(np.quantile(np.concatenate(ratios), (0.1, 0.9)), (rows, 1))


def times_one_number(roof: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Return the roofline times the number by which its median error is the smallest."""
    ratio = measured / roof
    numbers = np.quantile(ratio, np.linspace(0, 1, 201))
    return roof * min(numbers, key=lambda number: float(np.median(np.abs(number / ratio - 1))))


def errors(predicted: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """Return median and 90th percentile of |predicted / measured - 1|."""
    error = np.abs(predicted / measured - 1)
    return float(np.median(error)), float(np.quantile(error, 0.9))


FEWEST = 5  # times that are compared with a roofline times one number, and that make a kind
HEADER = """\
| table | card | times | median error | 90th percentile | predicted / measured | inside 80% | interval | \
roofline x a number | as shipped | inside |
|---|---|---|---|---|---|---|---|---|---|---|"""


def row_of(line: Line, lines: Sequence[Line] = ()) -> str:
    """Return the line of the Markdown table; `lines` are all that may have an interval for it."""
    measured = line.measured
    plain = errors(times_one_number(line.roofline, measured), measured)
    # One number suits a few times well, whatever they are.
    roofline = f"{plain[0]:.1%}, {plain[1]:.1%}" if len(measured) >= FEWEST else ""
    shipped = errors(line.shipped, measured)
    cells = [line.table, line.card, f"{line.kernels or len(measured):,}"]
    if line.left_out is None:
        cells += ["", "", f"{np.median(line.shipped / measured):.2f}", "", ""]
    else:
        margins, source = line.left_out_margins, "shipped"
        others = [
            one for one in lines if one.table == line.table and one.card != line.card and one.left_out is not None
        ]
        if margins is None:
            margins, source = (interval_of(others, len(measured)), "others") if others else (line.margins, source)
        median, most = errors(line.left_out, measured)
        cells += [f"{median:.1%}", f"{most:.1%}", f"{np.median(line.left_out / measured):.2f}"]
        cells += [f"{inside(line.left_out, margins, measured):.0%}", source]
    cells += [roofline, f"{shipped[0]:.1%}, {shipped[1]:.1%}"]
    return "| " + " | ".join([*cells, f"{inside(line.shipped, line.margins, measured):.0%}"]) + " |"


def say(lines: Iterable[Line]) -> None:
    """Print the table of these lines."""
    print(HEADER)
    found = [*lines]
    for line in found:
        print(row_of(line, found))


def run(
    description: str | None,
    refitted: Callable[[Path, dict[str, Any]], dict[str, Any]],
    judged: Callable[[Path, dict[str, Any]], Iterable[Line]],
) -> None:
    """Fit the numbers of the shipped file to the tables in a folder, print the errors, and write the file if asked."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measured", type=Path, required=True, help="the folder of aiconfigurator/ and neusight/")
    parser.add_argument("--write", type=Path, help="the file with the numbers that were found")
    arguments = parser.parse_args()
    file = refitted(arguments.measured, json.loads(DATA.read_text()))
    say(judged(arguments.measured, file))
    if arguments.write:
        arguments.write.write_text(json.dumps(file, indent=1) + "\n")
