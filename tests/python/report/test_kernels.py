"""Kernels in a report. There is no GPU here: what a device did is written into a JSON by hand (simulated)."""

import pytest
import torch
from reports_by_hand import with_counters

import roofprof
from roofprof import cli


@pytest.fixture
def report():
    """A gemm with counters and a relu, a second each."""
    data = with_counters().to_dict() | {"compute_capability": "8.9"}
    gemm = data["kernel_buckets"][0]
    gemm |= {"name": "maxwell_sgemm", "instances": 3, "total_ns": 6 * 10**8, "grid": [4, 2, 1]}
    gemm |= {"min_ns": 10**8, "median_ns": 2 * 10**8, "max_ns": 3 * 10**8, "counted": 3}
    fill = {"name": "[memset]", "kind": "fill", "op": "", "bucket": -1, "total_ns": 1, "bytes": 512}
    data["kernel_buckets"].append(data["kernel_buckets"][1] | fill)
    return roofprof.Report.from_dict(data)


def test_kernels_are_rows_in_seconds(report):
    gemm, relu, memset = report.kernels
    assert [gemm.name, relu.name, memset.name] == ["maxwell_sgemm", "relu", "[memset]"]
    assert (gemm.total, gemm.average, gemm.median) == pytest.approx((0.6, 0.2, 0.2))
    assert (gemm.min, gemm.max, gemm.instances) == (pytest.approx(0.1), pytest.approx(0.3), 3)
    assert (gemm.module, gemm.op, gemm.phase, gemm.kind) == ("gemm", "aten::conv2d", "forward", "kernel")
    assert (gemm.grid, gemm.built_for, relu.built_for) == ([4, 2, 1], "sm_50", "")
    assert (gemm.bytes, memset.bytes) == (None, 512)  # what a kernel moves is not in its record
    assert (gemm.dram_bytes, gemm.l2_bytes, memset.dram_bytes) == (10**8, 4 * 10**8, None)
    assert (gemm.dram_intensity, gemm.dram_bandwidth) == pytest.approx((64, 1e8 / 0.6))
    assert (report.row("gemm").dram_bytes, report.row("gemm").kernel_count) == (10**8, 3)
    assert repr(gemm) == "<KernelRow maxwell_sgemm: 3 instances>"


def test_bytes_that_the_l2_counted_are_held_against_a_roof_of_the_same(report):
    """4e8 of them in 600 ms, where 4e8 in 450 ms are the most; without such a roof the work of 6.4e9 takes 64 ms."""
    data = report.to_dict()
    assert report.kernels[0].lower_bound_time == pytest.approx(0.064)
    (l2,) = (level for level in data["ceilings"]["memory"] if level["level"] == "L2")
    l2["counted_bytes_per_second"] = 4e8 / 0.45
    gemm = roofprof.Report.from_dict(data).kernels[0]
    assert (str(gemm.bound), gemm.percent_of_roof) == ("memory L2", pytest.approx(75))


def test_reports_of_the_clock_have_no_kernels():
    counted = roofprof.count(torch.relu, torch.ones(2, 8))
    assert (counted.kernels, counted.row("").kernel_count, counted.row("").utilization) == ([], None, None)


def test_shown_in_the_shell(report, tmp_path, capsys):
    path, csv = tmp_path / "r.json", tmp_path / "kernels.csv"
    report.to_json(path)
    again = roofprof.Report.from_json(path)
    assert (again, again.to_dict()) == (report, report.to_dict())
    assert cli.main(["show", str(path), "--by", "kernel", "--columns", "instances,module,built_for"]) == 0
    assert "        3  gemm    sm_50      maxwell_sgemm" in capsys.readouterr().out
    assert cli.main(["show", str(path), "--by", "kernel", "--csv", str(csv)]) == 0
    assert csv.read_text().splitlines()[1].startswith("maxwell_sgemm,kernel,,gemm,forward,,aten::conv2d,4x2x1,1x1x1,")
    assert report.to_csv(by="kernel") == csv.read_bytes().decode()


@pytest.mark.integration
def test_as_data_frame(report):
    frame = report.to_pandas(by="kernel")
    assert list(frame["name"]) == ["maxwell_sgemm", "relu", "[memset]"]
    assert frame["total_ns"].sum() == 16 * 10**8 + 1
    assert frame["dram_bytes"].isna().tolist() == [False, True, True]
    text = set(frame.columns) - set(frame.select_dtypes(["number", "bool"]).columns)
    assert text == {field.key for field in roofprof.fields.of("kernel").values() if field.is_text}
