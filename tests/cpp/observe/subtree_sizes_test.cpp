// Sizes of subtrees, held against the sets of tensors of each.

#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "observe/modules/parameters.h"
#include "observe/nn/nn_tree.h"

namespace roofprof::observe {
namespace {

using Tensors = std::vector<at::Tensor>;

TEST(SubtreeSizes, CountEachTensorOnceInEverySubtree) {
  std::mt19937 random(7);
  const auto below = [&](std::size_t end) { return std::uniform_int_distribution<std::size_t>(0, end - 1)(random); };
  for (int trial = 0; trial < 200; ++trial) {
    Tensors pool;
    for (int i = 0; i < 6; ++i) {
      pool.push_back(at::ones({static_cast<std::int64_t>(below(9) + 1)}).set_requires_grad(below(2) == 0));
    }
    // A walk: each module's parent is the one before it, or one of those around that.
    std::vector<Module> modules(1 + below(12));
    std::vector<OwnTensors> own(modules.size());
    for (std::size_t place = 0; place < modules.size(); ++place) {
      auto parent = static_cast<ModuleId>(place) - 1;
      while (parent > 0 && below(3) == 0) parent = modules[index_of(parent)].parent;
      modules[place].parent = parent;
      for (auto count = below(4); count-- > 0;) own[place].parameters.push_back(pool[below(pool.size())]);
      for (auto count = below(3); count-- > 0;) own[place].buffers.push_back(pool[below(pool.size())]);
      if (below(4) == 0) own[place].parameters.emplace_back();
    }
    SubtreeSizes sizes;
    for (std::size_t place = 0; place < modules.size(); ++place) sizes.add(static_cast<ModuleId>(place), own[place]);
    sizes.write_to(modules);

    for (std::size_t root = 0; root < modules.size(); ++root) {
      std::set<const at::Tensor*> parameters;
      std::set<const at::Tensor*> buffers;
      const auto in_pool = [&](const at::Tensor& tensor) -> const at::Tensor* {
        for (const auto& each : pool) {
          if (each.is_same(tensor)) return &each;
        }
        return nullptr;
      };
      for (std::size_t place = 0; place < modules.size(); ++place) {
        auto above = static_cast<ModuleId>(place);
        while (above >= 0 && above != static_cast<ModuleId>(root)) above = modules[index_of(above)].parent;
        if (above < 0) continue;
        for (const auto& parameter : own[place].parameters) parameters.insert(in_pool(parameter));
        for (const auto& buffer : own[place].buffers) buffers.insert(in_pool(buffer));
      }
      parameters.erase(nullptr);
      std::int64_t elements = 0;
      std::int64_t trainable = 0;
      std::int64_t buffer_bytes = 0;
      for (const auto* parameter : parameters) {
        elements += parameter->numel();
        trainable += parameter->requires_grad() ? parameter->numel() : 0;
        buffers.erase(parameter);
      }
      for (const auto* buffer : buffers) buffer_bytes += 4 * buffer->numel();
      EXPECT_EQ(modules[root].params, elements);
      EXPECT_EQ(modules[root].param_bytes, 4 * elements);
      EXPECT_EQ(modules[root].trainable_params, trainable);
      EXPECT_EQ(modules[root].buffer_bytes, buffer_bytes);
    }
  }
}

TEST(NnTree, KnowsWhichModulesWereAdded) {
  torch::nn::Module model;
  auto first = model.register_module("first", std::make_shared<torch::nn::Module>());
  model.register_module("second", torch::nn::Linear(1, 1));
  const auto before = contents_of(model).tree.objects;
  EXPECT_TRUE(paths_added(model, before).empty());
  first->register_module("new", torch::nn::Linear(1, 1));
  EXPECT_EQ(paths_added(model, before), (std::vector<std::string>{"first.new"}));
  model.unregister_module("second");
  EXPECT_EQ(paths_added(model, before), (std::vector<std::string>{"first.new"}));
}

}  // namespace
}  // namespace roofprof::observe
