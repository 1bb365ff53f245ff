"""examples/gemv_or_conv.py on the CPU: what it predicts and prints, against figures by hand."""

import math
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from given_roofs import roofs
from torch import nn

import roofprof

EXAMPLE = Path(__file__).resolve().parents[3] / "examples" / "gemv_or_conv.py"
LEFT, RIGHT = (600, 200, 8, 1, 64), (600, 1, 8, 64, 1)
# The whole of both operands and of the result, once: 4 bytes each.
BYTES = 4 * (math.prod(LEFT) + math.prod(RIGHT) + 600 * 200 * 8)
FLOPS = 2 * (600 * 200 * 8) * 64
PREDICTED = re.compile(r"predicted +([\d.]+) ms, (\w+) bound")
ACTUAL = re.compile(r"actual +([\d.]+) ms, ([\d.]+) x predicted")


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """What it prints for a DRAM of 10 GB/s."""
    ceilings = tmp_path_factory.mktemp("roofs") / "roofs.json"
    roofs({"fp32": 1e11}, {"DRAM": (1e10, 0)}).save(ceilings)
    command = [sys.executable, EXAMPLE, "--device", "cpu", "--quick", "--ceilings", ceilings]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def figure(text, label):
    return float(re.search(rf"{label} +([\d.,]+)", text)[1].replace(",", ""))


def test_the_closed_forms_are_those_of_the_case():
    assert BYTES == 250_828_800
    conv = nn.Conv2d(512, 512, 5, padding=2, bias=False, device="meta")
    assert roofprof.count(conv, torch.rand(1, 512, 256, 256, device="meta")).total.flops == 858_993_459_200


def test_bytes_and_flops_of_the_product(printed):
    assert figure(printed, "bytes") == BYTES
    assert figure(printed, "FLOPs") == FLOPS
    assert f"({FLOPS / BYTES:.2f} FLOPs/B)" in printed


def test_the_prediction_is_the_longer_of_computing_and_moving(printed):
    # 0.0251 s to move at 1e10 B/s; to compute at what the smaller convolution reaches.
    flops = 2 * 512 * 512 * 5 * 5 * 32 * 32
    assert f"convolution      {flops:,} FLOPs" in printed
    reached = flops / (1e-3 * float(re.search(r"FLOPs in ([\d.]+) ms", printed)[1]))
    to_compute, to_move = 1e3 * FLOPS / reached, 1e3 * BYTES / 1e10
    assert figure(printed, "to compute") == pytest.approx(to_compute, abs=1e-3)
    assert figure(printed, "to move") == pytest.approx(to_move, abs=1e-3)
    predicted, bound = PREDICTED.search(printed).groups()
    assert float(predicted) == pytest.approx(max(to_compute, to_move), abs=1e-3)
    assert bound == ("memory" if to_move > to_compute else "compute")


def test_the_actual_time_is_held_against_the_prediction(printed):
    actual, times = map(float, ACTUAL.search(printed).groups())
    predicted = float(PREDICTED.search(printed)[1])
    assert times == pytest.approx(actual / predicted, abs=0.06)
    assert figure(printed, "% of roof") == pytest.approx(100 * predicted / actual, abs=0.06)
    assert actual >= predicted or "faster than its roof" in printed


def test_without_a_gpu_it_says_what_is_missing(printed):
    assert "Only a run on a GPU shows which kernels ran" in printed
    assert "built for" in printed  # in that sentence alone
    assert "given: by hand" in printed  # where the memory's roof comes from


def test_a_published_card_predicts_the_case():
    command = [sys.executable, str(EXAMPLE), "--device", "cpu", "--quick", "--published", "RTX 4090"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    # 1.008 TB/s by NVIDIA: 0.2488 ms.
    assert figure(done.stdout, "to move") == pytest.approx(1e3 * BYTES / 1.008e12, rel=0.01)
    assert "published" in done.stdout
