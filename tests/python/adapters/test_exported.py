"""Graphs: torch.export's programs, fx's traces. Their rows are those of the modules that they came from."""

from __future__ import annotations

import pytest
import torch
from given_roofs import profiler, roofs
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


FACTS = ("type", "depth", "calls", "params", "self_macs", "self_flops", "self_bytes")
FACTS += ("input_shapes", "output_shapes", "output_bytes")


def facts(report: roofprof.Report, names=FACTS) -> dict[str, tuple]:
    """All that a row says but its times; not of a block's own code."""
    rows = [row for row in report.rows if row.path != "(outside)"]
    return {row.path: tuple(getattr(row, name) for name in names) for row in rows}


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
def test_rows_are_those_of_the_eager_model_and_are_timed(form, tmp_path):
    model, value = Net(), x()
    plain = facts(roofprof.count(model, value, scale=2.0))
    assert set(plain) == {"", "block", "block.fc", "block.act", "tail", "tail.0", "tail.0.fc", "tail.0.act", "tail.1"}
    program = FORMS[form](model, tmp_path)
    report = roofprof.count(program, value, scale=2.0)
    assert facts(report) == plain
    assert (report.model, report.coverage.uncalled_modules, report.coverage.notes) == ("Net", [], [])
    assert report.total.flops == sum(row.self_flops for row in report.rows)
    timed = profiler(program, repeat=2).run(value, scale=2.0)
    assert len(timed.run_times) == 2
    assert all(row.time > 0 for row in timed.rows)
    assert timed.row("").time == pytest.approx(sum(row.self_time for row in timed.rows))


def test_the_program_is_left_as_it_was_and_what_it_raises_comes_through():
    model, value = Net(), x()
    program = exported(model).module()
    before, nodes = dict(vars(program)), list(program.graph.nodes)
    expected = program(value, scale=2.0)
    profiler(program).run(value, scale=2.0)
    with profiler(program) as prof:
        program(value, scale=2.0)
    assert facts(prof.report()) == facts(roofprof.count(model, value, scale=2.0))
    with pytest.raises(Exception, match=r"(?i)guard|expected|size|shape"):
        profiler(program).run(torch.randn(3, 8), scale=2.0)
    assert vars(program).keys() == before.keys()
    assert list(program.graph.nodes) == nodes
    assert torch.equal(program(value, scale=2.0), expected)


def test_the_command_line_takes_a_saved_program(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.export.save(torch.export.export(Net(), (x(),)), "program.pt2")
    roofs().save("roofs.json")
    profile = ["profile", "program.pt2", "--trust", "--input", "2x8", "--ceilings", "roofs.json", "--repeat", "1"]
    assert cli.main([*profile, "--json", "report.json"]) == 0
    assert facts(roofprof.Report.from_json("report.json")) == facts(roofprof.count(Net(), x()))
    (tmp_path / "program.pt2").write_text("no program")
    assert cli.main(profile) == 2
    assert "is no exported program that torch can load" in capsys.readouterr().err


def test_a_graph_within_a_model():
    model, plain = (nn.Sequential(nn.Linear(8, 8), net) for net in (torch.fx.symbolic_trace(Net()), Net()))
    assert facts(roofprof.count(model, x())) == facts(roofprof.count(plain, x()))


def test_a_graph_that_dynamo_captured():
    model, captured = Net().eval(), []

    def keep(graph, _):
        captured.append(graph)
        return graph.forward

    torch.compiler.reset()
    torch.compile(model, backend=keep)(x())
    names = ("type", "calls", "self_macs", "self_flops")
    found = facts(roofprof.count(captured[0], **_inputs(captured[0], model)), names)
    plain = facts(roofprof.count(model, x()), names)
    places = ("block", "block.fc", "block.act", "tail.0.fc", "tail.1")
    assert [found[path] for path in places] == [plain[path] for path in places]


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
