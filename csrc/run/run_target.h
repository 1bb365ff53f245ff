#pragma once
// The interface through which the run loop (run_loop.h) calls a model. C++'s profiler and Python's each implement it.

#include <cstdint>
#include <exception>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/pass.h"

namespace roofprof::run {

// The number of times that a compiler (torch.compile) ran so far, and their duration.
struct Compilations {
  std::int64_t count = 0;
  double seconds = 0;
};

class RunTarget {
 public:
  RunTarget() = default;
  virtual ~RunTarget() = default;
  RunTarget(const RunTarget&) = delete;
  RunTarget& operator=(const RunTarget&) = delete;

  // Makes the counting call, which is the caller's own. Fills in `pass` once the call has begun, also when it throws.
  virtual void count(std::optional<Pass>& pass) = 0;
  // Returns why no further calls can be made, as the end of a sentence; empty: they can.
  virtual std::string why_only_once() const { return {}; }
  // Calls `further`, in which further calls are made. Then everything within reach (state_snapshot.h) is put back as
  // the counting call left it, also when `further` throws. Returns how many tensors could not be put back.
  virtual std::int64_t undoing(const std::function<void()>& further) = 0;

  // Gives a further call what the first one got.
  virtual void prepare() = 0;
  // Makes a further call without any observer, and returns its wall time in ns, with the device's part.
  virtual std::int64_t bare() = 0;
  // The bare call before was timed, and not for warm-up; called where bare calls alone are made.
  virtual void keep() {}
  // Makes a further call that is observed.
  virtual Pass observed() = 0;
  // Reads hardware counters after the timed calls. They need separate further calls, each of them prepared.
  virtual void read_counters(const std::vector<Pass>& timed) = 0;

  // Returns true where the device cannot be used any more, so that further calls cannot be made either.
  virtual bool device_lost() const { return false; }
  // Returns whether TorchScript's executor runs parts of the model. It dispatches other ops than were counted.
  virtual bool by_executor() const { return false; }
  virtual Compilations compilations() const { return {}; }
  // Returns what a further call threw, for a note: "ValueError: no". Empty where the exception must pass as it was
  // thrown. Called while it is handled; null: it does not derive from std::exception.
  virtual std::optional<std::string> described(const std::exception* error) const = 0;
};

}  // namespace roofprof::run
