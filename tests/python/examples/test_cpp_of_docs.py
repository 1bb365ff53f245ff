"""The C++ of the pages: each block is compiled as it stands, and run, with what pages take for given."""

from __future__ import annotations

import re

import pytest
import torch
from cpp_project import ROOT, build, configure, run

PAGES = ("README.md", "docs/cpp.md", "docs/first-hour.md", "docs/import.md")

# What pages take for given; the two names that a block may declare itself stand in a scope around it.
GIVEN = """\
#include <filesystem>
#include <iostream>
#include <vector>

#include <torch/script.h>
#include <torch/torch.h>

%(includes)s

namespace nn = torch::nn;

struct BasicBlockImpl : nn::Module {
  BasicBlockImpl()
      : conv1(register_module("conv1", nn::Conv2d(nn::Conv2dOptions(3, 3, 3).padding(1)))),
        conv2(register_module("conv2", nn::Conv2d(nn::Conv2dOptions(3, 3, 3).padding(1)))),
        bn1(register_module("bn1", nn::BatchNorm2d(3))),
        bn2(register_module("bn2", nn::BatchNorm2d(3))) {}
  torch::Tensor forward(const torch::Tensor& x);
  nn::Conv2d conv1, conv2;
  nn::BatchNorm2d bn1, bn2;
  std::shared_ptr<BasicBlockImpl> shortcut;
};
TORCH_MODULE(BasicBlock);

%(functions)s

struct NetImpl : nn::Module {
  NetImpl() : layers(register_module("layers", nn::Sequential(BasicBlock(), nn::AdaptiveAvgPool2d(4)))) {}
  // 48 classes, so that an answer has the size of a prompt for the pages that decode.
  torch::Tensor forward(const torch::Tensor& x) { return layers->forward(x.view({-1, 3, 4, 4})).flatten(1); }
  nn::Sequential layers;
};
TORCH_MODULE(Net);

%(blocks)s

int main() {
%(calls)s
}
"""
BLOCK = """\
void block_%(number)d() {
  Net model;
  [[maybe_unused]] const auto images = torch::rand({2, 3, 4, 4}), image = images, prompt = images;
  [[maybe_unused]] const auto labels = torch::zeros({2}, torch::kLong);
  const std::vector<torch::Tensor> batches(3, images);
  [[maybe_unused]] const int64_t points = 5;
  torch::optim::SGD optimizer(model->parameters(), 0.1);
  [[maybe_unused]] const auto step = [&] { model(images).sum().backward(); };
  [[maybe_unused]] const auto train = [&](const torch::Tensor& batch) { model(batch).sum().backward(); };
  Net generator;
  nn::Sequential critic(nn::Linear(48, 1));
  [[maybe_unused]] const auto train_step = [&](Net& made, nn::Sequential& judged) {
    judged->forward(made(images)).sum().backward();
  };
  roofprof::RooflineProfiler prof(model, {.repeat = 2});
  roofprof::Report report = prof.count(images);
  {
%(code)s
  }
}
"""


def blocks():
    for page in PAGES:
        for code in re.findall(r"^```cpp\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL):
            yield page, code


def program():
    includes, functions, bodies = [], [], []
    for number, (page, code) in enumerate(blocks()):
        includes += re.findall(r"^#include .*$", code, re.MULTILINE)
        functions += re.findall(r"^torch::Tensor \w+::forward\(.*?^}$", code, re.MULTILINE | re.DOTALL)
        body = re.sub(r"^#include .*$", "", code, flags=re.MULTILINE)
        for function in functions:
            body = body.replace(function, "")
        bodies.append(f"// {page}\n" + BLOCK % {"number": number, "code": body})
    return GIVEN % {
        "includes": "\n".join(dict.fromkeys(includes)),
        "functions": "\n".join(functions),
        "blocks": "\n".join(bodies),
        # A package takes a minute to make: examples/cpp/run_package.cpp runs one.
        "calls": "\n".join(
            f"  block_{number}();" for number, body in enumerate(bodies) if "AOTIModelPackageLoader" not in body
        ),
    }


class Dicts(torch.nn.Module):
    def forward(self, batch: dict[str, torch.Tensor]):
        return batch["image"] * 2


PROJECT = """\
cmake_minimum_required(VERSION 3.25)
project(docs LANGUAGES CXX)
find_package(roofprof CONFIG REQUIRED)
add_executable(docs main.cpp)
target_link_libraries(docs PRIVATE roofprof::roofprof)
"""


WARNINGS = ["-Wall", "-Wextra", "-Werror"]

pytestmark = pytest.mark.integration  # two minutes of torch's headers


def test_the_cpp_of_the_pages_compiles_and_runs(installed, tmp_path, monkeypatch):
    (tmp_path / "main.cpp").write_text(program())
    (tmp_path / "CMakeLists.txt").write_text(PROJECT)
    torch.jit.save(torch.jit.script(Dicts()), tmp_path / "detector.pt")
    with torch.profiler.profile(record_shapes=True) as recorded:
        torch.rand(4, 4) @ torch.rand(4, 4)
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    configure(tmp_path, tmp_path / "build", installed, f"-DCMAKE_CXX_FLAGS={' '.join(WARNINGS)}")
    build(tmp_path / "build")
    monkeypatch.chdir(tmp_path)
    printed = run(tmp_path / "build" / "docs").stdout
    assert (tmp_path / "step.json").is_file()
    assert (tmp_path / "roofs.json").is_file()
    assert "aten::conv2d" in printed
    assert "decode" in printed
