#include "device/cupti/api.h"

#include <dlfcn.h>

#include <array>
#include <cstdlib>
#include <mutex>

#include "core/phrases.h"
#include "device/nvidia/driver.h"

namespace roofprof::cupti {

namespace {

constexpr const char* kSoname = "libcupti.so.13";
constexpr const char* kOlderSoname = "libcupti.so.12";
constexpr std::uint32_t kOldest = 130000;
constexpr const char* kTorchAdvice =
    "use a torch that was built for CUDA 13, which brings one (pip install torch), or name one in ROOFPROF_CUPTI_LIB";

struct Library {
  void* handle = nullptr;
  std::string how;
};

// Prefers the copy that is loaded in the process: a second copy would not see what torch launches. For the same reason
// it tries no built-in path.
Library open_library() {
  const char* path = std::getenv("ROOFPROF_CUPTI_LIB");
  if (path != nullptr && *path != '\0') {
    if (void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL)) return {handle, "ROOFPROF_CUPTI_LIB"};
    throw CollectorError(std::string("ROOFPROF_CUPTI_LIB cannot be loaded (") + dlerror() + ")",
                         std::string("unset it, or name a ") + kSoname);
  }
  if (void* handle = dlopen(kSoname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD)) return {handle, "already loaded"};
  if (void* handle = dlopen(kSoname, RTLD_NOW | RTLD_LOCAL)) return {handle, "search path"};
  if (dlopen(kOlderSoname, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD) != nullptr) {
    throw CollectorError(
        std::string("the CUPTI in this process is too old (") + kOlderSoname + "; 13.0 is the oldest that works)",
        kTorchAdvice);
  }
  throw CollectorError(std::string("there is no CUPTI here (") + kSoname + ")", kTorchAdvice);
}

template <class Function>
void look_up(void* library, const char* name, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) add_item(missing, name);
}

void require(const Api& api, const std::string& missing, const char* for_what) {
  if (missing.empty()) return;
  throw CollectorError(
      "CUPTI " + version_text(api.version) + " (" + api.path + ") lacks what " + for_what + " need: " + missing,
      "use the CUPTI that came with torch");
}

// Loads the libraries that CUPTI asks for by their bare names when counters are first used. Otherwise CUPTI would find
// those of a CUDA toolkit or, without one, none (CUPTI_ERROR_NOT_INITIALIZED): torch's wheels keep them in CUPTI's
// folder, off the search path. CUPTI finds libraries that are loaded already.
void load_counter_libraries(const std::string& path_of_cupti) {
  const std::size_t folder = path_of_cupti.rfind('/');
  if (folder == std::string::npos) return;
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"}) {
    dlopen((path_of_cupti.substr(0, folder + 1) + name).c_str(), RTLD_NOW | RTLD_LOCAL);  // kept for good
  }
}

}  // namespace

