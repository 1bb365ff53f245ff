"""Living with others: torch.profiler before, around and inside, two profilers at once, no permission."""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity

import roofprof
from acceptance.checks import Part
from acceptance.closed_forms import device_work
from acceptance.machine import CAP_SETUID, Machine, NotOnThisMachineError, has_capability, notes, seconds_by_events

NOBODY = 65534
LAUNCHES = 8
PRODUCTS = 20
# The processor's clock moves between two runs; that of a wrong clock is off by its frequency in GHz.
EVENTS_TOLERANCE = 0.10


class Adds(nn.Module):
    """So many kernels, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(LAUNCHES):
            x = x + 1.0
        return x


class Products(nn.Module):
    """Matrix products of milliseconds each: the device is never idle between them."""

    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.a, self.b, self.c = (torch.rand(4096, 4096, device=machine.tensors) for _ in range(3))

    def forward(self) -> None:
        for _ in range(PRODUCTS):
            torch.mm(self.a, self.b, out=self.c)


def check_times(part: Part, machine: Machine, label: str) -> None:
    """The time of kernels is the one that CUDA's events tell."""
    model = Products(machine)
    with torch.no_grad():
        model()
        expected = statistics.median(seconds_by_events(model, 5))
    report = machine.profile(f"times {label}", model)
    name = f"time of {PRODUCTS} products by roofprof and by CUDA's events, {label}"
    part.near(name, report.total.time, expected, EVENTS_TOLERANCE, notes(report))


class Workplace:
    """A model with a known number of kernels, and both profilers."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.launches = machine.size(LAUNCHES, 1)
        self.model = machine.model(Adds())
        self.inputs = torch.zeros(1 << 16, device=machine.tensors)
        self.model(self.inputs)
        machine.synchronize()

    def ours(self, label: str, **options: object) -> roofprof.Report:
        return self.machine.profile(label, self.model, self.inputs, **options)

    def torchs(self, inside: Callable[[], object] | None = None) -> int:
        """The kernels that torch.profiler sees of one call of the model, and of what is done beside it."""
        with torch.profiler.profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
            self.model(self.inputs)
            if inside is not None:
                inside()
            self.machine.synchronize()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "trace.json"
            profiler.export_chrome_trace(str(path))
            return device_work(json.loads(path.read_text()))[0]


def check_alone(part: Part, place: Workplace, label: str) -> None:
    """Ours works: the kernels that are known to run."""
    report = place.ours(label)
    part.equal(f"{label}: kernels", report.total.kernel_count, place.launches, notes(report))


def check_after(part: Part, place: Workplace) -> None:
    """torch.profiler leaves CUPTI with another clock and, up to torch 2.14, with a subscriber."""
    check_alone(part, place, "roofprof before torch.profiler")
    check_times(part, place.machine, "before torch.profiler")
    seen = place.torchs()
    part.equal("torch.profiler, the first time: kernels", seen, place.launches)
    check_alone(part, place, "roofprof after torch.profiler")
    check_times(part, place.machine, "after torch.profiler")
    part.equal("torch.profiler, after roofprof: kernels", place.torchs(), place.launches)
    check_alone(part, place, "roofprof once more")
    check_times(part, place.machine, "after torch.profiler was used again")


def check_inside(part: Part, place: Workplace) -> None:
    """roofprof while torch.profiler runs: a report without kernel times that says why, and theirs is whole."""
    reports: list[roofprof.Report] = []
    seen = place.torchs(lambda: reports.append(place.ours("inside torch.profiler")))
    text = notes(reports[0])
    part.fact("inside torch.profiler: notes", text)
    part.fact("inside torch.profiler: kernels that torch.profiler saw", seen)
    had = reports[0].total.kernel_count is not None
    part.holds("roofprof inside torch.profiler says so", had or "profiler" in text, text)
    part.holds("torch.profiler keeps its own kernels", seen >= place.launches, seen)
    part.equal("torch.profiler afterwards: kernels", place.torchs(), place.launches)
    check_alone(part, place, "roofprof after being inside torch.profiler")


def check_around(part: Part, place: Workplace) -> None:
    """torch.profiler starts while roofprof's block is open: whoever loses, nothing crashes and both work afterwards."""
    profiler = place.machine.profiler(place.model)
    with profiler:
        place.model(place.inputs)
        place.machine.synchronize()
        seen = place.torchs()
        place.model(place.inputs)
    report = place.machine.keep("around torch.profiler", profiler.report())
    part.fact("torch.profiler inside roofprof's block: kernels that it saw", seen)
    part.fact("torch.profiler inside roofprof's block: kernels that roofprof saw", report.total.kernel_count)
    part.fact("torch.profiler inside roofprof's block: notes", notes(report))
    lost = report.total.kernel_count != 3 * place.launches
    told = report.coverage.dropped_records > 0 or any(word in notes(report) for word in ("profiler", "lost"))
    part.holds("a report that lost kernels says so", not lost or told, notes(report))
    check_alone(part, place, "roofprof after being around torch.profiler")
    part.equal("torch.profiler after being inside roofprof: kernels", place.torchs(), place.launches)


