#pragma once
// Turns the observer's module scopes into flat ranges of CUPTI's, one open at a time.

#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/range_session.h"

namespace roofprof::cupti {

// All that is launched in a pass falls into one range: that of the module entered last and not yet left, or of
// kNoLaunch. Entering a module inside another one closes the outer one's range, leaving it opens it anew, so that each
// launch counts in its innermost module alone, and in one pass. CUPTI has one stack of ranges for a context whatever
// the thread, so threads take turns: where one is in a module while another enters one, both launch into the latter.
class ModuleRanges final : public LaunchMarker {
 public:
  explicit ModuleRanges(RangeSession& session);
  ~ModuleRanges() override { end_pass(); }

  void begin_pass();  // throws CuptiError
  void end_pass() noexcept;
  // Throws the CuptiError of the first range that could not be opened or closed.
  void check() const;

  void push(LaunchId id, LaunchLevel level) noexcept override;
  void pop(LaunchLevel level) noexcept override;

  // Of the last pass: whose the ranges were, in the order in which they were opened.
  const std::vector<LaunchId>& opened() const { return opened_; }
  // A thread entered a module while another one was in one.
  bool threads_took_turns() const { return threads_took_turns_; }

 private:
  struct Scope {
    std::thread::id thread;
    LaunchId id = kNoLaunch;
  };

  void move_to_top();
  void open(LaunchId id);
  void close();
  void note(const char* function, CUptiResult result);

  RangeSession& session_;
  std::mutex mutex_;
  bool passing_ = false;
  std::vector<Scope> scopes_;  // of all threads, in the order of entering
  std::vector<LaunchId> opened_;
  bool threads_took_turns_ = false;
  const char* failed_ = nullptr;  // the function that did first
  CUptiResult failure_ = CUPTI_SUCCESS;
};

// What a range is called: unlike all others of its pass, as it is not documented what becomes of ranges of one name.
std::string range_name(std::size_t ordinal, LaunchId id);

// Of such a name, or of a kernel's range, whose name is the ordinal alone. Throws CollectorError where it is neither.
struct RangeName {
  std::size_t ordinal = 0;  // the how-manieth range of the pass it was
  LaunchId id = kNoLaunch;
};
RangeName read_range_name(const std::string& name);

}  // namespace roofprof::cupti
