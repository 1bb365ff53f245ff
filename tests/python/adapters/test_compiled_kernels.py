"""Kernels of torch.compile on a CPU: bytes and FLOPs by closed forms, modules, sums, and what is left as it was."""

import contextlib
import functools
import importlib
import json

import pytest
import torch
import torch._dynamo
from attributed import Model
from fused_checks import UNREACHED, assert_bounded, assert_kernels_add_up
from given_roofs import profiler
from torch import nn

import roofprof
from roofprof.models import inductor

pytestmark = pytest.mark.usefixtures("nothing_compiled")
needs_kernels = pytest.mark.skipif(inductor.why_not() != "", reason=inductor.why_not())


@functools.cache
def compiles_in_place():
    """Whether torch compiles a module of torch.nn in place: 2.11 calls it as it is, without a word."""
    graphs = []
    model = nn.Sequential(nn.Linear(2, 2))
    model.compile(backend=lambda graph, _: graphs.append(graph) or graph)
    model(torch.rand(1, 2))
    return bool(graphs)


@pytest.fixture
def in_place():
    if not compiles_in_place():
        pytest.skip(f"torch {torch.__version__} compiles no module of torch.nn in place")


def kernels_of(model, *args, step=None):
    given = profiler(model, compiled_kernels=True, ceilings=UNREACHED)
    if step is not None:
        return given.run_step(step, *args)
    with torch.no_grad():
        return given.run(*args)


def check_sums(report, least_known=0.95, eager=None):
    """Check what holds for all kernels; ``eager``: the work of the same call of the model as it is."""
    assert_bounded(report)
    assert_kernels_add_up(report, least_known)
    if eager is not None:
        assert report.total.macs == eager.total.macs > 0


def compiled(model, *args, change=torch.compile):
    """The checked report of the forward once ``change`` compiled the model, or parts of it."""
    with torch.no_grad():
        eager = roofprof.count(model, *args)
    called = change(model)
    report = kernels_of(model if called is None else called, *args)
    check_sums(report, eager=eager)
    return report


def modules_of(report):
    return {kernel.module for kernel in report.kernels}


def note_of(report, code):
    (note,) = [note for note in report.coverage.notes if note.code == code]
    return note.text


def small():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU())


def rows(width=64):
    return torch.rand(32, width)


@pytest.mark.parametrize(("module", "path"), inductor.interfaces(), ids=lambda text: text)
def test_torch_has_this_private_interface(module, path):
    value = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)


# ---- bytes and FLOPs


@needs_kernels
@pytest.mark.parametrize("elements", [1000, 4096])
def test_an_elementwise_chain_reads_and_writes_once(elements):
    model = Model(lambda self, x: (x * 2 + 1).relu())
    (kernel,) = kernels_of(torch.compile(model), torch.rand(elements)).kernels
    assert (kernel.bytes, kernel.unfused_bytes) == (2 * 4 * elements, 3 * 2 * 4 * elements)
    assert (kernel.flops, kernel.intensity, kernel.instances) == (3 * elements, 3 / 8, 1)
    assert set(kernel.fused.split(", ")) == {"aten::relu", "aten::add", "aten::mul"}


@needs_kernels
def test_a_cast_moves_bytes_and_computes_nothing_and_a_norm_reads_its_weights():
    model = Model(lambda self, x: (x.float() * 2).bfloat16())
    (kernel,) = kernels_of(torch.compile(model), torch.rand(1000).bfloat16()).kernels
    assert (kernel.bytes, kernel.flops) == (2 * 2 * 1000, 1000)
    (kernel,) = kernels_of(torch.compile(nn.Sequential(nn.LayerNorm(64))), rows()).kernels
    assert kernel.bytes == 4 * (2 * 32 * 64 + 2 * 64)
    assert kernel.modules == kernel.module == "0"


@needs_kernels
@pytest.mark.parametrize("dynamic", [None, True])
def test_an_epilogue_reads_what_the_linear_wrote(dynamic):
    """Sizes may be symbolic."""
    report = compiled(
        nn.Sequential(nn.Linear(64, 64), nn.GELU()), rows(), change=lambda model: torch.compile(model, dynamic=dynamic)
    )
    by_module = {kernel.module: kernel for kernel in report.kernels}
    linear, gelu = by_module["0"], by_module["1"]
    assert linear.name == "aten::addmm"
    assert linear.flops == report.row("0").flops
    assert linear.bytes == report.row("0").bytes == 4 * (2 * 32 * 64 + 64 * 64 + 64)
    assert gelu.bytes == 2 * 4 * 32 * 64
    assert not gelu.shared


