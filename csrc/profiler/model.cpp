#include "profiler/model.h"

#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <optional>

#include "observe/instrumented_copy.h"
#include "observe/nn/nn_attribution.h"
#include "observe/nn/nn_tree.h"
#include "observe/script/script_places.h"
#include "observe/script/script_tree.h"

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
  void attach(const observe::ModelTree& tree, observe::Session& session) override {
    attribution_.emplace(tree);
    attribution_->attach(tree, session);
  }
  void describe(Observed& observed) const override { observed.torch_nn = attribution_->sights(); }

 private:
  std::optional<observe::NnAttribution> attribution_;
  const torch::nn::Module& module_;
};

// The caller's containers go in as they are: StateSnapshot puts their contents back.
class ForwardCall : public ScriptCall {
 public:
  ForwardCall(torch::jit::Module module, ScriptArguments arguments, ScriptKeywords keywords)
      : module_(std::move(module)), arguments_(std::move(arguments)), keywords_(std::move(keywords)) {
    try {
      copy_.emplace(module_, "forward");
    } catch (const c10::Error& error) {
      no_copy_ = observe::note_without_copy("", error.what_without_backtrace());
    }
  }
  void first() override { module_.forward(arguments_, keywords_); }
  bool repeatable() const override { return true; }
  void prepare() override {}
  void again() override { first(); }
  std::vector<const at::Tensor*> inputs() const override { return {}; }

  void count(const Counted& counted) override {
    if (!copy_) {
      add_note(counted.notes, no_copy_);
      hide_script_calls(counted);
      first();
      return;
    }
    const auto inputs = positional();
    const auto on_call = [&](const observe::ScriptCall& seen) { observe::keep_shapes(seen, counted.modules); };
    observe::ScriptCall own;
    for (const auto& input : inputs) observe::read_shapes(input, own.input_shapes);
    own.output_bytes = observe::read_shapes(copy_->run(counted.session, inputs, on_call), own.output_shapes);
    on_call(own);
  }

 private:
  // As forward's schema has them, without the module itself.
  ScriptArguments positional() const {
    ScriptArguments stack = arguments_;
    stack.insert(stack.begin(), module_._ivalue());
    module_.get_method("forward").function().getSchema().checkAndNormalizeInputs(stack, keywords_);
    stack.erase(stack.begin());
    return stack;
  }

  torch::jit::Module module_;
  ScriptArguments arguments_;
  ScriptKeywords keywords_;
  std::optional<observe::InstrumentedCopy> copy_;
  Note no_copy_;  // why there is none
};

class ScriptModel : public Model {
 public:
  explicit ScriptModel(torch::jit::Module module) : module_(std::move(module)) {}
  observe::ModelTree tree() const override { return observe::tree_of(module_); }
  Reach reach() const override { return {{}, {module_._ivalue()}}; }
  void attach(const observe::ModelTree& tree, observe::Session& session) override {
    auto places = std::make_shared<observe::ScriptPlaces>();
    places->add(module_, kModel, tree.modules);
    session.set_scripts(std::move(places));
    session.set_model(module_._ivalue().get());
  }
  void describe(Observed& observed) const override {
    if (auto note = observe::frozen_note(module_, "")) observed.notes_on_model.push_back(std::move(*note));
  }
  std::unique_ptr<ScriptCall> script_call(ScriptArguments arguments, ScriptKeywords keywords) const override {
    return std::make_unique<ForwardCall>(module_, std::move(arguments), std::move(keywords));
  }

 private:
  torch::jit::Module module_;
};

}  // namespace

std::unique_ptr<Model> model_of(const torch::nn::Module& module) { return std::make_unique<NnModel>(module); }
std::unique_ptr<Model> model_of(const torch::jit::Module& module) { return std::make_unique<ScriptModel>(module); }

void hide_script_calls(const Counted& counted) {
  if (counted.session->scripts() == nullptr) return;
  for (auto& module : counted.modules) module.calls_visible = module.parent < 0;
}

}  // namespace roofprof::detail
