"""Published peaks of GPUs: the dense rates in NVIDIA's documents.

The figures are in ``data/published_peaks.json``, each with its unit and source; its ``about`` says how far they were
checked. A card is::

    {"name", "aliases", "device_names" (as the driver names it), "architecture", "compute_capability", "note",
     "sms", "boost_clock", "tensor_clock", "l2", "memory", "dram": {"value", "unit", "source"},
     "peaks": {dtype: {"value", "unit", "engine", "source"}}, "confirmed_by": [...]}
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from roofprof import _C

# What the file's units are in operations or bytes per second, bytes and hertz.
UNITS = {"TFLOP/s": 1e12, "TOP/s": 1e12, "GB/s": 1e9, "GB": 1e9, "KiB": 1024, "MHz": 1e6, "SM": 1}


@functools.cache
def data() -> dict[str, Any]:
    """The file, as it is."""
    text = (resources.files("roofprof") / "data" / "published_peaks.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def names() -> list[str]:
    """The cards that are known, in the file's order."""
    return [card["name"] for card in data()["cards"]]


def published(name: str) -> _C.Ceilings:
    """The published roofs of a card, such as "RTX 4090", "A100 SXM 80GB" or the name that the driver gives it.

    Compute peaks are those of the tensor cores where a dtype has any. Raises ValueError for a card that is not known,
    naming those that are like it.
    """
    wanted = _plain(name)
    for card in data()["cards"]:
        if wanted in map(_plain, [card["name"], *card["aliases"], *card["device_names"]]):
            return roofs_of(card)
    parts = name.casefold().split()
    alike = [known for known in names() if any(part in known.casefold().split() for part in parts)]
    raise ValueError(f"no published peaks of '{name}' are known; there are those of {', '.join(alike or names())}")


def published_for(device: str) -> _C.Ceilings | None:
    """The published roofs of this machine's GPU ("cuda:0"); None where its card is not known.

    Only the driver's full name counts: a laptop's GPU is another card than the one whose name it begins with.
    """
    driver_name = str(dict(_C.gpu_environment(device)).get("gpu_device", ""))
    for card in data()["cards"]:
        if driver_name and driver_name in card["device_names"]:
            return roofs_of(card)
    return None


def roofs_of(card: dict[str, Any]) -> _C.Ceilings:
    """A card's figures as roofs; each says in its method which document it is from."""
    compute = [
        {
            "dtype": dtype,
            "operations_per_second": amount(peak),
            "provenance": _provenance(peak, _clock_of(card, peak)),
        }
        for dtype, peak in card["peaks"].items()
    ]
    memory = [
        {
            "level": "DRAM",
            "bytes_per_second": amount(card["dram"]),
            "capacity_bytes": 0,
            "provenance": _provenance(card["dram"], ""),
        }
    ]
    return _C.ceilings_from_dict({"device": card["name"], "compute": compute, "memory": memory})


def amount(figure: dict[str, Any]) -> float:
    """A figure of the file in operations or bytes per second, bytes, hertz."""
    return float(figure["value"]) * UNITS[figure["unit"]]


def _clock_of(card: dict[str, Any], peak: dict[str, Any]) -> str:
    """The clock that a peak is for: on some cards the tensor cores' rates are given at a lower one than the highest."""
    lower = peak["engine"] == "tensor cores" and peak is not card["peaks"].get("fp64")
    clock = card.get("tensor_clock" if lower else "boost_clock") or card.get("boost_clock")
    return f"{peak['engine']} at {clock['value']} {clock['unit']}" if clock else peak["engine"]


def _provenance(figure: dict[str, Any], remark: str) -> dict[str, Any]:
    source = data()["sources"][figure["source"]]
    method = f"{source['title']}, {source['where']}"
    return {"source": "published", "method": f"{method}; {remark}" if remark else method, "date": "", "spread": None}


def _plain(name: str) -> str:
    """A name as people write it: case, blanks, dashes and the maker's name do not count."""
    words = "".join(letter if letter.isalnum() else " " for letter in name.casefold()).split()
    return "".join(word for word in words if word != "nvidia")
