"""Marks in your own code: regions with rows of their own, and work that no operator does."""

from __future__ import annotations

import contextlib
from types import TracebackType
from typing import TYPE_CHECKING, Protocol

import torch

from roofprof import _C
from roofprof.errors import Error
from roofprof.profiling.op_costs import Work

if TYPE_CHECKING:
    from typing_extensions import Self


class RegionWatcher(Protocol):
    """Is called for every region on every thread."""

    def entered(self, region: Region) -> None:
        """Note that the region begins on this thread."""

    def left(self, region: Region) -> None:
        """Note that the region has ended on this thread."""


# Code that no compiler traces reads this list: the compiler would compile that code again whenever the list changes.
watchers: list[RegionWatcher] = []


class Region(contextlib.ContextDecorator):
    """The result of :func:`scope`."""

    def __init__(self, name: str) -> None:
        self._name = _checked(name)

    def _recreate_cm(self) -> Region:  # each call of a decorated function opens its own
        return Region(self._name)

    def __enter__(self) -> Self:
        if not torch.compiler.is_compiling():
            self._begin()
        return self

    def _begin(self) -> None:
        try:
            for watcher in watchers:
                watcher.entered(self)
            self.open()
        except BaseException:  # a signal's handler may raise once it is open, and nobody would close it
            _C.close_region(self)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if not torch.compiler.is_compiling():
            for watcher in watchers:
                watcher.left(self)
            _C.close_region(self)

    def open(self) -> None:
        """Begin in a profile that observes this thread; again in one that was opened since."""
        _C.open_region(self._name, self)


class DeclaredWork:
    """The result of :func:`work`."""

    def __init__(self, name: str, work: Work) -> None:
        self._name = _checked(name)
        self._counts = work.counts()
        self._declared = _C.declare_work(self._name, self._counts)

    def __enter__(self) -> Self:
        # It is declared already, unless it was made outside the profile or entered before.
        if not self._declared:
            _C.declare_work(self._name, self._counts)
        self._declared = False
        try:
            _C.open_work(self._name, self._counts, self)
            return self  # noqa: TRY300
        except BaseException:  # as of a region
            _C.close_work(self)
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _C.close_work(self)


def scope(name: str) -> Region:
    """Return a region of the code: ``with roofprof.scope("postprocess"):`` or ``@roofprof.scope("postprocess")``.

    It gets a row below the module or region that runs where it is opened: path, calls, time and work as modules have.
    All that runs inside, whichever module it is of, is in :meth:`Report.within` and :attr:`Report.regions`.
    Regions are those of a thread: one that is open across an ``await`` has what other tasks do meanwhile, too.
    Outside a profile it does nothing. Raises TypeError or ValueError if the name is not a str, is empty or has more
    than 1,000 bytes.
    """
    return Region(name)


def work(
    name: str,
    macs: float = 0,
    flops: float | None = None,
    bytes: float | None = None,  # noqa: A002
    read_bytes: float | None = None,
    write_bytes: float | None = None,
    int_ops: float = 0,
    dtype: torch.dtype | None = None,
) -> DeclaredWork:
    """Declare work that bypasses torch's dispatcher: an extension's kernel, NumPy.

    It counts as one call of an operator ``name`` in the module that runs here, with the counts of :class:`Work`. Called
    as a statement it has no time. With ``with`` it has the time of the block, and the work that torch dispatches inside
    is part of it, not counted again. Outside a profile it does nothing. Raises TypeError or ValueError for invalid
    counts.
    """
    return DeclaredWork(name, Work(macs, flops, bytes, read_bytes, write_bytes, int_ops, dtype))


_SURELY_SHORT = 250  # characters: of at most 4 bytes each, they are no more bytes than a name may have


def _checked(name: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"a name must be a str, not {name!r}")
    if not name:
        raise Error("a name must not be empty")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise Error(f"a name must be a text that UTF-8 can hold, and {name!r} has half of a character") from None
    if len(name) > _SURELY_SHORT:  # the compiler of torch.compile cannot look into it
        _C.check_name(name)
    return name
