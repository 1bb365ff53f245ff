"""Pages of every kind of report: counts, one module, partial ones, of GPUs, of C++, of 10,000 modules."""

from __future__ import annotations

import given_roofs
import pytest
import scaled_reports
import simulated_gpu
import torch
from planted_waste import PLANTED
from torch import nn

import roofprof

pytestmark = pytest.mark.integration


def test_a_count_has_no_roofline_and_says_why(show, lenet, image):
    counted = roofprof.count(lenet, image)
    opened = show(counted)
    assert "no time was measured" in opened.page.inner_text("#roofline")
    assert opened.page.locator("#plot").count() == 0
    assert {"macs", "flops", "bytes"} < set(opened.columns())
    assert not {"time", "wasted_time", "percent_of_roof"} & set(opened.columns())
    assert opened.page.locator("#hotspots").count() == 0
    opened.line("").click()  # nothing to mark in a plot
    assert opened.marked() == [""]


def test_a_model_that_raised(show):
    prof = given_roofs.profiler(nn.Linear(8, 8))
    with pytest.raises(KeyError), prof:
        prof.model(torch.rand(4, 8))
        raise KeyError
    assert "PARTIAL" in show(prof.report()).page.inner_text("header .banner")


def test_one_module_without_roofs(show):
    opened = show(given_roofs.profiler(nn.Linear(8, 8), ceilings=given_roofs.roofs({}, {})).run(torch.rand(4, 8)))
    assert opened.paths() == [""]
    assert opened.rows()[0][0] == "Linear"
    assert [dot["row"] for dot in opened.dots()] == [0]
    assert opened.page.get_by_label("Flat").count() == 0
    assert "none given" in opened.page.inner_text("#roofs")


def test_what_was_not_counted_is_reported_before_the_tables(show):
    @torch.library.custom_op("page::unknown", mutates_args=())
    def unknown(x: torch.Tensor) -> torch.Tensor:
        return torch.from_numpy(x.numpy() + 1)

    class Model(nn.Linear):
        def forward(self, x):
            return unknown(super().forward(x))

    report = given_roofs.profiler(Model(4, 4).requires_grad_(requires_grad=False)).run(torch.rand(2, 4))
    assert report.coverage.uncosted
    opened = show(report)
    page_text = opened.page.inner_text("#coverage")
    assert "page::unknown" in page_text
    for note in report.coverage.notes:
        assert note.text in page_text and note.code in page_text
    flops = roofprof.fields["flops"].cell(report.total)
    assert flops.startswith(">=") and flops in opened.page.inner_text("#total")
    order = opened.page.evaluate("[...document.querySelectorAll('section:not([hidden])')].map(part => part.id)")
    order = [part for part in order if part != "findings"]  # on a busy machine times may give none
    assert order[0] == "coverage" and order[-3:] == ["roofs", "environment", "conventions"]


def test_of_a_gpu_with_counters(show):
    of_gpu = roofprof.Report.from_dict(simulated_gpu.simulated("whole_report"))  # simulated
    opened = show(of_gpu)
    assert {"dram_bytes", "dram_intensity", "utilization"} <= set(opened.columns())
    kernels = of_gpu.kernels
    assert [row[0] for row in opened.rows("kernels")] == [kernel.name for kernel in kernels]
    opened.choose_every_column("kernels")
    fields = roofprof.fields.of("kernel")
    for row, kernel in zip(opened.rows("kernels"), kernels, strict=True):
        assert row[1:] == [fields[name].cell(kernel) for name in opened.columns("kernels")]
    paths = [row.path for row in of_gpu.rows]
    measured = {paths[dot["row"]]: dot["x"] for dot in opened.dots()}
    assert measured["0"] == of_gpu.row("0").self_dram_intensity


class Block(nn.Module):
    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.up, self.act = nn.Linear(8, width), nn.ReLU()
        self.down, self.norm = nn.Linear(width, 8), nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.norm(self.down(self.act(self.up(x))))


