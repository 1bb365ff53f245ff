#include "device/cupti/collector.h"

#include <atomic>
#include <utility>

#include "device/cuda/driver.h"
#include "device/cupti/api.h"
#include "device/cupti/range_profiler.h"
#include "device/cupti/tracer.h"

namespace roofprof::cupti {

namespace {

// The devices' records and counters are the process's: one collector at a time has them, for one of the two.
class Claim {
 public:
  Claim() = default;
  explicit Claim(const char* purpose) {
    if (taken.exchange(true)) {
      throw CollectorError(
          std::string("the GPU's ") + purpose + " cannot be taken while another measurement of roofprof's is under way",
          "let one end before the next begins, also in other threads");
    }
    held_ = true;
  }
  Claim(Claim&& other) noexcept : held_(std::exchange(other.held_, false)) {}
  Claim& operator=(Claim&& other) noexcept {
    std::swap(held_, other.held_);
    return *this;
  }
  ~Claim() {
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
    Claim claim("kernel times");
    tracer_.start();
    tracing_ = std::move(claim);
  }

  LaunchMarker* marker() override { return tracer_.marker(); }

  DeviceTrace stop_tracing() override {
    DeviceTrace trace = tracer_.stop();
    tracing_ = Claim();
    return trace;
  }

  CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) override {
    const Claim claim("counters");
    return count_ranges(request, body);
  }

 private:
  Claim tracing_;  // given back after the tracer has gone, which ends a trace under way
  Tracer tracer_;
};

}  // namespace

std::unique_ptr<DeviceCollector> make_collector() {
  cuda::driver();
  require_activity(api());
  return std::make_unique<CuptiCollector>();
}

}  // namespace roofprof::cupti
