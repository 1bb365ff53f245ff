#pragma once
// The begin and end of single ops and frames, kept where a timeline is requested (Session::keep_events).

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/profile.h"
#include "observe/clock/clock.h"

namespace roofprof::observe {

struct OpInfo;

// Numbers what begins in a pass, whatever the thread.
class EventIds {
 public:
  void start_pass() { given_.store(0, std::memory_order_relaxed); }
  // Returns the next id, from 1 on; 0 once kEventsKept ids were given. An event that does not count in the end has
  // taken an id, too.
  std::uint32_t next() {
    const auto before = given_.fetch_add(1, std::memory_order_relaxed);
    return before < kEventsKept ? static_cast<std::uint32_t>(before + 1) : 0;
  }

 private:
  std::atomic<std::int64_t> given_{0};
};

struct TimedEvent {
  std::uint32_t id = 0;
  std::uint32_t bucket = 0;  // of an op, in the table
  EventKind kind = EventKind::op;
  Owner owner = {};            // where an op counts, that of its bucket holds instead
  std::uint64_t thread = 0;    // at::RecordFunction::currentThreadId()
  const OpInfo* op = nullptr;  // of a transparent op
  Ticks begin = 0;
  Ticks end = 0;
};

// The events of the threads that a table was lent to.
struct EventLog {
  std::vector<TimedEvent> events;
  std::int64_t left_out = 0;
};

}  // namespace roofprof::observe
