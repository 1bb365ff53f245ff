"""A report as metrics, read back by Prometheus' own parser and OpenTelemetry's in-memory reader."""

from __future__ import annotations

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.budget import Budget
from roofprof.cli import main

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def report():
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
    return profiler(model, repeat=2).run(torch.rand(4, 8))


def parsed(text: str) -> dict[str, dict[tuple[str, ...], float]]:
    from prometheus_client.parser import text_string_to_metric_families

    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        assert family.type == "gauge"
        for sample in family.samples:
            labels = tuple(sample.labels[name] for name in sorted(sample.labels) if name not in {"model", "device"})
            found.setdefault(sample.name, {})[labels] = sample.value
    return found


def test_prometheus_names_and_values(report):
    found = parsed(report.to_prometheus())
    total = report.total
    for name, value in {
        "roofprof_macs": total.macs,
        "roofprof_bytes": total.bytes,
        "roofprof_read_bytes": total.read_bytes,
        "roofprof_time_seconds": total.time,
        "roofprof_wasted_time_seconds": total.wasted_time,
        "roofprof_share_of_roof_ratio": total.percent_of_roof / 100,
        "roofprof_peak_memory_bytes": total.peak_memory,
        "roofprof_achieved_flops_per_second": total.achieved_flops,
        "roofprof_achieved_bandwidth_bytes_per_second": total.achieved_bandwidth,
        "roofprof_intensity_flops_per_byte": total.intensity,
        "roofprof_incomplete": 0,
        "roofprof_uncosted_ops": 0,
    }.items():
        assert found[name][()] == pytest.approx(value), name
    assert sum(found["roofprof_memory_at_peak_bytes"].values()) == sum(row.bytes for row in report.memory_at_peak)
    assert "roofprof_dram_bytes" not in found  # not known
    assert not any("budget" in name for name in found)
    for end in ("low", "high") if report.findings else ():
        gains = [getattr(finding, f"gain_{end}") for finding in report.findings]
        assert sorted(found[f"roofprof_finding_gain_{end}_seconds"].values()) == pytest.approx(sorted(gains))


def test_names_end_in_the_units_that_prometheus_asks_for(report):
    from roofprof.report.dashboards import metrics

    endings = {"s": "_seconds", "By": "_bytes", "By/s": "_bytes_per_second", "{operation}/s": "_flops_per_second"}
    for metric in metrics(report):
        assert metric.name.endswith(endings.get(metric.unit, "")), metric
        assert metric.name.count("bytes") <= 2
        assert metric.instrument.startswith("roofprof.")


def test_a_budgets_verdict(report, tmp_path, capsys):
    limits = {"total": {"macs": "<= 1", "params": "<= 1 M"}}
    outcome = Budget.of(limits).check(report)
    found = parsed(report.to_prometheus(tmp_path / "r.prom", budget=outcome))
    assert (found["roofprof_budget_kept"][()], found["roofprof_budget_checked"][()]) == (0, 2)
    assert found["roofprof_budget_broken"][()] == 1
    assert found["roofprof_budget_broken_limit"] == {("macs", "<= 1", "(total)"): 1}
    report.to_json(tmp_path / "r.json")
    (tmp_path / "b.toml").write_text('[total]\nmacs = "<= 1"\nparams = "<= 1 M"\n')
    shown = ["show", str(tmp_path / "r.json"), "--format", "prometheus", "--budget", str(tmp_path / "b.toml")]
    assert main(shown) == 0
    assert parsed(capsys.readouterr().out) == found == parsed((tmp_path / "r.prom").read_text())
    assert main(["show", str(tmp_path / "r.json"), "--budget", str(tmp_path / "b.toml")]) == 2


def test_findings_have_their_gains(report):
    class Finding:
        id, module, gain_low, gain_high = "layout-1", "layer1", 0.5, 1.5

    class WithFindings(roofprof.Report):
        findings = (Finding(),)

    found = parsed(WithFindings(report._compiled).to_prometheus())
    assert found["roofprof_finding_gain_low_seconds"] == {("layout-1", "layer1"): 0.5}
    assert found["roofprof_finding_gain_high_seconds"] == {("layout-1", "layer1"): 1.5}


def test_opentelemetry(report):
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    provider = MeterProvider(metric_readers=[reader])
    report.to_opentelemetry(provider.get_meter("roofprof"))
    (resource,) = reader.get_metrics_data().resource_metrics
    found = {metric.name: metric for metric in resource.scope_metrics[0].metrics}
    assert found["roofprof.peak_memory"].unit == "By"
    (point,) = found["roofprof.peak_memory"].data.data_points
    assert point.value == report.total.peak_memory
    assert dict(point.attributes) == {"model": "Sequential", "device": "cpu"}
    assert found["roofprof.time"].unit == "s"
    points = found["roofprof.memory_at_peak"].data.data_points
    assert sum(point.value for point in points) == sum(row.bytes for row in report.memory_at_peak)
    provider.shutdown()


def test_without_the_package(report, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "prometheus_client", None)
    with pytest.raises(ImportError, match=r"roofprof\[prometheus\]"):
        report.to_prometheus()
