"""A training step as it is written today: autocast, a fused optimizer, DistributedDataParallel."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

import roofprof
from acceptance.checks import Part
from acceptance.machine import Machine, notes
from acceptance.models import Training
from acceptance.sums import beside_torch, check_sums


def step_of(machine: Machine, model: nn.Module, optimizer: Any, batch: Any, wanted: Any) -> Callable[[], None]:
    kind = torch.device(machine.tensors).type

    def step() -> None:
        optimizer.zero_grad()
        with torch.autocast(kind, torch.bfloat16):
            loss = model(batch, wanted)
        loss.backward()
        optimizer.step()

    return step


def profiled(machine: Machine, label: str, model: nn.Module, step: Callable[[], None]) -> roofprof.Report:
    """The report of a step in the steady state; its JSON, with roofs, is kept."""
    for _ in range(3):
        step()
    machine.synchronize()
    return machine.keep(label, machine.profiler(model, ceilings=machine.roofs, counters="off").run_step(step))


def check_step(part: Part, machine: Machine, label: str, wrap: Callable[[nn.Module], nn.Module]) -> roofprof.Report:
    width, tokens = machine.size(1024, 32), machine.size(512, 8)
    model = wrap(machine.model(Training(width, 2)))
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)
    batch = torch.rand(16, tokens, width, device=machine.tensors)
    wanted = torch.randint(0, 1000, (16, tokens), device=machine.tensors)
    step = step_of(machine, model, optimizer, batch, wanted)
    report = profiled(machine, label, model, step)
    check_sums(part, label, report, counted=False, permitted=False)
    part.fact(f"{label}: table", report.table(depth=2, limit=20, width=160))
    part.fact(f"{label}: operations by dtype", report.total.operations_by_dtype)
    phases = {phase: row.time for phase, row in report.by_phase().items()}
    part.fact(f"{label}: seconds by phase", phases)
    if machine.simulated:
        return report
    part.equal(f"{label}: phases with kernels", sorted({k.phase for k in report.kernels}),
               ["backward", "forward", "optimizer"], notes(report))  # fmt: skip
    fused = [kernel.name for kernel in report.kernels if kernel.phase == "optimizer" and "adam" in kernel.name.lower()]
    part.holds(f"{label}: the fused optimizer's kernel is there", bool(fused), fused)
    in_bf16 = report.total.operations_by_dtype.get("bf16", 0) / max(sum(report.total.operations_by_dtype.values()), 1)
    part.between(f"{label}: operations in bf16 under autocast", in_bf16, 0.9, 1.0)
    beside_torch(part, machine, label, step, report)
    return report


def check_one_rank(part: Part, machine: Machine) -> None:
    """DistributedDataParallel with a world of one: what it adds to a step without others to wait for."""
    from torch import distributed
    from torch.nn.parallel import DistributedDataParallel

    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("MASTER_ADDR", "localhost")
        distributed.init_process_group(
            "gloo" if machine.simulated else "nccl",
            init_method=f"file://{Path(folder) / 'store'}",
            rank=0,
            world_size=1,
        )
        try:
            report = check_step(part, machine, "step with DDP of one rank", DistributedDataParallel)
            part.fact(
                "step with DDP of one rank: collectives",
                [(c.op, c.calls, c.time) for c in report._compiled.collectives],
            )
        finally:
            distributed.destroy_process_group()


def run(part: Part, machine: Machine) -> None:
    with part.stage("autocast and fused AdamW"):
        check_step(part, machine, "step in bf16 with fused AdamW", lambda model: model)
    with part.stage("DDP of one rank"):
        check_one_rank(part, machine)
