"""The reports that an H100 and an H200 recorded (tests/data/gpu).

Those of the H100 were recorded without roofs. Theirs are of results.json.gz: measured on the same card on the same day,
and put in afterwards.
"""

from __future__ import annotations

import copy
import functools
import gzip
import json
import tarfile
from pathlib import Path
from typing import Any

import roofprof

RECORDED = Path(__file__).resolve().parents[2] / "data" / "gpu"


@functools.cache
def _packed() -> dict[str, dict[str, Any]]:
    found = {}
    for card, before in (("h100", ""), ("h200", "h200/")):
        with tarfile.open(RECORDED / card / "reports.tar.gz") as archive:
            for member in archive:
                if file := archive.extractfile(member):
                    found[before + Path(member.name).stem] = json.load(file)
    return found


NAMES = sorted(_packed())  # of the H200 as "h200/bare_resnet50"


def results(card: str) -> dict[str, Any]:
    """Return the parts of the acceptance that ran on a card (tests/gpu): each with its checks and facts."""
    return json.loads(gzip.decompress((RECORDED / card / "results.json.gz").read_bytes()))["parts"]


@functools.cache
def _roofs() -> dict[str, Any]:
    return results("h100")["roofs"]["facts"]["roofs"]


def roofs() -> dict[str, Any]:
    """Return the roofs that were measured on the H100, as a report's JSON has them under `ceilings`."""
    return copy.deepcopy(_roofs())


def as_dict(name: str) -> dict[str, Any]:
    """Return the data of a recorded report, with the recorded roofs where it has none of its own."""
    recorded = copy.deepcopy(_packed()[name])
    return recorded if recorded["ceilings"]["compute"] else recorded | {"ceilings": roofs()}


@functools.cache
def report(name: str) -> roofprof.Report:
    """Return a recorded report, with the recorded roofs; everything else in it is derived anew."""
    return roofprof.Report.from_dict(as_dict(name))
