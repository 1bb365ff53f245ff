"""Findings: faults that were planted are named first, and sound models get none of these."""

from __future__ import annotations

import inspect

import pytest
import torch
from planted_waste import PLANTED, Planted
from torch import nn

import roofprof
from roofprof.models.source import line_of


def profiled(model: nn.Module, *inputs: torch.Tensor) -> roofprof.Report:
    """Profile the model in inference."""
    with torch.no_grad():
        return roofprof.profile(model.eval(), *inputs)


def names(planted: Planted, finding: roofprof._report.Finding) -> bool:
    """Whether the finding names the planted fault."""
    words = " ".join([finding.text, *finding.modules, *finding.ops])
    return finding.rule in planted.rules and planted.names in words


@pytest.mark.measuring
@pytest.mark.parametrize("fault", PLANTED)
def test_the_first_finding_names_the_planted_fault(fault):
    planted = PLANTED[fault]
    model, example = planted.model(), planted.example()
    for _ in range(3):  # other work on the machine can make any op slow
        found = profiled(model, example).findings
        if found and names(planted, found[0]):
            return
    pytest.fail(f"{fault}: {[(one.rule, one.text) for one in found]}")


class Sound(nn.Module):
    """Branches that are used: by an op, by NumPy, by Python, after the call, or in a buffer that stays."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.by_op, self.by_numpy, self.by_python, self.result, self.kept = (
            nn.Linear(256, 256) for _ in range(6)
        )
        self.state = nn.Buffer(torch.zeros(64, 256))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = self.body(x)
        y = x + self.by_op(x)
        self.seen = self.by_numpy(x).numpy().sum()
        self.listed = self.by_python(x).tolist()
        self.state.copy_(self.kept(x))
        return y, self.result(x)


class Wide(nn.Module):
    """Computes in fp64 without need, in layers of torch."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 512)).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


def test_a_finding_says_where_the_forward_around_it_is_written():
    x = torch.randn(512, 512, dtype=torch.double)
    (wide,) = (one for one in profiled(nn.Sequential(Wide(), Wide()), x).findings if one.rule == "double-precision")
    assert wide.source is not None
    assert wide.source.endswith(f"test_findings.py:{inspect.getsourcelines(Wide.forward)[1]}")
    of_torch = profiled(nn.Sequential(nn.Linear(512, 512).double()), x).findings
    assert {finding.source for finding in of_torch if finding.rule == "double-precision"} == {None}


def test_lines_are_named_below_the_folder_that_they_are_imported_from(tmp_path, monkeypatch):
    (tmp_path / "site" / "package").mkdir(parents=True)
    package = tmp_path / "site" / "package" / "layers.py"
    script = tmp_path / "models.py"
    script.touch()
    package.touch()
    monkeypatch.syspath_prepend(tmp_path / "site")
    assert line_of(str(package), 3) == "package/layers.py:3"
    assert line_of(str(script), 7) == "models.py:7"  # of no folder that is known: its name
    assert not line_of("<string>", 1)
    assert not line_of(str(tmp_path / "gone.py"), 1)


def test_what_is_used_in_any_way_is_not_called_unused():
    found = profiled(Sound(), torch.randn(64, 256)).findings
    assert "never-used" not in [finding.rule for finding in found]
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256))
    x = torch.randn(64, 256)
    report = roofprof.RooflineProfiler(model).run_step(lambda: model(x).sum().backward())
    assert "never-used" not in [finding.rule for finding in report.findings]


@pytest.fixture(scope="module")
def report():
    planted = PLANTED["dead branch"]
    return profiled(planted.model(), planted.example())


def test_findings_are_ranked_and_whole(report):
    found = report.findings
    assert 0 < len(found) <= 10
    middles = [(one.gain_low + one.gain_high) / 2 for one in found]
    assert middles == sorted(middles, reverse=True)
    for one in found:
        assert 0 <= one.gain_low <= one.gain_high <= report.total.time
        assert one.confidence in {"low", "medium", "high"}
        assert one.text and one.action and one.basis and one.because and one.reference and one.bound
        assert one.evidence["percent_of_time"] > 0
    assert len({one.id for one in found}) == len(found)


def test_a_file_has_the_same_findings(report):
    again = roofprof.Report.from_dict(report.to_dict()).findings
    for one, other, written in zip(report.findings, again, report.to_dict()["findings"], strict=True):
        assert repr(one) == repr(other)
        assert written["id"] == one.id == other.id
        assert written["gain_high_ns"] == pytest.approx(1e9 * one.gain_high)
        assert written["evidence"] == pytest.approx(one.evidence)
    assert "never-used/aux" in {one.id for one in report.findings}


class Casts(nn.Module):
    """Casts its input to fp64 in the forward, as the weights are in fp64."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 512).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.double())


class Tokens(nn.Module):
    """Takes numbers of tokens, which have to stay integers."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(100, 256).double()
        self.layer = nn.Linear(256, 512).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(self.embed(x))


@pytest.mark.parametrize(
    ("model", "x", "is_tried"),
    [
        (Casts(), torch.rand(64, 256), False),
        (Tokens(), torch.randint(100, (64,)), True),
        (Wide(), torch.rand(64, 512, dtype=torch.float64), True),
    ],
)
def test_code_that_tries_fp32_runs_or_is_not_offered(model, x, is_tried):
    found = (finding for _ in range(5) for finding in profiled(model, x).findings)  # a busy machine may hide it
    wide = next(finding for finding in found if finding.rule == "double-precision")
    assert (wide.try_it is not None) == is_tried
    if wide.try_it is not None:
        names = {"model": model, "x": x, "torch": torch}
        exec(wide.try_it, names)
        assert names["model"](names["x"]).dtype == torch.float32
