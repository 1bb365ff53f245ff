"""What observing costs: by the kind of CUPTI's records, for each launch; and what roofprof's calls and blocks add."""

from __future__ import annotations

import functools
import statistics
from collections.abc import Callable
from contextlib import nullcontext

import torch
from torch import Tensor, nn

from acceptance.checks import Part
from acceptance.cupti_records import (
    CONCURRENT_KERNEL,
    DRIVER,
    EXTERNAL_CORRELATION,
    MEMCPY,
    MEMCPY2,
    MEMSET,
    RUNTIME,
    Records,
)
from acceptance.machine import Machine
from acceptance.models import Chain, resnet

ROUNDS = 7
BESIDE_CUPTI = 0.05  # of a bare call: what a timed call of run() may add to it beside CUPTI's records

# Each with all before it. A timed call of run() has kernels, copies and fills; an observed one is told of launches
# besides, or has all kinds where another client has CUPTI's callbacks.
KINDS = {
    "nothing": (),
    "kernels": (CONCURRENT_KERNEL,),
    "copies and fills": (MEMCPY, MEMCPY2, MEMSET),
    "calls of the runtime": (RUNTIME,),
    "calls of the driver": (DRIVER,),
    "ids": (EXTERNAL_CORRELATION,),
}
LAUNCHES = KINDS["kernels"] + KINDS["copies and fills"]
TOLD = "copies and fills, and told of launches"


class Numbered(nn.Module):
    """The additions of Chain, each under an id."""

    def __init__(self, length: int, records: Records) -> None:
        super().__init__()
        self.length, self.records = length, records

    def forward(self, x: Tensor) -> Tensor:
        for number in range(self.length):
            self.records.push(number + 1)
            x = x + 1.0
            self.records.pop()
        return x


def check_kinds(part: Part, machine: Machine, label: str, call: Callable[[], object], records: Records) -> float:
    """Seconds of the call with more and more kinds recorded, in turns; the records that came; both for each launch.

    Returns the seconds that records of kernels, copies and fills add to a call.
    """
    names = (*KINDS, TOLD)
    taken: dict[str, list[float]] = {name: [] for name in names}
    came: dict[str, dict[int, int]] = {}
    for turn in range(machine.size(ROUNDS, 1) + 1):  # the first one warms up
        kinds: tuple[int, ...] = ()
        for name in names:
            kinds = LAUNCHES if name == TOLD else kinds + KINDS[name]
            with records.of(kinds), records.told_of_launches() if name == TOLD else nullcontext():
                (seconds,) = machine.timed(call)
            came[name] = records.taken()
            if turn:
                taken[name].append(seconds)
    launches = came["kernels"].get(CONCURRENT_KERNEL, 0)
    medians = {name: statistics.median(seconds) for name, seconds in taken.items()}
    part.holds(f"{label}: kernels were recorded", launches > 0, launches)
    part.fact(f"{label}: records that came", came)
    extra = {
        name: 1e6
        * statistics.median([with_ - plain for with_, plain in zip(taken[name], taken["nothing"], strict=True)])
        for name in names
    }
    part.fact(
        f"{label}: what records cost",
        {
            "seconds": medians,
            "us more": extra,
            "us for each launch": {k: v / max(launches, 1) for k, v in extra.items()},
        },
    )
    return extra["copies and fills"] / 1e6


def check_run(part: Part, machine: Machine, label: str, cupti: float, model: nn.Module, *args: object) -> None:
    """A timed call of run() over a bare one, as its report has them, beside what CUPTI's records cost."""
    with torch.no_grad():
        report = machine.profiler(model, counters="off", repeat=machine.size(10, 2), warmup=machine.size(3, 1)).run(
            *args
        )
    runs = report.to_dict()["runs"]
    observed, bare = (statistics.median(runs[of]) / 1e9 for of in ("total_ns", "bare_ns"))
    launches = report.total.kernel_count or 0
    part.fact(
        f"{label}: run()",
        {"bare": bare, "observed": observed, "kernels": launches, "us more": 1e6 * (observed - bare)},
    )
    if not machine.simulated:
        more = (observed - bare - max(cupti, 0.0)) / bare
        part.between(f"{label}: what run() adds beside CUPTI's records, of a bare call", more, -1.0, BESIDE_CUPTI)


def run(part: Part, machine: Machine) -> None:
    length, size, batch = machine.size(2000, 20), machine.size(224, 32), machine.size(32, 1)
    chain = machine.model(Chain(length))
    few = torch.zeros(16, device=machine.tensors)
    model_of_images = machine.model(resnet(whole=not machine.simulated))
    images = torch.rand(batch, 3, size, size, device=machine.tensors)
    models = {
        f"{length} additions": (chain, few),
        f"resnet50, batch {batch}": (model_of_images, images),
        "resnet50, batch 1": (model_of_images, images[:1]),
    }
    with torch.no_grad():
        for model, inputs in models.values():
            model(inputs)
    machine.synchronize()
    by_cupti: dict[str, float] = {}
    # Before anything else traces: the buffers of CUPTI are one's alone.
    with part.stage("kinds of records"), torch.no_grad():
        records = Records()
        for label, (model, inputs) in models.items():
            call = functools.partial(model, inputs)
            by_cupti[label] = check_kinds(part, machine, label, call, records)
        numbered = machine.model(Numbered(length, records))
        check_kinds(part, machine, f"{length} additions under ids", lambda: numbered(few), records)
    for label, (model, inputs) in models.items():
        with part.stage(f"{label}: run()"):
            check_run(part, machine, label, by_cupti.get(label, 0.0), model, inputs)
