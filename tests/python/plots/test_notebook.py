"""What a notebook shows of a report."""

import base64
import sys
from xml.etree import ElementTree as ET

import pytest
import torch
from html_texts import Texts
from reports_by_hand import Did, as_dict, report_of
from torch import nn

import roofprof


@pytest.mark.integration
def test_picture_and_table():
    report = report_of({"conv": Did(1e9, 1e8, 0.01)})
    shown = Texts(report._repr_html_())
    assert [tag for tag, _ in shown.tags] == ["div", "img", "pre"]
    assert "".join(shown.texts) == report.table()
    source = shown.tags[1][1]["src"]
    svg = base64.b64decode(source.removeprefix("data:image/svg+xml;base64,"))
    assert ET.fromstring(svg).tag.endswith("}svg")
    assert b"<script" not in svg


def test_names_are_text():
    data = as_dict({"x": Did(1e9, 1e8, 0.01)})
    next(module for module in data["modules"] if module["path"] == "x")["path"] = "<script>alert(1)</script>"
    report = roofprof.Report.from_dict(data)
    text = report._repr_html_()
    assert "<script" not in text
    assert "<script>" in "".join(Texts(text).texts)


def test_a_count_and_a_place_without_matplotlib_show_the_table(monkeypatch):
    counted = roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    assert [tag for tag, _ in Texts(counted._repr_html_()).tags] == ["div", "pre"]
    timed = report_of({"conv": Did(1e9, 1e8, 0.01)})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    shown = Texts(timed._repr_html_())
    assert [tag for tag, _ in shown.tags] == ["div", "pre"]
    assert "".join(shown.texts) == timed.table()
