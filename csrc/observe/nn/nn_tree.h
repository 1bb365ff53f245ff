#pragma once
// The tree of a torch::nn model, and what attributes ops to its modules.

#include <string>
#include <string_view>
#include <vector>

#include "core/run_record.h"
#include "observe/modules/module_index.h"
#include "observe/modules/parameters.h"

namespace torch::nn {
class Module;
}

namespace roofprof::observe {

// A model as it is read once: its tree, and the tensors of the module at each place.
struct NnContents {
  ModelTree tree;
  std::vector<OwnTensors> tensors;
};

// Returns what the model holds. A module at several places has a row at each, and its parameters count once in every
// subtree.
NnContents contents_of(const torch::nn::Module& model);

// Returns the paths of the model's modules that are none of these objects of its tree at an earlier time.
std::vector<std::string> paths_added(const torch::nn::Module& model, const std::vector<const void*>& before);

// Returns whether the module only holds other modules or parameters. Such a module does no work itself, and if it has
// calls, they are not seen (Sequential's forward is compiled into the program).
bool is_container(const torch::nn::Module& module);

// Returns the name that people and Python use: "torch::nn::Conv2dImpl" is "Conv2d".
std::string type_name(std::string_view qualified);

class Session;

// Attributes the ops of a torch::nn model to its modules.
//
// Calls are seen of the classes that libroofprof_nn intercepts and of modules that say ROOFPROF_SCOPE(*this). Of the
// others (custom modules; all, where nothing is intercepted) an op that takes a module's own parameters belongs to it,
// and any other op to the innermost frame that is open.
class NnAttribution {
 public:
  // Takes a tree that contents_of made, while its modules live.
  explicit NnAttribution(const ModelTree& tree);

  // Must be called before the session's first pass.
  void attach(const ModelTree& tree, const std::vector<OwnTensors>& tensors, Session& session) const;

  // Returns how the calls of each module become known.
  TorchNn sights() const;

 private:
  std::vector<CallSight> sights_;  // by module
};

}  // namespace roofprof::observe
