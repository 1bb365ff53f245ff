"""Kinds of parallelism between real ranks (gloo): work and communication against closed forms."""

from pathlib import Path

import pytest
from real_ranks import torchrun

import roofprof

PROGRAM = Path(__file__).with_name("parallel_programs.py")
# As the program has them.
WIDTH, HIDDEN, ROWS, STEPS = 16, 32, 8, 2
FLOAT, BFLOAT = 4, 2
# Of a row in the MLP: both products forward, both weights' gradients, the gradient of what is between the layers.
MLP = 5 * WIDTH * HIDDEN
FIRST, SECOND = (WIDTH + 1) * HIDDEN, (HIDDEN + 1) * WIDTH  # parameters of its layers


@pytest.fixture(
    scope="module",
    params=[2, pytest.param(4, marks=pytest.mark.slow), pytest.param(8, marks=pytest.mark.slow)],
    ids=lambda ranks: f"{ranks} ranks",
)
def ranks(request):
    return request.param


@pytest.fixture(scope="module")
def reports(ranks, tmp_path_factory):
    folder = tmp_path_factory.mktemp(f"ranks{ranks}")
    torchrun(PROGRAM, folder, ranks=ranks, timeout=1800)
    return {file.stem: roofprof.Report.from_json(file) for file in folder.glob("*.json")}


def moved(report, name, phase=None):
    """Calls and bytes on all ranks of a collective."""
    rows = [row for row in report.collectives if row.name == name and phase in {None, row.phase}]
    return sum(row.calls for row in rows), sum(row.bytes for row in rows)


def kinds(report):
    return {row.name for row in report.collectives}


def test_every_rank_is_there_and_nothing_is_lost(reports, ranks):
    assert set(reports) - {"fsdp_tp"} == {"ddp", "ddp_hook", "fsdp", "fsdp_bf16", "tp", "context", "gpipe"}
    for name, report in reports.items():
        assert [rank.rank for rank in report.ranks] == list(range(ranks)), name
        assert not report.partial
        assert not report.coverage.uncosted, name
        assert sum(rank.macs for rank in report.ranks) == report.total.macs, name
        for row in report.collectives:
            assert row.timed_calls == row.calls, (name, row)
            if row.name not in {"send", "recv"}:
                assert row.ranks == (2 if name == "fsdp_tp" else ranks)
                assert row.wait + row.transfer == pytest.approx(row.time, abs=1e-12), (name, row)


def test_exposed_communication_is_a_part_of_the_time(reports):
    """Of each row's own; the ranks' own sums are made of their collectives alone, and know no modules."""
    for name, report in reports.items():
        if not report.collectives:
            continue
        for row in report.rows:
            assert 0 <= (row.exposed_communication or 0) <= row.time, (name, row.path)
        of_ranks = sum(rank.exposed for rank in report.ranks)
        # But for what began before the thread was observed: on a busy machine, a tenth.
        assert report.total.exposed_communication == pytest.approx(of_ranks, rel=0.2, abs=1e-4), name
        assert report.total.exposed_communication > 0, name
        exposed = [row for row, _ in report._compiled.most_wasting() if row.op == "(exposed communication)"]
        if report.total.wasted_time is not None:  # every dtype has a roof
            assert sum(row.wasted_time for row in exposed) <= report.total.wasted_time
        assert not any(row.op.startswith(("c10d::", "_c10d")) for row, _ in report._compiled.most_wasting()), name
        assert not [note for note in report.coverage.notes if "all" in note.text and "above its roof" in note.text]


def test_data_parallel(reports, ranks):
    """Each rank has a batch of its own, and all gradients are summed."""
    report = reports["ddp"]
    assert report.total.macs == ranks * STEPS * ROWS * MLP
    calls, size = moved(report, "all_reduce")
    assert size == ranks * STEPS * (FIRST + SECOND) * FLOAT
    assert calls == ranks * STEPS * 2  # buckets
    assert {row.module for row in report.collectives if row.name == "all_reduce"} == {"module.0", "module.2"}
    wire = sum(row.wire_bytes for row in report.collectives if row.name == "all_reduce")
    assert wire == pytest.approx(size * 2 * (ranks - 1) / ranks, abs=2)


