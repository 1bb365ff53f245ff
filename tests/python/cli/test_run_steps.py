"""``roofprof run`` finds the steps of one phase by backward and optimizer, whatever the program calls besides."""

import subprocess
import sys

import pytest

import roofprof

TRAINS = """
def train(steps, batch=64):
    net.train()
    for _ in range(steps):
        opt.zero_grad()
        net(torch.rand(batch, 8)).sum().backward()
        opt.step()

def evaluate(steps, batch=3):
    net.eval()
    with torch.no_grad():
        for _ in range(steps):
            net(torch.rand(batch, 8))

net = nn.Linear(8, 4)
opt = torch.optim.SGD(net.parameters(), 0.1)
"""


def note(report, code):
    return [each.text for each in report.coverage.notes if each.code == code]


def trained_macs(batch, inputs, outputs):
    """One step of a Linear whose input needs no gradient: the forward, and the gradient of the weight."""
    return 2 * batch * inputs * outputs


# Training and evaluation have batches of their own, so the work tells which was profiled.
MACS = {"training": trained_macs(64, 8, 4), "evaluation": 3 * 8 * 4}


@pytest.mark.parametrize(
    ("text", "options", "phase", "steps"),
    [
        ("evaluate(20); train(20); evaluate(20)", [], "training", 10),  # nanoGPT evaluates first
        ("evaluate(20, batch=64); train(20)", [], "training", 10),
        ("evaluate(20); train(20)", ["--phase", "eval"], "evaluation", 10),
        ("train(20); evaluate(20)", ["--phase", "eval"], "evaluation", 10),
        ("evaluate(2)", [], "evaluation", 1),
        # Evaluation comes in between: none of its calls is in a step.
        ("for _ in range(4): train(5); evaluate(2)", [], "training", 10),
        ("for _ in range(30): train(1); evaluate(1)", [], "training", 10),
        ("evaluate(20); train(20)", ["--skip", "5"], "training", 10),
        ("evaluate(20); train(20); raise KeyError", ["--stop"], "training", 10),
        # No backward follows these calls, though they have gradients.
        ("for _ in range(20): net(torch.rand(3, 8)).argmax()\ntrain(20)", [], "training", 10),
        ("for _ in range(20): net(torch.rand(64, 8))\ntrain(20)", [], "training", 10),
        ("for _ in range(20): net(torch.rand(3, 8))", [], "evaluation", 10),
        ("for _ in range(20): net(torch.rand(3, 8))", ["--phase", "eval"], "evaluation", 10),
    ],
)
def test_the_window_is_of_one_phase(run, text, options, phase, steps):
    report, streams = run(TRAINS + text, *options)
    assert f"profiled {steps} " in streams.err
    assert f"Linear in {phase}" in streams.err
    assert report.row("").calls == report.steps == steps
    between = sum(row.macs for row in report.rows if row.path.endswith("(between steps)"))
    assert report.total.macs - between == steps * MACS[phase]
    (text,) = note(report, "window-phase")
    assert text.startswith(f"the calls are those of {phase}: ")


RAW = """
w = torch.rand(8, 4, requires_grad=True)
opt = torch.optim.SGD([w], 0.1)
for _ in range(LOOPS):
    opt.zero_grad()
    (torch.rand(64, 8) @ w).sum().backward()
    UPDATE
"""
BY_HAND = RAW.replace("LOOPS", "20").replace("UPDATE", "with torch.no_grad(): w -= w.grad")


@pytest.mark.parametrize(
    ("text", "options", "sentence"),
    [
        ("x = 1", [], "no torch.nn module was called"),
        ("net = nn.ReLU()\nnet(torch.rand(8))", [], "no module with parameters was called, but ReLU (1)"),
        (BY_HAND, [], "with roofprof.RooflineProfiler("),
        (f"{TRAINS}train(12)", ["--model", "Foo"], "no module that was called is 'Foo'; called were Linear (12)"),
        (f"{TRAINS}train(12)", ["--skip", "99"], "with --skip 99 too few calls are left of Linear (12)"),
        (f"{TRAINS}train(20)", ["--phase", "eval"], "with --phase eval, no call of Linear (20) is one of evaluation"),
        (
            f"{TRAINS}for _ in range(20): net(torch.rand(3, 8))",
            ["--phase", "train"],
            "with --phase train, no backward followed a call of Linear (20)",
        ),
    ],
)
def test_a_program_without_such_steps_is_reported_what_to_do(run, text, options, sentence):
    _, streams = run(text, *options, code=2)
    assert sentence in streams.err.splitlines()[-1]