@needs_kernels
def test_a_kernel_of_several_modules_counts_for_the_one_around_them():
    model = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Sigmoid()), nn.Sequential(nn.Linear(64, 64)))
    report = kernels_of(torch.compile(model), rows())
    (shared,) = [kernel for kernel in report.kernels if kernel.shared]
    assert shared.module == "0"
    assert sorted(part.split()[0] for part in shared.modules.split(", ")) == ["0.0", "0.1"]
    parts = [report.row(name).shared_time for name in ("0.0", "0.1")]
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(report.row("0").time, abs=2e-9)  # its only kernel
    assert report.row("0").shared_time == report.row("").shared_time == report.row("1").shared_time == 0
    assert "shared" in report.table()
    assert report.row("0.0").time is None
    assert min(report.row("0").time, report.row("1.0").time) > 0


# ---- training

_PRODUCTS = ("aten::mm", "aten::addmm")


@needs_kernels
@pytest.mark.parametrize("whole", [False, True], ids=["parts", "step"])
def test_a_step_with_an_optimizer(whole):
    """Of a step that is compiled as a whole, the code calls the backward's."""
    model = nn.Sequential(nn.Linear(256, 256), nn.LayerNorm(256), nn.GELU(), nn.Linear(256, 256))
    optimizer = torch.optim.AdamW(model.parameters())
    called, update = (model, optimizer.step) if whole else (torch.compile(model), torch.compile(optimizer.step))

    def step(x):
        optimizer.zero_grad()
        called(x).square().mean().backward()
        update()

    report = kernels_of(model, torch.rand(64, 256), step=torch.compile(step) if whole else step)
    check_sums(report)
    # Three products of each layer, but for the gradient of the input.
    assert report.total.macs == 5 * 64 * 256 * 256
    (of_optimizer,) = [kernel for kernel in report.kernels if kernel.module == "(optimizer)"]
    assert of_optimizer.phase == "optimizer"
    by_phase = report.group("op", "phase")
    assert {row.phase for row in by_phase if row.op == "(outside kernels)"} == {"forward", "backward", "optimizer"}
    backward = {kernel.module for kernel in report.kernels if kernel.phase == "backward" and kernel.name == "aten::mm"}
    assert backward == {"0", "3"}


@needs_kernels
def test_compiled_autograd_has_the_modules_of_the_backward_that_it_copies():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    called = torch.compile(model)
    with torch._dynamo.config.patch(compiled_autograd=True):
        report = kernels_of(model, rows(), step=torch.compile(lambda x: called(x).sum().backward()))
    # Of weights, and of the second's input. Inductor 2.11 does not say whose product a kernel adds to an old gradient.
    of_2_11 = torch.__version__.startswith("2.11")
    check_sums(report, 0 if of_2_11 else 0.95)
    assert report.total.macs == 5 * 32 * 64 * 64
    products = [kernel for kernel in report.kernels if kernel.phase == "backward" and kernel.name in _PRODUCTS]
    known = ["(outside)", "(outside)", "2"] if of_2_11 else ["0", "2", "2"]
    assert sorted(kernel.module for kernel in products) == known


