#pragma once
// The target half of CUPTI's range profiler: counting in one context, each step as an object that ends it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "core/device_data.h"
#include "device/cupti/api.h"
#include "device/cupti/host_profiler.h"

namespace roofprof::cupti {

// CUPTI's profiler, switched on. Throws CuptiError.
class ProfilerLibrary {
 public:
  explicit ProfilerLibrary(const Api& api);
  ~ProfilerLibrary();
  ProfilerLibrary(const ProfilerLibrary&) = delete;
  ProfilerLibrary& operator=(const ProfilerLibrary&) = delete;

 private:
  const Api& api_;
};

// Throws CollectorError with the reason if the device's counters cannot be read by ranges.
void check_supported(const Api& api, CUdevice device);

std::string chip_name(const Api& api, std::size_t device_index);

// Returns which of the chip's counters this system lets roofprof read. Must be asked while nothing is counted.
std::vector<std::uint8_t> counter_availability(const Api& api, CUcontext context);

struct RangeObjectDeleter {
  const Api* api = nullptr;
  void operator()(CUpti_RangeProfiler_Object* object) const;
};
using RangeObject = std::unique_ptr<CUpti_RangeProfiler_Object, RangeObjectDeleter>;

// The number of ranges to make room for: what is wanted, then, if CUPTI refuses that, what is needed, then half of it
// each time. CUPTI documents no limit; some versions have one of two or three thousand.
struct RangeRooms {
  std::size_t wanted = 0;
  std::size_t needed = 0;
};

enum class RangeMode : std::uint8_t {
  modules,                 // those that are pushed
  kernels,                 // each kernel
  kernels_in_pushed_range  // each kernel of a range that is pushed: some versions see none without one
};

// Counting of one configuration in one context. A new one for each configuration: CUPTI does not document that one can
// serve several.
class RangeSession {
 public:
  // Throws CuptiError: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES without permission, CUPTI_ERROR_HARDWARE_BUSY while another
  // program counts. Uses the configuration as long as it lives.
  RangeSession(const Configuration& configuration, CUcontext context, RangeMode mode, RangeRooms rooms);
  ~RangeSession();
  RangeSession(const RangeSession&) = delete;
  RangeSession& operator=(const RangeSession&) = delete;

  std::size_t rooms() const { return rooms_; }  // that CUPTI took
  void start();                                 // a pass
  bool stop();                                  // true: that was the last pass
  bool started() const { return started_; }
  // Ranges of modules, or the one around kernels; one at a time.
  CUptiResult push(const char* name) noexcept;
  CUptiResult pop() noexcept;

  // These are called after the last pass.
  std::size_t decode();             // returns how many ranges found no room
  std::size_t range_count() const;  // how many did
  std::string range_name(std::size_t range) const;
  CUptiResult evaluate(std::size_t range, std::span<double> values) const;
  // The image that these read.
  std::span<const std::uint8_t> counter_data() const { return counter_data_; }

 private:
  void open(CUcontext context);
  void make_room();
  void configure(RangeMode mode);

  const Configuration& configuration_;
  const Api& api_;
  std::vector<std::uint8_t> counter_data_;  // written to as long as the object lives
  RangeObject object_;
  std::size_t rooms_ = 0;
  bool started_ = false;
};

// Turns the observer's module scopes into flat ranges of CUPTI's, one open at a time.

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
