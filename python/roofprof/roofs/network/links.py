"""Published rates of links, per direction: ``data/link_rates.json``, whose ``about`` says how far they were checked."""

from __future__ import annotations

import json
from importlib import resources
from typing import NamedTuple


class Link(NamedTuple):
    """One kind of link; bytes per second in one direction."""

    name: str
    bytes_per_second: float
    source: str


def published() -> list[Link]:
    """Return all known links, in the file's order."""
    data = json.loads((resources.files("roofprof") / "data" / "link_rates.json").read_text(encoding="utf-8"))
    sources = data["sources"]
    return [
        Link(link["name"], link["bytes_per_second"], "{title}: {where}".format(**sources[link["source"]]))
        for link in data["links"]
    ]
