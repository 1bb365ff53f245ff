"""One part's results, kept on disk line by line; and all parts' put together."""

from __future__ import annotations

import contextlib
import json
import math
import time
import traceback
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

PASS, FAIL, SKIPPED, ERROR = "pass", "fail", "skipped", "error"


class NotOnThisMachineError(Exception):
    """What a check needs is not there; said in a sentence."""


@dataclass
class Check:
    """measured, expected and tolerance (of expected) say by themselves what happened; explanation says why."""

    name: str
    status: str
    measured: Any = None
    expected: Any = None
    tolerance: float | None = None
    explanation: str = ""

    def line(self) -> str:
        figures = "" if self.measured is None else f"{_brief(self.measured)} (expected {_brief(self.expected)})"
        reason = self.explanation.strip().splitlines()[-1:]  # of a traceback: what was raised
        return f"{self.name}: " + "; ".join(text for text in (figures, *(line[:200] for line in reason)) if text)


@dataclass
class Part:
    """Writes each check as it is made: a crash costs what would have come next."""

    name: str
    folder: Path

    def add(self, check: Check) -> None:
        print(f"  {check.status:8} {check.line()}", flush=True)
        self._write(check=asdict(check))

    def equal(self, name: str, measured: Any, expected: Any, why: str = "") -> None:
        """Exactly the same."""
        self.add(Check(name, PASS if measured == expected else FAIL, measured, expected, 0.0, why))

    def near(self, name: str, measured: float | None, expected: float, tolerance: float, why: str = "") -> None:
        """Within a share of what is expected. What was not measured is no pass."""
        passed = measured is not None and abs(measured - expected) <= abs(tolerance * expected)
        self.add(Check(name, PASS if passed else FAIL, measured, expected, tolerance, why))

    def between(self, name: str, measured: float | None, least: float, most: float, why: str = "") -> None:
        """Between two limits, these included."""
        passed = measured is not None and least <= measured <= most
        self.add(Check(name, PASS if passed else FAIL, measured, f"{least:g} to {most:g}", None, why))

    def holds(self, name: str, measured: Any, why: str = "") -> None:
        """Something that is there, or true."""
        self.add(Check(name, PASS if measured else FAIL, measured, True, None, why))

    def skip(self, name: str, why: str) -> None:
        self.add(Check(name, SKIPPED, explanation=why))

    def fact(self, name: str, value: Any) -> None:
        """Something to know, which can be neither right nor wrong."""
        self._write(fact=[name, value])

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What raises in here is an error of this stage alone. Of a crash or a hang the file tells the stage's name."""
        self._write(stage=name)
        try:
            yield
        except NotOnThisMachineError as reason:
            self.skip(name, str(reason))
        except Exception as error:
            text = traceback.format_exc()
            self.add(Check(name, ERROR, f"{type(error).__name__}: {error}"[:500], explanation=text[-2000:]))

    def _write(self, **entry: Any) -> None:
        with (self.folder / f"{self.name}.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(_plain(entry)) + "\n")


def _plain(value: Any) -> Any:
    """The value in JSON's types: not a number and infinity are none of them."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [_plain(item) for item in value]
    if value is None or isinstance(value, (bool, int, str)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)


def _brief(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:120]


# ---- all parts: how each ended (its exit code, None where its time ran out) and after how many seconds

Ran = Mapping[str, tuple[int | None, float]]


def merged(folder: Path, ran: Ran) -> dict[str, Any]:
    """All parts, in the order in which they ran. One that did not come to its end has a check that says so."""
    parts: dict[str, Any] = {}
    for name, (code, seconds) in ran.items():
        path = folder / f"{name}.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
        found = [line["check"] for line in lines if "check" in line]
        if code != 0:
            how = "ran out of time" if code is None else f"ended with exit code {code}"
            stages = [line["stage"] for line in lines if "stage" in line]
            where = f" in '{stages[-1]}'" if stages else " before it wrote anything"
            found.append(asdict(Check(f"{name} comes to its end", ERROR, code, 0, None, how + where)))
        facts = dict(line["fact"] for line in lines if "fact" in line)
        parts[name] = {"exit_code": code, "seconds": round(seconds), "checks": found, "facts": facts}
    statuses = Counter(check["status"] for part in parts.values() for check in part["checks"])
    return {
        "schema_version": 1,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "simulated": any(part["facts"].get("simulated") for part in parts.values()),
        "totals": {status: statuses[status] for status in (PASS, FAIL, SKIPPED, ERROR)},
        "parts": parts,
    }


def table(result: dict[str, Any]) -> str:
    """Each check that is no pass, then the sums."""
    lines = [
        f"{status:8} {name}: {Check(**check).line()}"
        for status in (FAIL, ERROR, SKIPPED)
        for name, part in result["parts"].items()
        for check in part["checks"]
        if check["status"] == status
    ]
    lines.append(", ".join(f"{count} {status}" for status, count in result["totals"].items()))
    if result["simulated"]:
        lines.append("SIMULATED: stand-ins for the GPU's libraries; no figure above was measured on a device")
    return "\n".join(lines)


def put_together(folder: Path, ran: Ran, *, shown: bool = False) -> int:
    """Writes results.json. 1 where something failed; nothing that ran is worth nothing."""
    result = merged(folder, ran)
    (folder / "results.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if shown:
        print(table(result))
    totals = result["totals"]
    return int(bool(totals[FAIL] or totals[ERROR]) or not totals[PASS])
