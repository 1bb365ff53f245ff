#pragma once
// The steps of a pass's block. The front ends mark them. Counts are kept by step (Bucket::step), and work between steps
// is in the region kBetweenSteps.

#include <atomic>
#include <cstdint>

namespace roofprof::observe {

class Lender;

class BlockSteps {
 public:
  explicit BlockSteps(Lender& lender) : lender_(lender) {}

  void start_pass() {
    marked_.store(0, std::memory_order_relaxed);
    between_.store(false, std::memory_order_relaxed);
    left_.store(false, std::memory_order_relaxed);
  }
  // Notes that a step has ended.
  void mark();
  std::int64_t marked() const { return marked_.load(std::memory_order_relaxed); }
  // Opens the region kBetweenSteps on this thread, until enter() begins the next step. Modules have no calls in it.
  void leave();
  void enter();
  bool between() const { return between_.load(std::memory_order_relaxed); }
  // Returns whether leave() was called in this pass.
  bool were_left() const { return left_.load(std::memory_order_relaxed); }

 private:
  Lender& lender_;
  std::atomic<std::int64_t> marked_{0};
  std::atomic<bool> between_{false};
  std::atomic<bool> left_{false};
};

}  // namespace roofprof::observe
