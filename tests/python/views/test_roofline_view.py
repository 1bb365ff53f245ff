"""The geometry of rooflines, by the closed forms of the model: ridge = peak / bandwidth, roof = min(peak, AI x B)."""

import given_roofs
import pytest
import torch
from reports_by_hand import Did, as_dict, report_of, with_counters
from torch import nn

import roofprof
from roofprof import _C
from roofprof.render.views import roofline
from roofprof.render.views.kinds import OTHER, STYLES, kinds_of

TFLOPS, GB = 1e12, 1e9


def roofline_view(report, by="module", **options):
    return roofline.roofline_view(report._compiled, by, **options)


def left_out_of(view):
    return {left.reason: left.count for left in view.left_out}


# The published figures of the case, and what was said of them.
GTX_1080_TI = given_roofs.roofs({"fp32": 11.3 * TFLOPS}, {"DRAM": (484 * GB, 0)})
MOBILENET = Did(flops=7 * GB, bytes=1 * GB, seconds=7 * GB / (3.3 * TFLOPS))
VGG16 = Did(flops=25 * GB, bytes=1 * GB, seconds=25 * GB / (11 * TFLOPS))


def test_the_ridges_of_published_cards():
    for card, intensity in {"GTX 1080 Ti": 23.35, "A100 PCIe 40GB": 12.5}.items():
        view = roofline_view(report_of({"vgg16": VGG16}, roofprof.Ceilings.published(card)))
        assert max(ridge.intensity for ridge in view.ridges) == pytest.approx(intensity, rel=0.01)  # of DRAM


def test_mobilenet_is_under_the_slope_and_vgg16_past_the_ridge():
    view = roofline_view(report_of({"mobilenet": MOBILENET, "vgg16": VGG16}, GTX_1080_TI))
    mobilenet, vgg16 = view.dots
    (ridge,) = view.ridges
    (memory,) = view.memory_roofs
    assert (ridge.compute, ridge.memory, ridge.rate) == ("fp32", "DRAM", 11.3 * TFLOPS)
    assert ridge.intensity == pytest.approx(23.35, abs=0.005)
    assert (mobilenet.key, vgg16.key) == ("mobilenet", "vgg16")
    assert (mobilenet.intensity, vgg16.intensity) == pytest.approx((7, 25))
    # At most 3.3 TFLOP/s: the slope's height at 7 FLOPs per byte, cut to a digit.
    assert mobilenet.intensity * memory.rate == pytest.approx(3.388 * TFLOPS)
    assert (mobilenet.rate, vgg16.rate) == pytest.approx((3.3 * TFLOPS, 11 * TFLOPS), rel=1e-5)
    assert mobilenet.compute_time == pytest.approx(7 / 11.3e3, abs=1e-9)
    assert mobilenet.memory_time == pytest.approx(1 / 484, abs=1e-9)
    assert vgg16.compute_time > vgg16.memory_time


def test_every_level_has_a_slope_and_every_dtype_that_is_used_a_roof():
    levels = given_roofs.LEVELS | {"host link": (1e10, 0)}
    view = roofline_view(report_of({"a": Did(1e9, 1e9, 1)}, given_roofs.roofs(levels=levels)))
    assert [roof.name for roof in view.compute_roofs] == ["fp32"]  # there are roofs for fp64 and int8 as well
    assert [roof.name for roof in view.memory_roofs] == ["L2", "L3", "DRAM"]
    assert [roof.unit for roof in view.roofs] == ["FLOP/s", "B/s", "B/s", "B/s"]
    assert [ridge.intensity for ridge in view.ridges] == [1e11 / rate for rate, _ in given_roofs.LEVELS.values()]
    assert view.roofs[0].provenance == "given, by hand"


def test_rates_of_integers_are_no_flops():
    ceilings = given_roofs.roofs({"int64": 1e12}, {"DRAM": (1e10, 0)})
    (dot,) = roofline_view(report_of({"a": Did(0, 1e9, 1, op="quantized::conv2d", int_ops=4e9)}, ceilings)).dots
    assert (dot.intensity, dot.rate, dot.kind) == (4, 4e9, "quantized")


# ---- dots


