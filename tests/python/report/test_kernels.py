"""Kernels in a report. There is no GPU here: what a device did is written into a JSON by hand (simulated)."""

import copy
import json

import pytest
import torch
from given_roofs import roofs

import roofprof
from roofprof import cli


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.head = torch.nn.Linear(8, 4, bias=False)

    def forward(self, x):
        return self.head(x).relu()


def kernel(name, module, op, bucket, durations, **facts):
    """A bucket of launches with those durations in nanoseconds: an odd number of them, ascending."""
    return {
        "name": name,
        "kind": "kernel",
        "from": "unknown",
        "to": "unknown",
        "device": 0,
        "grid": [4, 2, 1],
        "block": [128, 1, 1],
        "in_graph": False,
        "module": module,
        "phase": "forward",
        "op": op,
        "bucket": bucket,
        "attributed": True,
        "instances": len(durations),
        "total_ns": sum(durations),
        "min_ns": durations[0],
        "max_ns": durations[-1],
        "median_ns": durations[len(durations) // 2],
        "stddev_ns": 0.0,
        "bytes": 0,
        "counters": {},
        "counted": 0,
        "mismatched": False,
        **facts,
    }


@pytest.fixture(scope="module")
def simulated():
    """The dict of a report of one call: head runs a gemm three times (600 ns), the model a relu once (40 ns)."""
    report = roofprof.count(Net(), torch.ones(2, 8)).to_dict()
    modules = [module["path"] for module in report["modules"]]
    ops = [op["op"] for op in report["ops"]]
    head, linear, relu = modules.index("head"), ops.index("aten::linear"), ops.index("aten::relu")
    counters = {"dram_bytes": 3200.0, "l2_bytes": 6400.0}
    report["device"] = "cuda:0"
    report["environment"] = {"device": "simulated GPU"}
    report["device_timed"] = True
    report["busy_ns"] = 640
    report["compute_capability"] = "8.9"
    report["counter_passes"] = 1
    report["runs"] = {"total_ns": [2000], "chosen": 0, "bare_ns": [], "warmup": 0, "steps": 0}
    report["ceilings"] = roofs().to_dict()
    report["kernel_buckets"] = [
        kernel("maxwell_sgemm", head, "aten::linear", linear, [100, 200, 300], counters=counters, counted=3),
        kernel("relu_kernel", 0, "aten::relu", relu, [40], counters={"dram_bytes": 64.0, "l2_bytes": 64.0}, counted=1),
        kernel("[memset]", 0, "", -1, [1], kind="fill", grid=[0, 0, 0], block=[0, 0, 0], bytes=512),
    ]
    report["device_times"] = [
        {"module": 0, "busy_ns": 641, "idle_ns": 59, "self_busy_ns": 41},
        {"module": head, "busy_ns": 600, "idle_ns": 200, "self_busy_ns": 600},
    ]
    report["counters"] = [
        {"counter": name, "metrics": ["a metric"], "formula": "a metric", "missing": ""}
        for name in ("dram_bytes", "l2_bytes")
    ]
    times = {0: ([41], [500]), head: ([600], [900])}
    for entry in report["times"]:
        entry["self_ns"], entry["host_self_ns"] = times.get(entry["module"], ([0], [0]))
    report["ops"][linear]["time_ns"], report["ops"][relu]["time_ns"] = 600, 40
    return report


@pytest.fixture
def report(simulated):
    return roofprof.Report.from_dict(copy.deepcopy(simulated))


def test_kernels_are_rows_in_seconds_longest_first(report):
    gemm, relu, memset = report.kernels
    assert [gemm.name, relu.name, memset.name] == ["maxwell_sgemm", "relu_kernel", "[memset]"]
    assert gemm.total == pytest.approx(600e-9)
    assert gemm.average == gemm.median == pytest.approx(200e-9)
    assert gemm.min == pytest.approx(100e-9)
    assert gemm.max == pytest.approx(300e-9)
    assert gemm.instances == 3
    assert gemm.percent_of_time == pytest.approx(100 * 600 / 641)
    assert (gemm.module, gemm.op, gemm.phase, gemm.kind) == ("head", "aten::linear", "forward", "kernel")
    assert gemm.grid == [4, 2, 1]
    assert gemm.block == [128, 1, 1]
    assert gemm.built_for == "sm_50"
    assert relu.built_for == ""
    assert memset.kind == "fill"
    assert (gemm.bytes, memset.bytes) == (None, 512)  # what a kernel moves is not in its record
    assert memset.dram_bytes is None
    assert repr(gemm) == "<KernelRow maxwell_sgemm: 3 instances>"


def test_the_table_of_kernels_fits_its_width(report):
    for row in (data := report.to_dict())["kernels"]:
        row["name"] = f"void cutlass::Kernel2<{'x' * 90}>"
    for width in (60, 80, 120):
        assert max(map(len, roofprof.Report.from_dict(data).table(by="kernel", width=width).splitlines())) <= width


def test_measured_figures_of_kernels_and_rows(report):
    gemm = report.kernels[0]
    flops = 2 * 2 * 8 * 4
    assert gemm.flops == flops
    assert gemm.achieved_flops == pytest.approx(flops / 600e-9)
    assert gemm.dram_bytes == 3200
    assert gemm.dram_intensity == pytest.approx(flops / 3200)
    assert gemm.l2_intensity == pytest.approx(flops / 6400)
    assert gemm.l1_bytes is None
    assert gemm.l1_intensity is None
    assert gemm.dram_bandwidth == pytest.approx(3200 / 600e-9)
    head, total = report.row("head"), report.total
    assert head.time == pytest.approx(600e-9)
    assert head.host_time == pytest.approx(900e-9)
    assert head.kernel_count == 3
    assert head.busy == pytest.approx(600e-9)
    assert head.idle == pytest.approx(200e-9)
    assert head.utilization == pytest.approx(75)
    assert head.dram_bytes_ratio == pytest.approx(3200 / head.bytes)
    assert total.dram_bytes == 3264
    assert total.time == pytest.approx(641e-9)
    assert total.wall == pytest.approx(2000e-9)
    assert report.by_operator()["aten::linear"].dram_bytes == 3200
    assert report.row("").self_dram_bytes == 64


def test_bytes_that_the_l2_counted_are_held_against_a_roof_of_the_same(simulated):
    """6400 of them in 600 ns, where 6400 in 450 ns are the most; without such a roof DRAM holds 3200 for 320 ns."""
    given = copy.deepcopy(simulated)
    assert roofprof.Report.from_dict(given).kernels[0].lower_bound_time == pytest.approx(320e-9)
    (l2,) = (level for level in given["ceilings"]["memory"] if level["level"] == "L2")
    l2["counted_bytes_per_second"] = 6400 / 450e-9
    gemm = roofprof.Report.from_dict(given).kernels[0]
    assert str(gemm.bound) == "memory L2"
    assert gemm.percent_of_roof == pytest.approx(75)


def test_reports_of_the_clock_have_no_kernels():
    counted = roofprof.count(Net(), torch.ones(2, 8))
    assert counted.kernels == []
    assert counted.row("head").kernel_count is None
    assert counted.row("head").utilization is None
    assert "no kernels: nothing was traced on a device" in counted.table(by="kernel")


def test_the_json_reads_back_equal(report, tmp_path):
    path = tmp_path / "r.json"
    report.to_json(path)
    again = roofprof.Report.from_json(path)
    assert again == report
    assert again.to_dict() == report.to_dict()
    assert again.table(by="kernel") == report.table(by="kernel")
    kernels = report.to_dict()["kernels"]
    assert [kernel["name"] for kernel in kernels] == [kernel.name for kernel in report.kernels]
    assert kernels[0]["total_ns"] == 600
    assert kernels[0]["dram_bytes"] == 3200


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda report: report["kernel_buckets"][0].update(kind="thing"), "'kernel_buckets.0..kind' cannot be 'thing'"),
        (lambda report: report["kernel_buckets"][0]["counters"].update(hits=1.0), "there is no counter 'hits'"),
        (lambda report: report["kernel_buckets"][0].update(module=99), "kernel 'maxwell_sgemm' belongs to no module"),
        (lambda report: report["kernel_buckets"][0].update(bucket=99), "kernel 'maxwell_sgemm' belongs to no op"),
        (
            lambda report: report["kernel_buckets"][0].update(grid=[1]),
            "'kernel_buckets.0..grid' has the wrong type: it should be a list of 3",
        ),
        (lambda report: report["device_times"][0].update(module=-1), "a time of the device belongs to no module"),
        (lambda report: report.pop("device_times"), "it lacks the key 'device_times'"),
        (lambda report: report.update(counter_ranges="all"), "'counter_ranges' cannot be 'all'"),
    ],
)
def test_what_cannot_be_is_refused_in_a_sentence(simulated, spoil, message):
    broken = copy.deepcopy(simulated)
    spoil(broken)
    with pytest.raises(ValueError, match=message):
        roofprof.Report.from_dict(broken)


