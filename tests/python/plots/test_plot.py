"""Pictures of reports: where dots, roofs and labels are, what is written, and what is said where there is nothing."""

import copy
import itertools
import re
import sys

import given_roofs
import pytest
import torch
from reports_by_hand import Did, report_of, with_counters
from torch import nn

import roofprof
from roofprof import cli
from roofprof.render.views.roofline import roofline_view

pytestmark = pytest.mark.integration

matplotlib = pytest.importorskip("matplotlib")

TFLOPS, GB = 1e12, 1e9
GTX_1080_TI = given_roofs.roofs({"fp32": 11.3 * TFLOPS}, {"DRAM": (484 * GB, 0)})
CASE_5 = {
    "mobilenet": Did(flops=7 * GB, bytes=1 * GB, seconds=7 / 3300),
    "vgg16": Did(flops=25 * GB, bytes=1 * GB, seconds=25 / 11000),
}


@pytest.fixture(scope="module")
def case_5():
    return report_of(CASE_5, GTX_1080_TI)


def dots(figure):
    """Their places in the picture."""
    return [tuple(place) for dots in figure.axes[0].collections for place in dots.get_offsets()]


def lines(figure):
    return {line.get_label(): line.get_xydata().tolist() for line in figure.axes[0].lines}


def texts(figure):
    axes = figure.axes[0]
    return [text for text in [*axes.texts, *figure.texts] if text.get_text()]


def words(figure):
    return "\n".join(text.get_text() for text in texts(figure))


# ---- geometry (seeds.md, case 5)


def test_the_artists_are_where_the_closed_forms_say(case_5):
    figure = case_5.plot()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("FLOPs per byte", "FLOP/s")
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    mobilenet, vgg16 = sorted(dots(figure))
    assert mobilenet == (pytest.approx(7), pytest.approx(3.3e12, rel=1e-5))
    assert vgg16 == (pytest.approx(25), pytest.approx(11e12, rel=1e-5))
    drawn = lines(figure)
    (x0, y0), (x1, y1) = drawn["DRAM"]
    assert y0 / x0 == pytest.approx(484e9)
    assert (x1, y1) == (pytest.approx(23.35, abs=0.005), pytest.approx(11.3e12))
    (start, height), (_, same) = drawn["fp32"]
    assert start == pytest.approx(23.35, abs=0.005)
    assert height == same == pytest.approx(11.3e12)
    labels = words(figure)
    for label in ("23.3", "fp32 11.3 TFLOP/s", "DRAM 484 GB/s", "mobilenet", "vgg16"):
        assert label in labels


def test_the_time_roofline(case_5):
    figure = case_5.plot(kind="time")
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("time that the FLOPs need", "time that the bytes need")
    assert axes.get_xlim() == axes.get_ylim()
    mobilenet, vgg16 = sorted(dots(figure))
    assert mobilenet == (pytest.approx(7 / 11300, abs=1e-9), pytest.approx(1 / 484, abs=1e-9))
    assert vgg16 == (pytest.approx(25 / 11300, abs=1e-9), pytest.approx(1 / 484, abs=1e-9))
    assert lines(figure)["both alike"] == [[axes.get_xlim()[0]] * 2, [axes.get_xlim()[1]] * 2]


def test_measured_bytes_fill_dots_and_levels_are_joined():
    device_report = with_counters()
    figure = device_report.plot()
    filled = [len(dot.get_facecolor()) > 0 for dot in figure.axes[0].collections]
    assert filled == [True, False]
    levels = [line.get_xydata().tolist() for line in figure.axes[0].lines if line.get_marker() == "|"]
    assert levels == [[[4, pytest.approx(6.4e9)], [16, pytest.approx(6.4e9)], [64, pytest.approx(6.4e9)]]]
    assert "Filled: bytes were measured" in words(figure)
    assert device_report.plot(by="kernel").axes[0].collections


# ---- labels


def boxes(figure):
    """The outlines of all text in the axes, along its slope, by the text."""
    figure.canvas.draw()
    extent = matplotlib.text.Text.get_window_extent
    found = {}
    for text in figure.axes[0].texts:
        if not text.get_text():
            continue
        angle, outer = text.get_rotation(), extent(text)
        text.set_rotation(0)
        corners = extent(text).corners()[[0, 1, 3, 2]]
        text.set_rotation(angle)
        center = (outer.x0 + outer.x1) / 2, (outer.y0 + outer.y1) / 2
        turn = matplotlib.transforms.Affine2D().translate(*(center - corners.mean(0))).rotate_deg_around(*center, angle)
        found[text.get_text()] = matplotlib.path.Path(turn.transform(corners))
    return found


LONG = "a_very_long_name_of_a_module_that_nobody_would_type_" * 2
REPORTS = {
    "case 5": lambda: report_of(CASE_5, GTX_1080_TI),
    "at one place": lambda: report_of({f"layer{i}": Did(1e9, 1e7, 0.02 + i * 1e-5) for i in range(8)}),
    "long names": lambda: report_of({f"{LONG}{i}": Did(1e9, 1e8, 0.01) for i in range(5)}),
    "several dtypes and levels": lambda: mixed(),
    "a GPU with counters (simulated)": with_counters,
}


