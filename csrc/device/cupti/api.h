#pragma once
// CUPTI, looked up at run time: the table of its functions, its error codes in words, its parameter structs in the
// sizes that the oldest supported library (13.0) accepts.

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "device/interface/collector.h"

namespace roofprof::cupti {

// Reports a failed call of CUPTI's: the function, its code, what that means for the user, and what to do.
class CuptiError : public CollectorError {
 public:
  CuptiError(std::string_view function, int code);
  int code() const { return code_; }

 private:
  int code_;
};

// Returns the code's name, "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES". It comes from roofprof's table, as
// cuptiGetResultString is not safe without a driver.
std::string_view error_name(int code);

// Raw forms: null where the library lacks them. Nothing may be called before the driver was found to work.
struct Api {
#define ROOFPROF_FUNCTION(name) decltype(&::name) name = nullptr;
#define REQUIRED ROOFPROF_FUNCTION
#define ACTIVITY ROOFPROF_FUNCTION
#define COUNTERS ROOFPROF_FUNCTION
#define OPTIONAL ROOFPROF_FUNCTION
#include "device/cupti/functions.def"
#undef REQUIRED
#undef ACTIVITY
#undef COUNTERS
#undef OPTIONAL
#undef ROOFPROF_FUNCTION

  std::uint32_t version = 0;  // 130001 is 13.0.1
  std::string path;           // of the library
  std::string how;            // it was found: "already loaded" (by torch), "search path", "ROOFPROF_CUPTI_LIB"
  bool simulated = false;     // the fake library of the tests
  // CLOCK_REALTIME in ns, which is CUPTI's own clock; a simulated machine's is simulated too.
  std::uint64_t (*real_time)() = nullptr;
  // Functions of a group that the library lacks, with commas; empty: it has all.
  std::string missing_activity;
  std::string missing_counters;
};

std::uint64_t machines_real_time();
// Returns whether two times of one unit, nanoseconds or shorter ticks, are less than a second apart.
bool within_a_second(std::uint64_t a, std::uint64_t b);

// "13.0.1" of 130001.
std::string version_text(std::uint32_t version);

// Looks the library up: ROOFPROF_CUPTI_LIB, else the copy that is loaded already, else by its name. The driver's gate
// comes first: where it throws, CUPTI stays untouched. Throws CollectorError where the library is missing or too old,
// or lacks a REQUIRED function.
Api open_api();

// The process's CUPTI, opened at the first call that finds one. Throws as open_api does, at each call.
const Api& api();

// Throw CollectorError where functions of the group are missing.
void require_activity(const Api& api);
void require_counters(const Api& api);

// The checked form: ROOFPROF_CUPTI(api, cuptiActivityFlushAll, 1) throws CuptiError where it fails or is not there.
template <class Function, class... Args>
void checked(std::string_view name, Function function, Args... args) {
  if (function == nullptr) throw CuptiError(name, CUPTI_ERROR_API_NOT_IMPLEMENTED);
  if (const CUptiResult result = function(args...); result != CUPTI_SUCCESS) throw CuptiError(name, result);
}
#define ROOFPROF_CUPTI(api, name, ...) ::roofprof::cupti::checked(#name, (api).name, __VA_ARGS__)

// The size of a parameter struct in CUPTI 13.0: what param_sizes.def lists.
template <class Params>
struct ParamSize;
#define PARAMS(name, bytes)                     \
  template <>                                   \
  struct ParamSize<name> {                      \
    static constexpr std::size_t value = bytes; \
  };                                            \
  static_assert(bytes <= name##_STRUCT_SIZE);
#include "device/cupti/param_sizes.def"
#undef PARAMS

// Returns a zeroed parameter struct with the size that CUPTI 13.0 accepts, whatever size the headers give it: later
// ones have fields at the end that an older library refuses, and a later library takes the older size.
template <class Params>
Params params() {
  Params zeroed{};
  zeroed.structSize = ParamSize<Params>::value;
  return zeroed;
}

}  // namespace roofprof::cupti
