"""AOTInductor packages: compiled code that no model is left of. Making one takes a C++ compiler and its time."""

import pytest
import torch
from compiled_models import LINEAR, Net, x
from given_roofs import profiler
from torch import nn

import roofprof

pytestmark = pytest.mark.slow

PACKAGE = "AOTInductor package"


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    path = str(tmp_path_factory.mktemp("package") / "net.pt2")
    with torch.no_grad():
        program = torch.export.export(Net(), (x(),))
        return torch._inductor.aoti_load_package(torch._inductor.aoti_compile_and_package(program, package_path=path))


class Holds(nn.Module):
    """A module between others that runs a package."""

    def __init__(self, package):
        super().__init__()
        self.package = package

    def forward(self, value):
        return self.package(value)


def around(package):
    return nn.Sequential(nn.Linear(8, 8), Holds(package), nn.Linear(8, 8)).requires_grad_(requires_grad=False)


def test_a_package_in_a_module_is_named_and_marks_its_row(package):
    report = profiler(around(package)).run(x())
    assert report.coverage.uncosted == {PACKAGE: 1}
    assert {row.path: row.self_incomplete for row in report.rows} == {"": False, "0": False, "1": True, "2": False}
    assert report.total.incomplete
    assert report.total.macs == 2 * LINEAR
    assert report.row("0").time > 0
    assert report.row("1").op_time <= report.row("1").time
    (note,) = [note for note in report.coverage.notes if note.code == "compiled-not-counted"]
    assert note.where == ["1"]
    assert "torch.compile" not in str(report).partition("advice")[2].partition("roofs")[0]


def test_beside_compiled_modules_both_have_their_times(package, nothing_compiled, backend):
    model = around(package)
    model[0].compile(backend=backend)
    report = profiler(model).run(x())
    assert report.coverage.uncosted == {PACKAGE: 1}
    assert report.total.macs == 2 * LINEAR
    assert report.row("1").time > 0
    assert [row.work_share for row in report.rows] == [None] * 4


def test_a_package_as_the_model_has_its_time_once(package):
    report = profiler(package).run(x())
    assert [row.path for row in report.rows] == [""]
    assert report.total.incomplete
    assert report.coverage.uncosted == {PACKAGE: 1}
    ops = report.by_operator()
    assert 0 < ops[PACKAGE].time <= report.total.time
    assert sum(group.time for group in ops.values()) <= report.total.time


def test_it_is_known_in_blocks_and_counts_too(package):
    model = around(package)
    prof = profiler(model)
    with prof:
        model(x())
        model(x())
    assert prof.report().coverage.uncosted == {PACKAGE: 2}
    assert roofprof.count(model, x()).coverage.uncosted == {PACKAGE: 1}
