"""Puts the parts' results together: `python -m acceptance.summary FOLDER RESULTS [--quiet]`.

FOLDER holds PART.json of each part, PART.log of what it printed, and `index`: a line "PART EXIT_CODE SECONDS" for each.
Exit code 1 where something failed.
"""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from acceptance.checks import ERROR, FAIL, PASS, SKIPPED, Check, line, plain

SCHEMA_VERSION = 1
_TIMED_OUT = {124, 137}


def ended_badly(name: str, exit_code: int, found: dict[str, Any] | None) -> Check | None:
    """The check that says that a part did not come to its end; None where it did."""
    if exit_code == 0 and found is not None and found["finished"]:
        return None
    how = "ran out of time" if exit_code in _TIMED_OUT else f"ended with exit code {exit_code}"
    where = " before it wrote anything"
    if found is not None:
        where = " after its last check" if found["finished"] else f" in '{found['stage']}'"
    return Check(f"{name} comes to its end", ERROR, exit_code, 0, None, f"{how}{where}")


def read(path: Path) -> dict[str, Any] | None:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None


def merged(folder: Path) -> dict[str, Any]:
    """All parts, in the order in which they ran, and all checks."""
    parts: dict[str, Any] = {}
    index = folder / "index"
    for entry in index.read_text().splitlines() if index.exists() else []:
        name, exit_code, seconds = entry.split()
        found = read(folder / f"{name}.json")
        checks = list(found["checks"]) if found else []
        bad = ended_badly(name, int(exit_code), found)
        if bad is not None:
            checks.append(plain(vars(bad)))
        log = folder / f"{name}.log"
        parts[name] = {
            "exit_code": int(exit_code),
            "seconds": float(seconds),
            "checks": checks,
            "facts": found["facts"] if found else {},
            "log_end": log.read_text(errors="replace")[-3000:] if bad is not None and log.exists() else "",
        }
    statuses = Counter(check["status"] for part in parts.values() for check in part["checks"])
    return {
        "schema_version": SCHEMA_VERSION,
        "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "simulated": any(part["facts"].get("simulated") for part in parts.values()),
        "totals": {status: statuses.get(status, 0) for status in (PASS, FAIL, SKIPPED, ERROR)},
        "parts": parts,
    }


def table(result: dict[str, Any]) -> str:
    """A line for each part, then each check that is no pass, then the sums."""
    lines = [f"{'part':14}{'pass':>6}{'fail':>6}{'skipped':>9}{'error':>7}{'seconds':>9}"]
    for name, part in result["parts"].items():
        found = Counter(check["status"] for check in part["checks"])
        figures = f"{found[PASS]:6}{found[FAIL]:6}{found[SKIPPED]:9}{found[ERROR]:7}{part['seconds']:9.1f}"
        lines.append(f"{name:14}{figures}")
    for status in (FAIL, ERROR, SKIPPED):
        for name, part in result["parts"].items():
            found = [Check(**check) for check in part["checks"] if check["status"] == status]
            lines += [f"{status:8} {name}: {check.name}: {line(check)}" for check in found]
    lines.append(", ".join(f"{count} {status}" for status, count in result["totals"].items()))
    if result["simulated"]:
        lines.append("SIMULATED: stand-ins for the GPU's libraries; no figure above was measured on a device")
    return "\n".join(lines)


def failed(result: dict[str, Any]) -> bool:
    """Nothing that ran is worth nothing: no checks at all is a failure too."""
    totals = result["totals"]
    return bool(totals[FAIL] or totals[ERROR]) or not totals[PASS]


def main() -> int:
    folder, results = Path(sys.argv[1]), Path(sys.argv[2])
    result = merged(folder)
    unfinished = results.with_suffix(".tmp")
    unfinished.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    unfinished.replace(results)
    if "--quiet" not in sys.argv:
        print(table(result))
    return int(failed(result))


if __name__ == "__main__":
    sys.exit(main())
