"""Sentences about a window: which modules were called, and why nothing was profiled."""

from __future__ import annotations

from roofprof.profiling.script.window import Seen, Window


def named(modules: list[Seen]) -> str:
    """With the number of their calls."""
    names = ", ".join(f"{one.type} ({one.calls})" for one in modules[:5])
    return f"{names} and {len(modules) - 5} more" if len(modules) > 5 else names


def why_nothing(window: Window, skip: int | None) -> str:
    """One sentence about a window without a report. ``skip``: as it was requested."""
    if window.met_another and not window.seen:
        return "nothing was profiled: roofprof itself is called there, before any module is, and profilers do not nest"
    if window.name and not window.seen:
        called = ", ".join(f"{name} ({calls})" for name, calls in window.not_named.most_common(5)) or "none"
        return f"nothing was profiled: no module that was called is '{window.name}'; called were {called}"
    called = named(list(window.seen.values()))
    if called and not any(one.has_parameters for one in window.seen.values()):
        return f"nothing was profiled: no module with parameters was called, but {called}; --model chooses one"
    if called:
        return f"nothing was profiled: with --skip {skip} too few calls are left of {called}"
    return "nothing was profiled: no torch.nn module was called"
