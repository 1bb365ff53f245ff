#pragma once
// The interface of all kinds of models to the profiler.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <memory>
#include <string>
#include <vector>

#include "core/run_record.h"
#include "observe/modules/module_index.h"
#include "observe/modules/parameters.h"
#include "observe/session.h"
#include "roofprof/profiler.h"

namespace roofprof::detail {

// The values within reach from outside: tensors, and TorchScript's values with all that they hold.
struct Reach {
  std::vector<at::Tensor> tensors;
  std::vector<c10::IValue> values;

  Reach with(const Reach& more) const {
    Reach both = *this;
    both.tensors.insert(both.tensors.end(), more.tensors.begin(), more.tensors.end());
    both.values.insert(both.values.end(), more.values.begin(), more.values.end());
    return both;
  }
};

// The data that a counting call may add to.
struct Counted {
  const std::shared_ptr<observe::Session>& session;
  const void* object;  // the model
  std::vector<Module>& modules;
  std::vector<Note>& notes;
};

// A call that must be counted in a special way.
class ScriptCall : public Call {
 public:
  // Makes the counting call in place of first(), with the same effect, and returns what it returns.
  virtual c10::IValue count(const Counted& counted) = 0;
};

// A model as it is when a run begins.
struct Look {
  observe::ModelTree tree;
  std::vector<observe::OwnTensors> own;  // of the module at each place; a torch::nn model's
  Reach reach;
};

class Model {
 public:
  Model() = default;
  virtual ~Model() = default;
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;
  virtual Look look() const = 0;
  virtual Reach reach() const = 0;
  // Called before a session's first pass.
  virtual void attach(const Look& look, observe::Session& session) = 0;
  // Adds what the model knows about its modules' calls, and notes about it.
  virtual void describe(RunRecord& observed) const = 0;
  // Returns a call of its forward with TorchScript's values; null where it takes none.
  virtual std::unique_ptr<ScriptCall> script_call(ScriptArguments /*arguments*/, ScriptKeywords /*keywords*/) const {
    return nullptr;
  }
};

// Marks calls as not visible: TorchScript's executor calls no modules, so what it ran is known, but not how often.
void hide_script_calls(const Counted& counted);

// `module` outlives what is made of it.
std::unique_ptr<Model> model_of(const torch::nn::Module& module);
std::unique_ptr<Model> model_of(const torch::jit::Module& module);
std::unique_ptr<Model> model_of(torch::inductor::AOTIModelPackageLoader& package);

}  // namespace roofprof::detail
