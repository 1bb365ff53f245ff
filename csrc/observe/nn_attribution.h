#pragma once
// How the ops of a torch::nn model find their modules, and what a report must say of that.
//
// Calls are seen of the classes that libroofprof_nn intercepts and of modules that say ROOFPROF_SCOPE(*this). Of the
// others (custom modules; all, where nothing is intercepted) an op that takes a module's own parameters belongs to it,
// and any other op to the innermost scope that is open.

#include <cstdint>
#include <vector>

#include "core/profile_data.h"
#include "observe/model_tree.h"

namespace roofprof::observe {

class Session;

class NnAttribution {
 public:
  // Of a tree that tree_of made, while its modules live.
  explicit NnAttribution(const ModelTree& tree);

  // To be called before the session's first pass.
  void attach(const ModelTree& tree, Session& session) const;

  // What was seen: sets calls_visible and inferred of the rows (definitions.md says when), and adds a note where calls
  // are not intercepted. `data` is complete but for that.
  void describe(ProfileData& data) const;

 private:
  enum class Sight : std::uint8_t { none, container, custom, intercepted };
  std::vector<Sight> sights_;  // by place
};

}  // namespace roofprof::observe
