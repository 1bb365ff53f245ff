#include "observe/memory/traffic_sample.h"

#include "observe/memory/boundary_log.h"

namespace roofprof::observe {
namespace {

// Returns whether a later part is logged, by the bits of a multiplicative hash of its number.
bool is_chosen(std::int64_t part) {
  const auto hash = static_cast<std::uint64_t>(part) * 0x9E3779B97F4A7C15ULL;
  return (hash >> 40) % TrafficSample::kOneIn == 0;
}

}  // namespace

void TrafficSample::begin_part() {
  const auto part = parts_.fetch_add(1, std::memory_order_relaxed);
  const bool logged = part < kFirstParts || is_chosen(part);
  if (logged) logged_.fetch_add(1, std::memory_order_relaxed);
  log(logged);
}

void TrafficSample::begin_call() {
  if (has_steps_.load(std::memory_order_relaxed)) return;
  const bool continues = accumulates_.load(std::memory_order_relaxed) &&
                         accumulated_.fetch_add(1, std::memory_order_relaxed) < kMostAccumulated;
  if (!continues) begin_part();
}

void TrafficSample::optimizer_ran() {
  accumulates_.store(false, std::memory_order_relaxed);
  accumulated_.store(0, std::memory_order_relaxed);
}

// Calls before the end of the first step were a part of it.
void TrafficSample::end_step() {
  if (!has_steps_.exchange(true, std::memory_order_relaxed)) {
    parts_.store(1, std::memory_order_relaxed);
    logged_.store(1, std::memory_order_relaxed);
  }
  begin_part();
}

TrafficParts TrafficSample::parts() const {
  const bool after_last = has_steps_.load(std::memory_order_relaxed);
  return {.all = parts_.load(std::memory_order_relaxed) - (after_last ? 1 : 0),
          .logged = logged_.load(std::memory_order_relaxed) - (after_last && is_logging() ? 1 : 0),
          .are_steps = after_last};
}

bool TrafficSample::is_early_op() {
  if (early_ops_.fetch_add(1, std::memory_order_relaxed) < kFirstOps) return true;
  log(false);
  return false;
}

void TrafficSample::log(bool from_now) {
  if (logging_.exchange(from_now, std::memory_order_relaxed) != from_now && boundaries_) boundaries_->interrupt();
}

}  // namespace roofprof::observe
