"""Writes torchvision's resnet18, scripted, random weights, to the file named: what bench_overhead loads."""

from __future__ import annotations

import sys

import torch
import torchvision

torch.manual_seed(0)
torch.jit.script(torchvision.models.resnet18().eval()).save(sys.argv[1])
