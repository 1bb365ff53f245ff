#include "device/cupti/collector.h"

#include <atomic>
#include <utility>

#include "device/cupti/api.h"
#include "device/cupti/range_profiler.h"
#include "device/cupti/tracer.h"
#include "device/nvidia/driver.h"

namespace roofprof::cupti {

namespace {

// The devices' records and counters are the process's: one collector at a time has them, for one of the two.
class CollectorLock {
 public:
  CollectorLock() = default;
  explicit CollectorLock(const char* purpose) {
    if (taken.exchange(true)) {
      throw CollectorError(
          std::string("the GPU's ") + purpose + " cannot be taken while another measurement of roofprof's is under way",
          "let one end before the next begins, also in other threads");
    }
    held_ = true;
  }
  CollectorLock(CollectorLock&& other) noexcept : held_(std::exchange(other.held_, false)) {}
  CollectorLock& operator=(CollectorLock&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~CollectorLock() {
    if (held_) taken = false;
  }

 private:
  static inline std::atomic<bool> taken = false;
  bool held_ = false;
};

class CuptiCollector final : public DeviceCollector {
 public:
  CuptiCollector() : tracer_(api(), [this] { synchronize(); }) {}

  bool simulated() const override { return api().simulated; }

  void synchronize() override { cuda::synchronize_all(cuda::driver()); }

  void start_tracing() override {
    CollectorLock lock("kernel times");
    tracer_.start();
    tracing_ = std::move(lock);
  }

  LaunchMarker* marker() override { return tracer_.marker(); }

  DeviceTrace stop_tracing() override {
    const CollectorLock lock(std::move(tracing_));
    return tracer_.stop();
  }

  CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) override {
    const CollectorLock lock("counters");
    return count_ranges(request, body);
  }

 private:
  CollectorLock tracing_;  // given back after the tracer has gone, which ends a trace under way
  Tracer tracer_;
};

}  // namespace

std::unique_ptr<DeviceCollector> make_collector() {
  cuda::driver();
  require_activity(api());
  return std::make_unique<CuptiCollector>();
}

}  // namespace roofprof::cupti
