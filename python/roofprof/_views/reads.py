"""What the views read of a report, which imports what draws them."""

from __future__ import annotations

from typing import Protocol

from roofprof import _C


class ViewedReport(Protocol):
    """A part of :class:`roofprof.Report`."""

    @property
    def rows(self) -> list[_C.Row]: ...
    @property
    def total(self) -> _C.Row: ...
    @property
    def kernels(self) -> list[_C.KernelRow]: ...
    @property
    def ceilings(self) -> _C.Ceilings: ...
    @property
    def environment(self) -> dict[str, str | int | float]: ...
    @property
    def model(self) -> str: ...
    @property
    def device(self) -> str: ...
    def group(self, *keys: str) -> list[_C.GroupRow]: ...
