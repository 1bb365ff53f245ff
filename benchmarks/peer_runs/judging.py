"""The verdict on one figure: equal, explained, or a fault that ends the run with 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

UNEXPLAINED = "UNEXPLAINED"


@dataclass(frozen=True)
class Verdict:
    """words: for the table. is_fault: nothing that is known makes ours right."""

    words: str
    is_fault: bool = False


def judge(tool: str, figure: str, original: int | None, ours: int | None, facts: dict[str, Any]) -> Verdict:
    """Return the verdict on a figure in the original's convention; None: the tool has no such figure.

    facts: those of the model, by :func:`peer_runs.reasons.facts`.
    """
    if ours is None:
        return Verdict(f"{UNEXPLAINED}: ours has no figure", is_fault=True)
    if original is None:
        return _alone(tool, figure, ours, facts)
    if original == ours:
        return Verdict("equal")
    reasons = [(words, amount) for words, amount in facts["reasons"].get(tool, {}).get(figure, []) if amount]
    rest = ours - original - sum(amount for _, amount in reasons)
    if rest:
        return Verdict(f"{UNEXPLAINED}: {rest:+,} of {figure}", is_fault=True)
    return Verdict("; ".join(f"{words} ({-amount:+,} {figure})" for words, amount in reasons))


def _alone(tool: str, figure: str, ours: int, facts: dict[str, Any]) -> Verdict:
    """Ours against a closed form, as the original says nothing."""
    expected = facts["params"] if figure == "params" else facts["expected"].get(tool, {}).get(figure)
    if expected is None:
        return Verdict(f"{UNEXPLAINED}: {figure} has neither an original nor a closed form", is_fault=True)
    if expected != ours:
        return Verdict(f"{UNEXPLAINED}: {figure} should be {expected:,}", is_fault=True)
    return Verdict("ours is the closed form")


def share(figure: int, right: int) -> str:
    """Return "0.642 times" the right figure, or "12 too few" if it is close."""
    if right and abs(figure / right - 1) >= 0.01:
        return f"{figure / right:.3g} times"
    return f"{abs(figure - right):,} too {'many' if figure > right else 'few'}"
