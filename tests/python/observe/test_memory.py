"""What a profile keeps follows the number of distinct ops, not the number of steps."""

import json
import subprocess
import sys

# In a process of its own, so that nothing else moves its resident set.
SCRIPT = """
import json, os, sys, threading, torch, roofprof
from torch import nn

torch.set_num_threads(1)
model = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Linear(16, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
x = torch.rand(8, 16)

def training(_):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()

def forward_without_backward(_):
    model(x)

def a_thread_for_each_step(number):
    thread = threading.Thread(target=training, args=(number,))
    thread.start()
    thread.join()

def a_shape_for_each_step(number):
    model(torch.rand(2 + number % 1000, 16))

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def measured(step, few, many):
    profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
    with profiler:
        for number in range(few):
            step(number)
        before = resident()
        for number in range(few, many):
            step(number)
        after = resident()
    report = profiler.report()
    return {
        "growth": after - before,
        "calls": report.row("").calls,
        "macs": report.row("").macs,
        "buckets": [group.calls for group in report.group("module", "op", "phase", "shapes")],
        "ops": [group.calls for group in report.group("module", "op", "phase")],
    }

print(json.dumps({name: measured(globals()[name], *steps) for name, steps in json.loads(sys.argv[1]).items()}))
"""

FIRST, SECOND = 16 * 16, 16 * 4  # MACs of a row in the two layers
FORWARD = FIRST + SECOND
TRAINING = 2 * FIRST + 3 * SECOND  # the data needs no gradient
STEPS = {
    "training": (200, 1_200),
    "forward_without_backward": (200, 1_200),
    "a_thread_for_each_step": (200, 700),
    "a_shape_for_each_step": (2_000, 3_000),
}


def test_memory_follows_neither_the_steps_nor_the_shapes():
    command = [sys.executable, "-c", SCRIPT, json.dumps(STEPS)]
    seen = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    rows = {name: 8 * many for name, (_, many) in STEPS.items()}
    rows["a_shape_for_each_step"] = sum(2 + number % 1000 for number in range(3_000))
    for name, (_, many) in STEPS.items():
        assert seen[name]["growth"] < 1_500_000, name
        assert seen[name]["calls"] == many
        trains = name in {"training", "a_thread_for_each_step"}
        assert seen[name]["macs"] == rows[name] * (TRAINING if trains else FORWARD), name
    # 64 shapes of each op are kept apart, the others together; the sums stay exact.
    buckets, ops = seen["a_shape_for_each_step"]["buckets"], seen["a_shape_for_each_step"]["ops"]
    assert len(buckets) <= 65 * len(ops)
    assert sum(buckets) == sum(ops)
