"""A training step: in a block, with autocast and a fused optimizer, under DistributedDataParallel."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import torch
from torch import nn

from acceptance.checks import Part
from acceptance.machine import Machine, notes
from acceptance.models import Training
from acceptance.sums import beside_torch, check_report


def check_step(part: Part, machine: Machine, label: str, model: nn.Module, *, bf16: bool = True) -> None:
    """A step in the steady state: with autocast and a fused optimizer by run_step, or plainly in a block."""
    width, tokens = machine.size(1024, 32), machine.size(512, 8)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True if bf16 else None)
    batch = machine.rand(16, tokens, width)
    wanted = torch.randint(0, 1000, (16, tokens), device=machine.tensors)
    kind = torch.device(machine.tensors).type

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(kind, torch.bfloat16) if bf16 else contextlib.nullcontext():
            loss = model(batch, wanted)
        loss.backward()
        optimizer.step()

    for _ in range(3):
        step()
    machine.synchronize()
    profiler = machine.profiler(model, ceilings=machine.roofs, counters="off")
    if bf16:
        report = profiler.run_step(step)
    else:
        with profiler:
            step()
        report = profiler.report()
    machine.keep(label, report)
    check_report(part, machine, label, report)
    part.fact(f"{label}: seconds by phase", {phase: row.time for phase, row in report.by_phase().items()})
    if machine.simulated:  # the stand-ins launch in the forward alone
        return
    phases = sorted({kernel.phase for kernel in report.kernels})
    part.equal(f"{label}: phases with kernels", phases, ["backward", "forward", "optimizer"], notes(report))
    inside = [k for k in report.kernels if k.phase == "backward" and "encoder.layers" in k.module]
    part.holds(f"{label}: backward kernels stand in the modules they belong to", len(inside))
    if bf16:
        fused = [k.name for k in report.kernels if k.phase == "optimizer" and "adam" in k.name.lower()]
        part.holds(f"{label}: the fused optimizer's kernel is there", fused)
        operations = report.total.operations_by_dtype
        share = operations.get("bf16", 0) / max(sum(operations.values()), 1)
        part.between(f"{label}: operations in bf16 under autocast", share, 0.9, 1.0)
    beside_torch(part, machine, label, step, report)


def run(part: Part, machine: Machine) -> None:
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    def model() -> nn.Module:
        return machine.model(Training(machine.size(1024, 32), 2))

    with part.stage("in a block"):
        check_step(part, machine, "training step", model(), bf16=False)
    with part.stage("autocast and fused AdamW"):
        check_step(part, machine, "step in bf16 with fused AdamW", model())
    with part.stage("DDP of one rank"), tempfile.TemporaryDirectory() as folder:
        store = f"file://{Path(folder) / 'store'}"
        backend = "gloo" if machine.simulated else "nccl"
        distributed.init_process_group(backend, init_method=store, rank=0, world_size=1)
        try:
            check_step(part, machine, "step with DDP of one rank", DistributedDataParallel(model()))
        finally:
            distributed.destroy_process_group()
