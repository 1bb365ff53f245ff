"""Fit and judge the numbers of collectives: times of NCCL on 2, 4 and 8 GPUs of one machine.

    python benchmarks/prediction/collectives.py --measured FOLDER [--write FILE]

The tables are ai-dynamo/aiconfigurator's (Apache-2.0), DEVICE_nccl_perf.csv.gz: milliseconds of a call as nccl-tests
times it. `message_size` counts elements: the same number of int8 takes half the time of half precision. Each card is
left out in turn, its architecture's own numbers with it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import judgement
import numpy as np
from judgement import Line, Place, Prior, parameters_of

from roofprof import _C

CARDS = judgement.AICONFIGURATOR
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
    for card, name in CARDS.items():
        for row in judgement.rows_of(folder / "aiconfigurator" / f"{name}_nccl_perf.csv.gz"):
            size = float(row["message_size"]) * {"half": 2, "int8": 1}[row["nccl_dtype"]]
            collective = row["op_name"].replace("alltoall", "all_to_all")
            found.append(Case(card, collective, int(row["num_gpus"]), size, float(row["latency"]) * 1e-3))
    return found


def times(of: Sequence[Case], file: dict[str, Any]) -> np.ndarray:
    """Return the predicted seconds."""
    parameters = parameters_of(file)
    roofs = {card: _C.published_ceilings(card) for card in CARDS}
    return np.array(
        [_C.collective_seconds(case.collective, case.bytes, case.ranks, roofs[case.card], parameters) for case in of]
    )


def is_certain(case: Case) -> bool:
    """Return whether a row is fitted to: how more than two ranks share PCIe is their host's affair."""
    return case.card != "L40S" or case.ranks == 2


def numbers_of(of: Sequence[Case]) -> dict[tuple[Place, ...], Prior]:
    """Return the numbers that these rows tell."""
    found: dict[tuple[Place, ...], Prior] = {(("collectives", name),): prior for name, prior in NUMBERS.items()}
    for seen in sorted({judgement.capability_of(card) for card in {case.card for case in of}}):
        alike = (seen, "10.3") if seen == "10.0" else (seen,)  # B300, as B200
        for name, prior in BY_ARCHITECTURE.items():
            if name != "switch_reduction" or seen in SWITCHES_ADD:
                found[tuple(("achieved", one, name) for one in alike)] = prior
    return found


def fitted(of: Sequence[Case], file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit these rows best."""
    of = [case for case in of if is_certain(case)]
    content = copy.deepcopy(file)
    for architecture in content["parameters"]["achieved"]:  # those without rows have none
        for name in BY_ARCHITECTURE:
            architecture.pop(name, None)
    seconds = np.array([case.seconds for case in of])
    # A prior weighs as much as a row.
    how = {"steps": 30, "robust": 0.2, "prior": 1 / len(of), "difference": 0.01}
    return judgement.fitted(content, numbers_of(of), lambda trial: times(of, trial), seconds, **how)


def left_out(of: Sequence[Case], file: dict[str, Any], card: str) -> dict[str, Any]:
    """Return the file with numbers that know nothing of a card."""
    return fitted([case for case in of if case.card != card], file)


def set_interval(of: Sequence[Case], file: dict[str, Any]) -> None:
    """Set low and high: what 80% of the times on cards that were left out lie between, without what is doubtful."""
    certain = [case for case in of if is_certain(case)]
    ratios = []
    for card in CARDS:
        here = [case for case in certain if case.card == card]
        ratios.append(np.array([case.seconds for case in here]) / times(here, left_out(of, file, card)))
    numbers = file["parameters"]["collectives"]
    numbers["low"], numbers["high"] = map(judgement.rounded, np.quantile(np.concatenate(ratios), (0.1, 0.9)))


def roofline(of: Sequence[Case]) -> np.ndarray:
    """Return bytes on the wire / the link's rate."""
    factors = {"all_reduce": 2}
    return np.array(
        [
            factors.get(case.collective, 1)
            * (1 - 1 / case.ranks)
            * case.bytes
            / _C.published_ceilings(case.card).facts.link_bytes_per_second
            for case in of
        ]
    )


def judged(measured: Path, file: dict[str, Any]) -> Iterator[Line]:
    """Yield the errors on each card."""
    rows = cases(measured)
    numbers = file["parameters"]["collectives"]
    for card, certain in [*((card, True) for card in CARDS), ("L40S", False)]:
        here = [case for case in rows if (case.card, is_certain(case)) == (card, certain)]
        yield Line(
            "collectives" if certain else "collectives over shared PCIe",
            card,
            [f"{case.ranks} ranks" for case in here],
            np.array([case.seconds for case in here]),
            roofline(here),
            times(here, file),
            np.tile([numbers["low"], numbers["high"]], (len(here), 1)),
            times(here, left_out(rows, file, card)),
        )


def refitted(measured: Path, file: dict[str, Any]) -> dict[str, Any]:
    """Return the file with the numbers that suit the tables best, and print them."""
    rows = cases(measured)
    file = fitted(rows, file)
    set_interval(rows, file)
    print(json.dumps(file["parameters"]["collectives"]))
    for architecture in file["parameters"]["achieved"]:
        print({key: architecture[key] for key in ("compute_capability", *BY_ARCHITECTURE) if key in architecture})
        architecture["source"] = architecture.pop("source")  # the last key
    return file


def main() -> None:
    judgement.run(__doc__, refitted, judged)


if __name__ == "__main__":
    main()
