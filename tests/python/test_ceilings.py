from __future__ import annotations

import json

import pytest
import torch

from roofprof import _C, ceilings

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


@pytest.fixture
def measured(monkeypatch, tmp_path, roofs):
    """The devices measured, by a measurement that takes no time; the cache is a folder of its own."""
    devices = []

    def measure(device, progress=None):
        devices.append(device)
        if progress is not None:
            progress("roofs of this machine: fp32 GEMM")
        return roofs, ["fp16 was left out"]

    monkeypatch.setattr(_C, "measure_ceilings", measure)
    monkeypatch.setenv("ROOFPROF_CACHE_DIR", str(tmp_path / "cache"))
    return devices


def test_a_file_reads_back_equal(tmp_path, roofs):
    path = tmp_path / "roofs.json"
    ceilings.save(roofs, path)
    assert ceilings.load(path) == roofs
    assert ceilings.load(str(path)) == roofs
    assert json.loads(path.read_text())["schema_version"] == 1
    assert [path.name for path in tmp_path.iterdir()] == ["roofs.json"]


def test_saving_fails_whole(tmp_path, roofs):
    with pytest.raises(OSError, match="roofs cannot be written") as info:
        ceilings.save(roofs, tmp_path / "no" / "folder.json")
    assert "folder.json" in str(info.value)
    (tmp_path / "kept.json").write_text("as it was")
    unserialisable = type("Roofs", (), {"to_dict": lambda _self: {"device": object()}})()
    with pytest.raises(TypeError):
        ceilings.save(unserialisable, tmp_path / "kept.json")
    assert (tmp_path / "kept.json").read_text() == "as it was"
    assert [path.name for path in tmp_path.iterdir()] == ["kept.json"]


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
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "not an object"),
        ("{}", "'schema_version' is missing"),
        (changed("schema_version", to=7), "schema_version is 7"),
        (changed("ceilings", to=None), "'ceilings' is missing"),
        (changed("ceilings", to=[]), "'ceilings' is not an object"),
        (changed("ceilings", "memory", to=None), "'memory' is missing"),
        (changed("ceilings", "memory", to="DRAM"), "'memory' is not a list of objects"),
        (changed("ceilings", "memory", to=[3]), "'memory' is not a list of objects"),
        (changed("ceilings", "memory", 0, "bytes_per_second", to="fast"), "wrong type"),
        (changed("ceilings", "memory", 0, "bytes_per_second", to=-1), "bytes_per_second of DRAM is -1"),
        (changed("ceilings", "compute", 0, "operations_per_second", to=float("nan")), "operations_per_second of fp32"),
        (changed("ceilings", "compute", 0, "dtype", to="fp33"), "a dtype"),
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


