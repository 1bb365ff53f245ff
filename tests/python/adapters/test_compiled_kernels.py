"""Kernels of torch.compile on a CPU: bytes and FLOPs by closed forms, modules, sums, and what is left as it was."""

import contextlib
import functools
import importlib
import json

import pytest
import torch
import torch._dynamo
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
    return given.run(*args) if step is None else given.run_step(step, *args)


@pytest.mark.parametrize(("module", "path"), inductor.interfaces(), ids=lambda text: text)
def test_torch_has_this_private_interface(module, path):
    value = importlib.import_module(module)
    for name in path.split("."):
        value = getattr(value, name)


def test_a_torch_without_them_says_so_in_one_sentence(monkeypatch):
    monkeypatch.setattr(inductor, "INTERFACES", (("torch._inductor.debug", "gone"),))
    report = kernels_of(torch.compile(nn.Linear(8, 8)), torch.rand(2, 8))
    assert report.kernels == []
    (note,) = [note for note in report.coverage.notes if note.code == "no-kernels"]
    assert "has no torch._inductor.debug.gone" in note.text
    assert report.total.time > 0


# ---- bytes and FLOPs


@needs_kernels
@pytest.mark.parametrize("elements", [1000, 4096])
def test_an_elementwise_chain_reads_and_writes_once(elements):
    class Chain(nn.Module):
        def forward(self, x):
            return (x * 2 + 1).relu()

    with torch.no_grad():
        (kernel,) = kernels_of(torch.compile(Chain()), torch.rand(elements)).kernels
    assert kernel.bytes == 2 * 4 * elements
    assert kernel.unfused_bytes == 3 * 2 * 4 * elements
    assert kernel.flops == 3 * elements
    assert kernel.intensity == 3 / 8
    assert set(kernel.fused.split(", ")) == {"aten::relu", "aten::add", "aten::mul"}
    assert kernel.instances == 1


@needs_kernels
def test_a_layer_norm_moves_its_input_weight_bias_and_output():
    rows, width = 32, 64
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.LayerNorm(width))), torch.rand(rows, width))
    (kernel,) = report.kernels
    assert kernel.bytes == 4 * (2 * rows * width + 2 * width)
    assert kernel.modules == kernel.module == "0"


@needs_kernels
def test_an_epilogue_reads_what_the_linear_wrote():
    rows, width = 32, 64
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.Linear(width, width), nn.GELU())), torch.rand(rows, width))
    by_module = {kernel.module: kernel for kernel in report.kernels}
    linear, gelu = by_module["0"], by_module["1"]
    assert linear.name == "aten::addmm"
    assert linear.flops == report.row("0").flops
    assert linear.bytes == report.row("0").bytes == 4 * (2 * rows * width + width * width + width)
    assert gelu.bytes == 2 * 4 * rows * width
    assert not gelu.shared


@needs_kernels
def test_a_kernel_of_several_modules_counts_for_the_one_around_them():
    model = nn.Sequential(nn.Sequential(nn.ReLU(), nn.Sigmoid()), nn.Sequential(nn.Linear(64, 64)))
    with torch.no_grad():
        report = kernels_of(torch.compile(model), torch.rand(32, 64))
    (shared,) = [kernel for kernel in report.kernels if kernel.shared]
    assert shared.module == "0"
    parts = [report.row(name).shared_time for name in ("0.0", "0.1")]
    assert min(parts) > 0
    assert sum(parts) == pytest.approx(report.row("0").time, abs=2e-9)  # its only kernel
    assert report.row("0").shared_time == report.row("").shared_time == report.row("1").shared_time == 0
    assert "shared" in report.table()
    assert sorted(part.split()[0] for part in shared.modules.split(", ")) == ["0.0", "0.1"]
    assert report.row("0").time > 0
    assert report.row("0.0").time is None
    assert report.row("1.0").time > 0


# ---- sums


def check_sums(report, least_known=0.95, eager=None):
    """Check what holds for all kernels; ``eager``: the work of the same call of the model as it is."""
    assert_bounded(report)
    assert_kernels_add_up(report, least_known)
    if eager is not None:
        assert report.total.macs == eager.total.macs > 0


