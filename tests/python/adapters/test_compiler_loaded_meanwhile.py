"""torch's compiler is first imported in the middle of a profile: each case in a process of its own, forked before."""

import os
import subprocess
import sys

PROGRAM = """
import os
import sys
import torch
from torch import nn

KINDS = ["cond", "while_loop", "scan", "invoke_subgraph", "module", "function"]
CASES = [(kind, "run") for kind in KINDS] + [("cond", "count"), ("cond", "block"), ("module", "block")]


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(16, 16)

    def forward(self, x):
        layer = self.layer
        if KIND == "cond":
            return torch.cond(x.sum() > 0, lambda x: layer(x), lambda x: x + 1, (x,))
        if KIND == "while_loop":
            from torch._higher_order_ops.while_loop import while_loop

            return while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, layer(x)), (torch.tensor(0), x))
        if KIND == "scan":
            from torch._higher_order_ops.scan import scan

            return scan(lambda carry, x: (layer(carry), x.clone()), x, x.unsqueeze(0))
        if KIND == "invoke_subgraph":
            region = torch.compiler.nested_compile_region(lambda x: layer(x))
            return torch.compile(lambda x: region(x), backend="eager", fullgraph=True)(x)
        if KIND == "module":
            return torch.compile(layer, backend="eager", fullgraph=True)(x)
        return torch.compile(lambda x: layer(x), backend="eager", fullgraph=True)(x)


import roofprof


def check(kind, entry):
    global KIND
    KIND = kind
    model, x = Model(), torch.ones(1, 16)
    roofprof.count(nn.Linear(16, 16), x)
    assert "torch._dynamo" not in sys.modules  # it takes seconds to load
    finders = list(sys.meta_path)
    with torch.no_grad():
        if entry == "count":
            report = roofprof.count(model, x)
        elif entry == "run":
            report = roofprof.RooflineProfiler(model, warmup=0, repeat=1).run(x)
        else:
            with roofprof.RooflineProfiler(model) as profiler:
                model(x)
            report = profiler.report()
    assert report.total.macs == 16 * 16, report
    assert sys.meta_path == finders
    dynamo = sys.modules["torch._dynamo"]
    assert not dynamo.callback_handler.start_callbacks and not dynamo.callback_handler.end_callbacks
    assert dynamo.__loader__ is dynamo.__spec__.loader and type(dynamo.__loader__).__name__ == "SourceFileLoader"
    assert dynamo.eval_frame._stance.stance == "default"


for kind, entry in CASES:
    child = os.fork()  # nothing has run yet, and no thread
    if child == 0:
        try:
            check(kind, entry)
        except BaseException as error:
            print(kind, entry, type(error).__name__, (str(error).strip().splitlines() or [""])[0], flush=True)
        finally:
            os._exit(0)
    os.waitpid(child, 0)
"""


def test_it_is_as_if_it_had_been_there():
    environment = {**os.environ, "ROOFPROF_CEILINGS": "off"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr[-2000:]
