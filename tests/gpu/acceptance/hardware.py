"""Open questions about CUPTI itself, asked below roofprof's profiler: answered yes or no, with what was seen."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from acceptance.checks import PASS, Part, compared
from acceptance.closed_forms import DRAM_TOLERANCE, Gemm, executed
from acceptance.known_kernels import FMA_F16X2, FMA_F32, THREADS, launcher
from acceptance.machine import Machine
from acceptance.questions import NOT_ANSWERED, STRAY_INSTRUCTIONS, Answer
from acceptance.raw import Raw, RefusedError
from acceptance.traffic import memset

DRAM = "dram__bytes.sum"  # on every discrete chip
SASS = "smsp__sass_thread_inst_executed_op_{}_pred_on.sum"


class Bench:
    """Large arrays of N bytes; kernels that move 3N, 2N and N bytes of them; the raw library."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.raw = Raw()
        self.n = machine.array_bytes
        self.a, self.b, self.c = (torch.rand(self.n // 4, device=machine.tensors) for _ in range(3))
        a, b, c = self.a, self.b, self.c
        self.triad = machine.call(lambda: torch.add(b, c, alpha=3.0, out=a), dram_bytes=3 * self.n)
        self.scale = machine.call(lambda: torch.mul(b, 2.0, out=a), dram_bytes=2 * self.n)
        self.fill = machine.call(lambda: c.fill_(1.0), dram_bytes=self.n)
        for call in (self.triad, self.scale, self.fill):
            call()
        machine.synchronize()

    def over_n(self, found: dict[str, Any]) -> list[tuple[str, float | None]]:
        """Each range's name, and its bytes over N."""
        values = [(row["name"], row["values"][0]) for row in found["ranges"]]
        return [(name, None if value is None else value / self.n) for name, value in values]

    def agrees(self, found: dict[str, Any], expected: list[int]) -> Answer:
        """Yes where there are as many ranges, of so many times N bytes each."""
        seen = self.over_n(found)
        evidence = {"bytes / N": seen, "expected": expected, "dropped": found["dropped"], "passes": found["passes"]}
        if not seen:
            return NOT_ANSWERED if self.machine.simulated else "no", evidence
        near = [
            compared("", value, want, DRAM_TOLERANCE).status for (_, value), want in zip(seen, expected, strict=False)
        ]
        return "yes" if len(seen) == len(expected) and set(near) == {PASS} else "no", evidence


def kernels_one_by_one(bench: Bench) -> Answer:
    """The ground that the rest stands on: each kernel a range, in launch order, in one pass."""
    return bench.agrees(bench.raw.count([DRAM], lambda: (bench.triad(), bench.scale(), bench.fill())), [3, 2, 1])


def fills_and_copies(bench: Bench) -> Answer:
    """Yes: a memset and a copy by the driver have no range of their own."""
    bench.machine.needs_gpu()
    fill = memset(bench.c)
    return bench.agrees(
        bench.raw.count([DRAM], lambda: (bench.triad(), fill(), bench.a.copy_(bench.b), bench.scale())), [3, 2]
    )


def in_range(bench: Bench, name: str, call: Callable[[], object]) -> None:
    bench.raw.push(name)
    call()
    bench.raw.pop()


def ranges_across_streams(bench: Bench) -> Answer:
    """Each range's kernel on a stream of its own, nothing waited for in between."""
    bench.machine.needs_gpu()
    streams = [torch.cuda.Stream() for _ in range(2)]

    def body() -> None:
        for stream, (name, call) in zip(streams, (("triad", bench.triad), ("fill", bench.fill)), strict=True):
            with torch.cuda.stream(stream):
                in_range(bench, name, call)

    return bench.agrees(bench.raw.count([DRAM], body, modules=True), [3, 1])


def launched_by_another_thread(bench: Bench) -> Answer:
    """A range that this thread opens counts what another thread launches meanwhile."""

    def body() -> None:
        bench.raw.push("here")
        other = threading.Thread(target=bench.triad)
        other.start()
        other.join()
        bench.raw.pop()
        in_range(bench, "afterwards", bench.fill)

    return bench.agrees(bench.raw.count([DRAM], body, modules=True), [3, 1])


def ranges_of_another_thread(bench: Bench) -> Answer:
    """Ranges may be opened and closed on a thread that did not begin to count."""

    def body() -> None:
        in_range(bench, "here", bench.fill)
        failed: list[RefusedError] = []

        def there() -> None:
            try:
                in_range(bench, "there", bench.triad)
            except RefusedError as refusal:
                failed.append(refusal)

        other = threading.Thread(target=there)
        other.start()
        other.join()
        if failed:
            raise failed[0]

    return bench.agrees(bench.raw.count([DRAM], body, modules=True), [1, 3])


def trace_and_ranges_at_once(bench: Bench) -> Answer:
    """Counters of each kernel while activity records are taken, in one run."""
    counted: dict[str, Any] = {}
    bodies = (bench.triad, bench.scale, bench.fill)

    def body() -> None:
        counted.update(bench.raw.count([DRAM], lambda: [call() for call in bodies]))

    records = bench.raw.trace(body)
    answer, evidence = bench.agrees(counted, [3, 2, 1])
    kernels = [record for record in records["records"] if record["kind"] == "kernel"]
    evidence |= {"records": len(records["records"]), "kernels": len(kernels), "notes": records["notes"]}
    return answer if len(kernels) == len(bodies) or answer != "yes" else "no", evidence


def executed_by_cublas(bench: Bench) -> Answer:
    """SASS counters of a large fp32 product: fused multiply-adds, by the library's own kernel."""
    torch.backends.cuda.matmul.allow_tf32 = False
    size = bench.machine.size(2048, 64)
    gemm = Gemm(size, size, size, 4)
    left, right = (torch.rand(size, size, device=bench.machine.tensors) for _ in range(2))
    product = bench.machine.call(lambda: left @ right, flops=gemm.flops)
    product()
    found = bench.raw.count([SASS.format(op) for op in ("fadd", "fmul", "ffma")], product)
    adds, products, fused = (sum(row["values"][i] or 0 for row in found["ranges"]) for i in range(3))
    status, why = executed(adds + products + 2 * fused, gemm)
    return "yes" if status == PASS else "no", {"fadd": adds, "fmul": products, "ffma": fused, "": why}


def weight(bench: Bench, instruction: Any, counter: str) -> tuple[float, dict[str, Any]]:
    """What a counter says of one instruction in one thread."""
    blocks, iterations = 64, 100
    launch, _ = launcher(instruction, blocks, iterations)
    launch()
    found = bench.raw.count([SASS.format(counter)], launch)
    count = sum(row["values"][0] or 0 for row in found["ranges"])
    return count / (blocks * THREADS * iterations * 16), found


def packed_halves(bench: Bench) -> Answer:
    """Yes: a packed fma of two halves counts once, so that it weighs 4 FLOPs. No: it counts twice, and weighs 2."""
    bench.machine.needs_gpu()
    single, _ = weight(bench, FMA_F32, "ffma")
    packed, _ = weight(bench, FMA_F16X2, "hfma")
    evidence = {"ffma for each fma.rn.f32": single, "hfma for each fma.rn.f16x2": packed}
    for answer, count in (("yes", 1.0), ("no", 2.0)):
        if abs(single - 1) <= STRAY_INSTRUCTIONS and abs(packed - count) <= 10 * STRAY_INSTRUCTIONS:
            return answer, evidence
    return NOT_ANSWERED, evidence


def images_later(bench: Bench) -> Answer:
    """An image that was saved says the same in a process that has no context on a device."""
    folder = bench.machine.folder / ("simulated_counter_image" if bench.machine.simulated else "counter_image")
    folder.mkdir(parents=True, exist_ok=True)
    found = bench.raw.count([DRAM], lambda: (bench.triad(), bench.fill()), save=folder)
    command = [sys.executable, "-m", "acceptance.hardware", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode:
        return "no", f"the other process ended with {done.returncode}: {(done.stdout + done.stderr)[-500:]}"
    here = [row["values"] for row in found["ranges"]]
    there = [row["values"] for row in json.loads(done.stdout.splitlines()[-1])["ranges"]]
    if not here:
        return NOT_ANSWERED, "nothing was counted"
    return "yes" if here == there else "no", {"here": here, "there": there}


def graph_kernels(bench: Bench) -> Answer:
    """Each kernel of a graph is a range of its own, between those of kernels before and after it."""
    bench.machine.needs_gpu()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        bench.triad()
        bench.scale()
    body = (bench.fill, graph.replay, bench.fill)
    return bench.agrees(bench.raw.count([DRAM], lambda: [call() for call in body]), [1, 3, 2, 1])


def graph_in_a_range(bench: Bench) -> Answer:
    """A range around a graph's launch has the bytes of all its kernels."""
    bench.machine.needs_gpu()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        bench.triad()
        bench.scale()
    return bench.agrees(bench.raw.count([DRAM], lambda: in_range(bench, "graph", graph.replay), modules=True), [5])


# What might hang stands last: it would cost what comes after it.
QUESTIONS: dict[str, Callable[[Bench], Answer]] = {
    "each kernel is a range, in launch order": kernels_one_by_one,
    "memsets and copies by the driver have no range": fills_and_copies,
    "user ranges tell kernels on two streams apart": ranges_across_streams,
    "tracing and ranges work in one pass": trace_and_ranges_at_once,
    "SASS counters count cuBLAS's kernels": executed_by_cublas,
    "a packed fma of halves counts once": packed_halves,
    "a saved counter image can be evaluated in another process": images_later,
    "a user range counts what another thread launches": launched_by_another_thread,
    "user ranges may be pushed by another thread": ranges_of_another_thread,
    "a user range around a CUDA graph counts its kernels": graph_in_a_range,
    "kernels of a CUDA graph are ranges under auto range": graph_kernels,
}


def record(part: Part, bench: Bench) -> None:
    """Records and counters of a few kernels, for tests that have no GPU."""
    path = bench.machine.folder / ("simulated_device_data.txt" if bench.machine.simulated else "device_data.txt")
    path.parent.mkdir(parents=True, exist_ok=True)
    bodies = (bench.triad, bench.scale, bench.fill)

    def body() -> None:
        for launch, call in enumerate(bodies, 1):
            bench.raw.belongs(launch, call)

    seen = bench.raw.trace(body)["records"]
    if not bench.machine.simulated:
        ids = [record["launch"] for record in sorted(seen, key=lambda record: record["correlation"])]
        part.equal("records carry the ids of their launches", sorted(set(ids)), [1, 2, 3])
        part.equal("ids come in launch order", ids, sorted(ids))
    try:
        part.fact("recorded", bench.raw.record(path, body))
    except RefusedError as refusal:
        part.skip("records and counters for tests", f"only what came before is recorded: {refusal}")


def asked(bench: Bench, question: Callable[[Bench], Answer]) -> Answer:
    """What CUPTI refuses it does not do, unless it is that this user may not ask."""
    try:
        return question(bench)
    except RefusedError as refusal:
        return "no" if bench.machine.counters_permitted else NOT_ANSWERED, f"refused: {refusal}"


def run(part: Part, machine: Machine) -> None:
    bench = None
    with part.stage("preparing"):
        bench = Bench(machine)
    if bench is None:
        return
    with part.stage("recording"):
        record(part, bench)
    for question, answer in QUESTIONS.items():
        with part.stage(question):
            part.answer(question, *asked(bench, answer))


def elsewhere() -> None:
    """Evaluates a saved image, and no more."""
    print(json.dumps(Raw().evaluate(Path(sys.argv[1]))))


if __name__ == "__main__":
    elsewhere()