def count_step(model, step, *args):
    return roofprof.RooflineProfiler(model, repeat=0).run_step(step, *args)


def modules_of(report):
    return {kernel.module for kernel in report.kernels}


@needs_kernels
def test_a_transformer_block():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    layer.train()
    with torch.no_grad():
        report = kernels_of(torch.compile(layer), torch.rand(4, 32, 64))
        eager = roofprof.count(layer, torch.rand(4, 32, 64))
    check_sums(report, eager=eager)
    assert report.row("linear1").time > 0
    linear = sum(kernel.flops for kernel in report.kernels if kernel.name == "aten::addmm")
    assert linear >= sum(report.row(name).flops for name in ("linear1", "linear2"))


@needs_kernels
def test_a_training_step():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    compiled = torch.compile(model)

    def step(x):
        compiled(x).sum().backward()

    report = kernels_of(compiled, torch.rand(32, 64), step=step)
    check_sums(report, 0.5, eager=count_step(model, lambda x: model(x).sum().backward(), torch.rand(32, 64)))
    assert {kernel.phase for kernel in report.kernels} == {"forward", "backward"}
    backward = [kernel for kernel in report.kernels if kernel.phase == "backward" and kernel.name == "aten::mm"]
    assert {kernel.module for kernel in backward} == {"0", "2"}


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
    check_sums(report, eager=count_step(model, lambda x: model(x).square().mean().backward(), torch.rand(64, 256)))
    (of_optimizer,) = [kernel for kernel in report.kernels if kernel.module == "(optimizer)"]
    assert of_optimizer.phase == "optimizer"
    by_phase = report.group("op", "phase")
    assert {row.phase for row in by_phase if row.op == "(outside kernels)"} == {"forward", "backward", "optimizer"}


@needs_kernels
def test_compiled_autograd_has_the_modules_of_the_backward_that_it_copies():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
    compiled = torch.compile(model)

    def step(x):
        compiled(x).sum().backward()

    with torch._dynamo.config.patch(compiled_autograd=True):
        report = kernels_of(model, torch.rand(32, 64), step=torch.compile(step))
    # Of weights, and of the second's input. Inductor 2.11 does not say whose product a kernel adds to an old gradient.
    of_2_11 = torch.__version__.startswith("2.11")
    eager = count_step(model, lambda x: model(x).sum().backward(), torch.rand(32, 64))
    check_sums(report, 0 if of_2_11 else 0.95, eager)
    products = [kernel for kernel in report.kernels if kernel.phase == "backward" and kernel.name in _PRODUCTS]
    known = ["(outside)", "(outside)", "2"] if of_2_11 else ["0", "2", "2"]
    assert sorted(kernel.module for kernel in products) == known


_PRODUCTS = ("aten::mm", "aten::addmm")


@needs_kernels
def test_compiled_autograd_does_not_tell_the_backward_of_several_calls_apart():
    """The first call, whose input needs no gradient, has a graph of its own; that of the others runs twice."""
    model = nn.Sequential(Block())
    model[0].compile()

    def step(x):
        with torch._dynamo.compiled_autograd._enable(torch.compile):
            model(model(model(x))).sum().backward()

    report = kernels_of(model, torch.rand(32, 64), step=step)
    check_sums(report, 0)
    backward = [kernel for kernel in report.kernels if kernel.phase == "backward"]
    assert "(outside)" in {kernel.module for kernel in backward if kernel.name in _PRODUCTS}
    assert "" in {kernel.modules for kernel in backward} <= {"", "0.linear"}


