"""What a notebook shows of a report."""

import base64
import re
import sys
from html.parser import HTMLParser
from xml.etree import ElementTree as ET

import pytest
import torch
from reports_by_hand import Did, as_dict, report_of
from torch import nn

import roofprof


class Parsed(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.text += data


@pytest.mark.integration
def test_picture_and_table():
    report = report_of({"conv": Did(1e9, 1e8, 0.01)})
    shown = Parsed(report._repr_html_())
    assert [tag for tag, _ in shown.tags] == ["div", "img", "pre"]
    assert shown.text == report.table()
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
    assert "<script>" in Parsed(text).text or "<script" in report.table()
    assert not re.search(r"<script", text, re.IGNORECASE)


def test_a_count_and_a_place_without_matplotlib_show_the_table(monkeypatch):
    counted = roofprof.count(nn.Linear(2, 2), torch.rand(1, 2))
    assert [tag for tag, _ in Parsed(counted._repr_html_()).tags] == ["div", "pre"]
    timed = report_of({"conv": Did(1e9, 1e8, 0.01)})
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.style", None)
    shown = Parsed(timed._repr_html_())
    assert [tag for tag, _ in shown.tags] == ["div", "pre"]
    assert shown.text == timed.table()


def results():
    before = report_of({"conv": Did(1e9, 1e8, 0.01)})
    linear, x = nn.Linear(2, 2), torch.rand(1, 2)
    counted = roofprof.count(linear, x)
    timer = roofprof.RooflineProfiler(linear)
    return {
        "Comparison": roofprof.compare(before, before),
        "Ranking": counted.predict_all(),
        "WhatIf": counted.what_if("RTX 4090"),
        "Latency": timer.time(x, warmup=0, repeat=2),
    }


def test_every_result_that_prints_as_a_table_has_a_short_repr_and_its_text_in_equally_wide_characters():
    for name, result in results().items():
        assert re.fullmatch(rf"<roofprof\.{name} of [^\n]{{1,120}}>", repr(result))
        shown = Parsed(result._repr_html_())
        [(tag, attributes)] = shown.tags
        assert tag == "pre"
        assert "font-family: monospace" in attributes["style"]
        assert shown.text == str(result)
