"""Findings: faults that were planted are named first, and sound models get none of these."""

from __future__ import annotations

import functools
import inspect
import json

import pytest
import torch
from planted_waste import PLANTED, Planted
from torch import nn

import roofprof
from roofprof.models.source import line_of, line_of_forward
from roofprof.report.report import parsed


def profiled(model: nn.Module, *inputs: torch.Tensor) -> roofprof.Report:
    """Profile the model in inference."""
    with torch.no_grad():
        return roofprof.profile(model.eval(), *inputs)


def names(planted: Planted, finding: roofprof._report.Finding) -> bool:
    """Whether the finding names the planted fault."""
    said = " ".join([finding.text, *finding.modules, *finding.ops])
    return finding.rule in planted.rules and planted.names in said


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
    found = profiled(nn.Sequential(Wide(), Wide()), torch.randn(512, 512, dtype=torch.double)).findings
    (wide,) = (finding for finding in found if finding.rule == "double-precision")
    _, line = inspect.getsourcelines(Wide.forward)
    assert wide.source is not None
    assert wide.source.endswith(f"test_findings.py:{line}")


def test_models_of_torch_alone_have_no_source():
    found = profiled(nn.Sequential(nn.Linear(512, 512).double()), torch.randn(512, 512, dtype=torch.double)).findings
    assert {finding.source for finding in found if finding.rule == "double-precision"} == {None}


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


def test_a_forward_that_wraps_itself_has_no_line():
    class Odd(nn.Module):
        def forward(self, x):
            return x

    assert line_of_forward(Odd, functools.partial(Odd.forward)).partition(":")[0].endswith("test_findings.py")
    Odd.forward.__wrapped__ = functools.partial(Odd.forward)
    assert not line_of_forward(Odd, Odd.forward)
    assert Odd()(torch.ones(1)) == 1
    assert profiled(Odd(), torch.ones(1)).rows
    Odd.forward.__wrapped__ = Odd.forward
    assert not line_of_forward(Odd, Odd.forward)


def test_what_is_used_in_any_way_is_not_called_unused():
    found = profiled(Sound(), torch.randn(64, 256)).findings
    assert "never-used" not in [finding.rule for finding in found]


def test_a_training_step_uses_all_that_has_a_gradient():
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


def test_a_file_has_the_same_findings(report, tmp_path):
    report.to_json(tmp_path / "r.json")
    again = roofprof.Report.from_json(tmp_path / "r.json").findings
    stored = json.loads((tmp_path / "r.json").read_text())["findings"]
    for one, other, written in zip(report.findings, again, stored, strict=True):
        assert repr(one) == repr(other)
        assert written["id"] == one.id == other.id
        assert written["gain_high_ns"] == pytest.approx(1e9 * one.gain_high)
        assert written["evidence"] == pytest.approx(one.evidence)


def test_ids_are_those_of_another_run():
    planted = PLANTED["dead branch"]
    for _ in range(2):  # others may come before it where the machine is busy
        assert "never-used/aux" in {one.id for one in profiled(planted.model(), planted.example()).findings}


# ---- tensors that torch's own code makes


class Steps(nn.Module):
    """Takes one step with a large state, which torch's own code makes where none is passed."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.cell = getattr(nn, kind)(2, 4) if kind == "LSTM" else nn.MultiheadAttention(4, 1, add_zero_attn=True)
        self.is_attention = kind != "LSTM"

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.cell(x, x, x)[0] if self.is_attention else self.cell(x)[0]


def test_zeros_of_torch_are_blamed_on_nobody_but_a_first_state_can_be_passed():
    def of_long_zeros(kind: str, x: torch.Tensor) -> list[roofprof._report.Finding]:
        written = profiled(Steps(kind), x).to_dict()
        for op in written["ops"]:
            if op["op"] == "aten::zeros":
                op["time_ns"] = 10**9
                for time in written["times"]:
                    if time["module"] == op["module"]:
                        time["self_ns"] = [10**9 + 10**6] * len(time["self_ns"])
        assert any(op["op"] == "aten::zeros" for op in written["ops"])
        return [one for one in parsed(json.dumps(written)).findings if one.rule == "made-in-forward"]

    (lstm,) = of_long_zeros("LSTM", torch.rand(1, 8, 2))
    assert "h0" in lstm.action
    assert of_long_zeros("MultiheadAttention", torch.rand(8, 1, 4)) == []


class Casts(nn.Module):
    """Casts its input to fp64 in the forward, as the weights are in fp64."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(256, 512).double()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x.double())


class Constant(nn.Module):
    """Multiplies with a tensor that is no buffer, which no change of the model's type reaches."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.rand(256, 512, dtype=torch.float64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


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
        (Constant(), torch.rand(64, 256, dtype=torch.float64), False),
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
