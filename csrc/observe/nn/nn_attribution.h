#pragma once
// Attributes the ops of a torch::nn model to its modules.
//
// Calls are seen of the classes that libroofprof_nn intercepts and of modules that say ROOFPROF_SCOPE(*this). Of the
// others (custom modules; all, where nothing is intercepted) an op that takes a module's own parameters belongs to it,
// and any other op to the innermost frame that is open.

#include <vector>

#include "core/run_record.h"
#include "observe/modules/model_tree.h"

namespace roofprof::observe {

class Session;

class NnAttribution {
 public:
  // Takes a tree that tree_of made, while its modules live.
  explicit NnAttribution(const ModelTree& tree);

  // Must be called before the session's first pass.
  void attach(const ModelTree& tree, Session& session) const;

  // Returns how the calls of each module become known.
  TorchNn sights() const;

 private:
  std::vector<CallSight> sights_;  // by module
};

}  // namespace roofprof::observe
