"""``roofprof run`` finds the steps of training by backward and optimizer, whatever the program calls besides."""

import textwrap

import pytest

import roofprof
from roofprof.cli import main

SETUP = """
import torch
from torch import nn
"""


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    """Run a program and return its report and what was said on the standard error."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ROOFPROF_CEILINGS", "off")

    def of(text, *options, code=0):
        (tmp_path / "program.py").write_text(SETUP + textwrap.dedent(text))
        assert main(["run", "--no-legend", *options, "program.py"]) == code
        return roofprof.Report.from_json("program.roofprof.json") if code == 0 else None, capsys.readouterr()

    return of


def note(report, code):
    return [each.text for each in report.coverage.notes if each.code == code]


def trained_macs(batch, inputs, outputs):
    """One step of a Linear whose input needs no gradient: the forward, and the gradient of the weight."""
    return 2 * batch * inputs * outputs


TRAINS = """
def train(steps, batch=64):
    for _ in range(steps):
        opt.zero_grad()
        net(torch.rand(batch, 8)).sum().backward()
        opt.step()

net = nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
"""


@pytest.mark.parametrize(
    "first",
    [
        "for _ in range(20): net(torch.rand(3, 8)).argmax()",  # a rollout
        "for _ in range(20): net(torch.rand(64, 8))",
        "net.eval()\nfor _ in range(20): net(torch.rand(64, 8))\nnet.train()",
        "with torch.no_grad():\n    for _ in range(20): net(torch.rand(64, 8))",
    ],
)
def test_calls_that_no_backward_follows_are_no_steps(run, first):
    report, said = run(f"{TRAINS}\n{first}\ntrain(20)\n")
    assert report.steps == report.row("").calls == 10
    assert report.total.macs == 10 * trained_macs(64, 8, 4)
    assert note(report, "window-phase") == ["the calls are those of training: a backward followed them"]
    assert "profiled 10 steps of Linear in training" in said.err


@pytest.mark.parametrize("options", [[], ["--phase", "eval"]])
def test_a_program_that_only_evaluates_with_gradients_is_not_said_to_train(run, options):
    report, said = run("net = nn.Linear(8, 4)\nfor _ in range(20): net(torch.rand(3, 8))\n", *options)
    assert report.steps == 10
    (text,) = note(report, "window-phase")
    assert text.startswith("the calls are those of evaluation: ")
    assert "in evaluation" in said.err


def test_a_backward_is_looked_for_where_training_is_requested(run):
    _, said = run("net = nn.Linear(8, 4)\nfor _ in range(20): net(torch.rand(3, 8))", "--phase", "train", code=2)
    assert "with --phase train, no backward followed a call of Linear (20)" in said.err


@pytest.mark.parametrize("validation", ["with torch.no_grad(): ema(x)", "ema(x)", "net(x)", "net(x[:3])"])
def test_what_runs_between_steps_has_a_row_and_is_in_no_mean(run, validation):
    report, _ = run(
        TRAINS
        + """
ema = torch.optim.swa_utils.AveragedModel(net)
x = torch.rand(500, 8)
for epoch in range(6):
    train(4)
    net.eval()
    for _ in range(3):
        VALIDATE
    net.train()
""".replace("VALIDATE", validation)
    )
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * trained_macs(64, 8, 4)
    # Steps 4 to 13: the validations after the steps 4, 8 and 12.
    rows = 3 if ":3" in validation else 500
    assert report.row("(between steps)").calls == 3
    assert report.row("(between steps)").macs == 3 * 3 * rows * 8 * 4
    mean = next(line for line in report.table().splitlines() if "a step on average: " in line)
    assert f" {trained_macs(64, 8, 4) / 1000:.2f}k MACs" in mean
    (text,) = note(report, "between-steps")
    assert ("AveragedModel (9)" if "ema" in validation else "Linear (9)") in text
    (between,) = [region for region in report.regions if region.path == "(between steps)"]
    assert sum(report.step_times) + between.wall <= report.total.wall


def test_actions_that_are_chosen_between_updates_are_in_no_step(run):
    report, _ = run(
        TRAINS
        + """
target = nn.Linear(8, 4)
for step in range(400):
    if step % 3:
        with torch.no_grad():
            net(torch.rand(1, 8))
    if step % 10 == 9:
        x = torch.rand(64, 8)
        with torch.no_grad():
            wanted = target(x)
        opt.zero_grad()
        (net(x) - wanted).sum().backward()
        opt.step()
