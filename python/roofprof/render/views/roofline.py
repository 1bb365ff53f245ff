"""A report as a roofline: the machine's roofs, and a dot for each module, operator or kernel.

Every figure is the report's own. Rows that cannot be dots are listed with the reason.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from roofprof import _report
from roofprof.errors import Error
from roofprof.figures import fields
from roofprof.render.views.folding import Folds, folds_of
from roofprof.render.views.kinds import COMPILED, OTHER, STYLES, kinds_of, kinds_of_modules

BY = ("module", "op", "kernel")
HOST_LINK = "host link"  # copies between host and device alone are held against it, and they compute nothing
NUMBERED = 5  # dots that waste most
MEASURED_LEVELS = {"L1": "l1_intensity", "L2": "l2_intensity", "DRAM": "dram_intensity"}

Row: TypeAlias = "_report.Row | _report.GroupRow | _report.KernelRow"


@dataclass(frozen=True)
class Roof:
    """A peak of a dtype ("compute", operations per second) or a bandwidth of a level ("memory", bytes per second)."""

    name: str
    kind: str
    rate: float
    source: str  # "measured 2026-11-21", "given", where it was published
    provenance: str  # that with the method and the spread

    @property
    def unit(self) -> str:
        """The unit of the rate."""
        if self.kind == "memory":
            return "B/s"
        return "FLOP/s" if self.name.startswith(("fp", "bf", "tf")) else "op/s"

    @property
    def text(self) -> str:
        """Its name in pictures: "DRAM 484 GB/s"."""
        rate = fields["achieved_flops"].text(self.rate)
        number, prefix = (rate[:-1], rate[-1]) if rate[-1:].isalpha() else (rate, "")
        return f"{self.name} {number} {prefix}{self.unit}"


@dataclass(frozen=True)
class Ridge:
    """The point where the slope of a level meets the roof of a dtype: memory bounds work of lower intensity."""

    compute: str
    memory: str
    intensity: float
    rate: float


@dataclass(frozen=True)
class Dot:
    """One module, operator or kernel: ``rate`` operations per second at ``intensity`` operations per byte.

    A dot of folded siblings has the figures of their sum.
    """

    key: str  # of a module its path, of folded ones "layers.0-79.mlp", of an operator its name
    label: str
    kind: str  # of the ops that take most of its time
    intensity: float
    rate: float
    time: float
    wasted_time: float | None  # None: there is no roof for its work
    measured: bool  # the bytes are those of DRAM by hardware counters; else each op's inputs and outputs once
    levels: tuple[tuple[str, float], ...]  # (level, intensity) where counters know the level's bytes, from L1 on
    incomplete: bool  # an op without a known cost is in it: intensity and rate are lower limits
    compute_time: float | None  # what its operations need at the roofs; None: a roof is missing
    memory_time: float | None  # what its bytes need
    row: Row = field(repr=False, compare=False)  # its figures; of folded modules their mean
    places: tuple[int, ...]  # of the report's rows, groups by op or kernels, by index; several where they are folded


@dataclass(frozen=True)
class LeftOut:
    """Rows that have no place, and the time that they took."""

    reason: str  # "no FLOPs: they only move data"
    count: int
    time: float


@dataclass(frozen=True)
class RooflineView:
    """The content of a roofline; the dots in the report's order."""

    by: str
    roofs: tuple[Roof, ...]
    ridges: tuple[Ridge, ...]
    dots: tuple[Dot, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def compute_roofs(self) -> tuple[Roof, ...]:
        """The compute roofs, the highest first."""
        return tuple(roof for roof in self.roofs if roof.kind == "compute")

    @property
    def memory_roofs(self) -> tuple[Roof, ...]:
        """The memory roofs, the fastest first."""
        return tuple(roof for roof in self.roofs if roof.kind == "memory")

    @property
    def kinds(self) -> list[str]:
        """The kinds of the dots, in the order of the palette."""
        present = {dot.kind for dot in self.dots}
        return [kind for kind in STYLES if kind in present]

    @property
    def about_ridges(self) -> str:
        """A sentence that says where memory stops being the limit; "" where no roof of either kind is known."""
        by_dtype = {
            compute.name: ", ".join(
                f"{fields['intensity'].text(ridge.intensity)} ({ridge.memory})"
                for ridge in self.ridges
                if ridge.compute == compute.name
            )
            for compute in self.compute_roofs
        }
        found = [f"for {dtype} {at}" for dtype, at in by_dtype.items() if at]
        return f"FLOPs per byte where memory stops being the limit: {'; '.join(found)}." if found else ""

    @property
    def about_left_out(self) -> list[str]:
        """A sentence for each reason why rows have no dot."""
        noun = {"module": "module", "op": "operator", "kernel": "kernel"}[self.by]
        sentences = []
        for left in self.left_out:
            what = f"{left.count:,} {noun}{'' if left.count == 1 else 's'}"
            time = f", {fields['time'].text(left.time)}" if left.time else ""
            sentences.append(f"Without a dot: {what}{time} ({left.reason}).")
        return sentences

    @property
    def hotspots(self) -> tuple[Dot, ...]:
        """The dots that waste time, the most first; where nothing has a roof, those that take time."""
        if any(dot.wasted_time is not None for dot in self.dots):
            wasting = [dot for dot in self.dots if (dot.wasted_time or 0) > 0]
            return tuple(sorted(wasting, key=lambda dot: -(dot.wasted_time or 0)))
        return tuple(sorted(self.dots, key=lambda dot: -dot.time))

    @property
    def worst(self) -> list[tuple[Dot, str]]:
        """The first hotspots, which pictures number, each with what it wastes, or takes: "wastes >=12.3ms"."""
        labelled = []
        for dot in self.hotspots[:NUMBERED]:
            figure, verb = ("time", "takes") if dot.wasted_time is None else ("wasted_time", "wastes")
            limit = fields[figure].limit if dot.incomplete else ""
            labelled.append((dot, f"{verb} {limit}{fields[figure].text(getattr(dot, figure))}"))
        return labelled


def roofline_view(
    report: _report.Report, by: str = "module", *, expand: bool = False, folds: Folds | None = None
) -> RooflineView:
    """Return the roofline of a report.

    by="module": a dot is what a module's own ops do, without those of the modules below it; so each op is in exactly
    one dot. A module around compiled code has one dot for all of it. by="op": all calls of an operator. by="kernel":
    one kernel in one module, op and launch size. Raises ValueError for any other. Modules that are folded in tables
    are one dot; ``folds``: these alone; ``expand``: none.

    Roofs: every memory level that is known, and every dtype that the report computes in.
    """
    if by not in BY:
        raise Error(f"a roofline has a dot by {', '.join(BY)}, not by {by!r}")
    if by == "module":
        if folds is None:
            folds = {} if expand else folds_of(report)
        sources: Iterable[_Source] = _modules(report, folds)
    else:
        sources = {"op": _operators, "kernel": _kernels}[by](report)
    dots: list[Dot] = []
    without: dict[str, list[_Source]] = {}  # by the reason
    for source in sources:
        reason = source.why_not or _why_no_place(source)
        if reason:
            without.setdefault(reason, []).append(source)
        else:
            dots.append(_dot(source))
    left_out = [
        LeftOut(reason, sum(max(len(of.members), 1) for of in sources), sum(of.time or 0 for of in sources))
        for reason, sources in without.items()
    ]
    left_out.sort(key=lambda left: -left.time)
    roofs = _roofs(report)
    return RooflineView(by, roofs, _ridges(roofs), tuple(dots), tuple(left_out))


# ---- roofs


def _roofs(report: _report.Report) -> tuple[Roof, ...]:
    computed = {dtype for dtype, count in report.total.operations_by_dtype.items() if count > 0}
    found = [
        Roof(roof.dtype, "compute", roof.operations_per_second, *_origin(roof.provenance))
        for roof in report.ceilings.compute
        if roof.dtype in computed
    ]
    found += [
        Roof(roof.level, "memory", roof.bytes_per_second, *_origin(roof.provenance))
        for roof in report.ceilings.memory
        if roof.level != HOST_LINK
    ]
    return tuple(sorted((roof for roof in found if roof.rate > 0), key=lambda roof: (roof.kind, -roof.rate)))


def _origin(of: _report.Provenance) -> tuple[str, str]:
    """Return the origin of a roof, in brief and in full."""
    source = f"{of.source} {of.date}".strip()
    spread = f"spread {100 * of.spread:.2g}%" if of.spread is not None else ""
    return source, ", ".join(part for part in (source, of.method, spread) if part)


def _ridges(roofs: tuple[Roof, ...]) -> tuple[Ridge, ...]:
    return tuple(
        Ridge(compute.name, memory.name, compute.rate / memory.rate, compute.rate)
        for compute in roofs
        if compute.kind == "compute"
        for memory in roofs
        if memory.kind == "memory"
    )


# ---- rows


_ADDED_UP = {"time", "flops", "int_ops", "bytes", "wasted_time", "compute_time", "memory_time"}


@dataclass(frozen=True)
class _Source:
    """A row that may become a dot. ``prefix`` of its figures: those of a module's own ops are "self_"."""

    key: str
    label: str
    kind: str
    place: int  # of the row in the report
    row: Row
    prefix: str = ""
    why_not: str = ""  # where something else already speaks for it
    members: tuple[_Source, ...] = ()  # the rows that are folded into it; the row is then their mean

    def figure(self, name: str) -> float | None:
        """Return a figure of the row; None if it is not known, or if kernels have no such figure."""
        if self.members and name in _ADDED_UP:
            values = [member.figure(name) for member in self.members]
            known = [value for value in values if value is not None]
            return sum(known) if len(known) == len(values) else None
        value: float | None = getattr(self.row, self.prefix + name, None)
        return value

    @property
    def time(self) -> float | None:
        return self.row.total if isinstance(self.row, _report.KernelRow) else self.figure("time")

    @property
    def operations(self) -> float | None:
        """The operations of the row; None if they are not known."""
        flops, integers = self.figure("flops"), self.figure("int_ops")
        return flops if flops is None else max(flops, integers or 0)


def _modules(report: _report.Report, folds: Folds) -> Iterator[_Source]:
    """Yield the modules; a fold comes at the place of its first member."""
    single = list(_each_module(report, {path: name for name, fold in folds.items() for path in fold.members}))
    by_path = {source.key: source for source in single}
    folded: set[str] = set()
    firsts: dict[str, _Source] = {}
    for name, fold in folds.items():
        members = tuple(by_path[path] for path in fold.members)
        if len({(member.prefix, member.why_not, member.kind) for member in members}) > 1:
            continue  # not the same to a reader of the picture
        folded.update(fold.members)
        first = members[0]
        label = f"{name} x{len(members)}{first.label.removeprefix(first.key)}"
        firsts[first.key] = replace(first, key=name, label=label, row=fold.mean, members=members)
    for source in single:
        if source.key in firsts:
            yield firsts[source.key]
        elif source.key not in folded:
            yield source


def _each_module(report: _report.Report, fold_of: dict[str, str]) -> Iterator[_Source]:
    kinds = kinds_of_modules(report, fold_of)
    rows, parents = report.rows, report.parents()
    has_children = set(parents)
    in_compiled: set[int] = set()  # modules around compiled code, and those below them
    for place, (row, parent) in enumerate(zip(rows, parents, strict=True)):
        name = row.path or report.model or "the model"
        if parent in in_compiled:
            in_compiled.add(place)
            why_not = "inside compiled code, which has one dot for all of it"
            yield _Source(row.path, name, OTHER, place, row, why_not=why_not)
            continue
        kind = kinds.get(fold_of.get(row.path, row.path), OTHER)
        if row.self_time and row.self_achieved_flops is None:  # its own time is that of all the work below it
            in_compiled.add(place)
            yield _Source(row.path, f"{name} (compiled)", COMPILED, place, row)
            continue
        label = f"{name} (own ops)" if place in has_children else name
        yield _Source(row.path, label, kind, place, row, prefix="self_")


def _operators(report: _report.Report) -> Iterator[_Source]:
    groups = report.group(["op"])
    kinds = kinds_of(group.keys[0] for group in groups)
    for place, group in enumerate(groups):
        op = group.keys[0]
        yield _Source(op, op.removeprefix("aten::"), kinds[op], place, group)


def _kernels(report: _report.Report) -> Iterator[_Source]:
    kernels = report.kernels
    kinds = kinds_of({kernel.op for kernel in kernels if kernel.op})
    for place, of in enumerate(kernels):
        sizes = "x".join(map(str, (*of.grid, *of.block)))
        key = "|".join((of.name, of.module, of.phase, of.op, sizes, str(of.device)))
        yield _Source(key, of.name, kinds.get(of.op, OTHER), place, of)


# ---- places


def _levels(source: _Source) -> tuple[tuple[str, float], ...]:
    found = ((level, source.figure(name)) for level, name in MEASURED_LEVELS.items())
    return tuple((level, intensity) for level, intensity in found if intensity)


def _intensity(source: _Source) -> float | None:
    """Return the intensity by the bytes of DRAM where they were measured, else by those of the shapes."""
    return source.figure("dram_intensity") or source.figure("intensity")


def _why_no_place(source: _Source) -> str:
    """Return the first thing that is missing; empty where nothing is."""
    of_kernel = isinstance(source.row, _report.KernelRow)
    if isinstance(source.row, _report.KernelRow) and source.row.kind != "kernel":
        return "copies and memsets: no FLOPs"
    operations = source.operations
    if operations is None or (not operations and source.figure("incomplete")):
        return "FLOPs not known"
    if not operations:
        moves = of_kernel or source.figure("bytes")
        return "no FLOPs: they only move data" if moves else "no work of their own"
    if not source.time or not source.figure("achieved_flops"):
        return "no time was measured"
    if not _intensity(source):
        return "bytes not measured" if of_kernel else "no bytes"
    return ""


def _dot(source: _Source) -> Dot:
    intensity, rate = _intensity(source), source.figure("achieved_flops")
    assert intensity is not None and rate is not None and source.time is not None
    return Dot(
        key=source.key,
        label=source.label,
        kind=source.kind,
        intensity=intensity,
        rate=rate,
        time=source.time,
        wasted_time=source.figure("wasted_time"),
        measured=bool(source.figure("dram_intensity")),
        levels=_levels(source),
        incomplete=bool(source.figure("incomplete")),
        compute_time=source.figure("compute_time"),
        memory_time=source.figure("memory_time"),
        row=source.row,
        places=tuple(of.place for of in source.members or (source,)),
    )