class Block(nn.Module):
    """A linear with its activation."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x).relu()


# ---- parts of a model


def compile_each(*places):
    def change(model):
        for place in places:
            model.get_submodule(place).compile()

    return change


@needs_kernels
def test_blocks_that_share_one_graph_get_their_own_time():
    report = compiled(nn.Sequential(Block(), Block(), Block()), rows(), change=compile_each("0", "1", "2"))
    for i in range(3):
        assert report.row(f"{i}.linear").time > 0
        assert report.row(f"{i}.linear").macs == 32 * 64 * 64
    assert modules_of(report) >= {f"{i}.linear" for i in range(3)}


@needs_kernels
@pytest.mark.usefixtures("in_place")
def test_compiled_parts_of_an_eager_model():
    model = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 32), nn.Sequential(nn.Linear(32, 64)))
    report = compiled(model, rows(), change=compile_each("0", "2"))
    assert modules_of(report) == {"0", "2.0"}
    assert report.row("1").percent_of_roof > 0
    by_place = {row.module: row for row in report.group("module", "op") if row.op == "(outside kernels)"}
    assert set(by_place) == {"0", "2"}


class Eager(Block):
    """One that torch.compile leaves alone."""

    @torch.compiler.disable
    def forward(self, x):
        return self.linear(x)


@needs_kernels
def test_an_eager_part_of_a_compiled_model():
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.eager, self.last = nn.Linear(64, 64), Eager(), nn.Linear(64, 64)

        def forward(self, x):
            return self.last(self.eager(self.first(x)))

    report = compiled(Around(), rows())
    assert modules_of(report) == {"first", "last"}
    assert report.row("eager.linear").percent_of_roof > 0
    by_module = {row.module: row for row in report.group("module", "op") if row.op == "aten::linear"}
    assert by_module["eager.linear"].time > 0


@needs_kernels
@pytest.mark.usefixtures("in_place")
def test_a_graph_that_ran_with_several_sizes_has_times_alone():
    model = Model(lambda self, x: self.part(x).sum() + self.part(x[:5]).sum(), part=small())
    report = compiled(model, rows(), change=lambda model: model.part.compile(dynamic=True))
    assert {(kernel.instances, kernel.bytes, kernel.flops) for kernel in report.kernels} == {(2, None, None)}


# ---- operators of their own kind


@needs_kernels
def test_flex_attention_has_a_time():
    from torch.nn.attention.flex_attention import flex_attention

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.qkv = nn.Linear(64, 3 * 64)

        def forward(self, x):
            q, k, v = self.qkv(x).view(2, 64, 3, 2, 32).permute(2, 0, 3, 1, 4)
            return flex_attention(q, k, v)

    with torch.no_grad():
        called = torch.compile(Attention())
        try:
            called(torch.rand(2, 64, 64))
        except torch._inductor.exc.InductorError as error:  # 2.11: "query, key, value are the same buffer"
            pytest.skip(f"torch {torch.__version__} does not compile it: {str(error).splitlines()[0]}")
        report = kernels_of(called, torch.rand(2, 64, 64))
        check_sums(report, eager=roofprof.count(Attention(), torch.rand(2, 64, 64)))
    assert report.row("qkv").macs == 2 * 64 * 64 * 3 * 64
    flex = [kernel for kernel in report.kernels if "flex_attention" in kernel.fused]
    assert {(kernel.module, kernel.bytes, kernel.flops) for kernel in flex} == {("", None, None)}
    assert report.row("qkv").time > 0


@needs_kernels
def test_an_operator_without_a_cost_has_a_lower_limit():
    """As where it runs by itself, a note names it."""
    with contextlib.ExitStack() as library:

        @torch.library.custom_op("compiled_kernels::doubled", mutates_args=())
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy() * 2)

        library.callback(doubled._lib._destroy)
        doubled.register_fake(torch.empty_like)
        report = kernels_of(torch.compile(Model(lambda self, x: doubled(x.relu()).sigmoid())), torch.rand(1000))
    check_sums(report)
    own = {kernel.name: kernel for kernel in report.kernels}["compiled_kernels::doubled"]
    assert (own.bytes, own.incomplete, own.unfused_bytes, own.flops) == (0, True, None, None)
    assert (own.percent_of_roof, str(own.bound)) == (None, "unknown")
    (sigmoid,) = [kernel for kernel in report.kernels if kernel.fused == "aten::sigmoid"]
    assert (sigmoid.bytes, sigmoid.incomplete) == (2 * 4 * 1000, False)
    assert report.coverage.uncosted == {"compiled_kernels::doubled": 1}
    table = report.table(by="kernel", width=300)
    assert ">=0B" in table
    assert ">=: a lower limit, an op without a known cost is in it" in table


@needs_kernels
def test_an_operator_that_inductor_does_not_tell_of_is_among_the_kernels():
    chosen = torch.rand(1000) > 0.5
    model = Model(lambda self, x, chosen, value: (x * 2).index_put((chosen,), value) + 1)
    report = kernels_of(torch.compile(model), torch.rand(1000), chosen, torch.rand(int(chosen.sum())))
    check_sums(report)
    assert "aten::index_put_" in {kernel.name for kernel in report.kernels}


# ---- graph breaks


@torch._dynamo.disable
def sorted_by_hand(x):
    return torch.sort(x)[0]


class BetweenGraphs(nn.Module):
    def forward(self, x):
        return sorted_by_hand(x.relu()).tanh()


class WholeForward(nn.Module):
    @torch._dynamo.disable
    def forward(self, x):
        return torch.relu(x)


class InMethod(nn.Module):
    hidden = WholeForward.forward

    def forward(self, x):
        return self.hidden(x)


class Broken(nn.Module):
    def forward(self, x):
        x = x.relu()
        torch._dynamo.graph_break()
        return x.tanh()


@needs_kernels
@pytest.mark.parametrize(
    ("kind", "place", "ends", "kernels"),
    [
        (Broken, "test_compiled_kernels.py:", "", 2),
        (BetweenGraphs, "test_compiled_kernels.py:", "sorted_by_hand", 2),
        (InMethod, "test_compiled_kernels.py:", "WholeForward.forward", 0),
        (WholeForward, "the call of WholeForward.forward: ", "WholeForward.forward", 0),
    ],
)
def test_graph_breaks_are_counted_with_place_and_reason(kind, place, ends, kernels):
    report = kernels_of(torch.compile(kind()), rows())
    notes = {note.code: note.text for note in report.coverage.notes}
    assert notes["graph-breaks"].startswith(f"1 graph break: {place}")
    assert notes["graph-breaks"].endswith(ends)
    assert ("torch.compiler.disable()" in notes["graph-breaks"]) == (kind is not Broken)
    assert len(report.kernels) == kernels
    assert ("no-kernels" in notes) == (kernels == 0)
    if kernels == 0:
        assert "the note graph-breaks says where" in notes["no-kernels"]
        assert "could compile" in notes["compiled-meanwhile"]


# ---- where there are none, it is said why


@needs_kernels
def test_a_block_has_the_time_of_a_compiled_step_and_says_how_to_get_kernels():
    model = small()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @torch.compile
    def step(x):
        model(x).sum().backward()
        optimizer.step()

    step(rows())
    prof = profiler(model, compiled_kernels=True)
    with prof:
        step(rows())
    report = prof.report()
    assert report.kernels == []
    text = note_of(report, "no-kernels")
    assert text.endswith("use run or run_step with repeat above 0")
    assert text in report.table(by="kernel", width=300)
    times = [row.self_time for row in report.rows if row.self_time is not None]
    assert sum(times) == pytest.approx(report.total.time, rel=1e-9)
    assert report.total.incomplete
    assert [note.code for note in prof.count(rows()).coverage.notes] == ["no-kernels"]
    assert note_of(profiler(model, compiled_kernels=True, repeat=0).run(rows()), "no-kernels") == text


def test_a_torch_without_them_says_so_in_one_sentence(monkeypatch):
    monkeypatch.setattr(inductor, "INTERFACES", (("torch._inductor.debug", "gone"),))
    report = kernels_of(torch.compile(nn.Linear(8, 8)), torch.rand(2, 8))
    assert report.kernels == []
    assert "has no torch._inductor.debug.gone" in note_of(report, "no-kernels")
    assert report.total.time > 0


@needs_kernels
def test_what_has_no_kernels_says_why(backend):
    eager = kernels_of(nn.Linear(8, 8), torch.rand(4, 8))
    assert "torch.compile(model)" in note_of(eager, "no-kernels")
    assert "no kernels of compiled code: nothing that ran was compiled" in eager.table(by="kernel")
    given_up = kernels_of(torch.compile(nn.Sequential(nn.Linear(64, 64), Eager())), rows())
    assert "breaks the graph inside a loop" in note_of(given_up, "no-kernels")
    other_backend = kernels_of(torch.compile(nn.Linear(8, 8), backend=backend), torch.rand(2, 8))
    assert note_of(other_backend, "no-kernels")
    assert eager.kernels == given_up.kernels == other_backend.kernels == []


# ---- what is left


@needs_kernels
def test_the_users_compiled_code_is_as_it_was_and_a_report_tells_of_its_kernels(tmp_path):
    model, x = torch.compile(small()), rows()
    with torch.no_grad():
        model(x)
        counters = json.dumps(torch._dynamo.utils.counters)
        config = torch._inductor.config.get_config_copy()
        report = kernels_of(model, x)
        assert json.dumps(torch._dynamo.utils.counters) == counters
        assert torch._inductor.config.get_config_copy() == config
        with torch.compiler.set_stance("fail_on_recompile"):
            model(x)
        without = profiler(model).run(x)
        with profiler(model) as block:
            model(x)
    assert "times the time of a call with your own code" in note_of(report, "compiled-again")
    assert "times the time that it takes in the timed runs" in note_of(report, "compiled-kernels")
    report.to_json(tmp_path / "r.json")
    again = roofprof.Report.from_json(tmp_path / "r.json")
    kernels = [[(k.name, k.modules, k.bytes, k.code) for k in one.kernels] for one in (again, report)]
    assert kernels[0] == kernels[1] != []
    assert "cpp_fused" in report.table(by="kernel", width=300)
    # Where nobody asks nothing more is compiled, and a table of kernels says how to get them.
    assert without.kernels == []
    assert without.row("0").time is None
    how = "compiled_kernels=True (--compiled-kernels) tells those of compiled code"
    assert how in without.table(by="kernel", width=300)
    # In a block fused loops are not dispatched.
    assert block.report().total.incomplete
    assert block.report().total.flops < report.total.flops
    assert note_of(block.report(), "compiled-not-counted").startswith("compiled region of the model: 1 call")
    report.to_html(tmp_path / "r.html")
    assert "cpp_fused" in (tmp_path / "r.html").read_text()
