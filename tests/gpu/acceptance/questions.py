"""Open questions that roofprof's own interface can answer: yes or no, with what was seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn

import roofprof
from acceptance.checks import PASS, Part, compared
from acceptance.closed_forms import DRAM_TOLERANCE, Gemm, executed
from acceptance.known_kernels import INSTRUCTIONS, launcher
from acceptance.machine import Machine, notes
from acceptance.models import Training, WithBackward

Answer = tuple[str, Any]
NOT_ANSWERED = "not answered"
# A constant may be loaded by an instruction that counts as one of a packed fma.
STRAY_INSTRUCTIONS = 1e-3
THREADS_TOLERANCE = 0.10


class Stream(nn.Module):
    """One pass over large arrays. They are no buffers: profiling would save and restore those."""

    def __init__(self, call: Callable[[], object]) -> None:
        super().__init__()
        self.call = call

    def forward(self) -> None:
        self.call()


class Streams(nn.Module):
    """A fill (N bytes) on a stream of its own beside a triad (3N) on the usual one."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        n = machine.array_bytes // 4
        a, b, c, d = (torch.rand(n, device=machine.tensors) for _ in range(4))
        self.fill = Stream(lambda: d.fill_(1.0))
        self.triad = Stream(lambda: torch.add(b, c, alpha=3.0, out=a))
        self.side = torch.cuda.Stream(machine.device)

    def forward(self) -> None:
        self.side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self.side):
            self.fill()
        self.triad()
        torch.cuda.current_stream().wait_stream(self.side)


def by_closed_form(bytes_by_name: dict[str, float | None], expected: dict[str, int]) -> Answer:
    """Yes where all are within the tolerance of DRAM bytes."""
    found = {name: compared(name, bytes_by_name[name], expected[name], DRAM_TOLERANCE) for name in expected}
    seen = {name: None if check.measured is None else check.measured / check.expected for name, check in found.items()}
    if any(check.measured is None for check in found.values()):
        return NOT_ANSWERED, {"measured / closed form": seen}
    return "yes" if all(check.status == PASS for check in found.values()) else "no", {"measured / closed form": seen}


# The notes by which a report says that CUPTI did not give counters.
REFUSALS = {"no-counters", "counter-not-measured", "counters-mismatched", "counters-not-evaluated"}


def with_notes(answer: Answer, report: roofprof.Report, machine: Machine) -> Answer:
    """A figure that CUPTI refuses to somebody who may ask is the answer no."""
    refused = machine.counters_permitted and any(note.code in REFUSALS for note in report.coverage.notes)
    found = "no" if answer[0] == NOT_ANSWERED and refused else answer[0]
    return found, {"seen": answer[1], "notes": notes(report)}


def module_ranges_across_streams(machine: Machine) -> Answer:
    machine.needs_gpu()
    n = machine.array_bytes
    report = machine.profile("two streams", Streams(machine), counters="modules")
    seen = {name: report.row(name).dram_bytes for name in ("fill", "triad")}
    return with_notes(by_closed_form(seen, {"fill": n, "triad": 3 * n}), report, machine)


def module_ranges_across_threads(machine: Machine) -> Answer:
    """The backward runs on autograd's threads: by module, as much as the sum of its kernels one by one."""
    machine.needs_gpu()
    # Activations of 134 MB: what lies in the L2 at a module's end is little beside what it moves.
    width, batch, tokens = machine.size(1024, 32), machine.size(64, 2), machine.size(512, 8)
    model = WithBackward(machine.model(Training(width, 2)))
    inputs = torch.rand(batch, tokens, width, device=machine.tensors)
    args = inputs, torch.randint(0, 1000, (batch, tokens), device=machine.tensors)
    model(*args)  # from now on there are gradients to add to: each further call does the same
    rows = {}
    for counters in ("auto", "modules"):
        report = machine.profile(f"backward by {counters}", model, *args, counters=counters)
        rows[counters] = {"all": report.total.dram_bytes}
        for path in ("model.encoder.layers.0.linear1", "model.encoder.layers.1.linear1", "model.head"):
            rows[counters][path] = report.row(path).dram_bytes
    evidence = {"dram_bytes": rows, "notes": notes(report)}
    if any(value is None for found in rows.values() for value in found.values()):
        return with_notes((NOT_ANSWERED, evidence), report, machine)
    near = [compared(k, rows["modules"][k], rows["auto"][k], THREADS_TOLERANCE).status == PASS for k in rows["auto"]]
    return "yes" if all(near) else "no", evidence