def test_an_unreadable_file(tmp_path):
    with pytest.raises(ValueError, match="No such file"):
        ceilings.load(tmp_path / "missing.json")
    with pytest.raises(ValueError, match="directory"):
        ceilings.load(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text file"):
        ceilings.load(tmp_path / "binary")


def test_measured_once_then_kept(measured, roofs, capsys):
    assert ceilings.for_device() == roofs
    assert "fp32 GEMM" in capsys.readouterr().err
    assert ceilings.for_device("cpu:0") == roofs
    assert measured == ["cpu"]
    assert capsys.readouterr() == ("", "")
    ceilings.for_device(again=True)
    assert len(measured) == 2
    assert ceilings.for_device_with_notes() == (roofs, ["fp16 was left out"])


def test_measured_again_for_another_number_of_threads(measured):
    ceilings.for_device()
    before = torch.get_num_threads()
    torch.set_num_threads(before + 1)
    try:
        ceilings.for_device()
    finally:
        torch.set_num_threads(before)
    assert len(measured) == 2


def test_a_broken_cache_is_measured_again_with_a_note(measured, roofs):
    ceilings.for_device(progress=lambda _line: None)
    (path,) = ceilings.cache_dir().iterdir()
    path.write_text("{")
    lines = []
    assert ceilings.for_device(progress=lines.append) == roofs
    assert len(measured) == 2
    assert any("measured again" in line and str(path) in line for line in lines)
    assert ceilings.load(path) == roofs


def test_a_cache_that_cannot_be_written_is_only_noted(measured, roofs, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("ROOFPROF_CACHE_DIR", str(tmp_path / "file" / "cache"))
    lines = []
    assert ceilings.for_device(progress=lines.append) == roofs
    assert any("not kept" in line for line in lines)


def test_the_cache_follows_xdg(monkeypatch, tmp_path):
    monkeypatch.delenv("ROOFPROF_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert ceilings.cache_dir() == tmp_path / "roofprof"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert ceilings.cache_dir() == tmp_path / ".cache" / "roofprof"


@pytest.mark.parametrize("device", ["tpu", "cuda:x", "cuda:99"])
def test_a_device_that_cannot_be_measured(device):
    with pytest.raises(ValueError, match=f'"{device}"') as info:
        ceilings.measure(device)
    assert "\n" not in str(info.value)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_without_a_gpu_the_reason_is_said():
    with pytest.raises(ValueError, match='the roofs of "cuda:0" cannot be measured: .*driver') as info:
        ceilings.for_device("cuda:0", progress=lambda _line: None)
    assert "\n" not in str(info.value)


GPU = {
    "gpu_device": "Simulated GPU",
    "gpu_uuid": "GPU-1",
    "gpu_driver": "580.65.06",
    "torch_cuda": "13.2",
    "gpu_max_sm_clock_hz": 1_980_000_000,
    "gpu_power_limit_watts": 700.0,
    # What may change from moment to moment:
    "gpu_sm_clock_hz": 345_000_000,
    "gpu_temperature_celsius": 41,
    "gpu_throttle_reasons": "idle",
}


def test_roofs_of_a_gpu_are_kept_for_each_gpu_and_for_what_holds_it_down(measured, roofs, monkeypatch):
    facts = dict(GPU)
    monkeypatch.setattr(_C, "gpu_environment", lambda _device: list(facts.items()))
    assert ceilings.for_device("cuda:0") == roofs
    facts |= {"gpu_sm_clock_hz": 1_755_000_000, "gpu_temperature_celsius": 63, "gpu_throttle_reasons": "none"}
    assert ceilings.for_device("cuda:0") == roofs
    assert len(measured) == 1
    threads = torch.get_num_threads()
    torch.set_num_threads(threads + 1)
    ceilings.for_device("cuda:0")
    torch.set_num_threads(threads)
    assert len(measured) == 1  # the host's threads are nothing to a GPU
    changes = [
        ("gpu_device", "Another GPU"),
        ("gpu_uuid", "GPU-2"),
        ("gpu_driver", "590.1"),
        ("torch_cuda", "13.0"),
        ("gpu_max_sm_clock_hz", 1_500_000_000),
        ("gpu_power_limit_watts", 350.0),
    ]
    for count, (name, value) in enumerate(changes, start=2):
        facts[name] = value
        ceilings.for_device("cuda:0")
        assert len(measured) == count, name
    ceilings.for_device("cuda:1")
    assert len(measured) == len(changes) + 2
    assert set(measured) == {"cuda:0", "cuda:1"}
    assert all(path.name.startswith("ceilings-cuda-") for path in ceilings.cache_dir().iterdir())


def test_measured_roofs_stand_beside_the_published_ones(roofs):
    published = _C.Ceilings.published("RTX 4090")
    table = roofs.table(160, published)
    (line,) = (line for line in table.splitlines() if line.startswith("DRAM"))
    assert "1.01 TB/s" in line
    assert f"{100 * 3e10 / 1008e9:.1f}%" in line
    assert "published" not in roofs.table(160)