std::string version_text(std::uint32_t version) {
  if (version < kOldest) return "of CUDA 12 or older (API version " + std::to_string(version) + ")";
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Api open_api() {
  const cuda::Driver& driver = cuda::driver();
  const Library library = open_library();
  Api api;
  api.how = library.how;
  api.simulated = dlsym(library.handle, "roofprof_simulated") != nullptr;
  if (api.simulated != driver.simulated) {  // which would crash: the gate was none
    throw CollectorError("of the driver and CUPTI one is simulated and the other is not",
                         "set both ROOFPROF_CUDA_LIB and ROOFPROF_CUPTI_LIB, or neither");
  }
  api.real_time = &machines_real_time;
  if (api.simulated) {
    api.real_time = reinterpret_cast<std::uint64_t (*)()>(dlsym(library.handle, "roofprof_simulated_time"));
  }
  std::string missing;
  std::string missing_optional;
#define REQUIRED(name) look_up(library.handle, #name, api.name, missing);
#define ACTIVITY(name) look_up(library.handle, #name, api.name, api.missing_activity);
#define COUNTERS(name) look_up(library.handle, #name, api.name, api.missing_counters);
#define OPTIONAL(name) look_up(library.handle, #name, api.name, missing_optional);
#include "device/cupti/functions.def"
#undef REQUIRED
#undef ACTIVITY
#undef COUNTERS
#undef OPTIONAL
  if (api.cuptiGetVersion != nullptr) {
    if (Dl_info info{}; dladdr(reinterpret_cast<void*>(api.cuptiGetVersion), &info) != 0) api.path = info.dli_fname;
    ROOFPROF_CUPTI(api, cuptiGetVersion, &api.version);
    if (api.version < kOldest) {
      throw CollectorError("the CUPTI at " + api.path + " is too old: it is that " + version_text(api.version) +
                               ", and 13.0 is the oldest that works",
                           kTorchAdvice);
    }
  }
  require(api, missing, "profilers");
  return api;
}

const Api& api() {
  static std::mutex mutex;
  static const Api* found = nullptr;  // never destroyed: CUPTI may give buffers back while the process ends
  const std::lock_guard lock(mutex);
  if (found == nullptr) found = new Api(open_api());
  return *found;
}

void require_activity(const Api& api) { require(api, api.missing_activity, "kernel times"); }

void require_counters(const Api& api) {
  require(api, api.missing_counters, "counters");
  static std::once_flag once;
  std::call_once(once, load_counter_libraries, api.path);
}

namespace {

// Codes without a meaning are mistakes of roofprof's or CUPTI's: only their name is shown.
struct ErrorText {
  CUptiResult code;
  std::string_view name;
  std::string_view meaning;
  std::string_view advice;
};

constexpr std::string_view kReport = "please report it with the output of `roofprof doctor`";
constexpr std::string_view kTimesOnly = "kernel times work without them: counters=\"off\"";

#define CODE(name) CUPTI_##name, "CUPTI_" #name
constexpr std::array kErrors = {
    ErrorText{CODE(SUCCESS), "", ""},
    ErrorText{
        CODE(ERROR_INVALID_PARAMETER), "CUPTI refuses what it was asked",
        "its version may be one that roofprof does not know: `roofprof doctor` shows it, ROOFPROF_CUPTI_LIB chooses "
        "another"},
    ErrorText{CODE(ERROR_INVALID_DEVICE), "CUPTI does not know the device", kReport},
    ErrorText{CODE(ERROR_INVALID_CONTEXT), "CUPTI has no CUDA context to work in", "run something on the device first"},
    ErrorText{CODE(ERROR_INVALID_EVENT_DOMAIN_ID), "", ""},
    ErrorText{CODE(ERROR_INVALID_EVENT_ID), "", ""},
    ErrorText{CODE(ERROR_INVALID_EVENT_NAME), "", ""},
    ErrorText{CODE(ERROR_INVALID_OPERATION), "CUPTI cannot do that at this moment",
              "another profiler in this process may have begun the same: end it first"},
    ErrorText{CODE(ERROR_OUT_OF_MEMORY), "CUPTI has no memory left", "profile a smaller part, or free device memory"},
    ErrorText{CODE(ERROR_HARDWARE), "the device's counters do not answer",
              "see whether nvidia-smi and dmesg name an error"},
    ErrorText{CODE(ERROR_PARAMETER_SIZE_NOT_SUFFICIENT), "", ""},
    ErrorText{CODE(ERROR_API_NOT_IMPLEMENTED), "this CUPTI lacks the function", "use the CUPTI that came with torch"},
    ErrorText{CODE(ERROR_MAX_LIMIT_REACHED), "", ""},
    ErrorText{CODE(ERROR_NOT_READY), "", ""},
    ErrorText{CODE(ERROR_NOT_COMPATIBLE), "what another profiler has switched on does not go with this",
              "end it first"},
    ErrorText{
        CODE(ERROR_NOT_INITIALIZED), "CUPTI does not start",
        "libnvperf_host.so and libnvperf_target.so must lie in its folder, and the driver must be as new as its CUDA"},
    ErrorText{CODE(ERROR_INVALID_METRIC_ID), "", ""},
    ErrorText{CODE(ERROR_INVALID_METRIC_NAME), "this chip does not have the metric", kReport},
    ErrorText{CODE(ERROR_QUEUE_EMPTY), "", ""},
    ErrorText{CODE(ERROR_INVALID_HANDLE), "", ""},
    ErrorText{CODE(ERROR_INVALID_STREAM), "", ""},
    ErrorText{CODE(ERROR_INVALID_KIND), "", ""},
    ErrorText{CODE(ERROR_INVALID_EVENT_VALUE), "", ""},
    ErrorText{CODE(ERROR_DISABLED), "CUPTI is switched off in this process",
              "a debugger or profiler does that: run without cuda-gdb, nsys and ncu"},
    ErrorText{CODE(ERROR_INVALID_MODULE), "", ""},
    ErrorText{CODE(ERROR_INVALID_METRIC_VALUE), "", ""},
    ErrorText{CODE(ERROR_HARDWARE_BUSY), "somebody else uses the device's counters",
              "usually DCGM, which `dcgmi profiling --pause` stops and `--resume` starts again; else another process's "
              "nsys, ncu or roofprof"},
    ErrorText{CODE(ERROR_NOT_SUPPORTED), "this device or system does not support it", kTimesOnly},
    ErrorText{CODE(ERROR_UM_PROFILING_NOT_SUPPORTED), "", ""},
    ErrorText{CODE(ERROR_UM_PROFILING_NOT_SUPPORTED_ON_DEVICE), "", ""},
    ErrorText{CODE(ERROR_UM_PROFILING_NOT_SUPPORTED_ON_NON_P2P_DEVICES), "", ""},
    ErrorText{CODE(ERROR_UM_PROFILING_NOT_SUPPORTED_WITH_MPS), "", ""},
    ErrorText{CODE(ERROR_CDP_TRACING_NOT_SUPPORTED), "", ""},
    ErrorText{CODE(ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED), "this virtual GPU cannot be profiled",
              "use the GPU without virtualisation, or a vGPU whose type allows it"},
    ErrorText{CODE(ERROR_CUDA_COMPILER_NOT_COMPATIBLE), "", ""},
    ErrorText{CODE(ERROR_INSUFFICIENT_PRIVILEGES), "no permission to read the GPU's performance counters",
              "load the driver's module with NVreg_RestrictProfilingToAdminUsers=0 (`options nvidia "
              "NVreg_RestrictProfilingToAdminUsers=0` in /etc/modprobe.d, then restart), or run as root or with "
              "CAP_SYS_ADMIN (docker run --cap-add=SYS_ADMIN); from driver 565 on CAP_PERFMON is enough "
              "(docker run --cap-add=PERFMON)"},
    ErrorText{CODE(ERROR_OLD_PROFILER_API_INITIALIZED),
              "something in this process uses CUPTI's old profiling functions", "end it first"},
    ErrorText{CODE(ERROR_OPENACC_UNDEFINED_ROUTINE), "", ""},
    ErrorText{CODE(ERROR_LEGACY_PROFILER_NOT_SUPPORTED), "this device is not served by CUPTI's old profiling functions",
              "use a CUPTI of CUDA 13"},
    ErrorText{CODE(ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED), "another profiler is at work in this process",
              "run without nsys, ncu and cuda-gdb, and end other users of CUPTI (torch.profiler, Proton) first"},
    ErrorText{
        CODE(ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES),
        "the hypervisor does not let this virtual GPU's performance counters be read",
        "have profiling enabled for this vGPU on the host, and load the guest's driver with "
        "NVreg_RestrictProfilingToAdminUsers=0 or run with CAP_SYS_ADMIN (from driver 565 on CAP_PERFMON is enough)"},
    ErrorText{CODE(ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED), "confidential computing forbids profiling",
              "switch it off on this GPU (devtools mode), or profile on another one"},
    ErrorText{CODE(ERROR_CMP_DEVICE_NOT_SUPPORTED), "CUPTI does not support mining processors (CMP)",
              "use another GPU"},
    ErrorText{CODE(ERROR_MIG_DEVICE_NOT_SUPPORTED), "CUPTI cannot profile this instance of a GPU in MIG mode",
              "profile on a GPU without MIG, or give the instance all of the GPU"},
    ErrorText{CODE(ERROR_SLI_DEVICE_NOT_SUPPORTED), "CUPTI does not support GPUs joined by SLI", "switch SLI off"},
    ErrorText{CODE(ERROR_WSL_DEVICE_NOT_SUPPORTED), "CUPTI does not support this under Windows' Linux (WSL)",
              "allow access to the counters in NVIDIA's control panel under Windows, or profile on Linux itself"},
    ErrorText{CODE(ERROR_INVALID_CHIP_NAME),
              "CUPTI's counters do not support this chip (compute capability 7.5 or newer)", kTimesOnly},
    // 47 is in the headers from 13.2 on.
    ErrorText{static_cast<CUptiResult>(47), "CUPTI_ERROR_HES_TRACE_NOT_SUPPORTED_ON_MPS", "", ""},
    ErrorText{CODE(ERROR_UNKNOWN), "CUPTI failed without saying why",
              "the driver may be older than this CUPTI's CUDA, or the device be lost: see `roofprof doctor` and dmesg"},
};
#undef CODE

const ErrorText* find(int code) {
  for (const ErrorText& error : kErrors) {
    if (error.code == code) return &error;
  }
  return nullptr;
}

// "no permission to read the GPU's performance counters (cuptiX: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, 35)"
std::string found_text(std::string_view function, int code) {
  const ErrorText* known = find(code);
  std::string text(known != nullptr && !known->meaning.empty() ? known->meaning : "a call of CUPTI's failed");
  text.append(" (").append(function).append(": ").append(error_name(code)).append(", ");
  return text.append(std::to_string(code)).append(")");
}

std::string advice_text(int code) {
  const ErrorText* known = find(code);
  return std::string(known != nullptr && !known->advice.empty() ? known->advice : kReport);
}

}  // namespace

std::string_view error_name(int code) {
  const ErrorText* known = find(code);
  return known != nullptr ? known->name : "an error that roofprof does not know";
}

CuptiError::CuptiError(std::string_view function, int code)
    : CollectorError(found_text(function, code), advice_text(code)), code_(code) {}

}  // namespace roofprof::cupti
