"""AOTInductor packages: compiled code that no model is left of. Making one takes a C++ compiler and its time."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest
import torch
from attributed import Model
from compiled_models import EVERY_LINEAR, LINEAR, Net, x
from given_roofs import profiler
from torch import nn
from torch.export.pt2_archive._package import package_pt2

import roofprof
from roofprof import cli

pytestmark = pytest.mark.slow

PACKAGE = "AOTInductor package"
CACHED = {"aot_inductor.package": True}


def exported(model=None, inputs=None, **options):
    with torch.no_grad():
        return torch.export.export((model or Net()).eval(), (x(),) if inputs is None else inputs, **options)


def with_counts(program, path) -> str:
    """Export as the documentation says."""
    with torch.no_grad():
        return torch._inductor.aoti_compile_and_package(
            program,
            package_path=str(path),
            inductor_configs={"aot_inductor.metadata": roofprof.package_metadata(program)},
        )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("packages")


@pytest.fixture(scope="module")
def file_with_counts(folder):
    return with_counts(exported(), folder / "counted.pt2")


@pytest.fixture(scope="module")
def package(folder):
    """Without counts and without its program."""
    with torch.no_grad():
        path = torch._inductor.aoti_compile_and_package(exported(), package_path=str(folder / "net.pt2"))
        return torch._inductor.aoti_load_package(path)


@pytest.fixture(scope="module")
def counted(file_with_counts):
    return torch._inductor.aoti_load_package(file_with_counts)


@pytest.fixture(scope="module")
def file_with_program(folder):
    """A package for any batch that holds its exported program, and no counts."""
    program = exported(dynamic_shapes=({0: torch.export.Dim("batch", min=2, max=64)},))
    with torch.no_grad():
        files = torch._inductor.aot_compile(program.module(), (x(),), options=CACHED)
    path = folder / "with_program.pt2"
    package_pt2(path, exported_programs=program, aoti_files=files)
    return path


def around(package):
    """A module between others that runs a package."""
    holds = Model(lambda self, value: self.package(value), package=package)
    return nn.Sequential(nn.Linear(8, 8), holds, nn.Linear(8, 8)).requires_grad_(requires_grad=False)


def block_of(model, *inputs):
    """The report of a block with a call for each input."""
    with profiler(model) as block:
        for value in inputs:
            model(value)
    return block.report()


def notes_of(report, code):
    return [note.text for note in report.coverage.notes if note.code == code]


def changed(source, target, change) -> None:
    """Copy a package; change(metadata) changes what its metadata say."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            content = old.read(name)
            if name.endswith("_metadata.json"):
                metadata = json.loads(content)
                change(metadata)
                content = json.dumps(metadata).encode()
            new.writestr(name, content)


# ---- packages of which nothing is known


def test_a_package_in_a_module_is_named_and_marks_its_row(package):
    model = around(package)
    report = profiler(model).run(x())
    incomplete = {row.path: row.self_incomplete for row in report.rows}
    assert incomplete == {"": False, "0": False, "1": False, "1.package": True, "2": False}
    assert report.total.incomplete
    assert report.total.macs == 2 * LINEAR
    assert report.row("0").time > 0
    assert report.row("1.package").op_time <= report.row("1.package").time <= report.row("1").time
    (note,) = [note for note in report.coverage.notes if note.code == "compiled-not-counted"]
    assert note.where == ["1.package"]
    assert "roofprof.package_metadata" in note.text
    assert "torch.compile" not in str(report).partition("findings")[2].partition("roofs")[0]
    both = block_of(model, x(), x())
    uncosted = [one.coverage.uncosted for one in (report, roofprof.count(model, x()), both)]
    assert uncosted == [{PACKAGE: 1}, {PACKAGE: 1}, {PACKAGE: 2}]


# ---- packages with counts


def check_rows(report, below="", calls=1):
    """The rows are the exported program's, and their figures the eager model's."""
    for row in roofprof.count(Net(), x()).rows:
        found = report.row(".".join(filter(None, (below, row.path))))
        assert (found.type, found.calls, found.params) == (row.type, calls * row.calls, row.params), row.path
        for figure in ("macs", "flops", "read_bytes", "write_bytes", "self_macs"):
            assert getattr(found, figure) == calls * getattr(row, figure), (row.path, figure)
        assert (found.input_shapes, found.output_shapes) == (row.input_shapes, row.output_shapes), row.path
        assert not found.incomplete
        assert (found.time is None) == (row.path != "")


def test_its_work_is_the_eager_models_and_its_time_its_own(counted, tmp_path):
    call = type(counted).__call__
    report = profiler(counted).run(x())
    check_rows(report)
    assert {row.path: row.self_macs for row in report.rows if row.self_macs} == EVERY_LINEAR
    assert report.coverage.uncosted == {}
    assert report.row("").self_time == report.row("").time == report.total.time > 0
    assert sum(group.macs for group in report.by_module().values()) == report.total.macs
    (note,) = notes_of(report, "compiled")
    assert note.startswith(f"{PACKAGE} (the model): counts from the program that it was exported from")
    shares = [report.row(path).work_share for path in ("first", "second")]
    assert all(0 < share < 100 for share in shares)
    text = report.to_json(tmp_path / "report.json")
    assert roofprof.Report.from_json(tmp_path / "report.json").to_json() == text
    assert roofprof.count(counted, x()).total.macs == 4 * LINEAR
    assert type(counted).__call__ is call  # torch's class is as it was
    assert call.__module__ == "torch.export.pt2_archive._package"