class Block(nn.Module):
    """Has ops of its own beside its children's."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 3, 3, padding=1)
        self.move = nn.Flatten()

    def forward(self, x):
        return self.move((self.conv(x) + x).transpose(2, 3).contiguous())


@pytest.fixture(scope="module")
def report():
    return given_roofs.profiler(nn.Sequential(Block(), nn.Identity())).run(torch.rand(1, 3, 32, 32))


def test_each_op_is_in_one_dot(report):
    view = roofline_view(report)
    assert [dot.label for dot in view.dots] == ["0 (own ops)", "0.conv"]
    times = {op: group.time for (module, op), group in report.by_module_and_operator().items() if module == "0"}
    longest = "elementwise" if times["aten::add"] > max(times["aten::clone"], 0) else "movement"
    assert [dot.kind for dot in view.dots] == [longest, "convolution"]
    assert sum(dot.rate * dot.time for dot in view.dots) == pytest.approx(report.total.flops)
    for dot in view.dots:
        row = report.row(dot.key)
        assert (dot.intensity, dot.rate) == (row.self_intensity, row.self_achieved_flops)
        assert (dot.time, dot.wasted_time) == (row.self_time, row.self_wasted_time)
        assert not dot.measured and not dot.levels and not dot.incomplete
    assert left_out_of(view) == {"no work of their own": 3}
    assert len(view.dots) + 3 == len(report.rows)
    drawn = sum(dot.time for dot in view.dots) + sum(left.time for left in view.left_out)
    assert drawn == pytest.approx(report.total.time)
    wasted = [dot.wasted_time for dot in view.hotspots]
    assert wasted == sorted(wasted, reverse=True)


def test_by_operator(report):
    view = roofline_view(report, by="op")
    assert {dot.key: dot.label for dot in view.dots} == {"aten::add": "add", "aten::conv2d": "conv2d"}
    assert left_out_of(view) == {
        "no FLOPs: they only move data": 1,
        "no work of their own": len(report.by_operator()) - 3,  # views
    }
    with pytest.raises(ValueError, match="a dot by module, op, kernel, not by 'layer'"):
        roofline_view(report, by="layer")


def test_a_count_has_no_dots():
    view = roofline_view(roofprof.count(nn.Linear(4, 4), torch.rand(2, 4)))
    assert not view.dots and not view.roofs and not view.ridges
    assert left_out_of(view) == {"no time was measured": 1}


def test_work_that_is_not_known_has_no_place_and_a_part_of_it_is_a_limit():
    report = as_dict({"known": Did(1e9, 1e9, 1), "unknown": Did(0, 0, 1), "partly": Did(1e9, 1e9, 1)})
    report["ops"][1] |= {"costed": False}
    report["ops"].append(report["ops"][2] | {"costed": False, "op": "mylib::op", "work": report["ops"][1]["work"]})
    view = roofline_view(roofprof.Report.from_dict(report))
    assert [(dot.key, dot.incomplete) for dot in view.dots] == [("known", False), ("partly", True)]
    assert left_out_of(view)["FLOPs not known"] == 1


def test_compiled_code_is_one_dot():
    plain = as_dict({"a": Did(1e9, 1e9, 0), "b": Did(1e9, 1e9, 0)})
    for module in plain["modules"]:
        if module["path"] in {"a", "b"}:
            module["compiled_region"] = 0
    for entry in plain["times"]:
        entry["self_ns"] = [10**9 if entry["module"] == 0 else 0]
    view = roofline_view(roofprof.Report.from_dict(plain))
    (dot,) = view.dots
    assert (dot.key, dot.kind, dot.time, dot.rate) == ("", "compiled region", 1, 2e9)
    assert left_out_of(view) == {"inside compiled code, which has one dot for all of it": 2}


def test_equal_siblings_are_one_dot_with_their_sums():
    names = {f"layer{i}": Did(flops=4e9, bytes=1e9, seconds=0.01 * (1 + i)) for i in range(4)}
    report = report_of(names | {"head": Did(1e9, 1e9, 0.02)})
    folded, expanded = roofline_view(report), roofline_view(report, expand=True)
    layers, head = folded.dots
    assert (layers.key, layers.label) == ("layer0-3", "layer0-3 x4")
    assert (layers.row.path, head.row.path) == ("layer0-3", "head")
    paths = [row.path for row in report.rows]
    assert [[paths[place] for place in dot.places] for dot in folded.dots] == [[*names], ["head"]]
    assert layers.time == pytest.approx(0.01 + 0.02 + 0.03 + 0.04)
    assert layers.intensity == pytest.approx(4)
    assert layers.rate == pytest.approx(4 * 4e9 / 0.1, rel=1e-5)
    assert [dot.key for dot in expanded.dots] == [*names, "head"]
    for figure in ("time", "wasted_time", "compute_time", "memory_time"):
        sums = [sum(getattr(dot, figure) for dot in view.dots) for view in (folded, expanded)]
        assert sums[0] == pytest.approx(sums[1])


def test_measured_bytes_and_levels():
    """Simulated: no GPU has run this."""
    report = with_counters()
    for by in ("module", "kernel"):
        dot = roofline_view(report, by=by).dots[0]
        assert dot.measured
        assert dot.levels == (("L1", pytest.approx(4)), ("L2", pytest.approx(16)), ("DRAM", pytest.approx(64)))
        assert (dot.intensity, dot.rate) == pytest.approx((64, 6.4e9))
    assert roofline_view(report, by="kernel").hotspots[0].wasted_time is None


def test_kinds_of_operators():
    kinds = {
        "aten::convolution_backward": "convolution",
        "aten::relu_": "activation",
        "compiled region": "compiled region",
        "aten::special_log_ndtr": "elementwise",
        "aten::diagonal_copy": "movement",
        "mylib::never_heard_of": OTHER,
        "no operator": OTHER,
    }
    assert kinds_of(kinds) == kinds
    assert {cost["family"] for cost in _C.op_costs()} <= set(STYLES)
    assert len(set(STYLES.values())) == len(STYLES)
