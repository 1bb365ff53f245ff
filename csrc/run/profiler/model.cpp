#include "run/profiler/model.h"

#include <torch/csrc/inductor/aoti_package/model_package_loader.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/nn/module.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/phrases.h"
#include "core/shapes.h"
#include "observe/instrumented_copy.h"
#include "observe/nn/nn_tree.h"
#include "observe/script/script_places.h"
#include "observe/script/script_tree.h"

namespace roofprof::detail {
namespace {

class NnModel : public Model {
 public:
  explicit NnModel(const torch::nn::Module& module) : module_(module) {}
  Look look() const override {
    auto [tree, tensors] = observe::contents_of(module_);
    auto reach = reach_of(tensors);
    return {std::move(tree), std::move(tensors), std::move(reach)};
  }
  Reach reach() const override { return reach_of(observe::contents_of(module_).tensors); }
  void attach(const Look& look, observe::Session& session) override {
    attribution_.emplace(look.tree);
    attribution_->attach(look.tree, look.own, session);
    before_ = look.tree.objects;
  }
  void describe(RunRecord& observed) const override {
    observed.torch_nn = attribution_->sights();
    const auto added = observe::paths_added(module_, before_);
    if (added.empty()) return;
    const auto text = "modules were added during the run (" + listed(added, kNamed) +
                      "): they have no rows and their parameters are not counted; their work is in the rows of their "
                      "callers, in (outside) where a closure has no other; call the model once before it is profiled";
    add_note(observed.notes_on_model, "modules-added", text, added);
  }

 private:
  static Reach reach_of(const std::vector<observe::OwnTensors>& all) {
    Reach reach;
    for (const auto& own : all) {
      for (const auto* tensors : {&own.parameters, &own.buffers})
        reach.tensors.insert(reach.tensors.end(), tensors->begin(), tensors->end());
    }
    return reach;
  }

  std::vector<const void*> before_;  // the modules that it had
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
  void first(const Returned& /*returned*/) override { again(); }
  bool repeatable() const override { return true; }
  void prepare() override {}
  void again() override { forward(); }
  std::vector<const at::Tensor*> inputs() const override { return {}; }

  c10::IValue count(const Counted& counted) override {
    if (!copy_) {
      add_note(counted.notes, no_copy_);
      hide_script_calls(counted);
      return forward();
    }
    const auto inputs = positional();
    const auto on_call = [&](const observe::ScriptCallEvent& seen) {
      seen.shapes.write_to(counted.modules.at(index_of(seen.module)));
    };
    observe::ScriptCallEvent own;
    for (const auto& input : inputs) own.shapes.inputs.add(input);
    auto result = copy_->run(counted.session, inputs, on_call);
    own.shapes.outputs.add(result);
    on_call(own);
    return result;
  }

 private:
  c10::IValue forward() { return module_.forward(arguments_, keywords_); }
  // Returns the arguments as forward's schema has them, without the module itself.
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
  Look look() const override { return {observe::tree_of(module_), {}, reach()}; }
  Reach reach() const override { return {{}, {module_._ivalue()}}; }
  void attach(const Look& look, observe::Session& session) override {
    places_ = std::make_shared<observe::ScriptPlaces>();
    places_->add(module_, kModel, look.tree.modules);
    session.setup.scripts = places_;
    session.setup.model = module_._ivalue().get();
  }
  void describe(RunRecord& observed) const override {
    if (places_->called_from_around()) observed.tree.modules[kModel].calls_visible = false;
    if (auto note = observe::frozen_note(module_, "")) observed.notes_on_model.push_back(std::move(*note));
  }
  std::unique_ptr<ScriptCall> script_call(ScriptArguments arguments, ScriptKeywords keywords) const override {
    return std::make_unique<ForwardCall>(module_, std::move(arguments), std::move(keywords));
  }

 private:
  torch::jit::Module module_;
  std::shared_ptr<observe::ScriptPlaces> places_;
};

// An AOTInductor package: its modules and their work are those of the counts that roofprof.package_metadata wrote.
class PackageModel : public Model {
 public:
  explicit PackageModel(torch::inductor::AOTIModelPackageLoader& loader) : loader_(loader) {
    const auto metadata = loader.get_metadata();
    const auto found = metadata.find("roofprof");
    if (found == metadata.end()) return;
    try {
      counts_ = std::make_shared<const Report>(Report::from_json_text(found->second));
    } catch (const std::runtime_error& error) {
      why_not_ = std::string("its counts cannot be read: ") + error.what();
    }
  }
  Look look() const override {
    Look look{observe::ModelTree::with_roots(), {}, {}};
    auto& tree = look.tree;
    tree.objects[kModel] = &loader_;
    if (counts_ == nullptr) {
      tree.modules[kModel] = of_constants();
      return look;
    }
    const auto& counted = data_of(*counts_).tree.modules;
    for (std::size_t id = 0; id < counted.size(); ++id) {
      auto module = counted[id];
      module.trainable_params = 0;
      module.peak_memory = module.kept_memory = std::nullopt;
      if (id == index_of(kModel)) module.input_shapes = module.output_shapes = {};  // this call's
      if (id > index_of(kOptimizer))
        tree.add(std::move(module), nullptr);
      else if (id == index_of(kModel))
        tree.modules[kModel] = std::move(module);
    }
    return look;
  }
  Reach reach() const override { return {}; }
  void attach(const Look& /*look*/, observe::Session& session) override { session.setup.model = &loader_; }
  void describe(RunRecord& observed) const override {
    auto& package = observed.packages.emplace_back();
    package.why_not = why_not_;
    if (counts_ == nullptr) return;
    const auto& given = observed.tree.modules[kModel].input_shapes;
    const auto& counted = data_of(*counts_).tree.modules[kModel].input_shapes;
    if (given.empty() || given == counted) {
      package.counts = {counts_, &data_of(*counts_)};
    } else {
      package.why_not = "its counts are of inputs " + shapes_text(counted) + ", and these are " + shapes_text(given);
    }
  }

 private:
  // Inductor writes small constants into the code, so that their sizes are not known here.
  Module of_constants() const {
    Module module;
    module.type = "AOTInductor package";
    for (const auto& [name, tensor] : loader_.get_runner()->extract_constants_map(/*use_inactive=*/false)) {
      module.params += tensor.numel();
      module.param_bytes += static_cast<std::int64_t>(tensor.nbytes());
    }
    return module;
  }

  torch::inductor::AOTIModelPackageLoader& loader_;
  std::shared_ptr<const Report> counts_;  // null: not known
  std::string why_not_;
};

}  // namespace

std::unique_ptr<Model> model_of(torch::inductor::AOTIModelPackageLoader& package) {
  return std::make_unique<PackageModel>(package);
}
std::unique_ptr<Model> model_of(const torch::nn::Module& module) { return std::make_unique<NnModel>(module); }
std::unique_ptr<Model> model_of(const torch::jit::Module& module) { return std::make_unique<ScriptModel>(module); }

void hide_script_calls(const Counted& counted) {
  if (counted.session->setup.scripts == nullptr) return;
  for (auto& module : counted.modules) module.calls_visible = module.parent < 0;
}

}  // namespace roofprof::detail