@needs_kernels
def test_an_embedding_has_a_part_of_the_kernel_that_it_is_fused_into():
    """It has no FLOPs: the kernel is shared by bytes, those of its rows and indices by those of the norm."""

    class Embedded(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding, self.norm = nn.Embedding(100, 64), nn.LayerNorm(64)

        def forward(self, x):
            return self.norm(self.embedding(x))

    with torch.no_grad():
        report = kernels_of(torch.compile(Embedded()), torch.randint(0, 100, (4, 16)))
    (kernel,) = report.kernels
    assert kernel.module == ""
    assert {part.split()[0] for part in kernel.modules.split(", ")} == {"embedding", "norm"}
    assert report.row("embedding").shared_time > 0


class Block(nn.Module):
    """A linear with its activation."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x).relu()


@needs_kernels
def test_blocks_that_share_one_graph_get_their_own_time():
    model = nn.Sequential(Block(), Block(), Block())
    for block in model:
        block.compile()
    with torch.no_grad():
        report = kernels_of(model, torch.rand(32, 64))
    check_sums(report)
    assert report.total.macs == 3 * 32 * 64 * 64
    for i in range(3):
        assert report.row(f"{i}.linear").time > 0
        assert report.row(f"{i}.linear").macs == 32 * 64 * 64
    assert modules_of(report) >= {f"{i}.linear" for i in range(3)}


@needs_kernels
@pytest.mark.usefixtures("in_place")
def test_the_compiled_layers_of_a_transformer():
    layer = nn.TransformerEncoderLayer(64, 4, 128, batch_first=True, dropout=0.0)
    model, x = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).train(), torch.rand(2, 16, 64)
    with torch.no_grad():
        eager = roofprof.count(model, x)
        for layer in model.layers:
            layer.compile()
        report = kernels_of(model, x)
    check_sums(report, eager=eager)
    assert modules_of(report) >= {f"layers.{i}.{name}" for i in range(3) for name in ("linear1", "linear2")}
    assert all(report.row(f"layers.{i}.norm1").shared_time > 0 for i in range(3))


@needs_kernels
@pytest.mark.usefixtures("in_place")
def test_a_compiled_part_of_an_eager_model():
    model = nn.Sequential(nn.Linear(64, 64), nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    model[1].compile()
    with torch.no_grad():
        report = kernels_of(model, torch.rand(32, 64))
    check_sums(report)
    assert report.row("0").macs == report.row("1.0").macs == 32 * 64 * 64
    assert report.row("0").percent_of_roof > 0
    assert modules_of(report) <= {"1", "1.0", "1.1"}


@needs_kernels
def test_an_eager_part_of_a_compiled_model():
    class Around(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.eager, self.last = nn.Linear(64, 64), Eager(), nn.Linear(64, 64)

        def forward(self, x):
            return self.last(self.eager(self.first(x)))

    model, x = Around(), torch.rand(32, 64)
    with torch.no_grad():
        report = kernels_of(torch.compile(model), x)
        check_sums(report, eager=roofprof.count(model, x))
    assert modules_of(report) == {"first", "last"}
    assert report.row("eager.linear").percent_of_roof > 0
    by_module = {row.module: row for row in report.group("module", "op") if row.op == "aten::linear"}
    assert by_module["eager.linear"].time > 0


class Eager(nn.Module):
    """A linear that torch.compile leaves alone."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    @torch.compiler.disable
    def forward(self, x):
        return self.linear(x)


@needs_kernels
def test_a_model_that_dynamo_gives_up_has_no_kernels():
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.Linear(64, 64), Eager())), torch.rand(32, 64))
    assert report.kernels == []
    (note,) = [note for note in report.coverage.notes if note.code == "no-kernels"]
    assert "breaks the graph inside a loop" in note.text


@needs_kernels
@pytest.mark.usefixtures("in_place")
def test_two_compiled_regions_of_one_model():
    model, x = nn.Sequential(nn.Linear(64, 64), nn.Linear(64, 32), nn.Sequential(nn.Linear(32, 64))), torch.rand(32, 64)
    with torch.no_grad():
        eager = roofprof.count(model, x)
        model[0].compile()
        model[2].compile()
        report = kernels_of(model, x)
    check_sums(report, eager=eager)
    assert modules_of(report) == {"0", "2.0"}
    by_place = {row.module: row for row in report.group("module", "op") if row.op == "(outside kernels)"}
    assert set(by_place) == {"0", "2"}


