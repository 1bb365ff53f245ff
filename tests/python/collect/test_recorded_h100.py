"""What was recorded on an H100 (tests/data/gpu/h100), against closed forms."""

import json
import subprocess
import tarfile
from pathlib import Path

import pytest
import recorded_gpus
from collect.test_metric_sets import LIBRARY, PROGRAM

import roofprof
from roofprof.roofs import published_peaks

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
    # An older report has what is before its first launch in that launch's module.
    assert total.idle_before is None and total.idle_between is None and total.idle_after is None
    assert total.utilization == pytest.approx(100 * busy_ns / bare_ns)
    assert total.bound != "overhead"
    assert sum(row.self_idle for row in reports[name].rows) == pytest.approx(total.idle)


def misses_of_reads(reports):
    """Of each streaming op of the ResNet: MB touched since what it reads was touched last, and the share read again."""
    data = json.loads(reports["resnet50"].to_json())
    kernels = {}
    for kernel in data["kernel_buckets"]:
        kernels.setdefault(kernel.get("bucket", -1), []).append(kernel)
    for index, op in enumerate(data["ops"]):
        read = op["work"].get("read_bytes", 0)
        distances = [part["distance_bytes"] for part in op.get("reuse", []) if part.get("read_bytes", 0) > 0.98 * read]
        of_it = kernels.get(index, [])
        if "conv" in op["op"] or not read or not distances or [kernel["kind"] for kernel in of_it] != ["kernel"]:
            continue
        yield distances[0] / 1e6, of_it[0]["counters"]["dram_read_bytes"] / read


def test_half_of_the_l2_holds_what_is_read_again(reports):
    # The published roofs of the H100 rest on this: its L2 holds 26.2 of its 52.4 MB.
    misses = sorted(misses_of_reads(reports))
    near = [missed for distance, missed in misses if distance <= 27.2]
    far = [missed for distance, missed in misses if distance > 80]
    assert len(near) == 31 and max(near) < 0.01
    assert len(far) == 20 and min(far) > 0.9
    held = published_peaks.published("H100 SXM").memory[0].capacity_bytes
    assert held <= 1e6 * max(distance for distance, _ in misses if distance <= 27.2)


def recorded_roofs():
    """The roofs that were measured on that H100, and DRAM's by what was read and written, as its kernels reached it.

    DRAM: the closed forms of kernels over arrays of 2 GiB. L2: read and copy were measured; the time of a byte is
    linear in the share of writes. It holds half of its nominal size.
    """
    parts = recorded_gpus.results("h100")
    roofs = parts["roofs"]["facts"]["roofs"]
    reached = {name.split(":")[0]: value * 1e9 for name, value in parts["traffic"]["facts"].items() if "GB/s" in name}
    copy = reached["copy_"]  # of half reads and half writes, the fastest
    dram = {"read": reached["sum"], "triad": reached["triad a = b + 3c"], "copy": copy, "write": reached["zero_"]}
    level = roofs["memory"][0]
    assert (level["level"], "copy 5466 GB/s" in level["provenance"]["method"]) == ("L2", True)
    reads, half = 1 / level["bytes_per_second"], 1 / 5.466e12
    writes = 2 * half - reads
    l2 = {"read": 1 / reads, "triad": 3 / (2 * reads + writes), "copy": 1 / half, "write": 1 / writes}
    level["capacity_bytes"] = 25 << 20
    points = [
        {"working_set_bytes": working_set, **rates, "update": rates["copy"], "spread": 0}
        for working_set, rates in ((25 << 20, l2), (3 * ARRAY, dram))
    ]
    roofs["curve"] = {"points": points, "provenance": level["provenance"]}
    return roofs


@pytest.fixture(scope="module")
def with_roofs(reports):
    given = {"ceilings": recorded_roofs()}
    return {name: roofprof.Report.from_dict(report.to_dict() | given) for name, report in reports.items()}


def test_no_op_is_above_its_roof(with_roofs):
    """By more than 2%, where bytes are the limit. Two products are above the peaks that were searched for then."""
    known = {"flops_fp16": 102.5, "flops_fp64": 102.7}
    ops = 0
    for name, report in with_roofs.items():
        for op in report.group("module", "op", "shapes", "dtype"):
            if op.percent_of_roof is None:
                continue
            ops += 1
            assert op.percent_of_roof < known.get(name, 102), (name, op.keys)
            assert (op.percent_of_roof_counted or 0) < known.get(name, 102), (name, op.keys)
    assert ops > 200


def test_the_max_pool_is_bound_by_dram(with_roofs):
    # 128.5 MB must move, DRAM moved 187.5, in 103.7 us: at 3.1 TB/s 40 and 58%.
    report = with_roofs["resnet50"]
    (pool,) = [op for op in report.group("op") if op.op == "aten::max_pool2d"]
    assert str(pool.bound) == "memory DRAM"
    assert pool.percent_of_roof == pytest.approx(100 * 128.5e6 / 3.1e12 / 103.68e-6, rel=0.03)
    assert pool.percent_of_roof_counted == pytest.approx(100 * 187.5e6 / 3.1e12 / 103.68e-6, rel=0.03)
    assert pool.percent_of_roof_counted > 1.4 * pool.percent_of_roof


def test_what_stays_in_the_l2_is_held_against_it(with_roofs):
    by_op = with_roofs["resnet50"].group("module", "op", "shapes")
    relus = [op for op in by_op if op.op == "aten::relu_" and op.shapes == "32x512x7x7"]
    assert relus
    for relu in relus:
        assert str(relu.bound) == "memory L2"
        assert relu.percent_of_roof_counted < 10 < relu.percent_of_roof


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
