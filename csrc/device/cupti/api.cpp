#include "device/cupti/api.h"

#include <dlfcn.h>

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
  const char* asked = std::getenv("ROOFPROF_CUPTI_LIB");
  if (asked != nullptr && *asked != '\0') {
    if (void* handle = dlopen(asked, RTLD_NOW | RTLD_LOCAL)) return {handle, "ROOFPROF_CUPTI_LIB"};
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

}  // namespace roofprof::cupti
