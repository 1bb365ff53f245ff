"""TorchScript, by module: what the eager model has, from every way to make, optimise and call it; and what is said."""

import io
from concurrent.futures import ThreadPoolExecutor

import pytest
import script_models
import torch
from models import ResNet, named, vision
from script_models import figures, scripted
from torch import nn
from truths import counts

import roofprof

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore:.*torch.jit.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:.*enable_nested_tensor.*:UserWarning"),
]


def profiler(model, **options):
    return roofprof.RooflineProfiler(model, ceilings=roofprof.Ceilings(), **options)


def block_of(model, *inputs, calls=1):
    with profiler(model) as block:
        for _ in range(calls):
            model(*inputs)
    return block.report()


def shapes(report):
    return {row.path: (row.input_shapes, row.output_shapes, row.output_bytes) for row in report.rows}


def traced(model, *inputs):
    return torch.jit.trace(model, inputs, strict=False)


def through_a_file(model):
    file = io.BytesIO()
    torch.jit.save(model, file)
    file.seek(0)
    return torch.jit.load(file)


def loaded(model, *inputs):
    return through_a_file(scripted(model))


def loaded_trace(model, *inputs):
    return through_a_file(traced(model, *inputs))


def encoder():
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


MODELS = {
    "resnet": (ResNet, lambda: torch.rand(1, 3, 16, 16)),
    "resnet18": (vision("resnet18"), lambda: torch.rand(1, 3, 64, 64)),
    "torch's encoder": (encoder, lambda: torch.rand(2, 5, 32)),
    "recurrent": (script_models.Recurrent, lambda: torch.rand(5, 2, 8)),
    "lists": (script_models.Lists, lambda: torch.rand(4, 8)),
}


@pytest.mark.parametrize("way", [scripted, traced, loaded, loaded_trace])
@pytest.mark.parametrize("name", named(MODELS, "resnet18"))
def test_every_module_has_the_eager_model_s_figures(name, way):
    """In counts; in blocks, where the interpreter's own call stack tells the module, the work; in runs the times."""
    if "trace" in way.__name__ and name == "recurrent":
        pytest.skip("tracing leaves out the attention weights, which nobody uses")
    make, make_input = MODELS[name]
    model, x = make().eval(), make_input()
    with torch.no_grad():
        expected = roofprof.count(model, x)
        converted = way(model, x)
        for _ in range(3):  # torch optimises the graph after a while
            found = roofprof.count(converted, x)
            assert figures(found) == figures(expected)
            assert found.coverage.notes == []
            block = block_of(converted, x)
            assert [block.row(row.path).self_macs for row in expected.rows] == [row.self_macs for row in expected.rows]
            assert block.row("").calls == 1
            assert all(row.calls is None for row in block.rows if row.path not in {"", "(outside)"})
            assert block.coverage.uncalled_modules == []
        if way is not scripted:
            return
        assert shapes(found) == shapes(expected)
        report = profiler(converted, repeat=3).run(x)
    assert figures(report) == figures(expected)
    assert all(min(row.self_time, row.op_time) > 0 for row in report.rows if row.self_macs > 0)
    assert sum(row.self_time or 0 for row in report.rows) == pytest.approx(report.total.time, rel=1e-6)
    assert report.coverage.notes == []


class Batched(nn.Module):
    """Takes and gives dicts."""

    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(3, 8, 3, padding=1)
        self.heads = nn.ModuleDict({"score": nn.Conv2d(8, 2, 1), "box": nn.Conv2d(8, 7, 1)})

    def forward(self, batch: dict[str, torch.Tensor], mask: torch.Tensor | None = None) -> dict[str, torch.Tensor]:
        x = self.encoder(batch["images"])
        if mask is not None:
            x = x.masked_fill(mask, 0.0)
        return {name: head(x) for name, head in self.heads.items()}


@pytest.mark.parametrize("way", [scripted, loaded])
def test_dicts_and_optional_inputs(way):
    model, batch, mask = Batched(), {"images": torch.rand(3, 3, 16, 16)}, torch.zeros(16, dtype=torch.bool)
    converted = way(model)
    for args, kwargs in [((batch,), {}), ((batch, mask), {}), ((batch,), {"mask": mask})]:
        expected, found = (roofprof.count(each, *args, **kwargs) for each in (model, converted))
        assert (figures(found), shapes(found)) == (figures(expected), shapes(expected))
    assert found.row("encoder").macs == 3 * 16 * 16 * 3 * 8 * 9
    assert found.row("heads.box").macs == 3 * 16 * 16 * 8 * 7


