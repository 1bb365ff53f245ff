"""One part's results, kept on disk from the first check on; and all parts' put together."""

from __future__ import annotations

import contextlib
import json
import math
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

PASS, FAIL, SKIPPED, ERROR = "pass", "fail", "skipped", "error"
_TIMED_OUT = {124, 137}


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
    """Collects a part's checks. The file is written anew after each: a crash costs what would have come next."""

    name: str
    folder: Path
    checks: list[Check] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    at: str = "start"
    finished: bool = False

    def add(self, check: Check) -> None:
        self.checks.append(check)
        print(f"  {check.status:8} {check.line()}", flush=True)
        self._write()

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
        self.facts[name] = value
        print(f"  {'fact':8} {name}: {json.dumps(_plain(value))[:300]}", flush=True)
        self._write()

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What raises in here is an error of this stage alone. Of a crash or a hang the file tells the stage's name."""
        self.at = name
        print(f"- {name}", flush=True)
        self._write()
        try:
            yield
        except NotOnThisMachineError as reason:
            self.skip(name, str(reason))
        except Exception as error:
            text = traceback.format_exc()
            self.add(Check(name, ERROR, f"{type(error).__name__}: {error}"[:500], explanation=text[-2000:]))

    def finish(self) -> None:
        self.finished = True
        self._write()

    def _write(self) -> None:
        content = _plain(asdict(self))
        _write(self.folder / f"{self.name}.json", content)


def _write(path: Path, content: Any) -> None:
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(path)


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


# ---- all parts: a folder holds PART.json, PART.log, and `index`, a line "PART EXIT_CODE SECONDS" for each


def merged(folder: Path) -> dict[str, Any]:
    """All parts, in the order in which they ran. One that did not come to its end has a check that says so."""
    parts: dict[str, Any] = {}
    index = folder / "index"
    for entry in index.read_text().splitlines() if index.exists() else []:
        name, code, seconds = entry.split()[0], *map(int, entry.split()[1:])
        path, log = folder / f"{name}.json", folder / f"{name}.log"
        found = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {"checks": [], "facts": {}}
        bad = code != 0 or not found.get("finished")
        if bad:
            how = "ran out of time" if code in _TIMED_OUT else f"ended with exit code {code}"
            where = f" in '{found['at']}'" if "at" in found else " before it wrote anything"
            where = " after its last check" if found.get("finished") else where
            found["checks"].append(asdict(Check(f"{name} comes to its end", ERROR, code, 0, None, how + where)))
        parts[name] = {"exit_code": code, "seconds": seconds, "checks": found["checks"], "facts": found["facts"]}
        parts[name]["log_end"] = log.read_text(errors="replace")[-3000:] if bad and log.exists() else ""
    statuses = Counter(check["status"] for part in parts.values() for check in part["checks"])
    return {
        "schema_version": 1,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "simulated": any(part["facts"].get("simulated") for part in parts.values()),
        "totals": {status: statuses[status] for status in (PASS, FAIL, SKIPPED, ERROR)},
        "parts": parts,
    }


def table(result: dict[str, Any]) -> str:
    """A line for each part, then each check that is no pass, then the sums."""
    lines = [f"{'part':14}{'pass':>6}{'fail':>6}{'skipped':>9}{'error':>7}{'seconds':>9}"]
    for name, part in result["parts"].items():
        of = Counter(check["status"] for check in part["checks"])
        lines.append(f"{name:14}{of[PASS]:6}{of[FAIL]:6}{of[SKIPPED]:9}{of[ERROR]:7}{part['seconds']:9}")
    for status in (FAIL, ERROR, SKIPPED):
        for name, part in result["parts"].items():
            found = [Check(**check) for check in part["checks"] if check["status"] == status]
            lines += [f"{status:8} {name}: {check.line()}" for check in found]
    lines.append(", ".join(f"{count} {status}" for status, count in result["totals"].items()))
    if result["simulated"]:
        lines.append("SIMULATED: stand-ins for the GPU's libraries; no figure above was measured on a device")
    return "\n".join(lines)


def put_together(folder: Path, results: Path) -> int:
    """1 where something failed; nothing that ran is worth nothing."""
    result = merged(folder)
    _write(results, result)
    print(table(result))
    totals = result["totals"]
    return int(bool(totals[FAIL] or totals[ERROR]) or not totals[PASS])
