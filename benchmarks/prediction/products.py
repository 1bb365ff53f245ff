"""Fit the numbers of matrix products to measured kernels, and judge them on cards that were left out.

    python benchmarks/prediction/products.py --measured FOLDER [--write FILE]

The tables are those of ai-dynamo/aiconfigurator (Apache-2.0): y = x w^T, captured into a graph that is replayed, so
that no host time is in them; six layers in turn, so that large weights come from memory. The numbers are fitted to
bf16. In fp8 and fp4 a row holds another kernel as well, vLLM's conversion of x: what the table takes beyond the
prediction is fitted as a + b rows + c elements of x, and what is left is judged. Scales by block (fp8_block) are left
out: torch has no op for them, and those times are the host's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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

TABLES = judgement.AICONFIGURATOR
TYPES = {"bfloat16": torch.bfloat16, "fp8": torch.float8_e4m3fn, "nvfp4": torch.float4_e2m1fn_x2}
PEAKS = {"bfloat16": "bf16", "fp8": "fp8", "nvfp4": "fp4"}
BYTES = {"bfloat16": 2, "fp8": 1, "nvfp4": 0.5}  # of an element

# Each number as it is expected without these measurements, and the spread of its logarithm.
SHARED: dict[tuple[Place, ...], Prior] = {
    # At which tensor cores take as long as their operands.
    (("gpu", "product", "tile_side"),): (100.0, 0.3),
    # A step of 128 bytes in 80 ns: a fraction of the cache's latency.
    (("gpu", "product", "byte_latency"),): (0.6e-9, 0.3),
    # A second kernel, or its like.
    (("gpu", "product", "split"),): (3e-6, 0.3),
    (("gpu", "product", "exposed_output"),): (0.3, 0.5),
    (("gpu", "product", "overlap"),): (2.5, 0.2),
    (("gpu", "classes", "linear", "of_bandwidth"),): (0.9, 0.05),
}
# Each architecture has numbers of its own; one that no table has gets these.
KERNELS = {"launch": (2e-6, 0.5), "of_peak": (1.0, 0.2)}


Sizes = tuple[int, int, int]  # rows, outputs, depth


def _run(sizes: Sizes, dtype: torch.dtype) -> None:
    rows, width, depth = sizes
    packed = depth // 2 if dtype is torch.float4_e2m1fn_x2 else depth
    x, w = torch.empty(rows, packed, dtype=dtype), torch.empty(width, packed, dtype=dtype)
    if dtype is torch.bfloat16:
        nn.functional.linear(x, w)
        return
    scales = [torch.empty(()), torch.empty(())]
    if dtype is torch.float4_e2m1fn_x2:  # one for 16 elements, in blocks of 128 x 4
        blocks = [-(-lines // 128) * 128 * -(-depth // 64) * 4 for lines in (rows, width)]
        scales = [torch.empty(number, dtype=torch.float8_e4m3fn) for number in blocks]
    torch._scaled_mm(x, w.t(), *scales, out_dtype=torch.bfloat16)  # noqa: SLF001  (torch has no other name)


@dataclass(frozen=True)
class Cases:
    """A card's rows of one type, with their counts."""

    card: str
    dtype: str
    sizes: np.ndarray  # rows, outputs, depth of each
    seconds: np.ndarray  # measured
    counted: Counted
    calls: list[Sizes]

    def predicted(self, parameters: _C.PredictionParameters) -> np.ndarray:
        """Return the seconds of each row's kernel."""
        return self.counted.seconds(self.card, self.calls, parameters)


def _rows(file: Path) -> Iterator[tuple[str, tuple[int, int, int], float]]:
    for line in judgement.rows_of(file):
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


def counted(card: str, dtype: str, measured: dict[Sizes, float], **options: Any) -> Cases:
    """The products of these sizes with their seconds; the options are the prediction's."""
    calls = list(measured)
    of = Counted(calls, partial(_run, dtype=TYPES[dtype]), autocast=False, **options)
    return Cases(card, dtype, np.array(calls, float), np.array(list(measured.values())), of, calls)


def roofline(of: Cases) -> np.ndarray:
    """Predict max(FLOPs / peak, bytes / bandwidth)."""
    m, n, k = of.sizes.T
    moved = BYTES[of.dtype] * (m * k + n * k) + 2 * m * n
    return judgement.roofline(_C.published_ceilings(of.card), PEAKS[of.dtype], 2 * m * n * k, moved)


def with_conversion(of: Cases, seconds: np.ndarray) -> np.ndarray:
    """Add the conversion of x to the seconds of products: a + b rows + c elements, as the table has it."""
    if of.dtype == "bfloat16":
        return seconds
    rows, depth = of.sizes[:, 0], of.sizes[:, 2]
    terms = np.stack([np.ones_like(rows), rows, rows * depth], axis=1)
    found = np.linalg.lstsq(terms / of.seconds[:, None], 1 - seconds / of.seconds, rcond=None)[0]
    return seconds + terms @ np.maximum(found, 0)


def numbers_of(cards: Iterable[str]) -> dict[tuple[Place, ...], Prior]:
    """Return the numbers that measurements of these cards tell."""
    capabilities = sorted({judgement.capability_of(card) for card in cards})
    of_kernels = {
        (("achieved", capability, "product", name),): prior
        for capability in capabilities
        for name, prior in KERNELS.items()
    }
    return {**SHARED, **of_kernels}


def fitted(of: Sequence[Cases], file: dict[str, Any]) -> dict[str, Any]:
    """The file with the numbers that suit these tables best, each table as much as another."""
    weights = judgement.shares([table.card for table in of for _ in table.seconds])
    return judgement.fitted_to_tables(file, numbers_of([table.card for table in of]), of, weights)


def left_out(tables: Sequence[Cases], file: dict[str, Any], card: str) -> dict[str, Any]:
    """The file with numbers that know nothing of a card: of its architecture what is expected of any."""
    unknown = set(numbers_of([card])) - set(SHARED)
    without = with_values(file, unknown, [KERNELS[places[0][-1]][0] for places in unknown])
    return fitted([table for table in tables if table.card != card], without)


def rows_of(sizes: np.ndarray) -> list[str]:
    """Return a word for each product's number of rows."""
    names = ("1 to 15 rows", "16 to 127 rows", "128 to 1,023 rows", "1,024 rows or more")
    return [names[number] for number in np.searchsorted((16, 128, 1024), sizes[:, 0], side="right")]


def judged(measured: Path, file: dict[str, Any]) -> Iterator[Line]:
    """Yield the errors on each table."""
    shipped = parameters_of(file)
    tables = cases(measured)
    unseen = {card: parameters_of(left_out(tables, file, card)) for card in TABLES}
    for table in cases(measured, tuple(TYPES)):
        yield Line(
            f"products, {table.dtype}",
            table.card,
            rows_of(table.sizes),
            table.seconds,
            roofline(table),
            with_conversion(table, table.predicted(shipped)),
            table.counted.margins(table.card, table.calls, shipped),
            with_conversion(table, table.predicted(unseen[table.card])),
        )


def main() -> None:
    judgement.run(__doc__, lambda measured, file: fitted(cases(measured), file), judged)


if __name__ == "__main__":
    main()