@pytest.mark.parametrize("times", [0, 5])
def test_loops_methods_functions_and_shared_modules(times):
    model, x = script_models.Calls(), torch.rand(4, 8)
    expected, found = roofprof.count(model, x, times), roofprof.count(scripted(model), x, times)
    assert figures(found) == figures(expected)
    assert found.row("inner").calls == times + 1  # the method `twice` is no call
    assert found.row("inner.linear").calls == times + 3
    assert found.row("holder.0").calls == 1
    assert found.row("holder.0.linear").macs == 4 * 8 * 8
    assert found.row("").self_flops == 4 * 8 * (1 + 1 + 1)  # what `twice` and the function compute beside the layers


def test_forks_belong_to_their_modules():
    model, x = script_models.Forks(), torch.rand(4, 8)
    converted, expected = scripted(model), figures(roofprof.count(model, x))
    for _ in range(3):
        assert figures(roofprof.count(converted, x)) == expected
        converted(x)
    report = profiler(converted, repeat=3).run(x)
    assert figures(report) == expected
    assert min(report.row("left.0").time, report.row("join").time) > 0
    assert {note.code for note in report.coverage.notes} <= {"threads-overlap"}  # forks run at once, if they can


def test_scripted_children_of_eager_models():
    model = nn.Sequential(script_models.Calls(), nn.Linear(4, 8), script_models.Calls()).eval()
    x = torch.rand(4, 8)
    expected = figures(roofprof.count(model, x))
    model[0], model[2] = scripted(model[0]), scripted(model[2])
    assert figures(roofprof.count(model, x)) == expected
    with torch.no_grad():
        report = profiler(model, repeat=2).run(x)
    assert figures(report) == expected
    assert min(report.row(f"{place}.inner.linear").op_time for place in (0, 2)) > 0


# ---- the interpreter's stack, and what traced code does to sizes


class Product(nn.Module):
    """The bias comes first: while the product runs, the interpreter still holds it."""

    def __init__(self):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.rand(32, 96)), nn.Parameter(torch.rand(96))

    def forward(self, x):
        return torch.addmm(self.bias, x, self.weight)


class Stacked(nn.Module):
    """Values wait on the interpreter's stack while others are made."""

    def forward(self, a, b, c):
        return torch.cat([a, torch.mm(b, c).relu()]) + torch.bmm(b[None], c[None]).sum()


@pytest.mark.parametrize(
    ("kind", "inputs", "macs"),
    [
        (Product, lambda: (torch.rand(20, 32),), 20 * 32 * 96),
        (Stacked, lambda: (torch.rand(3, 7), torch.rand(5, 4), torch.rand(4, 7)), 2 * 5 * 4 * 7),
    ],
)
def test_what_lies_on_the_interpreter_s_stack_is_no_input(kind, inputs, macs):
    model, given = kind().eval(), inputs()
    expected = counts(roofprof.count(model, *given).total)
    assert expected["macs"] == macs
    for converted in (scripted(model), traced(model, *given)):
        for _ in range(3):  # the interpreter optimises the graph after a while
            assert counts(roofprof.count(converted, *given).total) == expected


# ---- optimised for inference: most of its work is in operators that no dispatcher sees

CONVOLUTION = "prim::mkldnn_convolution"
needs_onednn = pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="this torch has no oneDNN")


def optimized(model):
    return torch.jit.optimize_for_inference(scripted(model.eval()))


def not_counted(report):
    return dict(report.coverage.uncosted) | dict(report.coverage.unobserved)


