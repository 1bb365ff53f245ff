"""Fit and judge the numbers of fused attention: prompts and decoding on four cards.

    python benchmarks/prediction/attention.py --measured FOLDER [--write FILE]

The tables are those of ai-dynamo/aiconfigurator (Apache-2.0), *_context_attention_perf and
*_generation_attention_perf: vLLM's attention operator in a replayed CUDA graph, so no host time is in it, and the
tensors are in the last cache if they fit. The operator also writes the new keys and values to its cache. Rows with a
sliding window or a cache in fp8 are left out, which torch's attention does not have, and heads deeper than 256, which
it has no fused kernel for. Each card is left out in turn. The kernels of its generation may then be fitted to the
other card that has kernels of the same design.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import judgement
import numpy as np
import torch
from judgement import Counted, Line, Place, Prior, parameters_of

from roofprof import _C

CARDS = judgement.AICONFIGURATOR
TABLES = {"context": "prompts", "generation": "decoding"}
DEEPEST = 256
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


Call = tuple[tuple[int, int, int, int], tuple[int, int, int, int]]  # shapes of queries, and of keys and values


class Case(NamedTuple):
    """A row of a table: shapes of queries, and of keys and values."""

    table: str
    card: str
    query: tuple[int, int, int, int]
    key: tuple[int, int, int, int]
    seconds: float

    @property
    def call(self) -> Call:
        """Return what is counted."""
        return self.query, self.key

    @property
    def copied(self) -> int:
        """Return the bytes that are read and written where the new keys and values are copied to the cache."""
        batch, heads, _, depth = self.key
        return 2 * 2 * 2 * batch * heads * self.query[2] * depth


def copying(roofs: _C.Ceilings, copied: np.ndarray, file: dict[str, Any]) -> np.ndarray:
    """Return the seconds of copies, at the bandwidth of DRAM or, where all fits into it, of the last cache."""
    numbers = file["parameters"]["gpu"]["attention"]
    cache, dram = sorted(roofs.memory, key=lambda level: level.level == "DRAM")
    fits = copied < cache.capacity_bytes * numbers["cache_share"]
    rates = cache.bytes_per_second * numbers["of_cache"], dram.bytes_per_second * numbers["of_dram"]
    return copied / np.where(fits, *rates) / numbers["copies"]


def cases(folder: Path) -> list[Case]:
    """Return the rows that torch's attention can express."""
    found = []
    for card, name in CARDS.items():
        for kind, table in TABLES.items():
            for row in judgement.rows_of(folder / "aiconfigurator" / f"{name}_{kind}_attention_perf.csv.gz"):
                depth = int(row["head_dim"])
                if int(row.get("window_size", 0)) or row["kv_cache_dtype"] != "bfloat16" or depth > DEEPEST:
                    continue
                batch, heads, key_heads = (int(row[n]) for n in ("batch_size", "num_heads", "num_key_value_heads"))
                queries = int(row["isl"])
                keys = queries if kind == "context" else int(row["step"]) + 1
                shapes = (batch, heads, queries, depth), (batch, key_heads, keys, depth)
                found.append(Case(table, card, *shapes, float(row["latency"]) * 1e-3))
    return found


def counted(of: Sequence[Case]) -> dict[str, Counted]:
    """Return the calls of each card."""
    return {
        card: Counted(sorted({case.call for case in of if case.card == card}), _run, autocast=False)
        for card in {case.card for case in of}
    }


def _run(call: Call) -> None:
    query, key = call
    tensors = (torch.empty(shape, dtype=torch.bfloat16) for shape in (query, key, key))
    torch.nn.functional.scaled_dot_product_attention(*tensors, is_causal=query[2] > 1, enable_gqa=True)


def times(calls: dict[str, Counted], of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
    """Return the predicted seconds."""
    cards = [case.card for case in of]
    seconds = judgement.seconds_by_card(calls, cards, [case.call for case in of], parameters_of(file))
    copied = np.array([case.copied for case in of], float)
    for card in set(cards):
        here = np.array(cards) == card
        seconds[here] += copying(_C.published_ceilings(card), copied[here], file)
    return seconds


def roofline(of: Sequence[Case]) -> np.ndarray:
    """Return max(FLOPs / peak, bytes / bandwidth) of rows of one card; causal scores count half."""
    batch, heads, queries, depth = np.array([case.query for case in of], float).T
    keys = np.array([case.key[2] / (2 if case.table == "prompts" else 1) for case in of])
    moved = 4 * (batch * heads * queries * depth + np.array([np.prod(case.key) for case in of]))
    return judgement.roofline(
        _C.published_ceilings(of[0].card), "bf16", 4 * batch * heads * queries * keys * depth, moved
    )


def numbers_of(cards: set[str]) -> dict[tuple[Place, ...], Prior]:
    """Return the numbers that these cards tell. Where a card is left out, its sibling tells its launch."""
    found: dict[tuple[Place, ...], Prior] = {(("gpu", "attention", name),): prior for name, prior in SHARED.items()}
    for kernels, known in KERNELS.items():
        found |= {(("gpu", "attention", kernels, name),): prior for name, prior in OF_KERNELS.items()}
        listed = [card for card in known if card in cards]
        for card in listed:
            architectures = [one for other in known if other == card or other not in listed for one in LAUNCHES[other]]
            found[tuple(("achieved", one, "attention_launch") for one in architectures)] = LAUNCH
    return found


def fitted(calls: dict[str, Counted], of: Sequence[Case], file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit these rows best; each table of a card counts the same."""
    return judgement.fitted(
        file,
        numbers_of({case.card for case in of}),
        lambda content: times(calls, of, content),
        np.array([case.seconds for case in of]),
        judgement.shares([(case.table, case.card) for case in of]),
        steps=15,
        difference=0.01,
    )


def set_interval(calls: dict[str, Counted], of: Sequence[Case], file: dict[str, Any]) -> None:
    """Set low and high of the class: the mean over the tables of what 10% and 90% of their times are below."""
    ratio = np.array([case.seconds for case in of]) / times(calls, of, file)
    groups = [(case.card, case.table) for case in of]
    tables = [[group == table for group in groups] for table in set(groups)]
    place = judgement.holder_of(file, ("gpu", "classes", "attention", "low"))
    for key, quantile in (("low", 0.1), ("high", 0.9)):
        place[key] = judgement.rounded(np.mean([np.quantile(ratio[table], quantile) for table in tables]))


def judged(measured: Path, file: dict[str, Any]) -> Iterator[Line]:
    """Yield the errors on each table."""
    rows = cases(measured)
    calls = counted(rows)
    for card in CARDS:
        without = fitted(calls, [case for case in rows if case.card != card], file)
        for table in TABLES.values():
            here = [case for case in rows if (case.table, case.card) == (table, card)]
            yield Line(
                f"attention, {table}",
                card,
                ["batch 1" if case.query[0] == 1 else "larger batches" for case in here],
                np.array([case.seconds for case in here]),
                roofline(here),
                times(calls, here, file),
                calls[card].margins(card, [case.call for case in here], parameters_of(file)),
                times(calls, here, without),
            )


def refitted(measured: Path, file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit the tables best, and print them."""
    of = cases(measured)
    calls = counted(of)
    file = fitted(calls, of, file)
    set_interval(calls, of, file)
    print(json.dumps(file["parameters"]["gpu"]["attention"], indent=1))
    return file


def main() -> None:
    judgement.run(__doc__, refitted, judged)


if __name__ == "__main__":
    main()