@needs_kernels
def test_the_mode_of_few_launches_is_that_of_plain_code_on_a_cpu():
    model, x = nn.Sequential(nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 64)), torch.rand(32, 64)
    with torch.no_grad():
        report = kernels_of(torch.compile(model, mode="reduce-overhead"), x)
        check_sums(report, eager=roofprof.count(model, x))
    assert modules_of(report) == {"0", "1", "2"}


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
        compiled = torch.compile(Attention())
        try:
            compiled(torch.rand(2, 64, 64))
        except torch._inductor.exc.InductorError as error:  # 2.11: "query, key, value are the same buffer"
            pytest.skip(f"torch {torch.__version__} does not compile it: {str(error).splitlines()[0]}")
        report = kernels_of(compiled, torch.rand(2, 64, 64))
        check_sums(report, eager=roofprof.count(Attention(), torch.rand(2, 64, 64)))
    assert report.row("qkv").macs == 2 * 64 * 64 * 3 * 64
    flex = [kernel for kernel in report.kernels if "flex_attention" in kernel.fused]
    assert {(kernel.module, kernel.bytes, kernel.flops) for kernel in flex} == {("", None, None)}
    assert report.row("qkv").time > 0


@needs_kernels
def test_a_block_has_the_time_of_a_compiled_step_and_says_how_to_get_kernels():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

    @torch.compile
    def step(x):
        model(x).sum().backward()
        optimizer.step()

    step(torch.rand(32, 64))
    prof = profiler(model, compiled_kernels=True)
    with prof:
        step(torch.rand(32, 64))
    report = prof.report()
    assert report.kernels == []
    (note,) = [note for note in report.coverage.notes if note.code == "no-kernels"]
    assert note.text.endswith("use run or run_step with repeat above 0")
    assert note.text in report.table(by="kernel", width=300)
    times = [row.self_time for row in report.rows if row.self_time is not None]
    assert sum(times) == pytest.approx(report.total.time, rel=1e-9)
    assert report.total.incomplete
    assert [note.code for note in prof.count(torch.rand(32, 64)).coverage.notes] == ["no-kernels"]
    counted = profiler(model, compiled_kernels=True, repeat=0).run(torch.rand(32, 64))
    assert note.text in [one.text for one in counted.coverage.notes]


@needs_kernels
def test_graph_breaks_are_counted_with_place_and_reason():
    class Broken(nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = nn.Linear(64, 64), nn.Linear(64, 64)

        def forward(self, x):
            x = self.first(x)
            torch._dynamo.graph_break()
            return self.second(x)

    with torch.no_grad():
        report = kernels_of(torch.compile(Broken()), torch.rand(32, 64))
        check_sums(report, eager=roofprof.count(Broken(), torch.rand(32, 64)))
    (note,) = [note for note in report.coverage.notes if note.code == "graph-breaks"]
    assert note.text.startswith("1 graph break: test_compiled_kernels.py:")
    assert {kernel.module for kernel in report.kernels} == {"first", "second"}


@torch._dynamo.disable
def sorted_by_hand(x):
    return torch.sort(x)[0]


class BetweenGraphs(nn.Module):
    def forward(self, x):
        return sorted_by_hand(x.relu()).tanh()


class InMethod(nn.Module):
    def forward(self, x):
        return self.hidden(x)

    @torch._dynamo.disable
    def hidden(self, x):
        return torch.relu(x)


class WholeForward(nn.Module):
    @torch._dynamo.disable
    def forward(self, x):
        return torch.relu(x)


@needs_kernels
@pytest.mark.parametrize(
    ("kind", "place", "function", "kernels"),
    [
        (BetweenGraphs, "test_compiled_kernels.py:", "sorted_by_hand", 2),
        (InMethod, "test_compiled_kernels.py:", "InMethod.hidden", 0),
        (WholeForward, "the call of WholeForward.forward: ", "WholeForward.forward", 0),
    ],
)
def test_disabled_functions_are_among_the_graph_breaks(kind, place, function, kernels):
    with torch.no_grad():
        report = kernels_of(torch.compile(kind()), torch.rand(32, 64))
    notes = {note.code: note.text for note in report.coverage.notes}
    assert notes["graph-breaks"].startswith(f"1 graph break: {place}")
    assert "torch.compiler.disable()" in notes["graph-breaks"]
    assert notes["graph-breaks"].endswith(function)
    assert len(report.kernels) == kernels
    assert ("no-kernels" in notes) == (kernels == 0)
    if kernels == 0:
        assert "the note graph-breaks says where" in notes["no-kernels"]
        assert "could compile" in notes["compiled-meanwhile"]


@needs_kernels
def test_the_notes_say_what_is_divided_by_what():
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Linear(64, 64)), torch.rand(32, 64))
    notes = {note.code: note.text for note in report.coverage.notes}
    assert "times the time of a call with your own code" in notes["compiled-again"]
    assert "times the time that it takes in the timed runs" in notes["compiled-kernels"]


