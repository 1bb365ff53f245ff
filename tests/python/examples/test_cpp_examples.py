"""examples/cpp, built against the installed package: what the programs print and write, beside Python's own count."""

import csv
import json
import sys

import pytest
import torch
from cpp_project import ROOT, build, configure, run
from torch import nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

import roofprof
from roofprof import cli

pytestmark = pytest.mark.integration  # it compiles the examples

EXAMPLES = ROOT / "examples" / "cpp"
COUNTS = (
    "macs",
    "flops",
    "int_ops",
    "read_bytes",
    "write_bytes",
    "bytes",
    "params",
    "trainable_params",
    "buffer_bytes",
)
SELF_COUNTS = ("self_macs", "self_flops", "self_read_bytes", "self_write_bytes")


@pytest.fixture(scope="module")
def examples(installed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("examples")
    configure(EXAMPLES, folder, installed, "-DCMAKE_CXX_FLAGS=-Wall -Wextra -Werror")
    build(folder)
    return folder


@pytest.fixture(scope="module")
def trained(examples):
    """What train_resnet prints, and the report that it writes."""
    printed = run(examples / "train_resnet", examples / "step.json").stdout
    return printed, roofprof.Report.from_json(examples / "step.json")


@pytest.fixture(scope="module")
def scripted(examples):
    """The same of run_torchscript."""
    run(sys.executable, EXAMPLES / "save_torchscript.py", examples / "fusion.pt")
    printed = run(examples / "run_torchscript", examples / "fusion.pt", examples / "fusion.json").stdout
    return printed, roofprof.Report.from_json(examples / "fusion.json")


@pytest.fixture(scope="module")
def packaged(examples):
    """The same of run_package."""
    run(sys.executable, EXAMPLES / "save_package.py", examples / "net.pt2")
    printed = run(examples / "run_package", examples / "net.pt2", examples / "net.json").stdout
    return printed, roofprof.Report.from_json(examples / "net.json")


# ---- train_resnet.cpp, written in Python


def conv(inside, outside, kernel, stride):
    return nn.Conv2d(inside, outside, kernel, stride, kernel // 2, bias=False)


class BasicBlock(nn.Module):
    def __init__(self, inside, outside, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(inside, outside, 3, stride), nn.BatchNorm2d(outside)
        self.conv2, self.bn2 = conv(outside, outside, 3, 1), nn.BatchNorm2d(outside)
        changes = stride != 1 or inside != outside
        self.shortcut = nn.Sequential(conv(inside, outside, 1, stride), nn.BatchNorm2d(outside)) if changes else None

    def forward(self, x):
        skipped = self.shortcut(x) if self.shortcut else x
        return torch.relu(self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x))))) + skipped)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.bn = conv(3, 16, 3, 1), nn.BatchNorm2d(16)
        self.layers = nn.Sequential(BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2))
        self.fc = nn.Linear(64, 10)

    def forward(self, images):
        return self.fc(self.layers(torch.relu(self.bn(self.stem(images)))).mean((2, 3)))


def a_step():
    model = ResNet()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    images, labels = torch.randn(16, 3, 32, 32), torch.randint(10, (16,))

    def step():
        optimizer.zero_grad()
        F.cross_entropy(model(images), labels).backward()
        optimizer.step()

    step()  # momentum exists by then, as in the program
    return model, step


def same_rows(found, expected):
    assert [(row.path, row.type) for row in found.rows] == [(row.path, row.type) for row in expected.rows]
    for row, other in zip(found.rows, expected.rows, strict=True):
        for name in COUNTS + SELF_COUNTS:
            assert getattr(row, name) == getattr(other, name), (row.path, name)


def test_a_training_step_counts_what_it_does(trained):
    _, report = trained
    # (pixels x outputs x inputs x kernel) of each convolution for one image; the linear layer last.
    stem = 32 * 32 * 16 * 3 * 9
    blocks = [
        2 * 32 * 32 * 16 * 16 * 9,
        16 * 16 * 32 * (16 * 9 + 32 * 9 + 16),
        8 * 8 * 64 * (32 * 9 + 64 * 9 + 32),
    ]
    # Backward is twice the forward; the images need no gradient.
    assert report.total.macs == 16 * (2 * stem + 3 * sum(blocks) + 3 * 64 * 10)
    for index, macs in enumerate(blocks):
        assert report.row(f"layers.{index}").macs == 16 * 3 * macs
    assert report.row("stem").macs == 16 * 2 * stem

    _, step = a_step()
    with FlopCounterMode(display=False) as counter:
        step()
    assert report.total.flops > 2 * report.total.macs == counter.get_total_flops()


def test_a_training_step_has_pythons_rows(trained):
    _, report = trained
    model, step = a_step()
    profiler = roofprof.RooflineProfiler(model)
    with profiler:
        step()
    expected = profiler.report()
    same_rows(report, expected)
    for row in report.rows:
        assert not row.inferred, row.path
        if row.type not in {"Sequential", ""}:
            assert row.calls == expected.row(row.path).calls == 1, row.path
    assert report.row("layers").calls is None  # a header template: its calls cannot be seen


def test_a_torchscript_model_counts_what_eager_does(scripted):
    sys.path.insert(0, str(EXAMPLES))
    try:
        from save_torchscript import Fusion, example_batch
    finally:
        sys.path.remove(str(EXAMPLES))
    _, report = scripted
    model, batch = Fusion().eval(), example_batch()
    with torch.no_grad():
        with FlopCounterMode(display=False) as counter:
            model(batch)
        expected = roofprof.count(model, batch)
    assert 2 * report.total.macs == counter.get_total_flops()
    same_rows(report, expected)
    assert [row.calls for row in report.rows] == [row.calls for row in expected.rows]


def test_a_package_counts_what_eager_does(packaged):
    sys.path.insert(0, str(EXAMPLES))
    try:
        from save_package import Net
    finally:
        sys.path.remove(str(EXAMPLES))
    _, report = packaged
    with torch.no_grad():
        expected = roofprof.count(Net().eval(), torch.randn(1, 3, 64, 64))
    macs = {"features.0": 32 * 32 * 32 * 3 * 9, "features.2": 16 * 16 * 32 * 32 * 9, "scores": 32 * 10}
    assert {row.path: row.self_macs for row in report.rows if row.self_macs} == macs
    for row in report.rows:
        other = expected.row(row.path)
        assert (row.type, row.macs, row.flops, row.bytes) == (other.type, other.macs, other.flops, other.bytes)
        assert (row.time is None) == (row.path != ""), row.path
    assert report.total.time > 0


@pytest.mark.parametrize("name", ["trained", "scripted", "packaged"])
def test_a_programs_file_is_one_of_pythons(name, request, examples, tmp_path, capsys):
    printed, report = request.getfixturevalue(name)
    path = examples / {"trained": "step.json", "scripted": "fusion.json", "packaged": "net.json"}[name]
    table = report.table(width=120)
    assert table.strip() == printed.strip()  # std::cout << report

    again = tmp_path / "again.json"
    rows = tmp_path / "rows.csv"
    assert cli.main(["show", str(path), "--json", str(again), "--csv", str(rows), "--width", "120"]) == 0
    assert capsys.readouterr().out.strip() == printed.strip()
    assert json.loads(again.read_text()) == json.loads(path.read_text())
    with rows.open() as file:
        assert [line["path"] for line in csv.DictReader(file)][: len(report.rows)] == [row.path for row in report.rows]
    assert cli.main(["show", str(path), "--by", "op"]) == 0
    assert "aten::" in capsys.readouterr().out