def test_the_work_of_a_communication_hook_is_counted_on_every_rank(reports, ranks):
    """One bucket a step, and one product for it."""
    report = reports["ddp_hook"]
    assert [rank.macs for rank in report.ranks] == ranks * [STEPS * ROWS * (MLP + WIDTH * HIDDEN)]


@pytest.mark.parametrize(("name", "element"), [("fsdp", FLOAT), ("fsdp_bf16", BFLOAT)])
def test_fully_sharded(reports, ranks, name, element):
    """Parameters are gathered for the forward, and again for the backward; gradients are scattered."""
    report = reports[name]
    assert report.total.macs == ranks * STEPS * ROWS * MLP
    assert kinds(report) == {"all_gather", "reduce_scatter"}
    assert moved(report, "all_gather") == (ranks * STEPS * 4, ranks * STEPS * 2 * (FIRST + SECOND) * element)
    assert moved(report, "all_gather", "forward")[1] == ranks * STEPS * (FIRST + SECOND) * element
    # Gradients are reduced in 32 bits.
    assert moved(report, "reduce_scatter") == (ranks * STEPS * 2, ranks * STEPS * (FIRST + SECOND) * FLOAT)
    sharded = {row.module for row in report.collectives if row.phase == "forward" or row.name == "reduce_scatter"}
    assert sharded == {"0", "2"}


def test_tensor_parallel(reports, ranks):
    """All ranks together do what one process would; the second layer's partial sums are added."""
    report = reports["tp"]
    assert report.total.macs == STEPS * ROWS * MLP
    assert kinds(report) == {"all_reduce"}
    assert moved(report, "all_reduce", "forward") == (ranks * STEPS, ranks * STEPS * ROWS * WIDTH * FLOAT)


def test_context_parallel(reports, ranks):
    """Each rank attends with its own positions to all: keys and values are gathered."""
    report = reports["context"]
    length, heads = ranks * ROWS, 2
    assert report.total.macs == STEPS * 2 * heads * length * length * WIDTH
    assert kinds(report) == {"all_gather"}
    assert moved(report, "all_gather") == (ranks * STEPS * 2, ranks * STEPS * 2 * heads * length * WIDTH * FLOAT)


def test_two_dimensions(reports, ranks):
    """Two halves of each layer, each sharded over two ranks: groups of two ranks, kept apart."""
    if ranks != 4:
        pytest.skip("the mesh has 2 x 2 ranks")
    report = reports["fsdp_tp"]
    assert report.total.macs == 2 * STEPS * ROWS * MLP  # two batches
    # The second layer's bias is on both of its halves.
    half = FIRST // 2 + HIDDEN * WIDTH // 2 + WIDTH
    # Each layer is the root of its own shards, which keeps its parameters for the backward.
    assert moved(report, "all_gather") == (4 * STEPS * 2, 4 * STEPS * half * FLOAT)
    assert moved(report, "reduce_scatter") == (4 * STEPS * 2, 4 * STEPS * half * FLOAT)
    assert moved(report, "all_reduce") == (4 * STEPS, 4 * STEPS * ROWS * WIDTH * FLOAT)
    assert len({row.group for row in report.collectives}) == 4


def test_pipeline(reports, ranks):
    """Each rank has one layer; activations go on, their gradients come back, a micro-batch at a time."""
    report = reports["gpipe"]
    rows = STEPS * ranks * ROWS
    # Forward, weights' gradient, and the input's but on the first rank.
    assert report.total.macs == rows * WIDTH * WIDTH * (3 * ranks - 1)
    assert kinds(report) == {"send", "recv"}
    messages = 2 * (ranks - 1) * ranks * STEPS
    for kind in ("send", "recv"):
        assert moved(report, kind) == (messages, messages * ROWS * WIDTH * FLOAT)
    # Layers that one rank alone has are rows by their names.
    for layer in range(ranks):
        row = report.row(f"layers.{layer}")
        assert row.macs == rows * WIDTH * WIDTH * (2 if layer == 0 else 3)
        assert row.slowest_rank == layer