@needs_kernels
def test_sizes_may_be_symbolic():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
    with torch.no_grad():
        report = kernels_of(torch.compile(model, dynamic=True), torch.rand(32, 64))
        check_sums(report, eager=roofprof.count(model, torch.rand(32, 64)))
    relu = next(kernel for kernel in report.kernels if kernel.module == "1")
    assert relu.bytes == 2 * 4 * 32 * 64


@needs_kernels
def test_casts_move_bytes_and_compute_nothing():
    class Cast(nn.Module):
        def forward(self, x):
            return (x.float() * 2).bfloat16()

    with torch.no_grad():
        (kernel,) = kernels_of(torch.compile(Cast()), torch.rand(1000).bfloat16()).kernels
    assert kernel.bytes == 2 * 2 * 1000
    assert kernel.flops == 1000


@needs_kernels
@pytest.mark.usefixtures("in_place")
def test_a_graph_that_ran_with_several_sizes_has_times_alone():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.part = nn.Sequential(nn.Linear(64, 64), nn.ReLU())
            self.part.compile(dynamic=True)

        def forward(self, x):
            return self.part(x).sum() + self.part(x[:5]).sum()

    with torch.no_grad():
        report = kernels_of(Twice(), torch.rand(32, 64))
    check_sums(report)
    assert {(kernel.instances, kernel.bytes, kernel.flops) for kernel in report.kernels} == {(2, None, None)}


@needs_kernels
def test_an_operator_without_a_cost_has_a_lower_limit():
    """As where it runs by itself, a note names it."""
    with contextlib.ExitStack() as library:

        @torch.library.custom_op("compiled_kernels::doubled", mutates_args=())
        def doubled(x: torch.Tensor) -> torch.Tensor:
            return torch.from_numpy(x.numpy() * 2)

        library.callback(doubled._lib._destroy)
        doubled.register_fake(torch.empty_like)

        class Doubled(nn.Module):
            def forward(self, x):
                return doubled(x.relu()).sigmoid()

        with torch.no_grad():
            report = kernels_of(torch.compile(Doubled()), torch.rand(1000))
    check_sums(report)
    by_name = {kernel.name: kernel for kernel in report.kernels}
    own = by_name["compiled_kernels::doubled"]
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
    class Put(nn.Module):
        def forward(self, x, chosen, value):
            return (x * 2).index_put((chosen,), value) + 1

    x, chosen = torch.rand(1000), torch.rand(1000) > 0.5
    with torch.no_grad():
        report = kernels_of(torch.compile(Put()), x, chosen, torch.rand(int(chosen.sum())))
    check_sums(report)
    (put,) = [kernel for kernel in report.kernels if kernel.name == "aten::index_put_"]
    assert put.total > 0


# ---- what is left