def test_shown_in_the_shell(report, tmp_path, capsys):
    path, csv = tmp_path / "r.json", tmp_path / "kernels.csv"
    report.to_json(path)
    assert cli.main(["show", str(path), "--by", "kernel", "--columns", "instances,module,built_for"]) == 0
    shown = capsys.readouterr().out
    assert "instances  module   built for  name" in shown
    assert "        3  head     sm_50      maxwell_sgemm" in shown
    assert "simulated GPU" in shown
    assert cli.main(["show", str(path), "--by", "kernel", "--csv", str(csv)]) == 0
    assert csv.read_text().splitlines()[1].startswith("maxwell_sgemm,kernel,,head,forward,,aten::linear,4x2x1,128x1x1,")
    assert cli.main(["show", str(path), "--csv", str(csv)]) == 0
    assert csv.read_text().startswith("path,type,")


def test_as_csv(report, tmp_path):
    assert report.to_csv(tmp_path / "k.csv", by="kernel") == (tmp_path / "k.csv").read_bytes().decode()
    with pytest.raises(ValueError, match="'speed'"):
        report.to_csv(by="speed")


@pytest.mark.integration
def test_as_data_frame(report):
    frame = report.to_pandas(by="kernel")
    assert list(frame["name"]) == ["maxwell_sgemm", "relu_kernel", "[memset]"]
    assert frame["total_ns"].sum() == 641
    assert list(frame["module"]) == ["head", "", ""]
    assert frame["dram_bytes"].isna().tolist() == [False, False, True]
    text = set(frame.columns) - set(frame.select_dtypes(["number", "bool"]).columns)
    assert text == {field.key for field in roofprof.fields.of("kernel").values() if field.is_text}


def test_the_kernel_for_an_older_card_is_named(report):
    (note,) = [note for note in report.coverage.notes if "older generation" in note]
    assert "maxwell_sgemm (built for sm_50, 94% of the kernels' time, launched by aten::linear in head)" in note
    assert "(sm_89)" in note


def test_units_are_told(report):
    units = json.loads(report.to_json())["units"]
    assert units["total_ns"] == "nanoseconds"
    assert units["dram_bytes_ratio"] == "ratio"
    assert units["utilization"] == "percent"
