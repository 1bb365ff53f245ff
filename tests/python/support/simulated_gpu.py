"""A simulated GPU: roofprof finds the fake libraries of tests/fakes, and models on the CPU launch fake kernels.

Nothing in here is measured. A process finds libraries once, so functions of this module run in processes of their own:
``simulated("what_goes_well")`` returns what ``what_goes_well()`` returned there.
"""

from __future__ import annotations

import ctypes
import functools
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from cpp_project import BUILD
from torch import nn

import roofprof
from roofprof import _C

FAKES = BUILD / "tests" / "fakes" / "lib"

GEMM_NS = 5000
GEMM_BYTES = 3_000_000
BACKWARD_NS = 7000
UPDATE_NS = 700
RELU_NS = 300


def simulated(function: str) -> Any:
    """What the function returns in a process that finds the fake libraries."""
    folders = (Path(roofprof.__file__).parents[1], Path(__file__).parent)
    path = os.pathsep.join(map(str, folders))
    done = subprocess.run(
        [sys.executable, __file__, function],
        env=os.environ | libraries("all", "all/libcupti.so.13") | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def libraries(cuda: str, cupti: str) -> dict[str, str]:
    """The variables that say which libraries are found, by the folders of tests/fakes; "none" has none."""
    return {
        "ROOFPROF_CUDA_LIB": str(FAKES / cuda / "libcuda.so.1"),
        "ROOFPROF_CUPTI_LIB": str(FAKES / cupti),
        "ROOFPROF_NVML_LIB": str(FAKES / "none" / "libnvidia-ml.so.1"),
    }


# ---- in the process of its own


class Fakes:
    """The fake libraries' control."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(str(FAKES / "libroofprof_fakes.so"))
        self._library.fake_calls.restype = ctypes.c_longlong
        self._library.fake_live.restype = ctypes.c_longlong
        self._library.fake_fail.argtypes = [ctypes.c_char_p, ctypes.c_int, ctypes.c_longlong]
        self._library.fake_set.argtypes = [ctypes.c_char_p, ctypes.c_longlong]

    def launch(self, name: str, duration_ns: int, dram_bytes: float = 0, stream: int = 0) -> None:
        """A kernel that reads all of its bytes."""
        fields = f"duration_ns={duration_ns} dram_read_bytes={dram_bytes} stream={stream} name={name}"
        self._library.fake_launch_text(fields.encode())

    def fail(self, function: str, code: int, after: int = 0) -> None:
        """That function fails with that code from now on."""
        self._library.fake_fail(function.encode(), code, after)

    def set(self, setting: str, value: int) -> None:
        """As fake_settings.def lists them."""
        self._library.fake_set(setting.encode(), value)

    def reset(self) -> None:
        """Everything works."""
        self._library.fake_reset()

    def calls(self, function: str) -> int:
        """So often it was called."""
        return int(self._library.fake_calls(function.encode()))

    def held(self) -> dict[str, int]:
        """What is held of the libraries now."""
        names = ("subscriber", "activity_buffer", "host_object", "range_profiler")
        return {name: int(self._library.fake_live(name.encode())) for name in names}


@functools.cache
def fakes() -> Fakes:
    """Loaded when first needed."""
    return Fakes()


@torch.library.custom_op("simulated::gemm", mutates_args=())
def gemm(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """Launches one kernel."""
    fakes().launch("simulated_gemm", GEMM_NS, GEMM_BYTES)
    return x @ weight


@torch.library.custom_op("simulated::gemm_backward", mutates_args=())
def gemm_backward(grad: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
    """Launches one kernel."""
    fakes().launch("simulated_gemm_backward", BACKWARD_NS)
    return x.t() @ grad


def _keep(ctx: Any, inputs: tuple[torch.Tensor, ...], output: torch.Tensor) -> None:
    ctx.save_for_backward(inputs[0])


def _backward(ctx: Any, grad: torch.Tensor) -> tuple[None, torch.Tensor]:
    return None, torch.ops.simulated.gemm_backward(grad, *ctx.saved_tensors)


gemm.register_autograd(_backward, setup_context=_keep)


@torch.library.custom_op("simulated::update", mutates_args=("weight",))
def update(weight: torch.Tensor, grad: torch.Tensor) -> None:
    """Launches one kernel."""
    fakes().launch("simulated_update", UPDATE_NS)
    weight.sub_(grad)


class Layer(nn.Module):
    """One product."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.simulated.gemm(x, self.weight)  # as such, torch.profiler records it


class Step(torch.optim.Optimizer):
    """p -= grad"""

    def __init__(self, parameters: Iterator[nn.Parameter]) -> None:
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure: None = None) -> None:
        for parameter in self.param_groups[0]["params"]:
            torch.ops.simulated.update(parameter, parameter.grad)


def model() -> nn.Module:
    """Two layers, each called once."""
    return nn.Sequential(Layer(), nn.ReLU(), Layer())


