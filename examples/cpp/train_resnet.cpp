// One training step of a small residual network: forward, backward and optimizer, each op in its module's row.
//
//   train_resnet [REPORT.json]

#include <roofprof/profiler.h>
#include <roofprof/scope.h>
#include <torch/nn.h>
#include <torch/optim/sgd.h>

#include <cstdint>
#include <iostream>

namespace nn = torch::nn;

nn::Conv2d conv(std::int64_t in, std::int64_t out, std::int64_t kernel, std::int64_t stride) {
  return nn::Conv2d(nn::Conv2dOptions(in, out, kernel).stride(stride).padding(kernel / 2).bias(false));
}

struct BasicBlockImpl : nn::Module {
  BasicBlockImpl(std::int64_t in, std::int64_t out, std::int64_t stride)
      : conv1(register_module("conv1", conv(in, out, 3, stride))),
        bn1(register_module("bn1", nn::BatchNorm2d(out))),
        conv2(register_module("conv2", conv(out, out, 3, 1))),
        bn2(register_module("bn2", nn::BatchNorm2d(out))) {
    if (stride != 1 || in != out) {
      shortcut = register_module("shortcut", nn::Sequential(conv(in, out, 1, stride), nn::BatchNorm2d(out)));
    }
  }

  torch::Tensor forward(const torch::Tensor& x) {
    ROOFPROF_SCOPE(*this);  // the ops of this block itself, such as the addition, stand in its row
    const auto skipped = shortcut ? shortcut->forward(x) : x;
    const auto y = bn2(conv2(torch::relu(bn1(conv1(x)))));
    return torch::relu(y + skipped);
  }

  nn::Conv2d conv1;
  nn::BatchNorm2d bn1;
  nn::Conv2d conv2;
  nn::BatchNorm2d bn2;
  nn::Sequential shortcut{nullptr};
};
TORCH_MODULE(BasicBlock);

struct ResNetImpl : nn::Module {
  explicit ResNetImpl(std::int64_t classes)
      : stem(register_module("stem", conv(3, 16, 3, 1))),
        bn(register_module("bn", nn::BatchNorm2d(16))),
        layers(register_module("layers",
                               nn::Sequential(BasicBlock(16, 16, 1), BasicBlock(16, 32, 2), BasicBlock(32, 64, 2)))),
        fc(register_module("fc", nn::Linear(64, classes))) {}

  torch::Tensor forward(const torch::Tensor& images) {
    ROOFPROF_SCOPE(*this);
    const auto features = layers->forward(torch::relu(bn(stem(images))));
    return fc(features.mean({2, 3}));
  }

  nn::Conv2d stem;
  nn::BatchNorm2d bn;
  nn::Sequential layers;
  nn::Linear fc;
};
TORCH_MODULE(ResNet);

int main(int argc, char** argv) {
  ResNet model(10);
  torch::optim::SGD optimizer(model->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  const auto images = torch::randn({16, 3, 32, 32});
  const auto labels = torch::randint(10, {16});
  const auto step = [&] {
    optimizer.zero_grad();
    nn::functional::cross_entropy(model(images), labels).backward();
    optimizer.step();
  };

  for (int i = 0; i < 3; ++i) step();  // a closure is run once: it is warm by then
  roofprof::RooflineProfiler prof(model);
  const roofprof::Report report = prof.run(step);

  std::cout << report;
  report.write_json(argc > 1 ? argv[1] : "train_resnet.json");
}
