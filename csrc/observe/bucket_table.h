#pragma once
// Holds what one thread observed in one session: a bucket for each (operator, module, phase, region, signature) and a
// clock for each (module, phase, region).

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/pass.h"
#include "observe/clock/clock.h"
#include "observe/costed_call.h"
#include "observe/events.h"
#include "observe/operators/op_info.h"
#include "observe/rule/counting_rule.h"
#include "roofprof/op_call.h"

namespace roofprof::observe {

struct BucketKey {
  OpInfo* op = nullptr;
  Owner owner = {};
  bool without_data = false;  // on meta or fake tensors: no work where the call itself has data
  std::uint64_t signature = 0;
  bool operator==(const BucketKey&) const = default;
  // Returns the key as a Pass holds it.
  OpKey plain() const { return {op == nullptr ? 0 : op->number, owner, without_data ? ~signature : signature}; }
};

struct BucketKeyHash {
  std::size_t operator()(const BucketKey& key) const {
    const auto owner = (std::uint64_t{key.without_data} << 50) | (static_cast<std::uint64_t>(key.owner.region) << 34) |
                       (static_cast<std::uint64_t>(key.owner.module) << 2) |
                       static_cast<std::uint64_t>(key.owner.phase);
    auto hash = key.signature ^ (reinterpret_cast<std::uintptr_t>(key.op) * 0x9E3779B97F4A7C15ULL);
    hash ^= owner * 0xC2B2AE3D27D4EB4FULL;
    return hash ^ (hash >> 32);
  }
};

// The members that each call reads and adds to come first: after the model's own code they are not in the processor's
// caches.
struct alignas(64) Bucket {
  BucketKey key;
  WorkInside inside;      // of one call, where not per_call
  bool per_call = false;  // many shapes in one bucket: costed call by call into work_sum
  std::int64_t calls = 0;
  Ticks ticks = 0;
  std::int64_t left_out_calls = 0;  // whose traffic was not logged
  // The block's step that it was last counted in, by the number of those before; and what came before that step, or
  // where per_call, came in it.
  std::int64_t step = 0;
  std::int64_t calls_before_step = 0;
  Costed cost;                  // of one call
  std::uint64_t inputs = 0;     // the signature of the inputs that led here; kAnyInputs: of several
  Work work_sum;                // where per_call
  BytesLeftOut left_out_bytes;  // that calls moved whose traffic was not logged, where per_call
  Work work_sum_of_step;

  void count(std::int64_t more, Ticks took, const Work& of_calls, std::int64_t in_step) {
    if (step != in_step) {
      step = in_step;
      calls_before_step = calls;
      work_sum_of_step = {};
    }
    calls += more;
    ticks += took;
    if (!per_call) return;
    work_sum += of_calls;
    work_sum_of_step += of_calls;
  }
  void leave_out(const Work& of_call) {
    ++left_out_calls;
    if (!per_call) return;
    left_out_bytes.read_bytes = saturating_add(left_out_bytes.read_bytes, of_call.read_bytes);
    left_out_bytes.write_bytes = saturating_add(left_out_bytes.write_bytes, of_call.write_bytes);
  }
  BytesLeftOut bytes_left_out() const {
    if (per_call) return left_out_bytes;
    return {saturating_multiply(cost.work.read_bytes, left_out_calls),
            saturating_multiply(cost.work.write_bytes, left_out_calls)};
  }
  Work total_work() const { return per_call ? work_sum : cost.work.times(calls); }
  Work work_of_step() const { return per_call ? work_sum_of_step : cost.work.times(calls - calls_before_step); }
};

// Returns the bucket as a Pass holds it, without the sums.
Pass::Op op_of(const Bucket& bucket);

struct ModuleClock {
  std::int64_t calls = 0;
  Ticks self_ticks = 0;
};

struct RegionClock {
  std::int64_t calls = 0;
  Ticks wall_ticks = 0;
};

// The owning thread holds it for each update, a collecting thread once per pass: it is practically never contended.
// Only the owning thread changes buckets, so it reads them without the lock.
class SpinLock {
 public:
  void lock() {
    while (flag_.test_and_set(std::memory_order_acquire)) {
    }
  }
  void unlock() { flag_.clear(std::memory_order_release); }

