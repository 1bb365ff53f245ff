"""Counting tools that fail in ways of other tools, for tests of `benchmarks/peers.py`. The door "original" is json."""

import os
import random
import signal
import sys
import time

import torch
from torch.nn import functional as F


def _is_original(module):
    return module.__name__ == "json"


def params_of(model):
    return {"params": sum(p.numel() for p in model.parameters())}


def honest(module, model, args, kwargs):
    model(*args, **kwargs)
    return params_of(model)


def one_more(module, model, args, kwargs):
    """The original counts one more."""
    return {"params": params_of(model)["params"] + _is_original(module)}


def ours_one_more(module, model, args, kwargs):
    """The original refuses, and ours is wrong."""
    if _is_original(module):
        raise ValueError("this one\ndoes not")
    return {"params": params_of(model)["params"] + 1}


def crashes(module, model, args, kwargs):
    """As the next two, the original alone."""
    if _is_original(module):
        os.kill(os.getpid(), signal.SIGSEGV)
    return params_of(model)


def hangs(module, model, args, kwargs):
    if _is_original(module):
        time.sleep(1000)
    return params_of(model)


def eats_memory(module, model, args, kwargs):
    if _is_original(module):
        bytearray(4 * 2**30)
    return params_of(model)


def careless(module, model, args, kwargs):
    """Leaves all that can be left."""
    model.register_forward_hook(lambda *_: None)
    model.counted = 1
    model.register_buffer("total", torch.zeros(1))
    model.eval()
    model.out.weight.requires_grad = True
    torch.rand(3)
    random.random()
    F.linear = lambda *args: args
    torch.set_grad_enabled(False)
    sys.stdout.write("counted\n")
    try:
        model(*args, **kwargs)
    except RuntimeError:
        return {"params": 0}
    return params_of(model)