def test_in_a_module_it_is_a_compiled_region(counted):
    model = around(counted)
    report = profiler(model).run(x())
    check_rows(report, "1.package")
    check_rows(block_of(model, x(), x(), x()), "1.package", calls=3)
    assert report.total.macs == 6 * LINEAR
    assert report.row("1").params == report.row("1.package").params == 4 * 72
    assert report.total.params == 6 * 72
    assert report.row("1.package").time > 0
    own = sum(row.self_time for row in report.rows if row.self_time is not None)
    assert own == pytest.approx(report.total.time)
    model[1].again = counted  # at two places it is one
    assert roofprof.count(model, x()).total.params == 6 * 72


def test_inside_compiled_code_it_has_its_work_and_nothing_is_compiled_again(counted, nothing_compiled, backend):
    model = torch.compile(around(counted), backend=backend)
    with torch.no_grad():
        model(x())
        model(x())
        compiled = backend.frame_count
        report = profiler(model).run(x())
    assert backend.frame_count == compiled
    assert not notes_of(report, "compiled-meanwhile")
    assert (report.total.macs, report.row("1.package").macs) == (6 * LINEAR, 4 * LINEAR)
    assert report.row("1.package").time is None  # torch.compile's region has it
    assert report.row("1").time > 0


def test_counts_of_other_inputs_or_that_cannot_be_read_are_not_taken(counted, file_with_counts, folder):
    unread = folder / "unread.pt2"
    changed(file_with_counts, unread, lambda metadata: metadata.update(roofprof="{}"))
    for package, value, why in (
        (counted, torch.ones(8, 8), "because its counts are of inputs 4x8, and these are 8x8"),
        (torch._inductor.aoti_load_package(str(unread)), x(), "because its counts cannot be read"),
    ):
        report = profiler(package).run(value)
        assert all(row.incomplete for row in [report.total, *report.rows])
        assert any(why in note.text for note in report.coverage.notes)


def test_keywords_may_come_in_any_order(folder):
    class Two(nn.Module):
        def forward(self, a, b):
            return a @ b

    inputs = {"a": torch.ones(2, 3), "b": torch.ones(3, 4)}
    program = torch.export.export(Two(), (), inputs)
    package = torch._inductor.aoti_load_package(with_counts(program, folder / "keywords.pt2"))
    assert roofprof.count(package, b=inputs["b"], a=inputs["a"]).total.macs == 2 * 3 * 4
    program._example_inputs = None
    with pytest.raises(ValueError, match="no example inputs"):
        roofprof.package_metadata(program)


# ---- packages with their program


def test_with_the_program_it_counts_any_inputs(file_with_program, package, folder):
    loaded = roofprof.load_package(file_with_program)
    report = profiler(loaded).run(torch.ones(9, 8))
    assert (report.total.macs, report.row("first.0").macs) == (4 * 9 * 64, 9 * 64)
    assert not report.total.incomplete
    assert report.row("").time > 0
    report = block_of(loaded, torch.ones(4, 8), torch.ones(10, 8), torch.ones(10, 8))
    assert (report.total.macs, report.row("second").calls) == (24 * 4 * 64, 3)
    check_rows(profiler(roofprof.load_package(folder / "net.pt2", exported())).run(x()))  # it may be given


# ---- files


def test_the_command_line_takes_packages(file_with_counts, file_with_program, capsys):
    for path in (file_with_counts, file_with_program):
        assert cli.main(["profile", str(path), "--trust", "--input", "4x8", "--warmup", "1", "--repeat", "1"]) == 0
        printed = capsys.readouterr().out
        assert "first" in printed
        assert f"{PACKAGE} (the model): counts from the program" in printed


def test_wrong_files_and_inputs_are_refused_in_a_sentence(file_with_counts, folder, capsys):
    def error_of(*arguments):
        assert cli.main(["profile", *map(str, arguments), "--trust", "--warmup", "0", "--repeat", "1"]) != 0
        error = capsys.readouterr().err
        assert "Traceback" not in error
        assert "frame #" not in error
        return error

    for_cuda, cut, neither = folder / "cuda.pt2", folder / "cut.pt2", folder / "neither.pt2"
    changed(file_with_counts, for_cuda, lambda metadata: metadata.update(AOTI_DEVICE_KEY="cuda"))
    if not torch.cuda.is_available():
        assert "was compiled for cuda, and torch finds no such device here" in error_of(for_cuda)
    cut.write_bytes(Path(file_with_counts).read_bytes()[:5000])
    assert "is no exported program that torch can load" in error_of(cut)
    with zipfile.ZipFile(neither, "w") as archive:
        archive.writestr("neither/data/aotinductor/model/nothing.txt", "nothing")
    assert "neither.pt2" in error_of(neither)
    two = error_of(file_with_counts, "--input", "4x8", "--input", "4x8")
    assert "expected inputs vector size to be 1, but got 2" in two  # the package's own error
    for path, options, why in (
        (cut, {}, "is damaged, or not an AOTInductor package"),
        (folder / "missing.pt2", {}, "there is no file"),
        (file_with_counts, {"model_name": "other"}, "other"),
    ):
        with pytest.raises(ValueError, match=why):
            roofprof.load_package(path, **options)
