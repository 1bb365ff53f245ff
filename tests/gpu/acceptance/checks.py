"""One part's results: checks with what was measured and expected, kept on disk from the first one on."""

from __future__ import annotations

import contextlib
import json
import math
import time
import traceback
from collections.abc import Iterator
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


def compared(name: str, measured: float | None, expected: float, tolerance: float, explanation: str = "") -> Check:
    """Whether a figure is what it should be, within a share of it. One that was not measured is no pass."""
    if measured is None:
        return Check(name, FAIL, None, expected, tolerance, explanation or "not measured")
    near = math.isclose(measured, expected, rel_tol=0, abs_tol=abs(tolerance * expected))
    return Check(name, PASS if near else FAIL, measured, expected, tolerance, explanation)


def between(name: str, measured: float | None, least: float, most: float, explanation: str = "") -> Check:
    """Whether a figure lies between two limits, these included."""
    expected = f"{least:g} to {most:g}"
    if measured is None:
        return Check(name, FAIL, None, expected, None, explanation or "not measured")
    return Check(name, PASS if least <= measured <= most else FAIL, measured, expected, None, explanation)


class Part:
    """Collects a part's checks. The file is written anew after each: a crash costs what would have come next."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.file = folder / f"{name}.json"
        self.checks: list[Check] = []
        self.facts: dict[str, Any] = {}
        self._stage = "start"
        self._started = time.monotonic()
        self._write(finished=False)

    def add(self, check: Check) -> bool:
        """Keep and print it. Whether it passed."""
        self.checks.append(check)
        print(f"  {check.status:8} {check.name}: {line(check)}", flush=True)
        self._write(finished=False)
        return check.status == PASS

    def equal(self, name: str, measured: Any, expected: Any, explanation: str = "") -> bool:
        """Exactly the same."""
        return self.add(Check(name, PASS if measured == expected else FAIL, measured, expected, 0.0, explanation))

    def near(self, name: str, measured: float | None, expected: float, tolerance: float, why: str = "") -> bool:
        """As compared()."""
        return self.add(compared(name, measured, expected, tolerance, why))

    def between(self, name: str, measured: float | None, least: float, most: float, why: str = "") -> bool:
        """As the function of that name."""
        return self.add(between(name, measured, least, most, why))

    def holds(self, name: str, condition: bool, measured: Any, explanation: str = "") -> bool:
        """Something that is true or not."""
        return self.add(Check(name, PASS if condition else FAIL, measured, True, None, explanation))

    def skip(self, name: str, why: str) -> None:
        self.add(Check(name, SKIPPED, explanation=why))

    def fact(self, name: str, value: Any) -> None:
        """Something to know, which can be neither right nor wrong."""
        self.facts[name] = value
        print(f"  {'fact':8} {name}: {json.dumps(plain(value))[:300]}", flush=True)
        self._write(finished=False)

    @contextlib.contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """What raises in here is an error of this stage alone. Of a crash or a hang the file tells the stage's name."""
        self._stage = name
        print(f"- {name}", flush=True)
        self._write(finished=False)
        try:
            yield
        except NotOnThisMachineError as reason:
            self.skip(name, str(reason))
        except Exception as error:
            text = traceback.format_exc()
            self.add(Check(name, ERROR, f"{type(error).__name__}: {error}"[:500], explanation=text[-2000:]))

    def finish(self) -> None:
        self._stage = ""
        self._write(finished=True)

    def _write(self, *, finished: bool) -> None:
        content = {
            "part": self.name,
            "finished": finished,
            "stage": self._stage,
            "seconds": round(time.monotonic() - self._started, 1),
            "checks": [asdict(check) for check in self.checks],
            "facts": self.facts,
        }
        unfinished = self.file.with_suffix(".tmp")
        unfinished.write_text(json.dumps(plain(content), indent=1), encoding="utf-8")
        unfinished.replace(self.file)


def plain(value: Any) -> Any:
    """The value in JSON's types: not a number and infinity are none of them."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return str(value)


def line(check: Check) -> str:
    """A check in a line."""
    figures = "" if check.measured is None else f"{brief(check.measured)} (expected {brief(check.expected)})"
    # Of a traceback the last line says what was raised.
    reason = check.explanation.strip().splitlines()[-1:]
    return "; ".join(text for text in (figures, *(line[:200] for line in reason)) if text)


def brief(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:120]