def test_ten_thousand_modules(show, one_thread):
    # No two blocks of a stage, and no two stages, are alike.
    model = nn.Sequential(*[nn.Sequential(*[Block(8 + i + 20 * j * (i == 0)) for i in range(20)]) for j in range(100)])
    report = given_roofs.profiler(model, warmup=0, repeat=1).run(torch.rand(2, 8))
    assert len(report.rows) > 10_000
    opened = show(report)
    assert opened.path.stat().st_size < 10_000_000
    assert len(opened.dots()) == 1000
    assert "Dots are the 1,000 that take most time" in opened.page.inner_text("#roofline")
    # Rows that are not in the document are counted, and can be had.
    opened.page.get_by_role("button", name="Unfold all").click()
    assert len(opened.rows()) == 300
    assert f"{len(report.rows) - 300:,} more rows below" in opened.page.inner_text("#modules .more")
    opened.page.get_by_role("button", name="Show 300 more").click()
    assert len(opened.rows()) == 600
    opened.page.get_by_label("Filter modules by text").fill("99.19.norm")
    assert opened.paths() == ["", "99", "99.19", "99.19.norm"]
    opened.page.get_by_label("Filter modules by text").fill("")
    dot = min(opened.dots(), key=lambda dot: dot["x"])
    opened.page.mouse.click(dot["left"], dot["top"])
    opened.page.wait_for_selector("#modules tr[aria-selected=true]")


def test_modules_that_are_alike_are_a_few_lines(show):
    model = nn.Sequential(*[nn.Sequential(*[Block() for _ in range(20)]) for _ in range(100)])
    report = given_roofs.profiler(model, warmup=0, repeat=1).run(torch.rand(2, 8))
    opened = show(report)
    assert opened.paths() == ["", "0-99"]
    assert "10,101 modules, 10,100 folded away" in opened.page.inner_text("#modules .tools")
    assert {dot["kind"] for dot in opened.dots()} == {"matmul", "activation", "normalization", "elementwise"}


def cells(opened, section):
    """Of the table in it, with its headings."""
    rows = opened.page.locator(f"#{section} tr").all()
    return [[cell.inner_text() for cell in row.locator("th, td").all()] for row in rows]


def test_phases_and_regions(show, lenet, image):
    profiler = given_roofs.profiler(lenet)
    with profiler:
        with roofprof.scope("forward pass"):
            loss = lenet(image).sum()
        loss.backward()
    report = profiler.report()
    opened = show(report)
    headings, *rows = cells(opened, "phases")
    macs = headings.index("MACs")
    by_phase = {row[0]: row[macs] for row in rows if row[0] not in ("all ops", "(outside ops)", "total")}
    field = roofprof.fields.of("group")["macs"]
    assert by_phase == {group.phase: field.cell(group) for group in report.group("phase")}
    assert len(by_phase) > 1
    assert [row[0] for row in cells(opened, "regions")[1:]] == [*(row.path for row in report.regions), "total"]
    assert opened.page.locator("#ranks, #collectives").count() == 0
    assert show(roofprof.count(lenet, image)).page.locator("#phases").count() == 0


def test_ranks(show):
    report = scaled_reports.scaled_report(3, 0.1, compute=[0.05, 0.06, 0.07])
    opened = show(report)
    headings, *rows = cells(opened, "ranks")
    assert [row[0] for row in rows] == ["0", "1", "2"]
    assert [row[headings.index("compute")] for row in rows] == ["500ms", "600ms", "700ms"]  # of ten steps
    assert "waiting" not in headings  # nobody knows it
    assert "inside ops that are no collectives" in opened.page.inner_text("#ranks")


def test_it_opens_with_the_findings_which_lead_to_row_and_dot(show):
    planted = PLANTED["dead branch"]
    report = given_roofs.profiler(planted.model().eval(), repeat=3).run(planted.example())
    opened = show(report)
    assert opened.page.locator("main > section:visible").first.get_attribute("id") == "findings"
    items = opened.page.locator("#findings li:has(> p)")
    assert items.count() == len(report.findings)
    for place, finding in enumerate(report.findings):
        page_text = items.nth(place).inner_text()
        assert finding.text in page_text
        assert finding.basis in page_text
    items.first.locator("button.link").click()
    assert opened.marked() == ["aux"]
    assert "of what is in it" in opened.page.inner_text("#marked")