def check_two(part: Part, place: Workplace) -> None:
    """A second profiler of ours, in the first one's block and on another thread."""
    said: list[str] = []

    def second() -> None:
        try:
            said.append(notes(place.ours("second profiler")))
        except RuntimeError as error:
            said.append(str(error))

    with place.machine.profiler(place.model):
        second()
    other = threading.Thread(target=second)
    with place.machine.profiler(place.model) as first:
        other.start()
        place.model(place.inputs)
        other.join(timeout=60)
    part.holds("a second profiler on another thread ends", not other.is_alive(), said)
    part.fact("a second profiler: what was said", said)
    part.fact("a second profiler: what the first says", notes(first.report()))
    check_alone(part, place, "roofprof after two profilers")


@contextlib.contextmanager
def readable_copy() -> Iterator[Path]:
    """Folders of root's are closed to others: this package and roofprof in one that is not."""
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        for source in (Path(__file__).parent, Path(roofprof.__file__).parent):
            subprocess.run(["cp", "-rL", str(source), str(root)], check=True)
        subprocess.run(["chmod", "-R", "a+rX", str(root)], check=True)
        yield root


def check_permission(part: Part, place: Workplace) -> None:
    """As a user who may not read counters: times are there, bytes are not, and one sentence says what to do."""
    place.machine.needs_gpu()
    params = Path("/proc/driver/nvidia/params")
    if not has_capability(CAP_SETUID) or not params.exists() or "RmProfilingAdminOnly: 1" not in params.read_text():
        raise NotOnThisMachineError("needs CAP_SETUID, and a driver that keeps counters to administrators")
    with readable_copy() as folder, tempfile.TemporaryDirectory() as home:
        Path(home).chmod(0o777)
        variables = {**os.environ, "PYTHONPATH": str(folder), "HOME": home}
        done = subprocess.run(
            [sys.executable, "-m", "acceptance.others"],
            capture_output=True, text=True, check=False, timeout=90, env=variables, cwd=home, user=NOBODY, group=NOBODY,
        )  # fmt: skip
    if done.returncode:
        raise NotOnThisMachineError(f"the interpreter cannot be used by another user: {done.stderr.strip()[-300:]}")
    seen = json.loads(done.stdout.splitlines()[-1])
    part.equal("without permission: kernels", seen["kernels"], LAUNCHES, seen["notes"])
    part.equal("without permission: DRAM bytes", seen["dram_bytes"], None, seen["notes"])
    part.holds("without permission: a note says so", "permi" in seen["notes"] or "privileg" in seen["notes"], seen)


def run(part: Part, machine: Machine) -> None:
    place = Workplace(machine)
    checks = {
        "torch.profiler before and after": check_after,
        "inside torch.profiler": check_inside,
        "two profilers": check_two,
        "no permission": check_permission,
        "around torch.profiler": check_around,
    }
    for name, check in checks.items():
        with part.stage(name):
            if "torch.profiler" in name:
                machine.needs_gpu()
            check(part, place)


def as_nobody() -> None:
    """What another user's process sees; printed as JSON."""
    machine = Machine(Path.cwd())
    report = Workplace(machine).ours("without permission")
    seen = {"kernels": report.total.kernel_count, "dram_bytes": report.total.dram_bytes, "notes": notes(report)}
    print(json.dumps(seen))


if __name__ == "__main__":
    as_nobody()
