"""Flame graphs of time by module."""

import xml.etree.ElementTree as ET

import pytest
import torch
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.render.traces.flame_svg import LEAST, cut, flame_svg
from roofprof.render.traces.time_tree import Node, folded, time_tree

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def report():
    """Without events."""
    net = nn.Sequential(nn.Linear(32, 32), nn.Sequential(nn.ReLU(), nn.Linear(32, 8)))
    prof = profiler(net)
    with prof:
        net(torch.rand(16, 32)).sum().backward()
    return prof.report()


def test_own_times_add_up_to_the_report(report, tmp_path):
    report.to_flame_graph(tmp_path / "f.folded")
    own = {}
    for line in (tmp_path / "f.folded").read_text().splitlines():
        stack, _, ns = line.rpartition(" ")
        own[stack] = int(ns)
    for row in report.rows:
        stack = ";".join(["Sequential", *row.path.split(".")]) if row.path else "Sequential"
        if row.path == "(outside)":
            stack = row.path
        inside = sum(ns for at, ns in own.items() if at == stack or at.startswith(f"{stack};"))
        assert inside == round(row.time * 1e9), row.path
        assert own.get(stack, 0) == pytest.approx(row.self_time * 1e9, abs=len(report.rows)), row.path
    assert sum(own.values()) == round(report.total.time * 1e9)


def boxes(svg):
    found = {}
    for box in ET.fromstring(svg).findall(f"{SVG}svg"):
        found[box.find(f"{SVG}title").text] = [float(box.get(name).rstrip("%")) for name in ("x", "y", "width")]
    return found


def test_a_box_is_as_wide_as_its_share_of_the_time(report, tmp_path):
    report.to_flame_graph(tmp_path / "f.svg")
    found = boxes((tmp_path / "f.svg").read_bytes())
    for row in report.rows:
        (box,) = [
            at for name, at in found.items() if name.startswith((f"{row.path or 'Sequential'} (", f"{row.path}: "))
        ]
        assert box[2] == pytest.approx(100 * row.time / report.total.time, abs=0.001)


def test_ops_are_the_leaves_and_colours_tell_the_share_of_the_roof(report, tmp_path):
    report.to_flame_graph(tmp_path / "f.svg")
    svg = (tmp_path / "f.svg").read_bytes()
    found = boxes(svg)
    for group in report.group("module", "op"):
        module, op = group.keys
        share = 100 * group.time / report.total.time
        start = f"{op.removeprefix('aten::')} in {module or 'the model'}:"
        widths = [at[2] for name, at in found.items() if name.startswith(start)]
        assert widths == ([pytest.approx(share, abs=0.001)] if share >= LEAST else [])
    colours = {}
    for box in ET.fromstring(svg).findall(f"{SVG}svg"):
        name = box.find(f"{SVG}title").text
        colours[name] = box.find(f"{SVG}rect").get("fill")
        assert ("of the roof" in name) == (colours[name] != "#dddddd")
    nodes = [
        Node("low", "low", "", 1, percent_of_roof=1),
        Node("high", "high", "", 1, percent_of_roof=99),
        Node("?", "?", "", 1),
    ]
    assert (
        len({box.find(f"{SVG}rect").get("fill") for box in ET.fromstring(flame_svg(nodes, "")).findall(f"{SVG}svg")})
        == 3
    )


def test_labels_are_cut_where_words_end():
    assert cut("self_attn", 9) == "self_attn"
    assert cut("self_attn", 8) == "self\N{HORIZONTAL ELLIPSIS}"
    assert cut("scaled_dot_product_attention", 20) == "scaled_dot_product\N{HORIZONTAL ELLIPSIS}"
    assert cut("linear1", 5) == ""
    for room in range(40):
        assert len(cut("model.layers.0.self_attn", room)) <= room


def test_children_lie_below_their_parent():
    child = [Node("a", "a", "A", 30), Node("b", "b", "B", 50)]
    found = boxes(flame_svg([Node("net", "", "Net", 100, child), Node("(outside)", "(outside)", "", 100)], "net"))
    by_name = {name.split(":")[0]: at for name, at in found.items()}
    assert by_name["net (Net)"][0] == 0
    assert by_name["net (Net)"][2] == 50
    assert by_name["a (A)"][0] == 0
    assert by_name["b (B)"][0] == 15
    assert by_name["b (B)"][2] == 25
    assert by_name["(outside)"][0] == 50
    assert by_name["a (A)"][1] > by_name["net (Net)"][1] == by_name["(outside)"][1]
    assert "20 ns of its own" in next(name for name in found if name.startswith("net"))


def test_names_are_text_whatever_they_are():
    name = '</title><script>alert(1)</script>&<"\x00\x1b\ud800;x\n9'
    roots = [Node(name, name, name, 10, [Node("b;c", "b;c", "", 10)])]
    svg = flame_svg(roots, name)
    tree = ET.fromstring(svg.encode("utf-8", "strict"))
    assert {element.tag for element in tree.iter()} <= {
        f"{SVG}{tag}" for tag in ("svg", "title", "style", "rect", "text")
    }
    assert not [a for element in tree.iter() for a in element.attrib if a.startswith("on") or "href" in a]
    (line,) = folded(roots).splitlines()
    stack, _, ns = line.rpartition(" ")
    assert ns == "10"
    assert stack.split(";")[1:] == ["b:c"]


def test_what_is_too_narrow_is_left_out_and_nothing_is_cut_short():
    many = [Node(f"m{i}", f"m{i}", "M", 1) for i in range(20_000)]
    svg = flame_svg([Node("net", "", "Net", 1_000_000, many)], "net")
    assert len(svg) < 5_000
    assert ET.fromstring(svg) is not None


def test_a_deep_model_is_no_problem():
    node = Node("leaf", "leaf", "L", 5)
    for i in range(3_000):
        node = Node(f"m{i}", f"m{i}", "M", 5, [node])
    assert folded([node]).count(";") == 3_000
    assert ET.fromstring(flame_svg([node], "deep")) is not None


def test_what_cannot_be_drawn_is_said(report, tmp_path):
    with pytest.raises(ValueError, match=r"'.*f.png': a flame graph's file ends in .svg, .folded or .txt"):
        report.to_flame_graph(tmp_path / "f.png")
    counted = roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    with pytest.raises(ValueError, match="no times to make a flame graph of"):
        counted.to_flame_graph(tmp_path / "f.svg")
    assert not list(tmp_path.iterdir())


def test_the_tree_is_that_of_the_rows(report):
    roots = time_tree(report._compiled)
    assert [root.name for root in roots] == ["Sequential", "(outside)"]
    assert [node.path for node in roots[0].children] == ["0", "1"]
    assert [node.name for node in roots[0].children[1].children] == ["0", "1"]
