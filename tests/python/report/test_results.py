"""Results that are no report, all alike: one document for text, page and notebook; JSON that says what it is."""

from __future__ import annotations

import json
import re

import pytest
import torch
from given_latencies import MS, latency
from html_texts import Texts
from on_meta import counted, mlp
from scaled_reports import scaled_report

import roofprof
from roofprof import _report
from roofprof.budget import Budget
from roofprof.render.results import StoredResult


def predicted_sweep():
    with torch.device("meta"):
        model = mlp().eval()
    return roofprof.predict_sweep(model, lambda batch: torch.empty(batch, 64, device="meta"), "T4", (1, 64, 4096))


def outcome():
    return Budget.of({"total": {"macs": "<= 1", "params": "<= 1 G"}}).check(counted(mlp, 4, 64))


MAKERS = {
    "roofprof.latency": lambda: latency(range(MS, 101 * MS, MS), tokens=64),
    "roofprof.sweep": lambda: roofprof.LatencySweep(
        tuple(latency([(20 + b) * MS] * 10, samples=b) for b in (1, 8)), "-"
    ),
    "roofprof.scaling": lambda: roofprof.scaling([scaled_report(ranks, 0.01 + 0.09 / ranks) for ranks in (1, 2, 4)]),
    "roofprof.comparison": lambda: roofprof.compare(counted(mlp, 4, 64), counted(mlp, 8, 64)),
    "roofprof.ranking": lambda: counted(mlp, 4, 64).predict_all(["T4", "L4"]),
    "roofprof.what_if": lambda: counted(mlp, 4, 64).what_if("T4"),
    "roofprof.predicted_sweep": predicted_sweep,
    "roofprof.check": outcome,
}
MADE_AGAIN = {"roofprof.comparison", "roofprof.check"}  # from reports, in place of being read


@pytest.fixture(scope="module", params=MAKERS)
def result(request):
    made = MAKERS[request.param]()
    assert request.param == made.SCHEMA
    return made


def texts_of(document):
    """Every text of a document, by its blocks."""
    for block in document.blocks:
        if isinstance(block, _report.Paragraph):
            yield from (block.label, *(block.items or [block.text]))
        elif isinstance(block, _report.Table):
            yield from (column.heading for column in block.columns)
            yield from (cell.text for row in block.rows for cell in row)


def test_its_text_is_that_of_its_document(result):
    shown = " ".join(str(result).split())
    for text in texts_of(result.document()):
        assert " ".join(text.split()) in shown
    assert not str(result).endswith("\n")
    for width in (80, 120):
        assert max(map(len, result.table(width=width).splitlines())) <= width
    for block in result.document().blocks:
        for row in getattr(block, "rows", []):
            for cell, column in zip(row, block.columns, strict=True):
                if not column.left and cell.text.replace(".", "", 1).isdigit():  # a number alone
                    assert cell.value == pytest.approx(float(cell.text), rel=0.01)


def test_its_page_shows_all_of_it_and_runs_nothing(result, tmp_path):
    page = Texts(result.to_html(tmp_path / "page.html"))
    assert (tmp_path / "page.html").read_text() == result.to_html()
    policy = next(attrs["content"] for tag, attrs in page.tags if "http-equiv" in attrs)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert not any({"style", "onclick", "href"} & {*attrs} for _, attrs in page.tags)
    assert "script" not in [tag for tag, _ in page.tags]
    assert all(attrs["src"].startswith("data:") for _, attrs in page.tags if "src" in attrs)
    shown = "\n".join(page.texts)
    for text in texts_of(result.document()):
        assert text in shown or text == "roofprof"


def test_its_notebook_view_is_its_text(result):
    page = Texts(result._repr_html_())
    assert "".join(page.texts) == str(result)
    [(tag, attributes)] = page.tags
    assert tag == "pre" and "font-family: monospace" in attributes["style"]
    assert re.fullmatch(rf"<roofprof\.{type(result).__name__} of [^\n]{{1,120}}>", repr(result))


def test_its_json_says_what_it_is_first_and_is_read_again(result, tmp_path):
    written = result.to_json(tmp_path / "result.json")
    assert (tmp_path / "result.json").read_text() == written
    read = json.loads(written, parse_constant=pytest.fail)
    assert read == json.loads(json.dumps(result.to_dict()))
    assert [*read][:2] == ["schema", "schema_version"]
    assert (read["schema"], read["schema_version"]) == (result.SCHEMA, result.SCHEMA_VERSION)
    assert isinstance(result, StoredResult) == hasattr(result, "from_json") == (result.SCHEMA not in MADE_AGAIN)
    if isinstance(result, StoredResult):
        again = type(result).from_json(tmp_path / "result.json")
        assert str(again) == str(result)
        assert again.to_html() == result.to_html()


def test_other_files_are_refused_by_name_in_a_sentence(result, tmp_path):
    if result.SCHEMA in MADE_AGAIN:
        return
    good = result.to_dict()
    first = [key for key in good if key not in {"schema", "schema_version"}][-1]
    file = tmp_path / "result.json"
    for content, words in (
        ("", "this is not JSON"),
        ("[1]", f"this is no {result.SCHEMA}"),
        (json.dumps(good | {"schema": "roofprof.other"}), f"this is no {result.SCHEMA}"),
        (json.dumps(good | {"schema_version": 99}), "of version 99"),
        (json.dumps({key: value for key, value in good.items() if key != first}), f"lacks {first}"),
        (json.dumps(good | {first: 1.5}), f"{first} is no "),
    ):
        file.write_text(content)
        with pytest.raises(ValueError, match="^[^\n]*$") as raised:
            type(result).from_json(file)
        assert str(raised.value).startswith(f"{file}: ")
        assert words in str(raised.value)
    with pytest.raises(OSError, match="none"):
        type(result).from_json(tmp_path / "none.json")