class Layers(nn.Module):
    """A convolution of 3 x 3, depthwise of 3 x 3 and 1 x 1, with what oneDNN runs between them."""

    def __init__(self):
        super().__init__()
        self.first = nn.Conv2d(3, 8, 3, padding=1)
        self.depthwise = nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.point = nn.Conv2d(8, 16, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardswish(self.first(x))
        x = nn.functional.hardsigmoid(self.depthwise(x)) * 2.0
        return nn.functional.hardtanh(self.point(x))


@needs_onednn
def test_each_operator_costs_what_the_one_that_it_replaces_does():
    model, x = Layers(), torch.rand(2, 3, 10, 10)
    expected, found = roofprof.count(model.eval(), x), roofprof.count(optimized(model), x)
    assert expected.total.macs == 2 * 10 * 10 * (8 * 27 + 8 * 9 + 16 * 8)
    assert (found.total.macs, found.total.flops) == (expected.total.macs, expected.total.flops)
    convolutions = found.by_operator()[CONVOLUTION]
    assert (convolutions.calls, convolutions.macs) == (3, expected.total.macs)
    assert convolutions.bytes == expected.by_operator()["aten::conv2d"].bytes
    assert not_counted(found) == {}
    timed = profiler(optimized(model), warmup=1, repeat=2).run(x)
    assert timed.total.macs == expected.total.macs
    assert timed.total.time > 0
    assert timed.by_operator()[CONVOLUTION].time is None  # the clock does not see its calls
    for dims, layer in ((1, nn.Conv1d), (3, nn.Conv3d)):
        model, x = nn.Sequential(layer(4, 6, 3, padding=1, groups=2), nn.ReLU()), torch.rand(1, 4, *[5] * dims)
        assert roofprof.count(optimized(model), x).total.macs == 6 * 5**dims * 2 * 3**dims


@needs_onednn
def test_a_block_names_what_it_cannot_see():
    model, x = nn.Sequential(nn.Conv2d(3, 3, 1), optimized(Layers())).eval(), torch.rand(2, 3, 10, 10)
    report = block_of(model, x, calls=2)
    assert report.coverage.unobserved[CONVOLUTION] == 2 * 3
    assert [report.row(path).incomplete for path in ("", "0", "1")] == [True, False, True]
    assert CONVOLUTION in str(report)


@pytest.mark.parametrize("make", [torch.jit.freeze, torch.jit.optimize_for_inference])
def test_a_model_outlives_what_it_was_frozen_from(make):
    """Its code names functions of the scripted model, and torch reads them where it tells of modules."""
    model, x = ResNet().eval(), torch.rand(1, 3, 16, 16)
    macs = roofprof.count(model, x).total.macs
    model = make(scripted(model))
    assert profiler(model, repeat=3, warmup=3).run(x).total.macs == macs
    assert block_of(model, x, calls=4).row("").calls == 4


# ---- training


class Trained(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.norm, self.second = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.norm(self.first(x))))


def step(model, x):
    with profiler(model) as block:
        model(x).sum().backward()
    return block.report()


def phases(report):
    return {tuple(group.keys): group.macs for group in report.group("module", "phase") if group.macs}


def test_a_training_step_has_the_eager_model_s_work_by_module_and_phase():
    model, x = Trained().train(), torch.rand(4, 8)
    expected = step(model, x)
    assert phases(expected)["first", "backward"] == 4 * 8 * 16  # of its weight alone: x needs no gradient
    converted = scripted(model)
    assert phases(step(converted, x)) == phases(expected)
    for _ in range(4):
        converted(x).sum().backward()
    found = step(converted, x)  # what the executor now differentiates as a whole
    assert found.total.macs == expected.total.macs
    assert found.row("(outside)").macs == 0
    (note,) = found.coverage.notes
    assert str(note).startswith("TorchScript differentiated parts of the model as a whole")
    # run() counts the code as it was written, whatever the executor makes of it.
    assert figures(profiler(converted, repeat=2).run(x)) == figures(roofprof.count(model, x))


# ---- nothing is left behind, and what cannot be known is said


