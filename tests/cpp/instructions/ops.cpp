// What benchmarks/instructions/count.py runs under callgrind: ops, calls and blocks, each many times, outside of a
// block and in one. It prints how often each was done; without callgrind it counts nothing. With --about it prints what
// the counts depend on besides the code: the compiler, and torch, whose headers are in it.

#include <roofprof/profiler.h>
#include <torch/torch.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "requests.h"

namespace {

// Of a number that whatever samples by powers of two divides.
constexpr int kCalls = 1'024;
constexpr int kBlocks = 8;
// The first calls in a block may be observed more closely than later ones.
constexpr int kFirstCalls = 8'192;

template <class Call>
void count(const std::string& name, int calls, Call&& call) {
  call();
  instructions::begin();
  for (int i = 0; i < calls; ++i) call();
  instructions::end(name.c_str());
  std::printf("%s: %d\n", name.c_str(), calls);
}

// Counts the call outside of a block and in one of the model's.
template <class Call>
void count_both(const std::string& name, const torch::nn::Sequential& model, Call&& call) {
  count(name + ", plain", kCalls, call);
  roofprof::RooflineProfiler profiler(model, {.ceilings = roofprof::Ceilings{}});
  const roofprof::Block block(profiler);
  for (int i = 0; i < kFirstCalls; ++i) call();
  count(name + ", in a block", kCalls, call);
}

// A module with children under their names. Nothing calls it.
struct Part : torch::nn::Module {
  template <class Child>
  Part& with(const std::string& name, Child child) {
    register_module(name, std::move(child));
    return *this;
  }
};

torch::nn::Conv2d convolution() { return torch::nn::Conv2d(torch::nn::Conv2dOptions(2, 2, 3).bias(false)); }

std::shared_ptr<Part> block_of_resnet(bool downsamples) {
  auto block = std::make_shared<Part>();
  block->with("conv1", convolution()).with("bn1", torch::nn::BatchNorm2d(2)).with("relu", torch::nn::ReLU());
  block->with("conv2", convolution()).with("bn2", torch::nn::BatchNorm2d(2));
  if (downsamples) block->with("downsample", torch::nn::Sequential(convolution(), torch::nn::BatchNorm2d(2)));
  return block;
}

// Returns a model with the modules, parameters and buffers of resnet18, small.
std::shared_ptr<Part> like_resnet18() {
  auto model = std::make_shared<Part>();
  model->with("conv1", convolution()).with("bn1", torch::nn::BatchNorm2d(2)).with("relu", torch::nn::ReLU());
  model->with("maxpool", torch::nn::MaxPool2d(2));
  for (int number = 1; number <= 4; ++number) {
    auto layer = std::make_shared<Part>();
    layer->with("0", block_of_resnet(number > 1)).with("1", block_of_resnet(false));
    model->with("layer" + std::to_string(number), layer);
  }
  model->with("avgpool", torch::nn::AdaptiveAvgPool2d(1)).with("fc", torch::nn::Linear(2, 2));
  return model;
}

}  // namespace

int main(int arguments, char** /*argument*/) {
  if (arguments > 1) {
    std::printf("compiler: %s\ntorch: %s\n", __VERSION__, TORCH_VERSION);
    return 0;
  }
  torch::set_num_threads(1);
  const at::NoGradGuard no_grad;
  auto x = torch::ones({16});
  const auto y = torch::ones({16});
  const auto rows = torch::ones({1, 16});
  torch::nn::Linear linear(16, 16);
  torch::nn::Identity empty;
  const torch::nn::Sequential model(linear, empty);

  count_both("add_", model, [&] { x.add_(y); });
  count_both("x + y", model, [&] { x + y; });
  count_both("nn::Linear", model, [&] { linear->forward(rows); });
  count_both("call of an empty module", model, [&] { empty->forward(x); });

  roofprof::RooflineProfiler profiler(like_resnet18(), {.ceilings = roofprof::Ceilings{}});
  count("empty block around resnet18", kBlocks, [&] { const roofprof::Block block(profiler); });
}
