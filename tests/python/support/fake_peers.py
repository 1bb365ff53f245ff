"""Counting tools that fail as other tools do, for tests of `benchmarks/peers.py`. The variant "original" is json."""

import os
import signal


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
    """The original does."""
    if _is_original(module):
        os.kill(os.getpid(), signal.SIGSEGV)
    return params_of(model)