"""
    )
    assert report.steps == 10
    assert report.row("net").calls == report.row("target").calls == 10
    assert report.row("net").macs == 10 * trained_macs(64, 8, 4)
    assert report.row("target").macs == 10 * 64 * 8 * 4
    assert report.row("(between steps)").calls == 9  # the tenth ends the window


def test_a_rollout_with_gradients_between_updates_is_known_by_its_sizes(run):
    report, _ = run(
        TRAINS
        + """
for step in range(30):
    for _ in range(5):
        net(torch.rand(1, 8)).argmax()
    train(1)
"""
    )
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * trained_macs(64, 8, 4)
    assert report.row("(between steps)").macs == 9 * 5 * 8 * 4


def test_calls_of_the_steps_that_no_backward_followed_are_named(run):
    report, _ = run(
        TRAINS
        + """
for step in range(30):
    net(torch.rand(64, 8))
    train(1)
"""
    )
    assert report.steps == 10
    assert report.row("").calls == 20
    (text,) = note(report, "between-steps")
    assert text.startswith("no backward followed these calls in the steps")


EPISODES = """
for episode in range(20):
    kept = [net(torch.rand(1, 8)).sum() for _ in range(12)]  # REINFORCE: one backward for all of them
    opt.zero_grad()
    torch.stack(kept).sum().backward()
    opt.step()
"""
ACCUMULATED = """
for i in range(80):
    net(torch.rand(16, 8)).sum().backward()
    if i % 4 == 3:
        opt.step()
        opt.zero_grad()
"""


@pytest.mark.parametrize(("loop", "calls", "batch"), [(EPISODES, 12, 1), (ACCUMULATED, 4, 16)])
def test_a_step_lasts_up_to_its_update(run, loop, calls, batch):
    report, _ = run(TRAINS + loop)
    assert report.steps == 10
    assert report.row("").calls == 10 * calls
    assert report.total.macs == 10 * calls * trained_macs(batch, 8, 4)
    assert report.row("(optimizer)").calls == 10


LAZY = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = None

    def forward(self, x):
        if self.inner is None:
            self.inner = nn.Linear(x.shape[-1], 4)
        return self.inner(x)

net = Net()
net(torch.rand(2, 8))
"""
APPENDED = """
net = nn.Sequential()
net.append(nn.Linear(net(torch.rand(2, 8)).shape[-1], 4))
"""
OWN_CALL = """
class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(4, 8))

    def __call__(self, *args):
        return self.forward(*args)

    def forward(self, x):
        return nn.functional.linear(x, self.weight)

net = Own()
"""


@pytest.mark.parametrize(("model", "type_of_it"), [(LAZY, "Net"), (APPENDED, "Sequential"), (OWN_CALL, "Own")])
def test_a_model_is_found_by_its_optimizer(run, model, type_of_it):
    report, said = run(model + TRAINS.replace("net = nn.Linear(8, 4)\n", "") + "train(20)\n")
    assert report.steps == 10
    assert report.row("").type == type_of_it
    assert report.row("").params in {4 * 8, 4 * 8 + 4}
    assert report.total.macs == 10 * trained_macs(64, 8, 4)
    assert f"profiled 10 steps of {type_of_it} in training" in said.err


def test_a_model_that_another_method_trains(run):
    report, _ = run("""
    class Policy(nn.Module):
        def __init__(self):
            super().__init__()
            self.actor, self.critic = nn.Linear(8, 4), nn.Linear(8, 1)

        def forward(self, x):
            return self.actor(x).argmax()

        def evaluate_actions(self, x):
            return self.actor(x).sum() + self.critic(x).sum()

    policy = Policy()
    opt = torch.optim.Adam(policy.parameters())
    for _ in range(10):
        for _ in range(12):
            with torch.no_grad():
                policy(torch.rand(1, 8))
        for _ in range(4):
            opt.zero_grad()
            policy.evaluate_actions(torch.rand(64, 8)).backward()
            opt.step()
    """)
    assert report.steps == 10
    assert report.row("").type == "Policy"
    assert report.row("actor").macs == 10 * trained_macs(64, 8, 4)
    assert report.row("critic").macs == 10 * trained_macs(64, 8, 1)
    # Steps 4 to 13 have the rollouts before the steps 5, 9 and 13.
    assert report.row("(between steps)").macs == 3 * 12 * 8 * 4


