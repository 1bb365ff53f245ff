"""Graphs: torch.export's programs, fx's traces. Their rows are those of the modules that they came from."""

from __future__ import annotations

import pytest
import torch
from given_roofs import profiler, roofs
from models import vision
from torch import nn

import roofprof
from roofprof import cli


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.act = nn.GELU()  # no parameters: export leaves no trace of it but in the nodes

    def forward(self, value):
        return self.act(self.fc(value)) + value


class Net(nn.Module):
    """Calls one block twice, has work of its own, a buffer, and a keyword."""

    def __init__(self):
        super().__init__()
        self.block = Block()
        self.tail = nn.Sequential(Block(), nn.Linear(8, 4))
        self.register_buffer("gain", torch.full((8,), 2.0))

    def forward(self, value, scale=1.0):
        return self.tail(self.block(self.block(value * self.gain))) * scale


def x() -> torch.Tensor:
    return torch.randn(2, 8)


def facts(report: roofprof.Report) -> dict[str, tuple]:
    """All that a row says but its times."""
    return {
        row.path: (
            row.type,
            row.depth,
            row.calls,
            row.params,
            row.self_macs,
            row.self_flops,
            row.self_bytes,
            row.input_shapes,
            row.output_shapes,
            row.output_bytes,
        )
        for row in report.rows
        if row.path != "(outside)"  # a block's own code
    }


def exported(model):
    return torch.export.export(model, (x(),), {"scale": 2.0})


def saved_and_loaded(model, folder):
    torch.export.save(exported(model), folder / "program.pt2")
    return torch.export.load(folder / "program.pt2")


FORMS = {
    "program": lambda model, _: exported(model),
    "module": lambda model, _: exported(model).module(),
    "loaded": saved_and_loaded,
    "unflattened": lambda model, _: torch.export.unflatten(exported(model)),
    "symbolically traced": lambda model, _: torch.fx.symbolic_trace(model),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_are_those_of_the_eager_model(form, tmp_path):
    model = Net()
    plain = facts(roofprof.count(model, x(), scale=2.0))
    assert set(plain) == {"", "block", "block.fc", "block.act", "tail", "tail.0", "tail.0.fc", "tail.0.act", "tail.1"}
    report = roofprof.count(FORMS[form](model, tmp_path), x(), scale=2.0)
    assert facts(report) == plain
    assert report.model == "Net"
    assert report.coverage.uncalled_modules == []
    assert report.total.flops == sum(row.self_flops for row in report.rows)


@pytest.mark.parametrize("form", FORMS)
def test_its_modules_are_timed(form, tmp_path):
    report = profiler(FORMS[form](Net(), tmp_path), repeat=2).run(x(), scale=2.0)
    assert len(report.run_times) == 2
    assert all(row.time > 0 for row in report.rows)
    assert report.row("").time == pytest.approx(sum(row.self_time for row in report.rows))


def test_modules_that_only_the_graph_names_were_not_added_meanwhile():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
    report = roofprof.count(torch.export.export(model, (torch.rand(2, 8),)), torch.rand(2, 8))
    assert report.row("1").calls == 1
    assert report.coverage.notes == []


def test_a_block_sees_the_modules_of_a_program():
    model, value = Net(), x()
    program = exported(model).module()
    with profiler(program) as prof:
        program(value, scale=2.0)
    assert facts(prof.report()) == facts(roofprof.count(model, value, scale=2.0))


def test_the_program_is_left_as_it_was():
    program = exported(Net()).module()
    before, nodes, value = dict(vars(program)), list(program.graph.nodes), x()
    expected = program(value, scale=2.0)
    profiler(program).run(value, scale=2.0)
    assert vars(program).keys() == before.keys()
    assert list(program.graph.nodes) == nodes
    assert torch.equal(program(value, scale=2.0), expected)


def test_what_a_program_raises_comes_through():
    program = exported(Net()).module()
    with pytest.raises(Exception, match=r"(?i)guard|expected|size|shape"):
        profiler(program).run(torch.randn(3, 8), scale=2.0)
    assert "forward" not in vars(program)


def test_the_command_line_takes_a_saved_program(tmp_path, capsys):
    path = tmp_path / "program.pt2"
    torch.export.save(torch.export.export(Net(), (x(),)), path)
    roofs().save(tmp_path / "roofs.json")
    profile = [
        "profile",
        str(path),
        "--trust",
        "--input",
        "2x8",
        "--ceilings",
        str(tmp_path / "roofs.json"),
        "--repeat",
        "1",
    ]
    assert cli.main([*profile, "--json", str(tmp_path / "report.json")]) == 0
    report = roofprof.Report.from_json(tmp_path / "report.json")
    assert facts(report) == facts(roofprof.count(Net(), x()))
    path.write_text("no program")
    assert cli.main(profile) == 2
    assert "is no exported program that torch can load" in capsys.readouterr().err


def test_a_graph_within_a_model():
    model = nn.Sequential(nn.Linear(8, 8), torch.fx.symbolic_trace(Net()))
    plain = nn.Sequential(nn.Linear(8, 8), Net())
    assert facts(roofprof.count(model, x())) == facts(roofprof.count(plain, x()))


def test_a_graph_that_dynamo_captured():
    model, captured = Net().eval(), []

    def keep(graph, _):
        captured.append(graph)
        return graph.forward

    torch.compiler.reset()
    torch.compile(model, backend=keep)(x())
    report = roofprof.count(captured[0], **_inputs(captured[0], model))
    plain = facts(roofprof.count(model, x()))
    for path in ("block", "block.fc", "block.act", "tail.0.fc", "tail.1"):
        row = report.row(path)
        assert (row.type, row.calls, row.self_macs, row.self_flops) == (
            plain[path][0],
            plain[path][2],
            plain[path][4],
            plain[path][5],
        )


def _inputs(graph, model):
    """What dynamo made inputs of the graph: parameters and buffers by their order in it, and x."""
    values = {}
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            name = node.name.strip("_").replace("_modules_", ".").replace("_parameters_", ".").replace("_buffers_", ".")
            found = [tensor for path, tensor in tensors.items() if name.endswith(f".{path}")]
            values[node.target] = found[0] if found else x()
    return values


def test_a_compiled_graph_is_not_compiled_anew():
    torch.compiler.reset()
    counter = torch._dynamo.testing.CompileCounterWithBackend("eager")
    program = torch.compile(torch.fx.symbolic_trace(Net()), backend=counter)
    profiler(program).run(x())
    with torch.compiler.set_stance("fail_on_recompile"):
        program(x())
    assert counter.frame_count == 1


@pytest.mark.slow
@pytest.mark.integration
def test_resnet_exported(uninitialised):
    model = vision("resnet18")().eval()
    image = torch.randn(1, 3, 64, 64)
    plain = facts(roofprof.count(model, image))
    assert facts(roofprof.count(torch.export.export(model, (image,)), image)) == plain
    assert facts(roofprof.count(torch.fx.symbolic_trace(model), image)) == plain
