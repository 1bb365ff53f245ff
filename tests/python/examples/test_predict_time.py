"""examples/predict_time.py: the published figures of its cases, and what roofprof prints beside them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "predict_time.py"
INTERVAL = re.compile(r"([\d.]+) ms \(80%: ([\d.]+) to ([\d.]+) ms\)")


@pytest.fixture(scope="module")
def printed():
    # No GPU: none may be looked for.
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figures(text, label):
    """Each line with that label: what was published, and what roofprof says."""
    lines = re.findall(rf"^ +{re.escape(label)} +(.+?)  +(\S.*)$", text, re.MULTILINE)
    assert lines, label
    return lines


def test_the_product(printed):
    assert figures(printed, "bytes") == [("250,828,800", "250,828,800")]
    assert figures(printed, "bandwidth")[0][0] == "1.01 TB/s"
    assert float(figures(printed, "bandwidth")[0][1].split()[0]) == pytest.approx(1.01, rel=0.005)
    ((published, ours),) = figures(printed, "lower bound")
    assert published == "0.248 ms"
    assert float(ours.split()[0]) == pytest.approx(0.248, rel=0.01)
    assert ours.endswith("memory DRAM")
    assert figures(printed, "measured, kernel of sm_50")[0][0] == "203 ms"


def test_the_time_of_the_product_is_that_of_its_bytes(printed):
    ((_, ours),) = figures(printed, "usual kernels")
    low, high = map(float, INTERVAL.search(ours).groups()[1:])
    assert low <= 0.27
    assert high >= 0.25


def test_the_ridges(printed):
    # RTX 3060, then GTX 1080 Ti and A100.
    lines = figures(printed, "I_max")
    assert [published for published, _ in lines] == ["35.38", "23.35", "12.5"]
    for published, ours in lines:
        assert float(ours) == pytest.approx(float(published), rel=0.005)
    # 28 multiprocessors x 128 lanes x 1.777 GHz x 2.
    assert figures(printed, "peak") == [("12,737.536 GFLOP/s", "12,737.536 GFLOP/s")]
    assert round(28 * 128 * 1.777 * 2, 3) == 12_737.536


def test_the_convolution_is_compute_bound(printed):
    (published, ours), (about, _) = figures(printed, "I")
    assert published == "179.74"
    assert float(ours) == pytest.approx(179.74, rel=0.02)
    # 3 x 3 x 64 products for each output; input, output and weights once.
    outputs = 128 * 80 * 80
    assert float(ours) == pytest.approx(2 * 9 * 64 * outputs / (4 * (1.5 * outputs + 9 * 64 * 128)), abs=0.01)
    assert about == "about 7"
    assert figures(printed, "bound")[0] == ("compute", "compute fp32")


def test_the_network_is_memory_bound(printed):
    _, (_, intensity) = figures(printed, "I")
    assert 7 <= float(intensity) < 12.5
    _, pascal, ampere = figures(printed, "bound")
    assert pascal[0] == "at most 3.3 TFLOP/s"
    assert float(re.search(r"([\d.]+) TFLOP/s at I = 7", pascal[1])[1]) == pytest.approx(3.3, abs=0.1)
    assert pascal[1].startswith("memory DRAM")
    assert ampere[1].startswith("memory DRAM")
    for published, ours in (*figures(printed, "GTX 1080 Ti"), *figures(printed, "A100 SXM 40GB")):
        assert published == ours


def test_times_lie_in_their_intervals(printed):
    intervals = INTERVAL.findall(printed)
    assert len(intervals) == 4
    for time, low, high in intervals:
        assert 0 < float(low) <= float(time) <= float(high)
