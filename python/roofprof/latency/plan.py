"""The number of calls and their batches; this module refuses numbers that make no sense."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from roofprof.errors import TimingError

WARMUP, REPEAT = 50, 200
RANKS_WARMUP, RANKS_REPEAT = 5, 20
LARGEST_BY_DEFAULT = 1 << 16  # batch


class Limits(NamedTuple):
    """The number of calls for warm-up and of timed ones, and the seconds in which they begin; None: however late."""

    warmup: int
    repeat: int
    seconds: float | None
    among_ranks: bool  # they are fixed for all ranks of a program


@dataclass(frozen=True)
class Plan:
    """The number of calls, and the amount of data in each. Raises TypeError or ValueError for impossible values."""

    warmup: int | None = None  # None: as `limits` says
    repeat: int | None = None
    seconds: float | None = 30.0
    samples: int | None = None
    tokens: int | None = None

    def __post_init__(self) -> None:
        for name, least in (("warmup", 0), ("repeat", 1), ("samples", 1), ("tokens", 1)):
            value = getattr(self, name)
            if value is None:
                continue
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be a whole number, not {_shown(value)}{_KEYWORD}")
            if value < least:
                raise TimingError(f"{name} must be {least} or more, not {value}")
        if self.seconds is not None:
            if not isinstance(self.seconds, (int, float)) or isinstance(self.seconds, bool):
                raise TypeError(f"seconds must be a number or None, not {_shown(self.seconds)}{_KEYWORD}")
            if not self.seconds > 0:
                raise TimingError(f"seconds must be more than 0, not {self.seconds}")

    def limits(self, *, among_ranks: bool) -> Limits:
        """Return the limits of the further calls.

        Ranks may wait for each other in these: all must make the same number, and no clock ends them.
        """
        warmup, repeat = (RANKS_WARMUP, RANKS_REPEAT) if among_ranks else (WARMUP, REPEAT)
        return Limits(
            warmup if self.warmup is None else self.warmup,
            repeat if self.repeat is None else self.repeat,
            None if among_ranks else self.seconds,
            among_ranks,
        )


_KEYWORD = "; to hand a keyword of that name to the model, time a lambda that does"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) < 40 else f"something of type {type(value).__name__}"


@dataclass(frozen=True)
class Batches:
    """The requested batches: "auto", or sizes. Raises TypeError or ValueError for anything else."""

    requested: str | Sequence[int]

    def __post_init__(self) -> None:
        if self.requested == "auto":
            return
        if isinstance(self.requested, str) or not isinstance(self.requested, Sequence):
            raise TypeError(f"batches must be 'auto' or a list of whole numbers, not {self.requested!r}")
        for batch in self.requested:
            if not isinstance(batch, int) or isinstance(batch, bool):
                raise TypeError(f"a batch must be a whole number, not {batch!r}")
            if batch < 1:
                raise TimingError(f"a batch must be 1 or more, not {batch}")
        if not self.requested:
            raise TimingError("batches must have at least one")

    @property
    def auto(self) -> bool:
        """Return True when each batch doubles the one before."""
        return self.requested == "auto"

    @property
    def sizes(self) -> list[int]:
        """Return all batches that may be measured, smallest first."""
        if isinstance(self.requested, str):
            return [1 << power for power in range(LARGEST_BY_DEFAULT.bit_length())]
        return sorted(set(self.requested))
