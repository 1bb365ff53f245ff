#pragma once
// Looks up NVIDIA's driver (libcuda) at run time, through prototypes that are written here: roofprof needs none of
// NVIDIA's headers and does not link to the driver. It is also the gate to all of NVIDIA's other libraries: without a
// driver that works, CUPTI crashes at its first call.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/collector_error.h"

namespace roofprof::cuda {

using Result = int;                         // CUresult; 0 is success
using Device = int;                         // CUdevice
using Context = void*;                      // CUcontext
inline constexpr Result kStubLibrary = 34;  // what the toolkit's stand-in for the driver answers
inline constexpr Result kNoDevice = 100;

// CUdevice_attribute, as far as we ask; the driver's numbers never change their meaning.
enum class Attribute : int {  // NOLINT(performance-enum-size): as the driver's
  clock_khz = 13,
  sm_count = 16,
  memory_clock_khz = 36,
  l2_bytes = 38,
  compute_capability_major = 75,
  compute_capability_minor = 76,
};

// The driver's functions under different names, as its header makes macros of some names. All are set, except those
// that may be null.
struct Driver {
  Result (*init)(unsigned flags) = nullptr;
  Result (*driver_version)(int* version) = nullptr;
  Result (*get_error_name)(Result error, const char** name) = nullptr;
  Result (*device_count)(int* count) = nullptr;
  Result (*device_get)(Device* device, int ordinal) = nullptr;
  Result (*device_name)(char* name, int length, Device device) = nullptr;
  Result (*device_memory)(std::size_t* bytes, Device device) = nullptr;
  Result (*device_attribute)(int* value, int attribute, Device device) = nullptr;
  Result (*device_pci_bus_id)(char* id, int length, Device device) = nullptr;  // may be null
  Result (*primary_state)(Device device, unsigned* flags, int* active) = nullptr;
  Result (*primary_retain)(Context* context, Device device) = nullptr;
  Result (*primary_release)(Device device) = nullptr;
  Result (*push_current)(Context context) = nullptr;
  Result (*pop_current)(Context* context) = nullptr;
  Result (*get_current)(Context* context) = nullptr;
  Result (*current_device)(Device* device) = nullptr;
  Result (*synchronize)() = nullptr;

  int version = 0;  // of CUDA, that the driver brings: 13020 is 13.2
  int devices = 0;  // at least 1
  std::string path;
  bool simulated = false;  // the fake library of the tests

  std::string error_name(Result error) const;  // "CUDA_ERROR_ILLEGAL_ADDRESS (700)"
};

// "13.2" of 13020, which is how CUDA numbers its versions.
std::string version_text(std::int64_t cuda);

// Looks the driver up (ROOFPROF_CUDA_LIB, else libcuda.so.1), starts it and counts its devices. Throws CollectorError
// where the driver or a device is missing, where only the toolkit's stub is found, or where the driver does not start.
Driver open_driver();

// The process's driver, opened at the first call that finds one. Throws as open_driver does, at each call.
const Driver& driver();

struct NvidiaDevice {
  int index = 0;           // as the driver counts, which is as torch does
  std::string name;        // "NVIDIA H100 80GB HBM3"
  std::string pci_bus_id;  // "0000:3b:00.0"; empty: not known
  int compute_major = 0;   // compute capability: 9 and 0 of sm_90
  int compute_minor = 0;
  std::int64_t memory_bytes = 0;
  // Some devices do not report these (integrated ones, virtual ones): they are empty then.
  std::optional<std::int64_t> sm_count;
  std::optional<std::int64_t> clock_hz;         // of the SMs, at most
  std::optional<std::int64_t> memory_clock_hz;  // at most
  std::optional<std::int64_t> l2_bytes;
};

// Describes all devices, in the driver's order. Makes no context.
std::vector<NvidiaDevice> devices(const Driver& driver);

// A device's primary context, the one that torch uses, retained and current on this thread for as long as this lives.
class PrimaryContext {
 public:
  PrimaryContext(const Driver& driver, int device_index);  // throws CollectorError
  ~PrimaryContext();
  PrimaryContext(const PrimaryContext&) = delete;
  PrimaryContext& operator=(const PrimaryContext&) = delete;
  Context get() const { return context_; }

 private:
  const Driver& driver_;
  Device device_ = 0;
  Context context_ = nullptr;
};

// Returns the indices of the devices whose primary context is in use in this process.
std::vector<int> active_devices(const Driver& driver);

// Waits for all launches on the active devices. Throws CollectorError, which names the device and the driver's error,
// after it waited for all: an error of the driver's stays with its context, so that device cannot be used any more.
void synchronize_all(const Driver& driver);

// The context that this thread works in; null: none.
Context current_context(const Driver& driver);

// Returns the device of that context; empty without a context.
std::optional<int> current_device(const Driver& driver);

// Computes the peak of a GPU's CUDA cores from the properties that the device reports.

// Lanes for fp32 in one multiprocessor (SM): how many fused multiply-adds it starts in a clock. By compute capability,
// from NVIDIA's CUDA C++ Programming Guide, table "Throughput of Native Arithmetic Instructions", row "32-bit
// floating-point add, multiply, multiply-add"; empty for one that is not known here.
std::optional<int> fp32_lanes_per_sm(int compute_major, int compute_minor);

// SMs x lanes x clock x 2, in FLOP/s: a fused multiply-add is two operations. At the highest clock, which a GPU under
// load may not hold. Empty for an unknown compute capability.
std::optional<double> cuda_core_fp32_peak(std::int64_t sm_count, std::int64_t clock_hz, int compute_major,
                                          int compute_minor);

// Finds other profilers of this process, as far as it is possible without torch.

// Returns the tools of NVIDIA's that this process was started under, by the environment variables that they set:
// "Nsight Systems (NSYS_PROFILING_SESSION_ID is set)". It cannot find a subscriber that CUPTI has already: only an
// attempt to subscribe shows that, with a separate error.
std::vector<std::string> profilers_in_environment();

}  // namespace roofprof::cuda
