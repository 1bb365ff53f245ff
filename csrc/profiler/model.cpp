#include "profiler/model.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include "observe/nn_tree.h"
#include "observe/script_tree.h"

namespace roofprof::detail {
namespace {

class NnModel : public Model {
 public:
  explicit NnModel(const torch::nn::Module& module) : module_(module) {}
  observe::ModelTree tree() const override { return observe::tree_of(module_); }
  Reach reach() const override {
    Reach reach{module_.parameters(), {}};
    for (auto& buffer : module_.buffers()) reach.tensors.push_back(std::move(buffer));
    return reach;
  }

 private:
  const torch::nn::Module& module_;
};

// The caller's containers go in as they are: Rewind puts their contents back.
class ScriptCall : public Call {
 public:
  ScriptCall(torch::jit::Module module, ScriptArguments arguments, ScriptKeywords keywords)
      : module_(std::move(module)), arguments_(std::move(arguments)), keywords_(std::move(keywords)) {}
  void first() override { module_.forward(arguments_, keywords_); }
  bool repeatable() const override { return true; }
  void prepare() override {}
  void again() override { first(); }
  std::vector<const at::Tensor*> inputs() const override { return {}; }

 private:
  torch::jit::Module module_;
  ScriptArguments arguments_;
  ScriptKeywords keywords_;
};

class ScriptModel : public Model {
 public:
  explicit ScriptModel(torch::jit::Module module) : module_(std::move(module)) {}
  observe::ModelTree tree() const override { return observe::tree_of(module_); }
  Reach reach() const override { return {{}, {module_._ivalue()}}; }
  std::unique_ptr<Call> script_call(ScriptArguments arguments, ScriptKeywords keywords) const override {
    return std::make_unique<ScriptCall>(module_, std::move(arguments), std::move(keywords));
  }

 private:
  torch::jit::Module module_;
};

}  // namespace

std::unique_ptr<Model> model_of(const torch::nn::Module& module) { return std::make_unique<NnModel>(module); }
std::unique_ptr<Model> model_of(const torch::jit::Module& module) { return std::make_unique<ScriptModel>(module); }

}  // namespace roofprof::detail