def profiler(module: nn.Module, **options: Any) -> roofprof.RooflineProfiler:
    """Quick, under roofs by hand; the tensors are on the CPU, so the device is requested."""
    roofs = _C.ceilings_from_dict({"device": "simulated", "compute": [], "memory": []})
    return roofprof.RooflineProfiler(module, warmup=1, repeat=3, device="cuda", ceilings=roofs, **options)


def facts(report: roofprof.Report) -> dict[str, Any]:
    """What tests look at. Times in nanoseconds."""
    rows = json.loads(report.to_json())["rows"]
    names = ("time_ns", "wall_ns", "host_time_ns", "dram_bytes", "kernel_count", "macs")
    return {
        "rows": {row["path"]: {name: row.get(name) for name in names} for row in rows},
        "kernels": json.loads(report.to_json()).get("kernels", []),
        "notes": [str(note) for note in report.coverage.notes],
        "runs": len(report.run_times),
        "table": str(report),
        "held": fakes().held(),
    }


class ScriptedLayer(nn.Module):
    """One product, as TorchScript calls it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(4, 4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.simulated.gemm(x, self.weight)


class Raises(nn.Module):
    """What a user's model does."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gemm(x, torch.ones(4, 4))
        raise KeyError("the user's own")


def one_run(**options: Any) -> dict[str, Any]:
    return facts(profiler(model(), **options).run(torch.ones(2, 4)))


def whole_report() -> dict[str, Any]:
    """One run with counters, to be read by ``Report.from_dict``; the op that launches has the work."""
    roofprof.op_cost("simulated::gemm")(lambda x, *_: roofprof.Work(flops=8 * x.numel(), bytes=12 * x.numel()))
    return profiler(model()).run(torch.ones(2, 4)).to_dict()


def kept_events() -> dict[str, Any]:
    """Reports with events of single launches, and one without."""
    layer = Layer()

    def run(module: nn.Module, **options: Any) -> dict[str, Any]:
        return profiler(module, counters="off", **options).run(torch.ones(4, 4)).to_dict()

    return {
        "run": run(model(), keep_events=True),
        "shared layer": run(nn.Sequential(layer, layer), keep_events=True),
        "unasked": run(model()),
    }


def training() -> dict[str, Any]:
    net = model()
    optimizer = Step(net.parameters())
    prof = profiler(net)
    with prof:
        net(torch.ones(2, 4)).sum().backward()
        optimizer.step()
    return facts(prof.report())


def live_and_as_a_trace() -> dict[str, Any]:
    """A training step profiled live, and torch.profiler's trace of it with the kernels that were recorded meanwhile."""
    net, x = model(), torch.ones(2, 4)
    optimizer = Step(net.parameters())

    def step() -> None:
        net.zero_grad()
        net(x).sum().backward()
        optimizer.step()

    with tempfile.TemporaryDirectory() as folder:
        recorded, traced = Path(folder) / "device.json", Path(folder) / "trace.json"
        with torch.profiler.profile(
            activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, with_stack=True
        ) as torchs:
            step()
        torchs.export_chrome_trace(str(traced))
        os.environ["ROOFPROF_RECORD_DEVICE"] = str(recorded)
        prof = profiler(net)
        with prof:
            step()
        [device] = json.loads(recorded.read_text())["traces"]
        trace = json.loads(traced.read_text())
        trace["traceEvents"] += _on_device(trace["traceEvents"], device)
        traced.write_text(json.dumps(trace))
        imported = roofprof.from_trace(traced, model=net, inputs=x)
    live = prof.report()
    return {"live": figures(live), "imported": figures(imported)}


def _on_device(events: list[dict[str, Any]], device: dict[str, Any]) -> list[dict[str, Any]]:
    """The recorded kernels as Kineto writes them, each with the call of CUDA's inside the op that launched it."""
    ops = sorted((e for e in events if e.get("name", "").startswith("simulated::")), key=lambda event: event["ts"])
    columns = device["records"]["columns"]
    records = sorted(
        (dict(zip(columns, row, strict=True)) for row in device["records"]["rows"]), key=lambda row: row["correlation"]
    )
    made = []
    for op, record in zip(ops, records, strict=True):
        correlated = {"correlation": record["correlation"]}
        launch = {"cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": op["pid"], "tid": op["tid"], "dur": 0}
        kernel = {"cat": "kernel", "name": device["names"][record.get("name") or 0], "pid": 0, "tid": 7}
        times = {"ts": op["ts"] + 1, "dur": (record["end_ns"] - record["start_ns"]) / 1000}
        on = {"device": 0, "stream": 7, "grid": record["grid"], "block": record["block"]}
        made.append({"ph": "X", "ts": op["ts"], "args": correlated} | launch)
        made.append({"ph": "X", "args": correlated | on} | kernel | times)
    return made


def figures(report: roofprof.Report) -> dict[str, Any]:
    """What a device did, by row, kernel, op and phase."""
    return {
        "rows": {
            row.path: [row.type, row.calls, row.macs, row.incomplete, row.kernel_count, row.time, row.self_time]
            for row in report.rows
        },
        "kernels": sorted(
            [k.name, k.op, k.module, k.phase, k.instances, k.total, k.grid, k.block] for k in report.kernels
        ),
        "ops": sorted([*group.keys, group.calls, group.time, group.macs] for group in report.group("op", "phase")),
        "uncosted": report.coverage.uncosted,
        "unattributed": report.coverage.unattributed_kernels,
    }


