import json

import pytest
import torch

import roofprof
from roofprof import _C
from roofprof.roofs import ceilings

ROOFS = {
    "device": "a machine",
    "compute": [
        {
            "dtype": "fp32",
            "operations_per_second": 2e11,
            "provenance": {"source": "given", "method": "by hand", "date": "", "spread": None},
        }
    ],
    "memory": [
        {
            "level": "DRAM",
            "bytes_per_second": 3e10,
            "capacity_bytes": 0,
            "provenance": {"source": "given", "method": "by hand", "date": "2024-02-29", "spread": 0.1},
        }
    ],
}


@pytest.fixture
def roofs():
    return _C.ceilings_from_dict(ROOFS)


def test_a_file_reads_back_equal(tmp_path, roofs):
    path = tmp_path / "roofs.json"
    ceilings.save(roofs, path)
    assert ceilings.load(path) == roofs
    assert ceilings.load(str(path)) == roofs
    assert json.loads(path.read_text())["schema_version"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["roofs.json"]


def with_curve():
    rates = {"read": 1e11, "triad": 9e10, "copy": 8e10, "write": 7e10, "update": 1.2e11}
    provenance = {"source": "measured", "method": "five kernels", "date": "2024-02-29", "spread": 0.1}
    points = [
        {"working_set_bytes": 1000} | rates | {"spread": 0.1},
        {"working_set_bytes": 4000} | {mix: rate / 4 for mix, rate in rates.items()} | {"spread": 0.2},
    ]
    return ROOFS | {"curve": {"points": points, "provenance": provenance}}


def test_a_curve_is_kept_and_answers_for_a_footprint_and_a_mix(tmp_path):
    ceilings.save(_C.ceilings_from_dict(with_curve()), tmp_path / "roofs.json")
    roofs = ceilings.load(tmp_path / "roofs.json")
    assert [point.working_set_bytes for point in roofs.curve.points] == [1000, 4000]
    assert roofs.to_dict()["curve"] == with_curve()["curve"]
    assert roofs.bandwidth(1000) == pytest.approx(1e11)
    assert roofs.bandwidth(500, 500) == pytest.approx(8e10)
    assert roofs.bandwidth(1000, 1000, 1000) == pytest.approx(1.2e11)
    assert roofs.bandwidth(2000) == pytest.approx(5e10)  # half-way by logarithms
    assert "working set" in str(roofs)


def test_a_report_with_roofs_of_a_busy_machine_says_so_first():
    roofs = _C.ceilings_from_dict(ROOFS | {"busy_share": 0.43})
    report = roofprof.RooflineProfiler(torch.nn.ReLU(), ceilings=roofs, repeat=1).run(torch.ones(8))
    (note,) = [note for note in report.coverage.notes if note.code == "roofs-busy"]
    assert note.level == "attention"
    assert "43% of the processors" in note.text and "roofprof ceilings --again" in note.text
    table = report.table()
    assert table.index("43% of the processors") < table.index("%roof ")


def changed(*keys, to):
    content = json.loads(json.dumps({"schema_version": 1, "ceilings": ROOFS}))
    *path, last = keys
    place = content
    for key in path:
        place = place[key]
    if to is None:
        del place[last]
    else:
        place[last] = to
    return json.dumps(content)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ("{}", "it lacks the key 'schema_version'"),
        (changed("schema_version", to=7), "schema_version is 7"),
        (changed("ceilings", to=None), "it lacks the key 'ceilings'"),
        (
            changed("ceilings", "memory", 0, "bytes_per_second", to="fast"),
            "'ceilings.memory[0].bytes_per_second' has the wrong type",
        ),
        (changed("ceilings", "memory", 0, "bytes_per_second", to=-1), "bytes_per_second of DRAM is -1"),
        (changed("ceilings", "compute", 0, "operations_per_second", to=0.0), "operations_per_second of fp32 is 0"),
        (changed("ceilings", "compute", 0, "dtype", to="fp33"), "'ceilings.compute[0].dtype' cannot be 'fp33'"),
    ],
)
def test_a_broken_file_is_named_with_its_problem_in_a_sentence(tmp_path, text, problem):
    path = tmp_path / "roofs.json"
    path.write_text(text)
    with pytest.raises(ValueError) as info:
        ceilings.load(path)
    assert str(path) in str(info.value)
    assert problem in str(info.value)
    assert "\n" not in str(info.value)


