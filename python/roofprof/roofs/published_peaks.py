"""Published roofs of GPUs: the dense rates in their makers' documents, shared caches, DRAM.

``csrc/machine/known/published.cpp`` makes roofs of them, for C++ and Python alike. The figures are in
``data/published_peaks.json``, which the build puts into the library, each with its unit and source; its ``about`` says
how far they were checked, its ``units`` what one of a unit is in operations or bytes per second, bytes, hertz or watts.
A card is::

    {"name", "aliases", "device_names" (as the driver names it), "architecture", "compute_capability", "note",
     "sms" (AMD: "cus"), "boost_clock", "tensor_clock", "l2", "l2_effective" (the capacity that was observed, with
     "basis" as below; without it a level holds its nominal size), "infinity_cache", "memory", "memory_bus", "dram",
     "tdp": {"value", "unit", "source"}, "link": the same with "kind" ("NVLink 4", "PCIe 4.0 x16"),
     "l2_bandwidth", "infinity_cache_bandwidth": the same with "basis" ("published", "measured" or "scaled", then with
     "from", a card, and "by", whose figures' ratios they are scaled by),
     "peaks": {dtype: {"value", "unit", "engine", "source"}}, "confirmed_by": [...]}
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from roofprof import _report


@functools.cache
def data() -> dict[str, Any]:
    """Return the file's data, unchanged."""
    text = (resources.files("roofprof") / "data" / "published_peaks.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def names() -> list[str]:
    """Return the known cards, in the file's order."""
    return [card["name"] for card in data()["cards"]]


def table() -> str:
    """Return the cards, a line each: the rate in 16 bits, the cache that all of the chip shares, DRAM, drivers' names.

    A cache without a bandwidth does not become a level of the roofs.
    """
    rows = [("card", "16 bits", "cache", "holds", "gives", "", "DRAM", "as drivers name it")]
    for card in data()["cards"]:
        key, level = ("infinity_cache", "Infinity Cache") if "infinity_cache" in card else ("l2", "L2")
        size, bandwidth = card.get(f"{key}_effective", card.get(key)), card.get(f"{key}_bandwidth")
        fp16 = card["peaks"].get("fp16")
        rows.append(
            (
                card["name"],
                f"{amount(fp16) / 1e12:.4g} TFLOP/s" if fp16 else "n/a",
                level if size else "n/a",
                f"{amount(size) / 1e6:.3g} MB" if size else "",
                f"{amount(bandwidth) / 1e12:.3g} TB/s" if bandwidth else "n/a",
                bandwidth["basis"] if bandwidth else "",
                f"{amount(card['dram']) / 1e12:.3g} TB/s",
                ", ".join(card["device_names"]),
            )
        )
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
    aligned = ("<", ">", "<", ">", ">", "<", ">")
    return "\n".join(
        "  ".join([*(f"{cell:{to}{wide}}" for cell, to, wide in zip(row, aligned, widths, strict=False)), row[-1]])
        for row in rows
    )


def published(name: str) -> _report.Ceilings:
    """Return the published roofs of a card, such as "RTX 4090", "A100 SXM 80GB" or the name that the driver gives it.

    Compute peaks are those of the tensor cores where a dtype has any. Raises ValueError for a card that is not known,
    naming those that are like it.
    """
    return _report.published_ceilings(name.encode("utf-8", "replace").decode())  # an argument may not be UTF-8


def published_for(device: str) -> _report.Ceilings | None:
    """Return the published roofs of this machine's GPU ("cuda:0"); None where its card is not known.

    Only the driver's full name counts: a laptop's GPU is another card than the one whose name it begins with.
    """
    from roofprof import _C  # with torch, which knows the GPUs

    driver_name = str(dict(_C.gpu_environment(device)).get("gpu_device", ""))
    return _report.published_for_driver_name(driver_name) if driver_name else None


def amount(figure: dict[str, Any]) -> float:
    """Return a figure of the file in operations or bytes per second, bytes, hertz, watts."""
    return float(figure["value"]) * float(data()["units"][figure["unit"]])
