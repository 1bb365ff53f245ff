"""What was recorded on an H100 (tests/data/gpu/h100), against closed forms."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
from collect.test_metric_sets import LIBRARY, PROGRAM

import roofprof

RECORDED = Path(__file__).resolve().parents[2] / "data" / "gpu" / "h100"
ARRAY = 1 << 31  # bytes of one array, 40 times the L2
DRAM_TOLERANCE = 0.05


@pytest.fixture(scope="module")
def reports(tmp_path_factory):
    folder = tmp_path_factory.mktemp("h100")
    with tarfile.open(RECORDED / "reports.tar.gz") as packed:
        packed.extractall(folder, filter="data")
    return {path.stem: roofprof.Report.from_json(path) for path in folder.glob("*.json")}


@pytest.mark.parametrize(
    ("name", "arrays"),
    [("triad_a___b___3c", 3), ("scale_a___2b", 2), ("fill_", 1), ("zero_", 1), ("sum", 1)],
)
def test_kernels_moved_the_bytes_of_the_closed_form(reports, name, arrays):
    total = reports[f"traffic_{name}"].total
    assert total.dram_bytes == pytest.approx(arrays * ARRAY, rel=DRAM_TOLERANCE)
    assert total.read_bytes + total.write_bytes == pytest.approx(arrays * ARRAY, rel=1e-8)
    published = 3.35e12  # bytes per second, by the datasheet
    assert 0.8 * published < total.dram_bytes / total.time < published


@pytest.mark.parametrize("dtype", ["fp32", "tf32", "fp16", "bf16", "fp64"])
def test_products_executed_two_flops_for_each_mac(reports, dtype):
    total = reports[f"flops_{dtype}"].total
    size = 4096
    assert total.flops == 2 * size**3
    epilogue = total.executed_flops - 2 * size**3
    assert 0 <= epilogue <= 16 * size**2


@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_tall_products_moved_each_byte_once(reports, dtype):
    total = reports[f"tall_{dtype}"].total
    assert total.dram_bytes == pytest.approx(total.read_bytes + total.write_bytes, rel=DRAM_TOLERANCE)


@pytest.mark.parametrize("name", ["resnet50", "dict_input", "from_cpp"])
def test_rows_and_kernels_add_up_to_the_total(reports, name):
    report = reports[name]
    assert sum(row.self_time for row in report.rows) == pytest.approx(report.total.time, rel=1e-9)
    assert sum(kernel.total for kernel in report.kernels) == pytest.approx(report.total.time, rel=1e-9)
    launched = [kernel for kernel in report.kernels if kernel.kind == "kernel"]  # not a copy or fill
    assert sum(kernel.instances for kernel in launched) == report.total.kernel_count
    assert sum(kernel.dram_bytes for kernel in launched) == pytest.approx(report.total.dram_bytes)


def test_the_resnet_did_what_others_count(reports):
    report = reports["resnet50"]
    assert report.total.params == 25_557_032  # torchvision's figure
    assert report.total.macs == 32 * 4_089_184_256  # fvcore's figure for one image
    # Each byte of DRAM's was moved at most at the published rate.
    published = 3.35e12  # bytes per second, by the datasheet
    assert report.total.dram_bytes / report.total.time < published


# Medians of the bare calls and busy times, from the reports' "runs" and "busy_ns".
@pytest.mark.parametrize(
    ("name", "bare_ns", "busy_ns"), [("resnet50", 6121038, 5661629), ("flops_bf16", 210970, 169215)]
)
def test_busy_and_idle_time_are_those_of_a_bare_call(reports, name, bare_ns, busy_ns):
    total = reports[name].total
    assert total.busy == pytest.approx(busy_ns * 1e-9)
    assert total.busy + total.idle == pytest.approx(bare_ns * 1e-9)
    assert total.idle_before + total.idle_between + total.idle_after == pytest.approx(total.idle)
    assert total.utilization == pytest.approx(100 * busy_ns / bare_ns)
    assert total.bound != "overhead"
    assert sum(row.self_idle for row in reports[name].rows) == pytest.approx(total.idle_between)


def test_nearly_no_row_of_the_resnet_waits_at_bare_speed(reports):
    assert [row.path for row in reports["resnet50"].rows if row.bound == "overhead"] == ["16.bn1"]  # 7.0 us for 6.9


def test_records_and_counters_of_three_kernels(tmp_path):
    recorded = json.loads((RECORDED / "device_data.txt").read_text())
    counted = [record["values"] for record in recorded["counters"][0]["records"]]
    for arrays, values in zip((3, 2, 1), counted, strict=True):
        assert values["dram_bytes"] == pytest.approx(arrays * ARRAY, rel=DRAM_TOLERANCE)
        assert values["l1_bytes"] == arrays * ARRAY
        assert values["dram_bytes"] == values["dram_read_bytes"] + values["dram_write_bytes"]


def test_recorded_steps_contradict_themselves_only_where_they_say_so():
    steps = [json.loads(line) for line in (RECORDED / "models.jsonl").read_text().splitlines()]

    def of(step):
        return step["model"], step["batch"], step["dtype"], step["train"]

    eager = {of(step): step["kernel_seconds"] for step in steps if step["mode"] == "eager"}
    for step in steps:
        kernels, whole = step["kernel_seconds"], max(step["seconds"], step["back_to_back"])
        possible = (
            kernels <= 1.02 * whole
            and step["back_to_back"] <= 1.15 * step["seconds"]
            and (step["mode"] == "eager" or kernels <= 1.05 * eager.get(of(step), whole))
        )
        assert possible != ("contradiction" in step), of(step)


@pytest.mark.integration
def test_a_counter_image_of_the_device_is_read_without_one(tmp_path):
    if not PROGRAM.exists() or not LIBRARY.exists():
        pytest.skip("metric_sets_of is not built, or there is no CUPTI 13.0: see test_metric_sets.py")
    with tarfile.open(RECORDED / "counter_image.tar.gz") as packed:
        packed.extractall(tmp_path, filter="data")
    ran = subprocess.run(
        [PROGRAM, LIBRARY, tmp_path / "counter_image"], capture_output=True, text=True, check=False, timeout=60
    )
    assert ran.returncode == 0, ran.stderr
    triad, fill = (values[0] for values in json.loads(ran.stdout))
    assert triad == pytest.approx(3 * ARRAY, rel=DRAM_TOLERANCE)
    assert fill == pytest.approx(ARRAY, rel=DRAM_TOLERANCE)
