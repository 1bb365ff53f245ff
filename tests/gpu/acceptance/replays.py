"""Compiled code, CUDA graphs and streams: the reports add up, and have the kernels that torch.profiler sees."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from acceptance.checks import Part
from acceptance.machine import Machine, notes
from acceptance.models import Bottleneck, Called, Streams
from acceptance.sums import beside_torch, check_sums

KNOWN = 0.9  # of the time of compiled code: of kernels that are told


def small(machine: Machine) -> tuple[nn.Module, Tensor]:
    """Convolutions, norms and a product, compiled in seconds."""
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1000)]
    model = nn.Sequential(*stem, Bottleneck(64, 64, 1), Bottleneck(256, 64, 1), *head)
    images = torch.rand(32, 3, 224, 224, device=machine.tensors).bfloat16()
    return machine.model(model.eval()).bfloat16(), images


def check_compiled(part: Part, machine: Machine, mode: str) -> None:
    """Inductor's kernels, with and without the second compilation that tells what is in each."""
    label = f"compiled, {mode}"
    model, images = small(machine)
    compiled = torch.compile(model, mode=mode)
    with torch.no_grad():
        for _ in range(3):
            compiled(images)
    report = machine.profile(label, compiled, images, ceilings=machine.roofs)
    check_sums(part, label, report, counted=False, permitted=False)

    def call() -> None:
        with torch.no_grad():
            compiled(images)

    beside_torch(part, machine, label, call, report)
    part.fact(f"{label}: table by kernel", report.table(by="kernel", limit=20, width=160))
    told = machine.profile(f"{label}, kernels", compiled, images, ceilings=machine.roofs, compiled_kernels=True)
    generated = [kernel for kernel in told.kernels if kernel.name.startswith("triton_")]
    part.holds(f"{label}: generated kernels are told", bool(generated), len(generated), notes(told))
    named = [kernel for kernel in generated if kernel.modules]
    part.equal(f"{label}: generated kernels whose modules are known", len(named), len(generated), notes(told))
    in_modules = sum(kernel.total for kernel in told.kernels if kernel.modules)
    part.between(f"{label}: time of kernels with modules", in_modules / (told.total.time or 1), KNOWN, 1.0, notes(told))
    part.fact(f"{label}: kernels and their modules", [(k.name, k.modules, k.bytes, k.total) for k in told.kernels])


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
    check_sums(part, "captured graph", report, counted=False, permitted=False)
    beside_torch(part, machine, "captured graph", graph.replay, report)
    eager = machine.profile("captured graph, eager", model, images, ceilings=machine.roofs)
    part.near("captured graph: time of its kernels over eager ones", report.total.time, eager.total.time or 0.0, 0.1)
    # A fill may be a kernel in a graph.
    launches = [sum(kernel.instances for kernel in of.kernels) for of in (report, eager)]
    part.equal("captured graph: its kernels and fills, and eager ones", *launches)


def check_streams(part: Part, machine: Machine) -> None:
    """A fill beside a triad: together they take no less than the device was busy."""
    model = Streams(machine.device, machine.array_bytes // 4)
    report = machine.profile("two streams with roofs", model, ceilings=machine.roofs)
    check_sums(part, "two streams", report, counted=False, permitted=False)
    beside_torch(part, machine, "two streams", model, report)


def run(part: Part, machine: Machine) -> None:
    with part.stage("replays"):
        machine.needs_gpu()
    if machine.simulated:
        return
    with part.stage("graph"):
        check_graph(part, machine)
    with part.stage("streams"):
        check_streams(part, machine)
    for mode in ("default", "reduce-overhead"):  # minutes of compiling stand last
        with part.stage(mode):
            check_compiled(part, machine, mode)
