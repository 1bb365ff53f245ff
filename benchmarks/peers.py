"""Compares other tools with their replacements in roofprof: figures, accepted inputs, what is left behind, time.

    python benchmarks/peers.py                                   # prints Markdown, some 15 minutes
    python benchmarks/peers.py --write benchmarks/peers.md
    python benchmarks/peers.py --models resnet18 --tools thop,fvcore --only figures

Cells of originals that are not installed say so. The exit code is 1 if a figure of roofprof's is wrong or differs
without an explanation that adds up, or if roofprof leaves something behind; stderr names each such cell.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peer_runs import accuracy, inputs, overhead, side_effects, subjects
from peer_runs.isolated import Limits
from peer_runs.page import page
from peer_runs.tools import TOOLS, Tool

PARTS = ("figures", "inputs", "effects", "time")


def _arguments(given: Sequence[str] | None, tools: Sequence[Tool]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])

    def of(known: Sequence[str]) -> Any:
        def names(text: str) -> list[str]:
            chosen = text.split(",")
            for name in chosen:
                if name not in known:
                    raise argparse.ArgumentTypeError(f"{name!r} is none of {', '.join(known)}")
            return chosen

        return names

    tool_names = [tool.name for tool in tools]
    parser.add_argument("--write", type=Path, metavar="FILE", help="the Markdown; without it, to stdout")
    parser.add_argument("--json", type=Path, metavar="FILE", help="everything that was found")
    parser.add_argument("--models", type=of(subjects.NAMES), default=subjects.NAMES, help="some of them, with commas")
    parser.add_argument("--tools", type=of(tool_names), default=tool_names, help="some of them, with commas")
    parser.add_argument("--only", type=of(PARTS), default=PARTS, help=f"some of {','.join(PARTS)}")
    parser.add_argument("--seconds", type=float, default=Limits.seconds, help="limit of one process")
    parser.add_argument("--megabytes", type=int, default=Limits.megabytes, help="memory that one process may take")
    return parser.parse_args(given)


def main(given: Sequence[str] | None = None, tools: Sequence[Tool] = TOOLS) -> int:
    """Run what is asked for, write it, and say what is wrong with ours."""
    arguments = _arguments(given, tools)
    chosen = [tool for tool in tools if tool.name in arguments.tools]
    limits = Limits(arguments.seconds, arguments.megabytes)
    only = arguments.only
    figures = accuracy.run(chosen, arguments.models, limits, _say) if "figures" in only else None
    forms = inputs.run(chosen, limits, _say) if "inputs" in only else None
    effects = side_effects.run(chosen, limits, _say) if "effects" in only else None
    times = overhead.run(chosen, limits, _say) if "time" in only else None
    text = page(chosen, figures, forms, effects, times)
    if arguments.write:
        arguments.write.write_text(text)
    else:
        sys.stdout.write(text)
    parts = {"figures": figures, "inputs": forms, "effects": effects, "time": times}
    if arguments.json:
        arguments.json.write_text(json.dumps({name: _plain(part) for name, part in parts.items()}, indent=1) + "\n")
    faults = [fault for part in (figures, forms, effects) if part is not None for fault in part.faults]
    for fault in faults:
        _say(f"FAULT {fault}")
    return 1 if faults else 0


def _plain(value: Any) -> Any:
    """Return the value as JSON can hold it: a dict with tuples as keys becomes one with words."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    if isinstance(value, dict):
        return {", ".join(key) if isinstance(key, tuple) else key: _plain(one) for key, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list) else value


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())