def mixed():
    net = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 64).double())
    net.forward = lambda value: net[1](net[0](value).double())
    levels = {"L1": (8e11, 1 << 15), "L2": (5e11, 1 << 20), "L3": (3e11, 16 << 20), "DRAM": (2e11, 0)}
    return given_roofs.profiler(net, ceilings=given_roofs.roofs({"fp32": 1e11, "fp64": 8e10}, levels)).run(
        torch.ones(8, 64)
    )


@pytest.mark.parametrize("kind", ["roofline", "time"])
@pytest.mark.parametrize("name", REPORTS)
def test_labels_of_one_sort_do_not_overlap_and_the_worst_are_named(name, kind):
    report = REPORTS[name]()
    figure = report.plot(kind=kind)
    view = roofline_view(report._compiled)
    found = boxes(figure)
    numbers = {text: box for text, box in found.items() if text[0].isdigit()}
    for one, other in itertools.combinations(found, 2):
        if (one in numbers) == (other in numbers):
            assert not found[one].intersects_path(found[other], filled=True), (one, other)
    worst = range(1, 1 + min(5, len(view.hotspots)))
    assert sorted(int(number) for text in numbers for number in text.split(", ")) == [*worst]
    message = words(figure)
    for number in worst:
        name = re.escape(view.hotspots[number - 1].label[-20:])
        assert re.search(rf"^{number}  .*{name} (wastes|takes) ", message, re.MULTILINE)
    if kind == "roofline":
        assert all(f"{roof.name} " in "\n".join(found) for roof in view.roofs)


# ---- what is said


def test_a_count_is_refused():
    with pytest.raises(ValueError, match="the report is a count, without times and roofs to draw: profile the model"):
        roofprof.count(nn.Linear(2, 2), torch.rand(1, 2)).plot()


def test_a_picture_without_roofs_says_so():
    report = report_of({"a": Did(1e9, 1e8, 0.01)}, given_roofs.roofs({}, {}))
    assert "No roofs are known" in words(report.plot())
    with pytest.raises(ValueError, match="the report has no roofs, which the plot of kind time needs"):
        report.plot(kind="time")


# ---- files


@pytest.mark.parametrize(("suffix", "begin"), [("svg", b"<?xml"), ("png", b"\x89PNG"), ("PDF", b"%PDF")])
def test_files_by_suffix(case_5, tmp_path, suffix, begin):
    path = tmp_path / f"r.{suffix}"
    case_5.plot(path)
    content = path.read_bytes()
    assert content.startswith(begin)
    case_5.plot(path)
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_other_suffixes_and_options_are_refused(case_5, tmp_path):
    for name in ("r.jpg", "r", "svg"):
        with pytest.raises(ValueError, match=r"ends in .svg, .png or .pdf"):
            case_5.plot(tmp_path / name)
    with pytest.raises(ValueError, match="of kind roofline and time, not 'pie'"):
        case_5.plot(kind="pie")
    with pytest.raises(ValueError, match="by module or op"):
        case_5.plot(kind="time", by="kernel")
    with pytest.raises(ValueError, match="not by 'layer'"):
        case_5.plot(by="layer")
    with pytest.raises(FileNotFoundError):
        case_5.plot(tmp_path / "missing" / "r.svg")
    assert not list(tmp_path.iterdir())


def test_pyplot_is_left_alone(case_5):
    from matplotlib import pyplot as plt

    plt.switch_backend("Agg")
    theirs = plt.figure()
    settings = copy.deepcopy(dict(matplotlib.rcParams))
    with matplotlib.rc_context({"axes.facecolor": "red", "text.usetex": True}):
        figure = case_5.plot()
        assert matplotlib.rcParams["text.usetex"]
    assert figure.axes[0].get_facecolor() == (1, 1, 1, 1)
    assert plt.get_fignums() == [theirs.number]
    assert plt.gcf() is theirs
    assert dict(matplotlib.rcParams) == settings
    plt.close(theirs)


def test_without_matplotlib_it_says_what_to_install(case_5, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    with pytest.raises(ImportError, match=r"needs matplotlib: run `pip install roofprof\[plot\]`"):
        case_5.plot()


# ---- the command


def test_the_command(case_5, tmp_path, capsys):
    path = tmp_path / "r.json"
    case_5.to_json(path)
    assert cli.main(["plot", str(path)]) == 0
    assert f"written to {tmp_path / 'r.svg'}" in capsys.readouterr().err
    out = tmp_path / "time.png"
    assert cli.main(["plot", str(path), "-o", str(out), "--kind", "time", "--by", "op", "--before", str(path)]) == 0
    assert out.read_bytes().startswith(b"\x89PNG")
    capsys.readouterr()
    assert cli.main(["plot", str(path), "-o", str(tmp_path / "r.gif")]) == 2
    assert "ends in .svg, .png or .pdf" in capsys.readouterr().err
    assert cli.main(["plot", str(tmp_path / "none.json")]) == 2
