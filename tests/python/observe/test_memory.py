"""What a profile keeps follows the number of distinct ops, not the number of steps."""

import json
import subprocess
import sys

import pytest

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

step, few, many = globals()[sys.argv[1]], int(sys.argv[2]), int(sys.argv[3])
profiler = roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings())
with profiler:
    for number in range(few):
        step(number)
    before = resident()
    for number in range(few, many):
        step(number)
    after = resident()
report = profiler.report()
print(json.dumps({
    "growth": after - before,
    "calls": report.row("").calls,
    "macs": report.row("").macs,
    "buckets": [group.calls for group in report.group("module", "op", "phase", "shapes")],
    "ops": [group.calls for group in report.group("module", "op", "phase")],
}))
"""


def run(step, few, many):
    command = [sys.executable, "-c", SCRIPT, step, str(few), str(many)]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(result.stdout)


FIRST, SECOND = 16 * 16, 16 * 4  # MACs of a row in the two layers
FORWARD = FIRST + SECOND
TRAINING = 2 * FIRST + 3 * SECOND  # the data needs no gradient


@pytest.mark.parametrize(
    ("step", "few", "many", "macs"),
    [
        ("training", 200, 2_000, TRAINING),
        ("forward_without_backward", 200, 2_000, FORWARD),
        ("a_thread_for_each_step", 400, 1_200, TRAINING),
        pytest.param("training", 100, 10_000, TRAINING, marks=pytest.mark.slow),
        pytest.param("forward_without_backward", 100, 10_000, FORWARD, marks=pytest.mark.slow),
    ],
)
def test_memory_does_not_follow_the_steps(step, few, many, macs):
    seen = run(step, few, many)
    assert seen["growth"] < 2_000_000
    assert seen["calls"] == many
    assert seen["macs"] == many * 8 * macs


def test_memory_does_not_follow_the_shapes():
    steps = 4_000
    seen = run("a_shape_for_each_step", 2_000, steps)
    assert seen["growth"] < 2_000_000
    # 64 shapes of each op are kept apart, the others together; the sums stay exact.
    assert len(seen["buckets"]) <= 65 * len(seen["ops"])
    assert sum(seen["buckets"]) == sum(seen["ops"])
    rows = sum(2 + number % 1000 for number in range(steps))
    assert seen["macs"] == rows * FORWARD
