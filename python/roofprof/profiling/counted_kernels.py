"""Makes counters of what Nsight Compute read, and finds the kernels of a trace that they are of."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import groupby
from typing import Any

from roofprof import _report
from roofprof.errors import NcuError
from roofprof.profiling import nsight_compute as ncu
from roofprof.profiling.imported_ranks import listed
from roofprof.profiling.nsight_compute import Kernel, Table, many, shown
from roofprof.profiling.nsight_systems import event

Values = dict[str, list[float]]  # by the counter's name, of each kernel; not a number: not known
Source = tuple[str, list[str], str, str]  # a counter, its metrics, the formula in their names, why it is missing
Note = tuple[str, str]  # code and text
Key = tuple[Any, ...]  # of a kernel, its name first: equal where two may be the same launch


# ---- counters of metrics, by the table that the collector has (docs/counters.md)

_NOT_REQUESTED = "ncu was not asked for all of their metrics (`roofprof import --help` shows the command)"
# The first compute capability that has the counter; of others all have.
_SINCE = dict.fromkeys(("tensor_bf16_flops", "tensor_tf32_flops", "tensor_int8_ops", "tensor_fp64_flops"), 80)
_SINCE |= {"tensor_fp8_flops": 89, "tensor_fp4_flops": 100}
_NEWEST_UNNAMED = 90  # versions of ncu whose tables do not name the compute capability know no newer chips
_HALF_FMA = "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum"


def counters_of(table: Table, capability: str = "") -> tuple[Values, list[Source], list[Note]]:
    """Return the counters of the kernels, where they are from, and notes.

    Counters that were not asked for, or that such a chip lacks, are left out; those that executed FLOPs need say why
    they are missing. capability: of the device, where the table does not have it.
    """
    # Older tables have the same sums over whole SMs, sm__sass_... for smsp__sass_...
    columns = {re.sub("^sm__sass", "smsp__sass", name): (name, column) for name, column in table.metrics.items()}
    known = re.match(r"([0-9]{1,3})\.([0-9])", table.capability or capability)
    chip = 10 * int(known[1]) + int(known[2]) if known else None
    counters = _report.counters_of(set(columns))
    there = {of for _, of, terms, _ in counters if terms}
    # These tell how much the tensor cores did where nothing else does, and they did nothing.
    instructions = ncu.TENSOR_INSTRUCTIONS in columns and "tensor" not in there
    names_counters = instructions or there - {"memory"}
    values, sources, notes = Values(), [], []
    for counter, of, terms, usual in counters:
        # Chips of 10.x have instructions on pairs of fp32, without which these were too few.
        few = counter == "fp32_flops" and (chip or 0) // 10 == 10
        few = few and bool(terms) and not terms[-1][1].endswith("fma2_pred_on.sum")
        if terms and not few:
            scaled = [[weight * value for value in columns[metric][1]] for weight, metric in terms]
            values[counter] = [float(sum(of_kernel)) for of_kernel in zip(*scaled, strict=True)]
            metrics = [columns[metric][0] for _, metric in terms]
            parts = (f"{weight} * " * (weight != 1) + name for (weight, _), name in zip(terms, metrics, strict=True))
            sources.append((counter, metrics, " + ".join(parts), ""))
        elif counter == "time_ns" and {ncu.CYCLES, ncu.RATE} <= columns.keys():
            pairs = zip(table.metrics[ncu.CYCLES], table.metrics[ncu.RATE], strict=True)
            values[counter] = [1e9 * cycles / rate if rate else math.nan for cycles, rate in pairs]
            sources.append((counter, [ncu.CYCLES, ncu.RATE], f"{ncu.CYCLES} / {ncu.RATE}", ""))
        elif counter == "tensor_fp16_flops" and instructions:
            values[counter] = [0.0 if idle else math.nan for idle in _idle_tensor_cores(table, columns, chip)]
            formula = f"0 where {ncu.TENSOR_INSTRUCTIONS} counts nothing but HFMA2"
            sources.append((counter, [ncu.TENSOR_INSTRUCTIONS], formula, ""))
            if unknown := sum(map(math.isnan, values[counter])):
                text = f"executed FLOPs of {many(unknown, 'launch', 'launches')} that ncu counted are not known: "
                text += f"{ncu.TENSOR_INSTRUCTIONS} counts instructions of tensor cores, not how much each of them does"
                notes.append(("counter-not-measured", text))
        elif names_counters and of not in ("memory", "tensor" if instructions else ""):
            # It names metrics: the chip may have them, so that what the others counted is not all.
            lacking = [name for name, may_lack in usual if name not in columns and (few or not may_lack)]
            if (chip or _NEWEST_UNNAMED) >= _SINCE.get(counter, 0):
                sources.append((counter, lacking, "", _NOT_REQUESTED))
    return values, sources, notes


def _idle_tensor_cores(table: Table, columns: dict[str, tuple[str, list[float]]], chip: int | None) -> list[bool]:
    """Return for each kernel whether none of its tensor-core instructions computes: the others' work is not known."""
    every = table.metrics[ncu.TENSOR_INSTRUCTIONS]
    if halves := table.metrics.get(ncu.TENSOR_HALF_FMA):
        return [not ran or ran == half for ran, half in zip(every, halves, strict=True)]
    # Chips of 8.0 run HFMA2 in this pipe. As many warps as its threads fill executed it at least.
    if chip == 80 and _HALF_FMA in columns:
        return [not ran or ran <= -(-half // 32) for ran, half in zip(every, columns[_HALF_FMA][1], strict=True)]
    return [not ran for ran in every]


# ---- names in one form, whichever program demangled them

_LAMBDA = re.compile(r"[{[]lambda\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)(?:#|\(instance)([0-9]+)\)?[}\]]")
_NUMBER = re.compile(r"(?<=[<,])(?:\(([^()]*)\))?(-?[0-9]+)[ul]*(?![A-Za-z0-9_])")


@cache
def plain_name(name: str) -> str:
    """Return the name without return type, parameters, spaces and types of template arguments that are numbers.

    It is "at::native::kernel<4,float>" for both "void at::native::kernel<(int)4, float>(int, T2)" and "void
    at::native::kernel<4, float>(int, float)".
    """
    text = _report.demangled(name).removeprefix("void ").replace(" ", "")
    text = text.replace("(anonymousnamespace)", "@unnamed").replace("<unnamed>", "@unnamed")
    text = _LAMBDA.sub(r"{lambda#\1}", text)
    text = _NUMBER.sub(lambda found: str(found[2] != "0").lower() if found[1] == "bool" else found[2], text)
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">" and text[place - 1 : place] != "-")
        if sign == "(" and depth <= 0 and place:
            return text[:place]
    return text


def function_name(name: str) -> str:
    """Return the function's own name, "kernel": all that ``ncu --print-kernel-base function`` leaves."""
    return plain_name(name).partition("<")[0].rpartition("::")[2]


# ---- which kernel is which

_DO = "let both run the same code once, or open one range around it: record_function in the trace, NVTX for ncu --nvtx"


def _starts(part: str, whole: str, copies: int) -> list[int] | None:
    """Return where so many copies of the part, one behind the other, begin in the whole.

    None: they are not in it; an empty list: they are in several ways.
    """
    first, begin, end = list[int](), 0, len(whole)
    for _ in range(copies):
        first.append(whole.find(part, begin))
        if first[-1] < 0:
            return None
        begin = first[-1] + len(part)
    last = [end := whole.rfind(part, 0, end) for _ in range(copies)]
    return first if first == last[::-1] else []


def by_order(traced: list[Key], counted: list[Key], steps: int) -> list[int]:
    """Return for each kernel of the trace the place of its counterpart in ``counted``, -1 where it has none.

    Kernels are the same where their keys are. Those that only one side has are left out. What is left of the shorter
    side must lie in what is left of the longer one, in one piece and in one way; or what was counted must lie in the
    trace once for each of its steps. Raises NcuError if it does not.
    """
    common = set(traced) & set(counted)
    letters = {key: chr(number) for number, key in enumerate(common)}
    at, ncu_at = ([place for place, key in enumerate(side) if key in common] for side in (traced, counted))
    trace, table = "".join(letters[traced[place]] for place in at), "".join(letters[counted[place]] for place in ncu_at)
    found = [-1] * len(traced)
    if not common:
        return found
    inside = len(trace) <= len(table)  # all of the trace
    starts = _starts(trace, table, 1) if inside else _starts(table, trace, 1)
    if not starts and not inside and steps > 1:
        starts = _starts(table, trace, steps) or starts
    sides = [f"{many(len(trace), 'launch', 'launches')} of the trace", f"{len(table)} that ncu counted"]
    if starts is None:
        why = f"the {sides[0]} are not the {sides[1]} of the same kernels, or ran in another order"
        if other := next((one for one in dict.fromkeys(trace) if trace.count(one) != table.count(one)), ""):
            name = shown(traced[at[trace.index(other)]][0])
            why += f": {trace.count(other)} and {table.count(other)} of them are {name}"
    elif not starts:
        of, are = sides[::-1] if inside else sides
        first = shown((traced[at[0]] if inside else counted[ncu_at[0]])[0])
        why = f"which of the {of} are the {are} is ambiguous: these, from {first} on, ran in that order more than once"
    if not starts:
        raise NcuError(f"{why}: {_DO}")
    for start in starts:
        for place in range(min(len(trace), len(table))):
            here, there = (place, start + place) if inside else (start + place, place)
            found[at[here]] = ncu_at[there]
    return found


def by_order_or_range(traced: list[Key], counted: list[Key], steps: int) -> tuple[list[int], bool]:
    """Return what by_order finds of keys that end with the ranges around each, and whether it took these to find it.

    What is found must not be in other ranges there. If it is, or nothing is found, what lies in the same ranges is
    compared, each of those that both sides have by itself.
    """
    names = {name for key in traced for name in key[-1]} & {name for key in counted for name in key[-1]}
    here, there = ([tuple(filter(names.__contains__, key[-1])) for key in side] for side in (traced, counted))
    keys, other_keys = ([key[:-1] for key in side] for side in (traced, counted))
    try:
        found = by_order(keys, other_keys, steps)
        pairs = ((here[place], there[other]) for place, other in enumerate(found) if other >= 0)
        if all(one == other or not one or not other for one, other in pairs):
            return found, False
    except NcuError:
        if not names:
            raise
    found = [-1] * len(traced)
    by_ranges = (groupby(sorted(range(len(side)), key=side.__getitem__), side.__getitem__) for side in (here, there))
    inside, other_inside = ({ranges: list(places) for ranges, places in side} for side in by_ranges)
    for ranges in inside.keys() & other_inside.keys() - {()}:
        at, other_at = inside[ranges], other_inside[ranges]
        try:
            places = by_order([keys[place] for place in at], [other_keys[place] for place in other_at], steps)
        except NcuError as error:
            raise NcuError(f"in the range '{shown(ranges[-1])}' {error}") from None
        for place, other in zip(at, places, strict=True):
            found[place] = other_at[other] if other >= 0 else -1
    return found, True


def match(table: Table, traced: list[Kernel], device: int, steps: int) -> tuple[list[int], list[Note]]:
    """Return for each kernel of the trace the index of its counterpart in the table, -1 where it has none, and notes.

    steps: of the trace; 0: they are not marked. Raises NcuError where it is ambiguous.
    """
    several = len({kernel.device for kernel in table.kernels}) > 1
    chosen = [index for index, kernel in enumerate(table.kernels) if kernel.device == device or not several]
    counted = [table.kernels[index] for index in chosen]
    if (processes := len({kernel.process for kernel in counted})) > 1:
        why = f"its kernels are of {processes} processes"
        raise NcuError(f"{why}: let ncu count one (--target-processes application-only)")
    # Names that have a counterpart by their plain form are compared by that, all others by the function's name.
    both = {plain_name(kernel.name) for kernel in traced} & {plain_name(kernel.name) for kernel in counted}
    sized = all(kernel.grid and kernel.block and all(kernel.grid + kernel.block) for kernel in (*traced, *counted))

    def key(kernel: Kernel) -> Key:
        name = plain_name(kernel.name)
        sizes = (kernel.grid, kernel.block) if sized else ()
        return name if name in both else function_name(name) + " ", sizes, tuple(kernel.ranges)

    places, by_range = by_order_or_range([key(kernel) for kernel in traced], [key(kernel) for kernel in counted], steps)
    found = [chosen[place] if place >= 0 else -1 for place in places]
    notes: list[Note] = []
    missing = [kernel for kernel, index in zip(traced, found, strict=True) if index < 0]
    if most := len(traced) - len(missing):
        used = len({*found} - {-1})
        text = f"{many(most, 'launch of the trace has', 'launches of the trace have')} the counters of {used} of the "
        text += f"{many(len(table.kernels), 'launch', 'launches')} that ncu counted: matched by "
        text += f"{'range, ' * by_range}name{', grid, block' if sized else ', as grids are not known,'} and order"
        if again := most - used:
            text += f"; {again} of them, in further steps, have the counters of launches of the step that ncu counted"
        names = {kernel.name for kernel, index in zip(traced, found, strict=True) if index >= 0}
        if loose := sorted({function_name(name) for name in names if plain_name(name) not in both}):
            text += "; by the name of the function alone, as ncu writes its template arguments in another way: "
            text += listed([*map(shown, loose)], 3)
        notes.append(("ncu-matched", text + _ROUNDED * table.rounded))
    if missing:
        times: Counter[str] = Counter()
        for kernel in missing:
            times[kernel.name] += kernel.time_ns
        share = times.total() / (sum(kernel.time_ns for kernel in traced) or 1)
        text = f"ncu counted no launch that is {len(missing)} of the trace's {many(len(traced), 'launch', 'launches')}"
        text += f" of kernels, {100 * share:.{int(share < 0.1)}f}% of their time: they have no counters: "
        notes.append(("ncu-not-matched", text + listed([shown(name) for name, _ in times.most_common()], 3)))
    return found, notes


_ROUNDED = "; values with prefixes are rounded, --print-units base gives all digits"


# ---- as the import takes them

Counting = Callable[[list[Any], int, str, int], tuple[Values, list[Source], list[Note], str]]


def counting(table: Table) -> Counting:
    """Return a function that finds the counters of a trace's kernels, for ``_C.TraceReader.report``."""

    def count(kernels: list[Any], device: int, capability: str, steps: int) -> Any:
        found, notes = match(table, [Kernel(*kernel) for kernel in kernels], device, steps)
        values, sources, more = counters_of(table, capability)
        chosen = {name: [each[i] if i >= 0 else math.nan for i in found] for name, each in values.items()}
        return chosen, sources, [*table.notes, *more, *notes], table.capability

    return count


def alone(table: Table) -> tuple[str, Counting]:
    """Return a trace of the kernels, which follow each other without gaps, and the function for their counters.

    Raises NcuError if the time of one is not known.
    """
    device = Counter(kernel.device for kernel in table.kernels).most_common(1)[0][0]
    kept = [index for index, kernel in enumerate(table.kernels) if kernel.device == device]
    every, sources, notes = counters_of(table)
    values = {name: [column[index] for index in kept] for name, column in every.items()}
    times = values.get("time_ns", [math.nan])
    if not sum(times) <= 86400e9:  # nor where one is not known; no kernels take a day
        why = "it does not have the time of every kernel"
        raise NcuError(f"{why}: let ncu read gpu__time_duration.sum too, or give the program's trace, which has times")
    if others := len(table.kernels) - len(kept):
        text = many(others, "kernel that ran on another device is", "kernels that ran on other devices are")
        notes.append(("counters-of-one-device", f"{text} left out"))
    times_are = "times are those of ncu, which runs each kernel by itself and, unless --cache-control none and "
    times_are += "--clock-control none are given, empties the caches before it and holds the clocks down"
    notes = [("ncu-times", times_are + _ROUNDED * table.rounded), *notes, *table.notes]
    events, at = [], 0
    for number, (index, time) in enumerate(zip(kept, map(round, times), strict=True), 1):
        kernel = table.kernels[index]
        args: dict[str, object] = {"device": device, "stream": 7, "correlation": number}
        args |= {"grid": kernel.grid, "block": kernel.block} if kernel.grid and kernel.block else {}
        events.append(event("kernel", kernel.name, at, at + time, args))
        at += time
    named = {"name": table.device} if table.device else {}
    head = json.dumps({"recorder": "Nsight Compute, each kernel run by itself", "deviceProperties": [named]})
    trace = f'{head[:-1]}, "traceEvents": [{", ".join(events)}]}}'
    return trace, lambda *_: (values, sources, notes, table.capability)
