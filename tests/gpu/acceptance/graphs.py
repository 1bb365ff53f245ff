"""Compiled code and CUDA graphs: the reports add up, and have the kernels that torch.profiler sees."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from acceptance.checks import Part
from acceptance.machine import Machine, notes
from acceptance.models import Called, resnet50
from acceptance.sums import beside_torch, check_report

KNOWN = 0.9  # of the time of compiled code: of kernels that are told


def small(machine: Machine) -> tuple[nn.Module, Tensor]:
    """Convolutions, norms and a product, compiled in seconds."""
    return machine.model(resnet50((2,))).bfloat16(), machine.rand(32, 3, 224, 224).bfloat16()


def check_compiled(part: Part, machine: Machine, mode: str) -> None:
    """Inductor's kernels, with and without the second compilation that tells what is in each."""
    label = f"compiled, {mode}"
    model, images = small(machine)
    compiled = torch.compile(model, mode=mode)

    def call() -> None:
        with torch.no_grad():
            compiled(images)

    for _ in range(3):
        call()
    report = machine.profile(label, compiled, images, ceilings=machine.roofs)
    check_report(part, machine, label, report)
    beside_torch(part, machine, label, call, report)
    report = machine.profile(f"{label}, kernels", compiled, images, ceilings=machine.roofs, compiled_kernels=True)
    generated = [kernel for kernel in report.kernels if kernel.name.startswith("triton_")]
    part.holds(f"{label}: generated kernels are told", len(generated), notes(report))
    nameless = [kernel.name for kernel in generated if not kernel.modules]
    part.equal(f"{label}: generated kernels whose modules are not known", nameless, [], notes(report))
    in_modules = sum(kernel.total for kernel in report.kernels if kernel.modules)
    part.between(
        f"{label}: time of kernels with modules", in_modules / (report.total.time or 1), KNOWN, 1.0, notes(report)
    )
    part.fact(f"{label}: kernels and their modules", [(k.name, k.modules, k.bytes, k.total) for k in report.kernels])


def check_graph(part: Part, machine: Machine) -> None:
    """A captured call: one launch, all kernels."""
    model, images = small(machine)
    graph = torch.cuda.CUDAGraph()
    with torch.no_grad():
        for _ in range(3):
            model(images)
        machine.synchronize()
        with torch.cuda.graph(graph):
            model(images)
    report = machine.profile("captured graph", Called(graph.replay), ceilings=machine.roofs)
    check_report(part, machine, "captured graph", report)
    beside_torch(part, machine, "captured graph", graph.replay, report)
    eager = machine.profile("captured graph, eager", model, images, ceilings=machine.roofs)
    part.near("captured graph: time of its kernels over eager ones", report.total.time, eager.total.time or 0.0, 0.1)
    # A fill may be a kernel in a graph.
    launches = [sum(kernel.instances for kernel in of.kernels) for of in (report, eager)]
    part.equal("captured graph: its kernels and fills, and eager ones", *launches)


def run(part: Part, machine: Machine) -> None:
    with part.stage("graph"):
        machine.needs_gpu()
        check_graph(part, machine)
    for mode in ("default", "reduce-overhead"):  # minutes of compiling stand last
        with part.stage(mode):
            machine.needs_gpu()
            check_compiled(part, machine, mode)
