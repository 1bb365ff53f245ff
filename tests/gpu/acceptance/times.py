"""Times of models and convolutions for predictions, to which nothing is fitted: in turns over buffers beyond the L2.

They go to times.jsonl, a line each. A line that contradicts itself is a failed check, here and now.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from acceptance.bare import busy_by_torch
from acceptance.checks import Part
from acceptance.machine import Machine, seconds_by_events
from acceptance.models import Training, resnet

CALLS = 20
CACHES = 4  # so many L2s do the copies of one operand fill together
LONGER = 1.05  # kernels over the step that they are of
IN_A_ROW = 1.15  # a call among others over one that waits
Shape = tuple[int, int, int, int, int, int]  # channels in, out, kernel, stride, groups, size of the image


def convolutions(model: nn.Module, image: Tensor) -> dict[Shape, None]:
    """The distinct convolutions of a model, in their order."""
    found: dict[Shape, None] = {}

    def seen(module: nn.Conv2d, args: tuple[Tensor, ...]) -> None:
        kernel, stride = module.kernel_size[0], module.stride[0]
        found[module.in_channels, module.out_channels, kernel, stride, module.groups, args[0].shape[-1]] = None

    hooks = [m.register_forward_pre_hook(seen) for m in model.modules() if isinstance(m, nn.Conv2d)]
    with torch.no_grad():
        model(image)
    for hook in hooks:
        hook.remove()
    return found


def in_a_graph(machine: Machine, calls: list[Callable[[], object]]) -> float:
    """Seconds of one of these calls, which a graph replays in turns: no host, and each operand left the cache."""
    for call in calls[:2]:
        call()
    machine.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls:
            call()
    return statistics.median(seconds_by_events(graph.replay, 5)) / len(calls)


def convolution_times(
    machine: Machine, shapes: dict[Shape, None], dtype: torch.dtype, *, last: bool
) -> list[dict[str, Any]]:
    layout = torch.channels_last if last else torch.contiguous_format
    cache = torch.cuda.get_device_properties(machine.device).L2_cache_size
    found = []
    for inputs, outputs, kernel, stride, groups, size in shapes:
        weight = torch.rand(outputs, inputs // groups, kernel, kernel, device=machine.tensors, dtype=dtype)
        weight = weight.contiguous(memory_format=layout)
        image = torch.rand(32, inputs, size, size, device=machine.tensors, dtype=dtype).contiguous(memory_format=layout)
        copies = [image.clone() for _ in range(max(4, CACHES * cache // image.nbytes + 1))]
        calls = [
            lambda copy=copy, weight=weight, stride=stride, kernel=kernel, groups=groups: F.conv2d(
                copy, weight, None, stride, kernel // 2, 1, groups
            )
            for copy in copies[:32]
        ]
        seconds = in_a_graph(machine, calls)
        names = ("in_channels", "out_channels", "kernel", "stride", "groups", "size")
        line = dict(zip(names, (inputs, outputs, kernel, stride, groups, size), strict=True))
        found.append(
            {"op": "conv2d", "batch": 32, "dtype": str(dtype), "channels_last": last, **line, "seconds": seconds}
        )
    return found


def step_times(part: Part, machine: Machine, name: str, model: nn.Module, *args: Any) -> dict[str, Any]:
    """A whole step in three ways, which must not contradict each other."""

    def call() -> None:
        with torch.no_grad():
            model(*args)

    calls = machine.size(CALLS, 1)
    for _ in range(machine.size(5, 1)):
        call()

    def in_a_row() -> None:
        for _ in range(calls):
            call()

    alone = machine.timed(call, calls)
    row = min(machine.timed(in_a_row, 3)) / calls  # a shared host's pace changes
    line = {"model": name, "seconds": statistics.median(alone), "least": min(alone), "back_to_back": row}
    if not machine.simulated:
        line["busy_seconds"] = busy_by_torch(machine, call)
        part.between(f"{name}: kernels over the step", line["busy_seconds"] / max(line["seconds"], row), 0.0, LONGER)
        part.between(f"{name}: a call in a row over one that waits", row / line["seconds"], 0.0, IN_A_ROW)
    return line


def run(part: Part, machine: Machine) -> None:
    lines: list[dict[str, Any]] = []
    size, batch = machine.size(224, 32), machine.size(32, 1)
    in_fp32, in_bf16 = (machine.model(resnet(whole=not machine.simulated)) for _ in range(2))
    images = torch.rand(batch, 3, size, size, device=machine.tensors)
    encoder = machine.model(Training(machine.size(1024, 32), 2).encoder.eval())
    tokens = torch.rand(16, machine.size(512, 8), machine.size(1024, 32), device=machine.tensors)
    with part.stage("models"):
        lines.append(step_times(part, machine, "resnet50, fp32 with TF32", in_fp32, images))
        lines.append(step_times(part, machine, "encoder, fp32", encoder, tokens))
        half = in_bf16.bfloat16()
        lines.append(step_times(part, machine, "resnet50, bf16", half, images.bfloat16()))
        nhwc = (
            half.to(memory_format=torch.channels_last),
            images.bfloat16().contiguous(memory_format=torch.channels_last),
        )
        lines.append(step_times(part, machine, "resnet50, bf16, channels last", *nhwc))
    with part.stage("convolutions"):
        machine.needs_gpu()
        shapes = convolutions(in_fp32, images)
        for dtype, last in ((torch.bfloat16, False), (torch.bfloat16, True), (torch.float32, False)):
            lines += convolution_times(machine, shapes, dtype, last=last)
            torch.cuda.empty_cache()
    machine.folder.mkdir(parents=True, exist_ok=True)
    name = f"{'simulated_' if machine.simulated else ''}times.jsonl"
    (machine.folder / name).write_text("".join(json.dumps(line) + "\n" for line in lines))
    part.holds("times were written", bool(lines), len(lines))
