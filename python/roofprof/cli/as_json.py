"""``--json FILE`` of the commands whose result is no report: an object with its "schema" and "schema_version"."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from roofprof.cli.shared import DASH, CommandError, check_can_be_written, write_result
from roofprof.render.files import real, write_whole

SCHEMA_VERSION = 1


def add_json(parser: argparse.ArgumentParser, what: str) -> None:
    """The option that :func:`check_json` and :func:`write_json` read."""
    parser.add_argument("--json", type=Path, metavar="FILE", help=f"write {what} as JSON; - prints it, and no text")


def check_json(path: Path | None, *others: Path | None) -> None:
    """Raise CommandError where the file cannot be written, or is one of the others, before there is work to lose."""
    if path is None:
        return
    check_can_be_written(path)
    if path != DASH and real(path) in [real(other) for other in others if other]:
        raise CommandError(f"--json would replace '{path}': give it a file of its own")


def write_json(path: Path | None, schema: str, content: dict[str, Any]) -> None:
    """Write it whole, and say so. Raises OSError where that cannot be done."""
    stored = {"schema": f"roofprof.{schema}", "schema_version": SCHEMA_VERSION, **content}
    text = json.dumps(stored, indent=1, allow_nan=False) + "\n"
    write_result(path, lambda file: write_whole(file, text.encode()))