class Raises(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.linear(x)
        if x.size(0) > 2:
            raise ValueError("too many")
        return x


def test_the_model_s_own_exception_comes_through():
    converted = scripted(Raises())
    with pytest.raises(torch.jit.Error, match="too many") as plain:
        converted(torch.rand(4, 8))
    prof = profiler(converted)
    for call in (prof.run, lambda x: roofprof.count(converted, x)):
        with pytest.raises(torch.jit.Error, match="too many") as observed:
            call(torch.rand(4, 8))
        assert type(observed.value) is type(plain.value)
    assert prof.report().partial
    assert prof.report().row("linear").macs == 4 * 8 * 8
    assert roofprof.count(converted, torch.rand(2, 8)).row("linear").macs == 2 * 8 * 8
    with pytest.raises(RuntimeError, match="missing value for argument 'x'"):
        roofprof.count(converted)
    with pytest.raises(RuntimeError, match="but instead found type 'int'"):
        roofprof.count(converted, 3)


class Counts(nn.Module):
    def __init__(self):
        super().__init__()
        self.calls = 0
        self.seen = []
        self.register_buffer("mean", torch.zeros(8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        self.seen.append(self.calls)
        self.mean = self.mean * 0.5 + x.mean(0)
        return torch.dropout(x + self.calls, 0.5, True)


Counts.__annotations__ = {"seen": list[int]}


def test_attributes_and_random_numbers_are_as_one_call_leaves_them():
    def state(call):
        torch.manual_seed(0)
        model, x = scripted(Counts()), torch.ones(4, 8)
        call(model, x)
        return model.calls, model.seen, model.mean.tolist(), torch.rand(3).tolist(), model.__dict__.keys()

    plain = state(lambda model, x: model(x))
    assert plain[:2] == (1, [1])
    assert state(roofprof.count) == plain
    assert state(lambda model, x: profiler(model).run(x)) == plain


def test_frozen_modules_are_one_row_and_say_so():
    model, x = ResNet().eval(), torch.rand(1, 3, 16, 16)
    with torch.no_grad():
        expected = roofprof.count(model, x).total.macs
        report = roofprof.count(torch.jit.freeze(scripted(model)), x)
    assert [row.path for row in report.rows] == [""]
    assert report.total.macs == expected
    (note,) = report.coverage.notes
    assert str(note).startswith("frozen TorchScript (the model): freezing made one graph of its modules")
    assert "which are not counted as parameters" in note


def test_several_threads_profile_scripted_models_at_once():
    models = [scripted(script_models.Forks()) for _ in range(8)]
    expected = figures(roofprof.count(script_models.Forks(), torch.rand(4, 8)))
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda model: figures(profiler(model, repeat=3).run(torch.rand(4, 8))), models)
        assert list(found) == [expected] * 8


# ---- fusion, which on this CPU takes the kernels' own interpreter


class Pointwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.act, self.second = nn.Linear(8, 8), nn.Tanh(), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.sigmoid(self.act(self.first(x)) * 2 + 1) * x)


@pytest.fixture
def fuses_on_cpu():
    could_fuse, needed_llvm = torch._C._jit_can_fuse_on_cpu(), torch._C._jit_get_te_must_use_llvm_cpu()
    torch._C._jit_override_can_fuse_on_cpu(True)
    torch._C._jit_set_te_must_use_llvm_cpu(False)
    yield
    torch._C._jit_override_can_fuse_on_cpu(could_fuse)
    torch._C._jit_set_te_must_use_llvm_cpu(needed_llvm)


@pytest.mark.usefixtures("fuses_on_cpu")
def test_fused_kernels_are_named_and_have_the_time():
    model, x = Pointwise().eval(), torch.rand(4, 8)
    converted = scripted(model)
    with torch.no_grad():
        expected = roofprof.count(model, x)
        for _ in range(4):
            converted(x)
        report = profiler(converted, repeat=3).run(x)
        block = block_of(converted, x)
    assert figures(report) == figures(expected)
    (note,) = report.coverage.notes
    assert str(note).startswith("TorchScript's executor ran other operators than the code of its modules has (")
    assert "fused_tanh_mul_add_sigmoid_mul in the model)" in note
    times = {tuple(group.keys): group.time for group in report.group("module", "op")}
    assert times["", "fused_tanh_mul_add_sigmoid_mul"] > 0
    assert times["act", "aten::tanh"] is None
    assert times["first", "aten::linear"] > 0
    # In a block nothing else runs: the kernel's work is not known.
    assert block.coverage.uncosted == {"fused_tanh_mul_add_sigmoid_mul": 1}
    assert block.total.macs == expected.total.macs
