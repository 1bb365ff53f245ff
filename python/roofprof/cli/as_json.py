"""``--json FILE`` of commands with results other than reports: an object with its "schema" and "schema_version"."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from roofprof.cli.shared import write_result
from roofprof.render.files import write_whole
from roofprof.render.results import json_text, with_schema


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """Add the option that :func:`write_json` reads."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write {what} as JSON; - prints it, and no text")


def write_json(path: Path | None, schema: str, content: dict[str, Any]) -> None:
    """Write it whole, and say so. Raises OSError where that cannot be done."""
    text = json_text(with_schema(f"roofprof.{schema}", content))
    write_result(path, lambda file: write_whole(file, text.encode()))
