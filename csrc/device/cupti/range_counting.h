#pragma once
// Counts the ranges of a body's runs, one configuration after the other.

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "device/cupti/metric_sets.h"
#include "device/cupti/range_session.h"
#include "device/interface/collector.h"

namespace roofprof::cupti {

// Counts the ranges of one request. Each configuration begins with the number of ranges that CUPTI took for the one
// before.
class RangeCounting {
 public:
  using Body = std::function<void(LaunchMarker*)>;

  // Refers to all of these as long as it lives.
  RangeCounting(const CounterRequest& request, int device, const Body& body, CounterTrace& trace);

  // Runs the body as often as the configuration needs passes, and again where CUPTI takes fewer ranges at a time than
  // there are. Returns values by a kernel's position or a module's id. Notes, the number of passes and of dropped
  // ranges go to the trace. Throws CollectorError, or what the body throws.
  RangeTable count(const Configuration& configuration);

 private:
  // A session's ranges as CUPTI returns them, in its order.
  struct Ranges {
    std::vector<std::optional<RangeName>> names;
    std::vector<std::vector<double>> values;
    std::size_t dropped = 0;

    std::size_t all() const { return names.size() + dropped; }
  };
  struct LateRanges {
    Ranges ranges;
    std::size_t ids = 0;  // of launches, in the whole run
    bool begun = false;
  };

  RangeTable count_modules(const Configuration& configuration);
  RangeTable count_kernels(const Configuration& configuration);
  Ranges kernels_of_a_run(const Configuration& configuration);
  LateRanges kernels_from(std::size_t id, const Configuration& configuration);
  void count_the_rest(const Configuration& configuration, std::size_t all, RangeTable& table);

  RangeSession open(const Configuration& configuration);
  void took(const RangeSession& session);
  struct Steps;
  void run_passes(RangeSession& session, std::size_t announced, const Steps& steps);
  void start(RangeSession& session) const;
  void end(RangeSession& session) const;
  Ranges read(RangeSession& session, std::size_t metrics);
  void note_rounds();

  const CounterRequest& request_;
  int device_;
  const Body& body_;
  CounterTrace& trace_;
  RangeMode mode_ = RangeMode::kernels;
  RangeRooms rooms_;
  std::size_t requested_ = 0;  // ranges
  std::size_t accepted_ = 0;   // of these, by CUPTI
  std::size_t rounds_ = 0;
};

// Hardware counters of a run, by CUPTI's range profiler.

// Runs the body once for each pass that the counters need, and returns the counters of each kernel (the body is given
// null) or of each module (the body is given the marker, and reports modules to it). Where CUPTI takes fewer ranges
// than there are, the body runs again for those that are left, with a marker in either case. Counts on the device that
// the request names, else on this thread's current one, else on the first that the process uses. Throws CollectorError,
// or what the body throws. Nothing is left behind either way.
CounterTrace count_ranges(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body);

}  // namespace roofprof::cupti
