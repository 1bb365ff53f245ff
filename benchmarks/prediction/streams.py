"""Fit the numbers of ops that stream their tensors to measured kernels, and judge them on cards that were left out.

    python benchmarks/prediction/streams.py --measured FOLDER [--write FILE]

The tables are those of sitar-lab/NeuSight (MIT): torch 2.1, eager, fp32, the time between two events around one call.
So each time has the launch in it, LAUNCH, which the host takes and the kernel does not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import judgement
import numpy as np
import torch
from judgement import Counted, Line, Place, Prior, parameters_of, with_values
from torch import nn

from roofprof import _C

LAUNCH = 15e-6  # seconds: what the smallest calls of all five cards take beyond their bytes and the smallest kernel
CARDS = judgement.NEUSIGHT
TABLES = ("elem", "ln", "softmax")

# Each number as it is expected without these measurements, and the spread of its logarithm. Norms and softmax take some
# dozens of instructions for an element.
EXPECTED: dict[tuple[Place, ...], Prior] = {
    (("gpu", "streaming", "norm_instructions"),): (50.0, 0.5),
    (("gpu", "streaming", "short_softmax_instructions"),): (50.0, 0.5),
    (("gpu", "streaming", "long_softmax_instructions"),): (50.0, 0.5),
    (("gpu", "streaming", "row_share"),): (0.5, 0.3),
}
# The share of the bandwidth that an architecture achieves, where nothing was measured.
BANDWIDTH = (0.88, 0.1)


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


@dataclass(frozen=True)
class Cases:
    """A card's rows of one table, with their counts."""

    card: str
    table: str
    keys: list[Key]
    seconds: np.ndarray  # measured
    counted: Counted

    def predicted(self, parameters: _C.PredictionParameters) -> np.ndarray:
        """Return the seconds of each call, its launch with it."""
        return self.counted.seconds(self.card, self.keys, parameters) + LAUNCH

    @property
    def bytes(self) -> np.ndarray:
        """Return the bytes that each call must move."""
        tensors = np.array([3 if op in ("add", "mul", "div", "pow") else 2 for op, _, _ in self.keys])
        return 4.0 * tensors * np.array([rows * width for _, rows, width in self.keys])


def cases(folder: Path) -> list[Cases]:
    """The tables' rows as counted ops on the meta device, with measured seconds."""
    measured: dict[tuple[str, str], dict[Key, float]] = {}
    for table in TABLES:
        for line in judgement.rows_of(folder / "neusight" / f"{table}.csv.gz"):
            key = line["OPName"], int(line["B"]), int(line["H"])
            measured.setdefault((line["Device"], table), {})[key] = float(line["Latency"]) / 1e3
    counted = Counted(sorted({key for rows in measured.values() for key in rows}), _run, autocast=False)
    return [
        Cases(card, table, [*rows], np.array([*rows.values()]), counted)
        for card, device in CARDS.items()
        for table in TABLES
        for rows in [measured[device, table]]
    ]


def _run(key: Key) -> None:
    op, rows, width = key
    OPS[op](torch.empty(rows, width))


def roofline(of: Cases) -> np.ndarray:
    """Predict bytes / bandwidth."""
    return judgement.roofline(_C.published_ceilings(of.card), "fp32", np.zeros(1), of.bytes)


def fitted(of: Sequence[Cases], file: dict[str, Any]) -> dict[str, Any]:
    """The file with the numbers that suit these tables best, each call as much as another.

    The bandwidth of 8.9 is RTX 4090's. Of it inline ECC leaves L4 0.85 in these tables, and L40S 0.92 in products that
    read their weights (ai-dynamo/aiconfigurator): `inline_ecc` is between the two.
    """
    capabilities = sorted({judgement.capability_of(table.card) for table in of} - {"8.9"})
    numbers = {**EXPECTED, **{(("achieved", capability, "dram"),): BANDWIDTH for capability in capabilities}}
    return judgement.fitted_to_tables(file, numbers, of, robust=0.06)


def left_out(of: Sequence[Cases], file: dict[str, Any], card: str) -> dict[str, Any]:
    """The file with numbers that know nothing of a card."""
    if card != "L4":
        file = with_values(file, [(("achieved", judgement.capability_of(card), "dram"),)], [BANDWIDTH[0]])
    return fitted([table for table in of if table.card != card], file)


def judged(measured: Path, file: dict[str, Any]) -> Iterator[Line]:
    """Yield the errors on each table."""
    tables = cases(measured)
    shipped = parameters_of(file)
    unseen = {card: parameters_of(left_out(tables, file, card)) for card in CARDS}
    for table in tables:
        yield Line(
            {"elem": "elementwise", "ln": "layer norm", "softmax": "softmax"}[table.table],
            table.card,
            [
                op if table.table == "elem" else f"rows {'below' if width < 1024 else 'from'} 1,024 wide"
                for op, _, width in table.keys
            ],
            table.seconds,
            roofline(table),
            table.predicted(shipped),
            table.counted.margins(table.card, table.keys, shipped),
            table.predicted(unseen[table.card]),
        )


def refitted(measured: Path, file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit the tables best, and print them."""
    file = fitted(cases(measured), file)
    print(file["parameters"]["gpu"]["streaming"])
    return file


def main() -> None:
    judgement.run(__doc__, refitted, judged)


if __name__ == "__main__":
    main()