def graphs_under_auto_range(machine: Machine) -> Answer:
    machine.needs_gpu()
    n = machine.array_bytes
    a, b, c = (torch.rand(n // 4, device=machine.tensors) for _ in range(3))

    def work() -> None:
        torch.add(b, c, alpha=3.0, out=a)
        torch.mul(b, 2.0, out=c)

    work()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    report = machine.profile("graph", Stream(graph.replay))
    seen = {"graph": report.total.dram_bytes}
    answer, evidence = by_closed_form(seen, {"graph": 5 * n})
    evidence["kernels"] = [(k.name, k.in_graph, k.instances, k.module, k.dram_bytes) for k in report.kernels]
    # Kernels without bytes, with the reason noted, is an answer too: the counters did not see them.
    if answer == NOT_ANSWERED and report.kernels:
        answer = "no"
    return with_notes((answer, evidence), report, machine)


def order_with_fills_between(machine: Machine) -> Answer:
    """Counters have no names and are joined by launch order: are fills and copies by the driver among them?"""
    machine.needs_gpu()
    from acceptance.traffic import memset

    n = machine.array_bytes
    a, b, c = (torch.rand(n // 4, device=machine.tensors) for _ in range(3))
    fill = memset(c)

    class Mixed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.triad = Stream(lambda: torch.add(a, b, alpha=3.0, out=a))
            self.between = Stream(lambda: (fill(), c.copy_(b)))
            self.scale = Stream(lambda: torch.mul(b, 2.0, out=a))

        def forward(self) -> None:
            self.triad()
            self.between()
            self.scale()

    report = machine.profile("fills between", Mixed())
    seen = {name: report.row(name).dram_bytes for name in ("triad", "scale")}
    return with_notes(by_closed_form(seen, {"triad": 3 * n, "scale": 2 * n}), report, machine)


def sass_counters_on_cublas(machine: Machine) -> Answer:
    machine.needs_gpu()
    torch.backends.cuda.matmul.allow_tf32 = False
    gemm = Gemm(4096, 4096, 4096, 4)
    a, b = (torch.rand(4096, 4096, device=machine.tensors) for _ in range(2))
    report = machine.profile("sass", lambda: a @ b, counters="flops", repeat=1)
    flops = report.total.executed_flops
    status, why = executed(flops, gemm)
    evidence = {"executed": flops, "2MNK": gemm.flops, "": why, "kernels": [k.name for k in report.kernels]}
    return with_notes((NOT_ANSWERED if flops is None else "yes" if status == PASS else "no", evidence), report, machine)


def weights_of_instructions(machine: Machine) -> Answer:
    """Kernels of known instructions: 2 FLOPs for a fused multiply-add, twice that where two halves are packed."""
    machine.needs_gpu()
    found: dict[str, float | None] = {}
    for instruction in INSTRUCTIONS:
        launch, expected = launcher(instruction, blocks=256, iterations=1000)
        report = machine.profile(f"instruction {instruction.name}", launch, counters="flops", repeat=1)
        flops = report.total.executed_flops
        found[instruction.name] = None if flops is None else flops / expected
    if None in found.values():
        return with_notes((NOT_ANSWERED, {"executed / expected": found}), report, machine)
    exact = all(abs(ratio - 1) <= STRAY_INSTRUCTIONS for ratio in found.values() if ratio is not None)
    return "yes" if exact else "no", {"executed / expected": found}


QUESTIONS: dict[str, Callable[[Machine], Answer]] = {
    "counters of modules hold across streams": module_ranges_across_streams,
    "counters of modules hold across autograd's threads": module_ranges_across_threads,
    "kernels of a CUDA graph have counters of their own": graphs_under_auto_range,
    "counters find their kernels with copies and fills between": order_with_fills_between,
    "executed FLOPs of cuBLAS's fp32 kernels are counted": sass_counters_on_cublas,
    "instructions weigh what they do, packed halves too": weights_of_instructions,
}


def run(part: Part, machine: Machine) -> None:
    for question, answer in QUESTIONS.items():
        with part.stage(question):
            part.answer(question, *answer(machine))
            if not machine.simulated:
                torch.cuda.empty_cache()