def regions() -> dict[str, Any]:
    """A region with one call of the model and one with two, and one call outside."""
    net = model()

    def step(x: torch.Tensor) -> None:
        with roofprof.scope("prefill"):
            net(x)
        with roofprof.scope("decode"):
            net(x)
            net(x)
        net(x)

    report = profiler(net).run_step(step, torch.ones(2, 4))
    parts = {name: report.within(name) for name in ("prefill", "decode")}
    again = roofprof.Report.from_dict(report.to_dict()).within("decode")
    return {
        "whole": facts(report),
        "parts": {name: facts(part) for name, part in parts.items()},
        "regions": json.loads(report.to_json())["regions"],
        "same from JSON": again == parts["decode"],
        "utilization": [row.utilization for row in (report.total, parts["decode"].total)],
    }


def compiled_kernels() -> dict[str, Any]:
    """A compiled model kernel by kernel. The code that Inductor generates for the CPU launches nothing: the operator
    behind it does so in its place.
    """
    gemm.register_fake(lambda x, weight: x.new_empty(x.shape[0], weight.shape[1]))

    @torch.library.custom_op("simulated::in_place_of_code", mutates_args=())
    def in_place_of_code(x: torch.Tensor) -> torch.Tensor:
        fakes().launch("cpp_fused_in_place_of_code_relu_0", RELU_NS)
        return x.clone()

    in_place_of_code.register_fake(torch.empty_like)

    class Relu(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.simulated.in_place_of_code(torch.relu(x))

    compiled = torch.compile(nn.Sequential(Layer(), Relu(), Layer()))
    with torch.no_grad():
        report = profiler(compiled, counters="off", compiled_kernels=True).run(torch.ones(2, 4))
    again = roofprof.Report.from_dict(report.to_dict())
    return {
        "rows": {row.path: [row.time, row.macs] for row in report.rows},
        "kernels": {k.name + " in " + k.module: [k.fused, k.modules, k.total, k.bytes, k.code] for k in again.kernels},
        "ops": {row.op: row.time for row in report.group("op") if row.time},
        "total": report.total.time,
        "notes": [str(note) for note in report.coverage.notes],
    }


def scripted() -> dict[str, Any]:
    net = torch.jit.script(nn.Sequential(ScriptedLayer(), nn.ReLU()))
    return facts(profiler(net, counters="off").run(torch.ones(2, 4)))


class Counted(nn.Module):
    """Launches one kernel, and counts its calls."""

    calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Counted.calls += 1
        return torch.ops.simulated.gemm(x, x)


def calls_by_the_clock() -> dict[str, Any]:
    """A device whose times pass as the host's do: how often a short call was made, and what its report has."""
    fakes().set("real_clock", 1)
    report = profiler(Counted(), counters="off").run(torch.ones(4, 4))
    return {"calls": Counted.calls, "kernels": report.total.kernel_count, "runs": len(report.run_times),
            "notes": [note.code for note in report.coverage.notes]}  # fmt: skip


def raising() -> dict[str, Any]:
    prof = profiler(nn.Sequential(Layer(), Raises()))
    try:
        prof.run(torch.ones(2, 4))
    except KeyError as error:
        raised = str(error)
    return {"raised": raised, "partial": prof.report().partial, **facts(prof.report())}


def counting_alone() -> dict[str, Any]:
    report = roofprof.count(model(), torch.ones(2, 4))
    return {"macs": report.total.macs, "calls": fakes().calls("cu*")}


def what_goes_well() -> dict[str, Any]:
    return {
        "counting alone": counting_alone(),
        "one call": one_run(counters="off"),
        "counters": one_run(),
        "counters of modules": one_run(counters="modules"),
        "training": training(),
        "regions": regions(),
        "a script": scripted(),
        "raising": raising(),
        "after raising": one_run(),
    }


def what_goes_wrong() -> dict[str, Any]:
    """Each thing by itself, then nothing of it."""
    found: dict[str, Any] = {}

    def attempt(name: str, cuda: str = "all") -> None:
        os.environ.update(libraries(cuda, "all/libcupti.so.13"))
        found[name] = one_run()
        fakes().reset()

    attempt("no driver", cuda="none")
    fakes().fail("cuptiSubscribe", 39)
    os.environ["NSYS_PROFILING_SESSION_ID"] = "7"
    attempt("another profiler")
    del os.environ["NSYS_PROFILING_SESSION_ID"]
    fakes().set("permitted", 0)
    attempt("no permission")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        attempt("torch.profiler")
    attempt("nothing")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as torchs:
        model()(torch.ones(2, 4))
    found["torch's own"] = [event.key for event in torchs.key_averages()]
    return found


if __name__ == "__main__":
    sys.stdout.write(json.dumps(globals()[sys.argv[1]]()) + "\n")
