"""The page in Chromium: sort, filter, fold, columns, dots and rows, keyboard."""

from __future__ import annotations

import json
import math
import re

import chromium
import pytest

import roofprof

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def once(browser, report, tmp_path_factory):
    """The page; opening it takes longer than all that is done there."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    report.to_html(path)
    opened = chromium.Opened(browser, path)
    yield opened
    opened.close()


@pytest.fixture
def opened(once):
    """The page as it was when it was opened: with so few modules all are unfolded."""
    once.page.evaluate("""() => {
        for (const search of document.querySelectorAll('input[type=search]')) {
            search.value = '';
            search.dispatchEvent(new Event('input'));
        }
        document.querySelector('.flat input:checked')?.click();
        const press = (section, label) =>
            [...document.querySelectorAll(`${section} button`)].find(b => b.textContent === label)?.click();
        press('#modules', 'Unfold all');
        press('#modules', 'Usual columns');
        press('#ops', 'Usual columns');
        press('#modules thead', 'module');
        press('#roofline', 'Modules');
        press('#roofline', 'Reset zoom');
        for (const chooser of document.querySelectorAll('.chooser')) chooser.open = false;
        document.activeElement.blur();
        scrollTo(0, 0);
    }""")
    return once


# ---- figures


def test_every_figure_in_the_page_is_that_of_the_json(opened, report):
    opened.choose_every_column()
    rows = json.loads(report.to_json())["rows"]
    columns = opened.columns()
    fields = roofprof.fields.of("row")
    # All that any row knows.
    offered = {name for name, field in fields.items() if name not in ("path", "depth")}
    unknown = {name for name in offered if all(getattr(row, name) in (None, "", []) for row in report.rows)}
    assert set(columns) == offered - unknown
    assert opened.paths() == [row["path"] for row in rows]
    titles = opened.page.evaluate(
        "[...document.querySelectorAll('#modules tbody tr')].map(r => [...r.cells].slice(1).map(c => c.title))"
    )
    for row, of_json, texts, raws in zip(report.rows, rows, opened.rows(), titles, strict=True):
        for name, text, raw in zip(columns, texts[1:], raws, strict=True):
            field = fields[name]
            assert text == field.cell(row), (row.path, name)
            if not field.is_text and field.type != "bool":
                # Of its own figures a module without children has no copy.
                value = of_json.get(field.key, of_json.get(field.key.removeprefix("self_")))
                assert (float(raw.split()[0]) if raw else None) == value, (row.path, name)


def test_the_total_and_the_operators_are_those_of_the_report(opened, report):
    opened.choose_every_column()
    opened.choose_every_column("ops")
    fields, of_groups = roofprof.fields.of("row"), roofprof.fields.of("group")
    total = opened.page.evaluate("[...document.querySelector('#modules tfoot tr').cells].map(c => c.textContent)")
    assert total == ["total", *(fields[name].cell(report.total) for name in opened.columns())]
    by_op = report.by_operator()
    assert {row[0] for row in opened.rows("ops")} == set(by_op)
    for row in opened.rows("ops"):
        assert row[1:] == [of_groups[name].cell(by_op[row[0]]) for name in opened.columns("ops")]


def test_the_default_columns_are_those_of_the_table(opened, report):
    headings = opened.page.evaluate("[...document.querySelectorAll('#modules thead button')].map(b => b.textContent)")
    table = report.table(width=400).split("\n\n")[1].splitlines()[0]
    printed = re.split(r" {2,}", table.strip())
    first = ["time", "%roof", "wasted", "bound"]  # right after the name, which stays in sight
    assert headings == [printed[0], *first, *(name for name in printed[1:] if name not in first)]


def test_what_ran_and_its_total_stand_first(opened, report):
    first, second = report.table(width=1000).splitlines()[:2]  # wide: the longest of times fits in a line
    assert opened.page.inner_text("h1") in " ".join(first.split())
    assert opened.page.inner_text("#run p") in " ".join(second.split())
    assert opened.page.title() == "Net on cpu: roofprof"
    figures = dict(item.split("\n") for item in opened.page.locator("#total div").all_inner_texts())
    assert figures["FLOPs"] == roofprof.fields["flops"].cell(report.total)
    assert figures["wasted"] == roofprof.fields["wasted_time"].cell(report.total)


# ---- the tree


def test_sorting_keeps_siblings_under_their_parent(opened, report):
    heading = opened.page.locator("#modules thead button[data-column=flops]")
    order = {row.path: index for index, row in enumerate(report.rows)}
    for sort, sign in (("descending", -1), ("ascending", 1)):
        heading.click()
        assert opened.page.locator(f"#modules th[aria-sort={sort}]").count() == 1
        for parent in ("", "stages", "stages.1"):
            inside = [path for path in opened.paths() if path and path.rpartition(".")[0] == parent]
            assert inside == sorted(inside, key=lambda path: (sign * report.row(path).flops, order[path]))
    heading.click()
    assert opened.paths() == [row.path for row in report.rows]
    # A flat list sorts all of it by full path.
    opened.page.get_by_label("Flat").check()
    opened.page.locator("#modules thead button[data-column=macs]").click()
    assert [report.row(path).macs for path in opened.paths()] == sorted((r.macs for r in report.rows), reverse=True)
    assert "stages.0.conv" in [row[0] for row in opened.rows()]


def test_a_filter_shows_what_matches_below_its_parents(opened):
    search = opened.page.get_by_label("Filter modules by text")
    search.fill("CONV")  # in paths and types
    assert opened.paths() == ["", "stages", *(p for i in range(3) for p in (f"stages.{i}", f"stages.{i}.conv"))]
    assert "3 of 16 modules" in opened.page.inner_text("#modules .tools")
    search.fill("no such module")
    assert opened.paths() == []
    search.fill("")
    assert "stages.1" in opened.paths()


def test_folding_and_columns(opened):
    before, usual = opened.paths(), opened.columns()
    assert len(before) == 16
    opened.line("stages").locator(".twisty").click()
    assert opened.line("stages").get_attribute("aria-expanded") == "false"
    assert opened.paths() == [path for path in before if not path.startswith("stages.")]
    opened.page.get_by_role("button", name="Unfold all").click()
    assert opened.paths() == before
    opened.page.get_by_role("button", name="Fold all", exact=True).click()
    assert opened.paths() == ["", "stages", "pool", "head"]
    opened.page.locator("#modules .chooser summary").click()
    opened.page.locator("#modules").get_by_label("calls", exact=True).check()
    opened.page.locator("#modules").get_by_label("type", exact=True).uncheck()
    assert "calls" in opened.columns()
    assert "type" not in opened.columns()
    opened.page.locator("#modules").get_by_role("button", name="Usual columns").click()
    assert opened.columns() == usual


# ---- dots and rows


def test_hovering_tells_the_figures_of_a_dot(opened, report):
    paths = [row.path for row in report.rows]
    dot = next(dot for dot in opened.dots() if paths[dot["row"]] == "head")
    opened.page.mouse.move(dot["left"], dot["top"])
    opened.page.wait_for_selector("#tip:not([hidden])")
    tooltip = opened.page.inner_text("#tip").split("\n")
    assert tooltip[0] == "head"
    row = report.row("head")
    assert tooltip[tooltip.index("AI") + 1] == roofprof.fields["intensity"].cell(row)
    assert tooltip[tooltip.index("FLOP/s") + 1] == roofprof.fields["achieved_flops"].cell(row)
    opened.page.mouse.move(5, 5)
    opened.page.wait_for_selector("#tip", state="hidden")


def test_dots_stand_where_their_figures_say(opened, report):
    rows = report.rows
    dots = opened.dots()
    assert {rows[dot["row"]].path for dot in dots} >= {"head", "stages.0.conv", "stages.0"}
    for dot in dots:
        row = rows[dot["row"]]
        assert (dot["x"], dot["y"]) == (row.self_intensity, row.self_achieved_flops)
    by_time = sorted(dots, key=lambda dot: rows[dot["row"]].self_time)
    assert [dot["size"] for dot in by_time] == sorted(dot["size"] for dot in dots)
    largest = by_time[-1]
    for dot in dots:  # area by time, as far as it is large enough to see
        share = rows[dot["row"]].self_time / rows[largest["row"]].self_time
        assert dot["size"] == pytest.approx(max(6, largest["size"] * share**0.5))
    # Against the axis: a tick is as far from the next as the logarithms of their numbers say.
    ticks = opened.page.evaluate("""[...document.querySelectorAll('#plot .xtick')].map(tick => {
        const { left, right } = tick.getBoundingClientRect();
        return [Number(tick.textContent), (left + right) / 2]; })""")
    (first, start), (last, end) = ticks[0], ticks[-1]
    for dot in dots:
        share = math.log(dot["x"] / first) / math.log(last / first)
        assert dot["left"] == pytest.approx(start + share * (end - start), abs=1)


def test_the_worst_are_numbered_and_listed(opened, report):
    items = opened.page.locator("#worst li").all_inner_texts()
    worst = sorted(report.rows, key=lambda row: -(row.self_wasted_time or 0))[: len(items)]
    assert [item.split(" ")[0] for item in items] == [row.path or "Net" for row in worst]
    numbers = opened.page.locator("#plot .label").all_text_contents()
    numbers = [number for text in numbers if text[0].isdigit() for number in text.split(", ")]
    assert sorted(numbers) == [str(place) for place in range(1, len(items) + 1)]
    opened.page.locator("#worst button").first.click()
    assert opened.marked() == [worst[0].path]
    assert opened.rings() == 1


def test_a_click_on_a_dot_shows_its_row(opened, report):
    opened.page.get_by_role("button", name="Fold all", exact=True).click()
    paths = [row.path for row in report.rows]
    dot = next(dot for dot in opened.dots() if paths[dot["row"]] == "stages.1.conv")
    assert "stages.1.conv" not in opened.paths()
    opened.page.mouse.click(dot["left"], dot["top"])
    opened.page.wait_for_selector("#modules tr[aria-selected=true]")
    marked = opened.marked()
    # Dots may lie on each other: then the row is that of a dot at the same place.
    (found,) = [d for d in opened.dots() if paths[d["row"]] == marked[0]]
    assert abs(found["left"] - dot["left"]) < found["size"] and abs(found["top"] - dot["top"]) < found["size"]
    assert opened.rings() == 1
    assert marked[0] in opened.page.inner_text("#marked")


def test_a_row_marks_its_dot_or_those_below_it(opened):
    opened.line("head").click()
    assert opened.rings() == 1
    assert opened.marked() == ["head"]
    opened.line("stages").click()
    assert opened.rings() == len(opened.dots()) - 3  # all but those of head, pool and the model's own ops
    assert opened.marked() == ["stages"]
    assert "dots of what is in it" in opened.page.inner_text("#marked")
    opened.line("aten::conv2d", "ops").click()  # which has a dot among those of operators
    assert opened.page.locator("#roofline-by button[aria-pressed=true]").inner_text() == "Operators"
    assert opened.rings() == 1
    assert "aten::conv2d" in opened.page.inner_text("#marked")


def test_the_legend_filters_by_kind_of_op(opened):
    kinds = {dot["kind"] for dot in opened.dots()}
    assert kinds >= {"convolution", "normalization", "matmul"}
    control = opened.page.locator("#kinds button", has_text="convolution")
    control.click()
    assert control.get_attribute("aria-pressed") == "false"
    assert {dot["kind"] for dot in opened.dots()} == kinds - {"convolution"}
    control.click()
    assert {dot["kind"] for dot in opened.dots()} == kinds


def test_zooming(opened):
    def span() -> float:
        """Of the axis, in parts of the distance between two ridges."""
        places = opened.page.evaluate("[...document.querySelectorAll('.ridge')].map(at => at.cx.baseVal.value)")
        return 1 / (max(places) - min(places))

    whole_span = span()
    opened.page.get_by_role("button", name="Zoom in").click()
    opened.page.locator("#kinds button").first.click()  # does not zoom out again
    assert span() == pytest.approx(0.7 * whole_span)
    opened.page.get_by_role("button", name="Reset zoom").click()
    assert span() == pytest.approx(whole_span)
    frame = opened.page.locator("#plot").bounding_box()
    opened.page.mouse.move(frame["x"] + 0.3 * frame["width"], frame["y"] + 0.3 * frame["height"])
    opened.page.mouse.down()
    opened.page.mouse.move(frame["x"] + 0.8 * frame["width"], frame["y"] + 0.8 * frame["height"])
    opened.page.mouse.up()
    assert span() == pytest.approx((frame["width"] * 0.5) / (frame["width"] - 80) * whole_span)  # of the box drawn
    opened.page.mouse.dblclick(frame["x"] + 70, frame["y"] + 20)
    assert span() == pytest.approx(whole_span)


# ---- by keyboard


def test_by_keyboard_alone(opened):
    press = opened.page.keyboard.press
    opened.page.get_by_label("Filter modules by text").focus()

    def focused() -> str:
        return opened.page.evaluate("document.activeElement.cells?.[0].title ?? document.activeElement.textContent")

    for _ in range(30):
        press("Tab")
        if focused() == "FLOPs":
            break
    press("Enter")
    assert opened.page.locator("#modules th[aria-sort=descending]").inner_text().startswith("FLOPs")
    while opened.page.evaluate("document.activeElement.tagName") != "TR":
        press("Tab")
    assert opened.page.locator("#modules tbody tr[tabindex='0']").count() == 1  # on the way of Tab
    for key, where in (("Home", ""), ("ArrowDown", "stages"), ("End", opened.paths()[-1]), ("Home", "")):
        press(key)
        assert focused() == where
    assert opened.page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    press("ArrowDown")
    for key, expanded in (("ArrowLeft", "false"), ("ArrowRight", "true")):
        press(key)
        assert opened.line("stages").get_attribute("aria-expanded") == expanded
    press("ArrowRight")
    inside = focused()
    assert inside.startswith("stages.")
    press("Enter")
    assert opened.marked() == [inside]
    press("ArrowLeft")
    press("ArrowLeft")
    assert focused() == "stages"