 private:
  std::atomic_flag flag_;
};

class BucketTable {
 public:
  using Index = std::uint32_t;
  static constexpr Index kNone = ~Index{0};
  // The number of distinct shapes that are kept apart per operator, module and phase; further ones share the bucket
  // "other shapes".
  static constexpr std::size_t kMaxShapes = 64;
  // The number of distinct inputs that the table remembers; it describes further ones again in each call.
  static constexpr std::size_t kMaxInputs = 1 << 14;

  // Returns the bucket of that key; kNone where it has to be described first.
  Index find(const BucketKey& key) const;
  // Adds the bucket for a call whose key find() does not know: a new one, or that of the other shapes. `inputs`: the
  // signature without the results.
  Index add(const BucketKey& key, std::uint64_t inputs, const Costed& costed);

  // Returns whether inputs_of() returns something.
  bool knows_inputs(const OpInfo& op, std::uint64_t signature) {
    const auto& line = known_inputs_[signature % known_inputs_.size()];
    return line == Inputs{&op, signature} || looks_up_inputs({&op, signature});
  }
  // Returns the description of inputs with that operator and signature, whatever the module; null where none was kept.
  const ops::OpCall* inputs_of(const OpInfo& op, std::uint64_t signature) const;
  void keep_inputs(const OpInfo& op, std::uint64_t signature, const ops::OpCall& inputs);

  // Returns the id of the owner of launches by that op, module and inputs; kNoLaunch where none was kept here. Only the
  // owning thread calls this and the next.
  LaunchId launch_of(const BucketKey& key) const;
  void keep_launch(const BucketKey& key, LaunchId id);

  // Adds the bucket for calls of that operator that could not be described.
  Index add_uncosted(BucketKey key);

  Bucket& operator[](Index index) { return buckets_[index]; }
  const std::vector<Bucket>& buckets() const { return buckets_; }

  ModuleClock& clock(const Owner& owner);
  void count_call(const Owner& owner);
  // Adds all clocks of this table to `to`, by (module, phase, region).
  void add_clocks(std::map<Owner, ModuleClock>& to) const;
  std::map<RegionId, RegionClock>& regions() { return regions_; }
  // Returns whether the module was called in this pass, on the threads that the table was lent to.
  bool was_called(ModuleId module) const;

  // Forgets calls and times, keeps what is known of the buckets.
  void start_pass();

  // Operators whose cost failed, with the reason; at most one reason each.
  std::unordered_map<std::string, std::string> failures;
  std::int64_t unknown_backward_nodes = 0;
  std::set<ModuleId> differentiated_whole;  // by TorchScript's executor: parts of these modules' code
  std::set<ModuleId> uncertain_places;      // modules with several places: it is unknown which one was called
  EventLog events;                          // where they are kept
  SpinLock lock;

 private:
  using Inputs = std::pair<const OpInfo*, std::uint64_t>;  // an operator and the signature of inputs
  struct InputsHash {
    std::size_t operator()(const Inputs& inputs) const {
      return inputs.second ^ (reinterpret_cast<std::uintptr_t>(inputs.first) * 0x9E3779B97F4A7C15ULL >> 16);
    }
  };

  bool looks_up_inputs(const Inputs& inputs);
  void grow();
  Index insert(Bucket bucket);

  std::vector<Bucket> buckets_;
  std::vector<Index> slots_;  // open addressing, a power of two
  std::unordered_map<BucketKey, std::size_t, BucketKeyHash> shapes_seen_;
  std::unordered_map<Inputs, ops::OpCall, InputsHash> inputs_;
  std::array<Inputs, 1 << 8> known_inputs_{};  // some, by a hash of the signature
  std::unordered_map<BucketKey, LaunchId, BucketKeyHash> launches_;
  std::vector<ModuleClock> clocks_;             // outside of all regions: module * kPhaseCount + phase
  std::map<Owner, ModuleClock> region_clocks_;  // inside
  std::map<RegionId, RegionClock> regions_;
  std::vector<bool> called_;  // by module
};

}  // namespace roofprof::observe
