#pragma once
// CUPTI, looked up at run time: the table of its functions, its error codes in words, its parameter structs in the
// sizes that the oldest supported library (13.0) accepts.

#include <cupti.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>
#include <cupti_target.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "device/collector.h"

namespace roofprof::cupti {

// A call of CUPTI's that failed: which, with which code, and what that means for the user.
class CuptiError : public CollectorError {
 public:
  CuptiError(std::string_view function, int code);
  int code() const { return code_; }

 private:
  int code_;
};

// "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"; by our own table, as cuptiGetResultString is not safe without a driver.
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
  std::string how;            // it was found: "loaded by torch", "search path", "ROOFPROF_CUPTI_LIB"
};

// The process's CUPTI, behind the driver gate; looked for at the first call. Throws CollectorError.
const Api& api();

// The checked form: ROOFPROF_CUPTI(api, cuptiActivityFlushAll, 1) throws CuptiError where it fails or is not there.
template <class Function, class... Args>
void checked(std::string_view name, Function function, Args... args) {
  if (function == nullptr) throw CuptiError(name, CUPTI_ERROR_API_NOT_IMPLEMENTED);
  if (const CUptiResult result = function(args...); result != CUPTI_SUCCESS) throw CuptiError(name, result);
}
#define ROOFPROF_CUPTI(api, name, ...) ::roofprof::cupti::checked(#name, (api).name, __VA_ARGS__)

// A zeroed parameter struct with the size that CUPTI 13.0 accepts, whatever the headers at hand say.
template <class Params>
Params params();

}  // namespace roofprof::cupti
