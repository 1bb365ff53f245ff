#pragma once
// Says of which ops a long block logs the traffic: their reuse distances and what crosses the boundaries of modules.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "core/pass.h"

namespace roofprof::observe {

class BoundaryLog;

// A part of a block begins with a call of the model that is in no other module's call, or, from the first end of a
// step on, with each step. What comes before the first call is part of that call. Calls that accumulate gradients for
// one step of an optimizer are one part. The first parts are logged, and of the later ones about one in eight, at
// irregular distances: no part of a program that repeats falls between. Where no part begins, the first ops are logged.
//
// Threads share it.
class TrafficSample {
 public:
  static constexpr std::int64_t kFirstParts = 3;
  static constexpr std::uint64_t kOneIn = 8;
  static constexpr std::int64_t kFirstOps = 4096;
  // More calls than this are parts again, though an optimizer may follow.
  static constexpr std::int64_t kMostAccumulated = 32;

  // `boundaries` may be null. Its instances end where logging begins or ends.
  explicit TrafficSample(std::shared_ptr<BoundaryLog> boundaries) : boundaries_(std::move(boundaries)) {}

  void begin_call();
  void backward_runs() {
    if (!accumulates_.load(std::memory_order_relaxed)) accumulates_.store(true, std::memory_order_relaxed);
  }
  void optimizer_ran();
  void end_step();
  // Returns whether an op that begins now is logged.
  bool logs_op() {
    return logging_.load(std::memory_order_relaxed) && (parts_.load(std::memory_order_relaxed) > 0 || is_early_op());
  }
  // Returns whether ops are logged now.
  bool is_logging() const { return logging_.load(std::memory_order_relaxed); }

  // Returns the parts so far; the last step is over.
  TrafficParts parts() const;

 private:
  void begin_part();
  bool is_early_op();
  void log(bool from_now);

  std::shared_ptr<BoundaryLog> boundaries_;
  std::atomic<bool> logging_{true};
  std::atomic<bool> has_steps_{false};
  std::atomic<bool> accumulates_{false};      // a backward ran since the optimizer's last step
  std::atomic<std::int64_t> accumulated_{0};  // calls since
  std::atomic<std::int64_t> parts_{0};        // that began
  std::atomic<std::int64_t> logged_{0};       // of these
  std::atomic<std::int64_t> early_ops_{0};
};

}  // namespace roofprof::observe