GAN = """
class Step:
    def __init__(self):
        super().__init__()
        self.generator, self.discriminator = nn.Linear(8, 16), nn.Linear(16, 1)
        self.opts = [torch.optim.Adam(each.parameters()) for each in (self.generator, self.discriminator)]

    def step(self):
        for_generator, for_discriminator = self.opts
        for_discriminator.zero_grad()
        fake = self.generator(torch.rand(32, 8))
        (self.discriminator(torch.rand(32, 16)) - self.discriminator(fake.detach())).sum().backward()
        for_discriminator.step()
        for_generator.zero_grad()
        self.discriminator(fake).sum().backward()
        for_generator.step()

trainer = Step()
generator, discriminator = trainer.generator, trainer.discriminator
for _ in range(25):
    trainer.step()
"""


@pytest.mark.parametrize("manual", [False, True])
def test_a_step_of_several_nets_has_all_of_them(run, manual):
    # Lightning's manual optimisation has both in one module, of which no forward is called.
    report, said = run(GAN.replace("class Step:", "class Step(nn.Module):") if manual else GAN)
    assert report.steps == 10
    assert report.row("generator").calls == 10
    assert report.row("discriminator").calls == 30
    once = 32 * 8 * 16
    assert report.row("generator").macs == 10 * 2 * once
    # Three forwards and gradients of the weight, and that of the generator's output.
    assert report.row("discriminator").macs == 10 * 7 * 32 * 16
    assert report.row("(optimizer)").calls == 20
    assert f"profiled 10 steps of {'Step' if manual else 'generator and discriminator'} in training" in said.err
    assert not note(report, "between-steps")


def test_one_of_several_nets_can_be_chosen(run):
    report, _ = run(GAN, "--model", "generator")
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * 2 * 32 * 8 * 16


RAW = """
w = torch.rand(8, 4, requires_grad=True)
opt = torch.optim.SGD([w], 0.1)
for _ in range(LOOPS):
    opt.zero_grad()
    (torch.rand(64, 8) @ w).sum().backward()
    UPDATE
"""


@pytest.mark.parametrize(("loops", "steps"), [(20, 10), (8, 5)])
def test_a_loop_without_modules_has_a_report_by_op(run, loops, steps):
    report, said = run(RAW.replace("LOOPS", str(loops)).replace("UPDATE", "opt.step()"))
    assert report.steps == steps
    assert report.total.macs == steps * trained_macs(64, 8, 4)
    assert f"profiled {steps} steps in training" in said.err


def test_a_loop_whose_steps_cannot_be_seen_is_told_what_to_write(run):
    by_hand = "with torch.no_grad(): w -= w.grad"
    _, said = run(RAW.replace("LOOPS", "20").replace("UPDATE", by_hand), code=2)
    assert "with roofprof.RooflineProfiler(" in said.err


def test_no_sentence_says_skip_none(run):
    _, said = run(f"{TRAINS}train(20)", "--phase", "eval", code=2)
    assert "with --phase eval, no call of Linear (20) is one of evaluation" in said.err
    _, said = run("net = nn.ReLU()\nnet(torch.rand(8))\n", code=2)
    assert "no module with parameters was called, but ReLU (1)" in said.err


def test_without_an_optimizer_a_step_lasts_up_to_its_backward(run):
    report, _ = run("""
    net = nn.Linear(8, 4)
    for i in range(20):
        net(torch.rand(64, 8)).sum().backward()
        with torch.no_grad():
            for p in net.parameters():
                p -= 0.1 * p.grad
            if i % 4 == 3:
                net(torch.rand(500, 8))
    """)
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * trained_macs(64, 8, 4)


def test_a_net_that_joins_later_has_a_row(run):
    report, _ = run("""
    first, second = nn.Linear(8, 4), nn.Linear(4, 2)
    opts = [torch.optim.SGD(each.parameters(), 0.1) for each in (first, second)]
    for i in range(40):
        x = first(torch.rand(64, 8))
        (second(x).sum() if i > 8 else x.sum()).backward()
        for opt in opts if i > 8 else opts[:1]:
            opt.step()
            opt.zero_grad()
    """)
    assert report.steps == 10
    assert report.row("first").calls == report.row("second").calls == 10


def test_a_step_whose_closure_calls_the_model(run):
    report, _ = run("""
    net = nn.Linear(8, 1)
    opt = torch.optim.LBFGS(net.parameters(), max_iter=1)
    def closure():
        opt.zero_grad()
        loss = net(torch.ones(64, 8)).square().sum()
        loss.backward()
        return loss
    for _ in range(20):
        opt.step(closure)
    """)
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * trained_macs(64, 8, 1)


def test_nothing_is_left_in_the_program(run):
    run(
        TRAINS
        + """
from torch.optim import optimizer
assert optimizer._global_optimizer_post_hooks
train(20)
assert not optimizer._global_optimizer_pre_hooks and not optimizer._global_optimizer_post_hooks
"""
    )