@needs_kernels
def test_the_users_compiled_code_is_as_it_was():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    x = torch.rand(32, 64)
    with torch.no_grad():
        model(x)
        counters = json.dumps(torch._dynamo.utils.counters)
        config = torch._inductor.config.get_config_copy()
        kernels_of(model, x)
        assert json.dumps(torch._dynamo.utils.counters) == counters
        assert torch._inductor.config.get_config_copy() == config
        with torch.compiler.set_stance("fail_on_recompile"):
            model(x)


@needs_kernels
def test_nothing_is_compiled_where_nobody_asks():
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    with torch.no_grad():
        report = profiler(model).run(torch.rand(32, 64))
    assert report.kernels == []
    assert report.row("0").time is None


@needs_kernels
def test_another_backend_has_no_kernels(backend):
    report = kernels_of(torch.compile(nn.Linear(8, 8), backend=backend), torch.rand(2, 8))
    assert report.kernels == []
    assert any(note.code == "no-kernels" for note in report.coverage.notes)


@needs_kernels
def test_a_saved_report_has_its_kernels(tmp_path):
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU())), torch.rand(32, 64))
    report.to_json(tmp_path / "r.json")
    again = roofprof.Report.from_json(tmp_path / "r.json")
    assert [(k.name, k.modules, k.bytes, k.code) for k in again.kernels] == [
        (k.name, k.modules, k.bytes, k.code) for k in report.kernels
    ]
    assert "cpp_fused" in report.table(by="kernel", width=300)


@needs_kernels
def test_a_merged_report_has_the_kernels_of_all_ranks(tmp_path, monkeypatch):
    model = torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU()))
    monkeypatch.setenv("WORLD_SIZE", "2")
    reports = []
    for rank in range(2):
        monkeypatch.setenv("RANK", str(rank))
        with torch.no_grad():
            reports.append(kernels_of(model, torch.rand(32, 64)))
    merged = roofprof.merge(reports)
    assert {(kernel.name, kernel.module) for kernel in merged.kernels} == {
        (kernel.name, kernel.module) for report in reports for kernel in report.kernels
    }
    for kernel in merged.kernels:
        own = [k for report in reports for k in report.kernels if (k.name, k.module) == (kernel.name, kernel.module)]
        assert (kernel.instances, kernel.bytes) == (2, sum(k.bytes for k in own))
        assert kernel.total == pytest.approx(sum(k.total for k in own))
    assert merged.row("1").time == pytest.approx(sum(report.row("1").time for report in reports))
    check_sums(merged)


@needs_kernels
@pytest.mark.integration
def test_the_page_of_a_report_has_its_kernels(tmp_path):
    with torch.no_grad():
        report = kernels_of(torch.compile(nn.Sequential(nn.Linear(64, 64), nn.ReLU())), torch.rand(32, 64))
    report.to_html(tmp_path / "r.html")
    assert "cpp_fused" in (tmp_path / "r.html").read_text()


@needs_kernels
def test_an_operator_that_ran_in_compiled_code_too_has_the_rate_of_what_was_timed():
    model = nn.Sequential(torch.compile(nn.Linear(64, 512)), nn.Linear(512, 8))
    with torch.no_grad():
        report = kernels_of(model, torch.rand(32, 64))
    (linear,) = (group for group in report.group("op") if group.op == "aten::linear")
    assert linear.macs == 32 * 512 * (64 + 8)
    assert linear.achieved_flops == pytest.approx(report.row("1").flops / linear.time)


def test_a_model_that_is_not_compiled_is_told():
    report = profiler(nn.Linear(8, 8), compiled_kernels=True).run(torch.rand(4, 8))
    assert [note.code for note in report.coverage.notes if "torch.compile(model)" in str(note)] == ["no-kernels"]
    assert "no kernels of compiled code: nothing that ran was compiled" in report.table(by="kernel")


@needs_kernels
def test_a_table_of_kernels_that_nobody_asked_for_says_how_to_get_them():
    with torch.no_grad():
        report = profiler(torch.compile(nn.Linear(8, 8))).run(torch.rand(4, 8))
    assert "compiled_kernels=True (--compiled-kernels) tells those of compiled code" in report.table(
        by="kernel", width=300
    )