@pytest.mark.parametrize("validation", ["with torch.no_grad(): ema(x)", "net(x[:3])"])
def test_what_runs_between_steps_has_a_row_and_is_in_no_mean(run, validation):
    text = """
ema = torch.optim.swa_utils.AveragedModel(net)
x = torch.rand(500, 8)
for epoch in range(6):
    train(4)
    net.eval()
    for _ in range(3):
        VALIDATE
    net.train()
"""
    report, _ = run(TRAINS + text.replace("VALIDATE", validation))
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


def test_calls_before_each_update_are_known_by_their_sizes(run):
    """A rollout with gradients is none of the steps'; calls that look like theirs are, and are named."""
    report, _ = run(f"{TRAINS}for _ in range(30):\n    for _ in range(5): net(torch.rand(1, 8)).argmax()\n    train(1)")
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * trained_macs(64, 8, 4)
    assert report.row("(between steps)").macs == 9 * 5 * 8 * 4
    report, _ = run(f"{TRAINS}for _ in range(30): net(torch.rand(64, 8)); train(1)")
    assert (report.steps, report.row("").calls) == (10, 20)
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


def test_a_model_is_found_by_its_optimizer(run):
    report, streams = run(OWN_CALL + TRAINS.replace("net = nn.Linear(8, 4)\n", "") + "train(20)\n")
    assert report.steps == 10
    assert (report.row("").type, report.row("").params) == ("Own", 4 * 8)
    assert report.total.macs == 10 * trained_macs(64, 8, 4)
    assert "profiled 10 steps of Own in training" in streams.err


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
    for step in range(40):
        if step % 4 == 0:
            with torch.no_grad():
                for _ in range(12): policy(torch.rand(1, 8))
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


@pytest.mark.parametrize("base", ["object", "nn.Module"])
def test_a_step_of_several_nets_has_all_of_them(run, base):
    # Lightning's manual optimisation has both in one module, of which no forward is called.
    report, streams = run(GAN.replace("class Step", f"class Step({base})"))
    assert (report.steps, report.row("(optimizer)").calls) == (10, 20)
    assert (report.row("generator").calls, report.row("discriminator").calls) == (10, 30)
    assert report.row("generator").macs == 10 * 2 * 32 * 8 * 16
    # Three forwards and gradients of the weight, and that of the generator's output.
    assert report.row("discriminator").macs == 10 * 7 * 32 * 16
    name = "generator and discriminator" if base == "object" else "Step"
    assert f"profiled 10 steps of {name} in training" in streams.err
    assert not note(report, "between-steps")


def test_one_of_several_nets_can_be_chosen(run):
    report, _ = run(GAN, "--model", "generator")
    assert report.steps == report.row("").calls == 10
    assert report.row("").macs == 10 * 2 * 32 * 8 * 16


@pytest.mark.parametrize(("loops", "steps"), [(20, 10), (8, 5)])
def test_a_loop_without_modules_has_a_report_by_op(run, loops, steps):
    report, streams = run(RAW.replace("LOOPS", str(loops)).replace("UPDATE", "opt.step()"))
    assert report.steps == steps
    assert report.total.macs == steps * trained_macs(64, 8, 4)
    assert f"profiled {steps} steps in training" in streams.err


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


def test_waiting_for_data_is_a_row(run):
    report, streams = run(
        """
    net = nn.Linear(4, 4).eval()
    for batch in torch.utils.data.DataLoader(torch.ones(200, 4), batch_size=10):
        net(batch)
    """,
        *("--steps", "5"),
    )
    assert report.row("(data loading)").calls == 5
    assert report.row("(data loading)").time > 0
    assert "(data loading)" in streams.out


def in_a_process(here, text):
    (here / "program.py").write_text(f"import os, signal, sys, torch\nfrom torch import nn\n{TRAINS}\n{text}")
    command = [sys.executable, "-m", "roofprof", "run", "program.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    report = roofprof.Report.from_json("program.roofprof.json")
    assert report.steps == 10
    assert not report.partial
    return done


@pytest.mark.parametrize("end", ["os._exit(3)", "os.kill(os.getpid(), signal.SIGTERM)"])
def test_the_report_is_there_however_the_program_ends(here, end):
    assert in_a_process(here, f"train(20)\n{end}\n").returncode in {3, -15}


def test_a_child_of_the_program_does_not_report(here):
    fork = """
train(8)
if os.fork() == 0:
    evaluate(8)  # torch's autograd does not work in a child
    sys.exit(5)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 5
train(20)
"""
    done = in_a_process(here, fork)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("Linear on cpu") == 1
    assert done.stderr.count("written to") == 1


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
