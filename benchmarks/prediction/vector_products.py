"""Fit and judge the numbers of products in fp32 on vector units: single calls on five cards.

    python benchmarks/prediction/vector_products.py --measured FOLDER [--write FILE]

The tables are NeuSight's (sitar-lab/NeuSight, MIT), linear.csv.gz and bmm.csv.gz: torch 2.1, eager, without TF32. The
outputs are M x K there, N is the inner dimension. A time goes from event to event around one call, so what the host
takes to launch it is in it: one number for all rows, which the prediction of the kernel does not have. Each card is
left out in turn. What it alone could tell of its architecture is then what is known without it: PRIORS.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import judgement
import numpy as np
import torch
from judgement import DATA, Counted, Line, Place, Prior, parameters_of, with_values

from roofprof import _C
from roofprof.calibration import least_squares

CARDS = judgement.NEUSIGHT
TABLES = ("linear", "bmm")
LAUNCH = (28e-6, 0.3)  # seconds of the host
# Each number with what is known of it without these tables, and the spread of its logarithm.
NUMBERS: dict[tuple[Place, ...], Prior] = {
    (("gpu", "vector_product", "load"),): (10.0, 0.5),
    (("gpu", "vector_product", "prologue"),): (8.0, 0.5),
}
# Architectures of one process, or with one kind of memory, share these numbers. Energy per FLOP: 12 nm: V100's 250 W
# by its 14 TFLOP/s, which it holds; 7 nm: A30's 165 W by its 10.3 TFLOP/s; 4N: L20, 275 W and 39 TFLOP/s measured.
PRIORS: tuple[tuple[str, tuple[str, ...], Prior], ...] = (
    ("vector_picojoules", ("7.0", "7.5"), (17.9, 0.1)),  # 12 nm
    ("vector_picojoules", ("8.0",), (16.0, 0.1)),  # 7 nm
    ("vector_picojoules", ("8.9", "9.0"), (7.05, 0.1)),  # 4N
    ("dram_picojoules", ("6.1", "7.5", "8.6", "8.9", "12.0"), (90.0, 0.3)),  # GDDR
)
NUMBERS |= {tuple(("achieved", one, name) for one in of): prior for name, of, prior in PRIORS}
# A prior weighs as much as ten rows, where each table of a card counts as a hundred.
PRIOR = 0.1

Product = tuple[str, tuple[int, int, int, int]]  # table; batch, rows, depth, width


class Case(NamedTuple):
    """A row of a table."""

    table: str
    card: str
    shape: tuple[int, int, int, int]  # batch, rows, depth, width
    seconds: float

    @property
    def product(self) -> Product:
        """Return what is counted."""
        return self.table, self.shape


def cases(folder: Path) -> list[Case]:
    """Return the rows of both tables. None ran on tensor cores: the kernels' names say so."""
    found = []
    cards = {device: card for card, device in CARDS.items()}
    for table in TABLES:
        for row in judgement.rows_of(folder / f"{table}.csv.gz"):
            assert "sgemm" in row["Kernel Name"], row
            shape = tuple(int(row[name]) for name in "BMNK")
            found.append(Case(table, cards[row["Device"]], shape, float(row["Latency"]) * 1e-3))
    return found


def counted(of: Sequence[Case]) -> Counted:
    return Counted(sorted({case.product for case in of}), _run)


def _run(product: Product) -> None:
    table, (batch, rows, depth, width) = product
    if table == "linear":
        torch.nn.functional.linear(torch.empty(rows, depth), torch.empty(width, depth), torch.empty(width))
    else:
        torch.bmm(torch.empty(batch, rows, depth), torch.empty(batch, depth, width))


def times(products: Counted, of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
    """Return the predicted seconds of the kernels."""
    return products.seconds_by_card([case.card for case in of], [case.product for case in of], parameters_of(file))


def fitted(
    products: Counted, of: Sequence[Case], file: dict[str, Any], numbers: dict[tuple[Place, ...], Prior] | None = None
) -> tuple[dict[str, Any], float]:
    """Return the file with the numbers (default: all) that suit these rows best, and the seconds of a launch."""
    numbers = NUMBERS if numbers is None else numbers
    groups = [(case.table, case.card) for case in of]

    def predicted(values: list[float]) -> np.ndarray:
        return times(products, of, with_values(file, numbers, values[:-1], digits=12)) + values[-1]

    *values, launch = least_squares.fitted(
        predicted,
        np.array([case.seconds for case in of]),
        [*numbers.values(), LAUNCH],
        judgement.shares(groups),
        prior=PRIOR / len(set(groups)),
        difference=0.01,
    )
    return with_values(file, numbers, values), launch


@cache
def left_out(tables: Path, card: str) -> tuple[dict[str, Any], float]:
    """Return the shipped file with numbers that know nothing of a card, and the seconds of a launch."""
    rows = [case for case in cases(tables) if case.card != card]
    return fitted(counted(rows), rows, json.loads(DATA.read_text()))


def roofline(of: Sequence[Case]) -> np.ndarray:
    """Return max(FLOPs / peak, bytes / bandwidth) of products on one card."""
    batch, rows, depth, width = np.array([case.shape for case in of], float).T
    moved = 4 * batch * (rows * depth + depth * width + rows * width)
    return judgement.roofline(_C.published_ceilings(of[0].card), "fp32", 2 * batch * rows * depth * width, moved)


def judged(measured: Path, file: dict[str, Any]) -> Iterator[Line]:
    """Yield the errors on each table."""
    tables = measured / "neusight"
    rows = cases(tables)
    products = counted(rows)
    _, launch = fitted(products, rows, file, {})
    for card in CARDS:
        without, launch_without = left_out(tables, card)
        for table in TABLES:
            here = [case for case in rows if (case.table, case.card) == (table, card)]
            seconds = np.array([case.seconds for case in here])
            kernels = times(products, here, file)
            margins = products.margins(card, [case.product for case in here], parameters_of(file))
            yield Line(
                f"fp32 products, {table}",
                card,
                ["below 1 ms" if one < 1e-3 else "1 ms or more" for one in seconds],
                seconds,
                roofline(here),
                kernels + launch,
                margins,
                times(products, here, without) + launch_without,
            )


def refitted(measured: Path, file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit the tables best, and print them."""
    rows = cases(measured / "neusight")
    file, launch = fitted(counted(rows), rows, file)
    print(f"launch {launch * 1e6:.1f} us, {file['parameters']['gpu']['vector_product']}")
    return file


def main() -> None:
    judgement.run(__doc__, refitted, judged)


if __name__ == "__main__":
    main()
