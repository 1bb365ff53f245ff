#pragma once
// The kinds of frames that calls open, the shapes that calls take and return, and calls that other code made.

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>
#include <c10/util/SmallVector.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/profile.h"
#include "core/run_record.h"

namespace roofprof::observe {

enum class FrameKind : std::uint8_t {
  base,
  module,
  norm,    // a module whose call ends with the normalisation that it dispatches next
  method,  // a module's code around its calls, which does not count as a call
  region,  // opened by the user's code
  node,
  script,  // TorchScript runs: its module changes with the ops
  pause,   // nothing in here is the model's work (a compiler traces it): its time counts, its ops do not
};

constexpr bool is_call(FrameKind kind) { return kind == FrameKind::module || kind == FrameKind::norm; }

// Collects the sizes of a call's tensors, up to as many as people read.
class TensorShapes {
 public:
  void add(const at::Tensor& tensor);
  // Adds all tensors in any nest of containers.
  void add(const c10::IValue& value);
  std::vector<std::vector<std::int64_t>> all() const;
  // Returns nothing where no tensor was added, or where the sizes of one do not give its bytes.
  std::optional<std::int64_t> bytes() const;

 private:
  bool full() const;

  // The sizes of most calls fit into these without an allocation.
  c10::SmallVector<std::int64_t, 8> sizes_;  // of all tensors, one after another
  c10::SmallVector<std::uint32_t, 4> ends_;  // of each, in these
  std::int64_t bytes_ = 0;
  bool known_ = true;
};

struct CallShapes {
  TensorShapes inputs;
  TensorShapes outputs;

  void write_to(Module& row) const;
};

// A call of a normalisation whose operator did not end yet.
struct NormCall {
  CallShapes shapes;
  const void* ends_with = nullptr;  // the operator's record, once it has begun
};

// Keeps the shapes of the last call at each place, as the calls report them.
class LastShapes {
 public:
  // The run decides which passes listen.
  void listen(bool wanted) { wanted_.store(wanted, std::memory_order_relaxed); }
  bool wanted() const { return wanted_.load(std::memory_order_relaxed); }
  void keep(ModuleId place, CallShapes&& call);
  void write_to(std::vector<Module>& modules) const;

 private:
  std::atomic<bool> wanted_{false};
  mutable std::mutex mutex_;
  std::map<ModuleId, CallShapes> calls_;
};

// Counts the calls of a run's model that other code made while the run's own were observed. They are left out, so
// nothing else is known of them.
class CallsOfOthers {
 public:
  // Notes that a call of the module at `place` on this thread was left out. `inferred`: its caller is not certain.
  void note(ModuleId place, bool inferred);
  // Notes that a whole call was left out, of a run with that number among all calls of runs.
  void note_run(std::uint64_t number);
  // Notes a call of a module that was left out because it may be this run's or another's.
  void note_unclear();
  // Notes that a module was counted on a thread that nobody is known to have started.
  void note_helper();

  // Ends a pass. `own_calls` returns how often the run itself called a module in it.
  void end_pass(const std::function<std::int64_t(ModuleId)>& own_calls);
  OtherCalls all() const;

 private:
  mutable std::mutex mutex_;
  OtherCalls all_;                                                    // of the passes that ended
  std::map<std::pair<std::uint64_t, ModuleId>, std::int64_t> calls_;  // of this pass, by thread
  std::set<std::uint64_t> runs_;
  bool helped_ = false;
};

}  // namespace roofprof::observe
