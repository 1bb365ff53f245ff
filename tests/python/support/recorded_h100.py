"""The reports that an H100 recorded (tests/data/gpu/h100), with the roofs that were measured there put in.

They were recorded without roofs. The roofs are those of results.json: measured on the same card on the same day, and
put in afterwards.
"""

from __future__ import annotations

import copy
import functools
import json
import tarfile
from pathlib import Path
from typing import Any

import roofprof

RECORDED = Path(__file__).resolve().parents[2] / "data" / "gpu" / "h100"


@functools.cache
def _packed() -> dict[str, dict[str, Any]]:
    with tarfile.open(RECORDED / "reports.tar.gz") as archive:
        return {Path(member.name).stem: json.load(archive.extractfile(member)) for member in archive if member.isfile()}


NAMES = sorted(_packed())


@functools.cache
def _roofs() -> dict[str, Any]:
    results = json.loads((RECORDED / "results.json").read_text())
    return results["parts"]["roofs"]["facts"]["roofs"]


def roofs() -> dict[str, Any]:
    """Return the roofs that were measured on that card, as a report's JSON has them under `ceilings`."""
    return copy.deepcopy(_roofs())


def as_dict(name: str) -> dict[str, Any]:
    """Return the data of a recorded report, with the recorded roofs where it has none of its own."""
    recorded = copy.deepcopy(_packed()[name])
    return recorded if recorded["ceilings"]["compute"] else recorded | {"ceilings": roofs()}


@functools.cache
def report(name: str) -> roofprof.Report:
    """Return a recorded report, with the recorded roofs; everything else in it is derived anew."""
    return roofprof.Report.from_dict(as_dict(name))