def test_files_that_cannot_be_written_or_read_are_named(monkeypatch, tmp_path, roofs):
    with pytest.raises(OSError, match="roofs cannot be written: .*folder.json"):
        roofs.save(tmp_path / "no" / "folder.json")
    monkeypatch.setenv("ROOFPROF_CEILINGS", str(tmp_path / "none.json"))
    with pytest.raises(ValueError, match=r'^ROOFPROF_CEILINGS must name a file of roofs or be "off": cannot read'):
        roofprof.RooflineProfiler(linear()[0])


@pytest.mark.parametrize("is_new", [True, False])
def test_notes_are_reported_once_when_roofs_are_measured(monkeypatch, tmp_path, roofs, capsys, is_new):
    """What is kept and measured again: tests/cpp/machine/cache_test.cpp."""
    monkeypatch.setenv("ROOFPROF_CACHE_DIR", str(tmp_path))
    assert ceilings.cache_dir() == tmp_path
    monkeypatch.setattr(_C, "cached_ceilings", lambda *_: (roofs, ["busy"], is_new))
    monkeypatch.setattr(_C, "measure_ceilings", lambda *_: (roofs, ["busy"]))
    lines = []
    assert ceilings.for_device() == ceilings.for_device(progress=lines.append) == roofs
    line = "roofs of this machine: busy"
    assert (lines, capsys.readouterr().err) == (([line], line + "\n") if is_new else ([], ""))
    assert ceilings.for_device_with_notes() == (roofs, ["busy"])
    assert ceilings.measure("cpu", lines.append) == roofs
    assert lines == [line] * (1 + is_new)


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:99"])
def test_a_device_that_cannot_be_measured(device):
    with pytest.raises(ValueError, match=f'"{device}"') as info:
        ceilings.measure(device)
    assert "\n" not in str(info.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_reason_is_reported():
    with pytest.raises(ValueError, match='the roofs of "cuda:0" cannot be measured: .*driver') as info:
        ceilings.for_device("cuda:0", progress=lambda _line: None)
    assert "\n" not in str(info.value)


def test_measured_roofs_stand_beside_the_published_ones(roofs):
    published = _C.Ceilings.published("RTX 4090")
    table = roofs.table(160, published)
    (line,) = (line for line in table.splitlines() if line.startswith("DRAM"))
    assert "1.01 TB/s" in line
    assert f"{100 * 3e10 / 1008e9:.1f}%" in line
    assert "published" not in roofs.table(160)


# ---- given by whoever starts a program


def linear():
    return torch.nn.Linear(4, 4), torch.ones(2, 4)


def test_the_environment_gives_roofs(monkeypatch, tmp_path, roofs):
    monkeypatch.setattr(ceilings, "for_device_with_notes", lambda _device: pytest.fail("roofs are measured"))
    ceilings.save(roofs, tmp_path / "roofs.json", ["by hand"])
    model, x = linear()
    monkeypatch.setenv("ROOFPROF_CEILINGS", str(tmp_path / "roofs.json"))
    report = roofprof.profile(model, x)
    assert report.ceilings == roofs
    assert "roofs: by hand" in [note.text for note in report.coverage.notes]
    own = _C.ceilings_from_dict(ROOFS | {"device": "another"})
    assert roofprof.RooflineProfiler(model, repeat=1, ceilings=own).run(x).ceilings == own
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")
    report = roofprof.profile(model, x)
    assert not report.ceilings
    assert report.total.time > 0
