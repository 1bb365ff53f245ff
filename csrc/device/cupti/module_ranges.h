#pragma once
// Turns the observer's module scopes into flat ranges of CUPTI's, one open at a time.

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/range_session.h"

namespace roofprof::cupti {

// All that is launched in a pass falls into one range: that of the module entered last and not yet left, or of
// kNoLaunch. Entering a module inside another one closes the outer one's range, and leaving it opens another range for
// the outer one. So each launch counts in its innermost module alone, and in one pass. CUPTI has one stack of ranges
// for a context, not one for each thread, so threads take turns: while one is in a module and another enters one, both
// launch into the latter's range.
class ModuleRanges final : public LaunchMarker {
 public:
  // Counts the ranges of a pass from `first` on, as many as the session has room for.
  explicit ModuleRanges(RangeSession& session, std::size_t first = 0);
  ~ModuleRanges() override { end_pass(); }

  void begin_pass();  // throws CuptiError
  void end_pass() noexcept;
  // Throws the CuptiError of the first range that could not be opened or closed.
  void check() const;

  void push(LaunchId id, LaunchLevel level) noexcept override;
  void pop(LaunchLevel level) noexcept override;

  // Returns the ids of the last pass's ranges, in the order in which they were opened.
  const std::vector<LaunchId>& opened() const { return opened_; }
  // Returns whether a thread entered a module while another thread was in one.
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

  bool is_counted(std::size_t ordinal) const;

  RangeSession& session_;
  std::size_t first_;
  std::mutex mutex_;
  bool passing_ = false;
  std::vector<Scope> scopes_;  // of all threads, in the order of entering
  std::vector<LaunchId> opened_;
  bool threads_took_turns_ = false;
  const char* failed_ = nullptr;  // the function that did first
  CUptiResult failure_ = CUPTI_SUCCESS;
};

// The name of a range: unique in its pass, because CUPTI does not document what happens to ranges of the same name.
std::string range_name(std::size_t ordinal, LaunchId id);

// Read from such a name, or from that of a kernel's range, which is the ordinal alone; what stands before a / are the
// names of ranges around it. Empty for any other name.
struct RangeName {
  std::size_t ordinal = 0;  // its position among the ranges of the pass
  LaunchId id = kNoLaunch;
};
std::optional<RangeName> read_range_name(std::string_view name);

}  // namespace roofprof::cupti
