#include "machine/roofs.h"

#include <ATen/Parallel.h>
#include <ATen/Version.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/utsname.h>
#include <torch/version.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <map>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "core/device_kind.h"
#include "core/forks.h"
#include "core/json/members.h"
#include "machine/common/dispatch_defaults.h"
#include "machine/cpu/environment.h"
#include "machine/cpu/host.h"
#include "machine/cpu/measure_cpu.h"
#include "machine/gpu/measure_gpu.h"
#include "machine/known/file.h"

namespace roofprof {

std::string named_device(const std::string& device) {
  const auto kind = device_kind(device);
  if (kind == DeviceKind::cpu) return "cpu";
  const bool has_index = device.find(':') != std::string::npos;
  if (kind != DeviceKind::nvidia || has_index || !at::detail::getCUDAHooks().hasCUDA()) return device;
  try {
    return c10::impl::VirtualGuardImpl(c10::Device(device).type()).getDevice().str();
  } catch (const c10::Error&) {  // the code that uses the device reports what is wrong with it
    return device;
  }
}

MeasuredCeilings measure_ceilings(const std::string& device, const Progress& progress) {
  const DispatchDefaults defaults;
  const std::string named = named_device(device);
  switch (device_kind(named)) {
    case DeviceKind::cpu:
      return measure_cpu(progress);
    case DeviceKind::nvidia:
      return measure_gpu(named, progress);
    case DeviceKind::meta:
    case DeviceKind::other:
      break;
  }
  throw InvalidArgument("roofs can be measured for \"cpu\" and for \"cuda:<index>\", not for \"" + device +
                        "\": give a file of them instead");
}

Ceilings Ceilings::measure(const std::string& device, const Progress& progress) {
  MeasuredCeilings measured = measure_ceilings(device, progress);
  for (const std::string& note : measured.notes) {
    if (progress) progress("roofs of this machine: " + note);
  }
  return std::move(measured.ceilings);
}

namespace {

namespace fs = std::filesystem;

// The facts of a GPU's environment that make the key; facts that change from moment to moment are left out.
constexpr std::array<std::string_view, 14> kGpuFacts = {"gpu_device",
                                                        "gpu_uuid",
                                                        "gpu_pci_bus_id",
                                                        "gpu_driver",
                                                        "gpu_driver_cuda",
                                                        "torch_cuda",
                                                        "gpu_sm_count",
                                                        "gpu_max_sm_clock_hz",
                                                        "gpu_max_memory_clock_hz",
                                                        "gpu_power_limit_watts",
                                                        "gpu_ecc",
                                                        "gpu_mig",
                                                        "gpu_max_pcie_generation",
                                                        "gpu_max_pcie_width"};

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? std::string(names.nodename) : std::string();
}

// Everything that measured roofs depend on and that can change without anyone measuring again.
Environment key_of(const std::string& device, const RoofSource& source) {
  Environment key = {
      // Machines of a cloud or a cluster share names and home folders: the processor distinguishes them.
      {"host", host_name()},
      {"processor", cpu_model()},
      {"device", device},
      {"torch", std::string(TORCH_VERSION)},
      {"roofprof_schema", kCeilingsSchemaVersion},
  };
  if (device_kind(device) == DeviceKind::cpu) {
    key.emplace_back("cpus", static_cast<std::int64_t>(allowed_cpus().size()));
    key.emplace_back("simd", at::get_cpu_capability());
    key.emplace_back("threads", static_cast<std::int64_t>(at::get_num_threads()));
    return key;
  }
  for (auto& fact : source.gpu_environment(device)) {
    if (std::ranges::find(kGpuFacts, fact.first) != kGpuFacts.end()) key.push_back(std::move(fact));
  }
  return key;
}

// FNV-1a.
std::string digest_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  std::string digits;
  for (int i = 0; i < 12; ++i, hash >>= 4U) digits += "0123456789abcdef"[hash & 0xFU];
  return digits;
}

fs::path file_for(const std::string& device, const Environment& key) {
  JsonWriter json;
  write_value(json, key);
  std::string name = "ceilings-" + device;
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '-');
  if (device_kind(device) == DeviceKind::cpu) name += "-" + std::to_string(at::get_num_threads()) + "-threads";
  return fs::path(ceilings_cache_folder()) / (name + "-" + digest_of(json.take()) + ".json");
}

// Roofs of a busy machine: for the next reports of this process, which would each take as long to measure them again.
class BusyRoofs {
 public:
  void keep(const std::string& path, const MeasuredCeilings& roofs) {
    const std::lock_guard lock(mutex_);
    kept_[path] = {Clock::now(), roofs};
  }
  void forget(const std::string& path) {
    const std::lock_guard lock(mutex_);
    kept_.erase(path);
  }
  std::optional<MeasuredCeilings> find(const std::string& path) {
    constexpr std::chrono::minutes kLife{10};
    const std::lock_guard lock(mutex_);
    const auto found = kept_.find(path);
    if (found == kept_.end() || Clock::now() - found->second.first > kLife) return std::nullopt;
    return found->second.second;
  }

 private:
  using Clock = std::chrono::steady_clock;
  ForkMutex mutex_;
  std::map<std::string, std::pair<Clock::time_point, MeasuredCeilings>> kept_;
};

BusyRoofs& busy_roofs() {
  static auto* roofs = new BusyRoofs;
  return *roofs;
}

// Makes the processes of a host measure one after the other: ranks of a program begin at once, and if they measured at
// once, each would get the share that the others leave. A process does not wait where it cannot have the lock, or where
// the one that holds it makes no progress.
class MeasurementLock {
 public:
  explicit MeasurementLock(const RoofSource& source) {
    std::error_code error;
    const fs::path folder = fs::temp_directory_path(error);  // of this host, as the cache may not be
    const auto path = folder / ("roofprof-" + std::to_string(::getuid()) + ".lock");
    constexpr mode_t kOwner = 0600;
    file_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, kOwner);
    if (file_ < 0) return;
    try {
      wait(source);
    } catch (...) {
      ::close(file_);
      throw;
    }
  }
  ~MeasurementLock() {
    if (file_ >= 0) ::close(file_);
  }
  MeasurementLock(const MeasurementLock&) = delete;
  MeasurementLock& operator=(const MeasurementLock&) = delete;

 private:
  using Clock = std::chrono::steady_clock;

  void wait(const RoofSource& source) {
    constexpr std::chrono::milliseconds kPause{50};
    auto turn = turn_of_now();
    auto since = Clock::now();
    while (::flock(file_, LOCK_EX | LOCK_NB) != 0) {
      if (errno != EWOULDBLOCK && errno != EINTR) return;
      if (auto now = turn_of_now(); now != turn) {
        turn = std::move(now);
        since = Clock::now();
      }
      if (Clock::now() - since > source.longest_turn) return;
      source.while_waiting();
      std::this_thread::sleep_for(kPause);
    }
    const auto mine = std::to_string(::getpid()) + ' ' + std::to_string(Clock::now().time_since_epoch().count());
    if (::ftruncate(file_, 0) != 0 || ::pwrite(file_, mine.data(), mine.size(), 0) < 0) return;  // nobody needs it
  }

  // Returns what the process that has the turn wrote when it got it.
  std::string turn_of_now() const {
    std::array<char, 64> text{};
    const auto size = ::pread(file_, text.data(), text.size(), 0);
    return {text.data(), static_cast<std::size_t>(std::max<ssize_t>(size, 0))};
  }

  int file_ = -1;
};

// Writes a measurement's progress to stderr, once it takes long.
class LinesOnStderr {
 public:
  explicit LinesOnStderr(const RoofSource& source) : now_(source.now) {}
  void operator()(std::string_view line) {
    constexpr std::chrono::seconds kQuiet{2};
    if (now_() - begin_ < kQuiet) return;
    if (!std::exchange(begun_, true)) {
      std::cerr << "roofs of this machine: measured once, in 20 to 30 seconds, and kept in " << ceilings_cache_folder()
                << '\n';
    }
    std::cerr << line << '\n';
  }

 private:
  std::chrono::steady_clock::time_point (*now_)();
  std::chrono::steady_clock::time_point begin_ = now_();
  bool begun_ = false;
};

std::optional<MeasuredCeilings> kept_roofs(const fs::path& path, std::vector<std::string>& remarks) {
  std::error_code error;
  if (!fs::exists(path, error)) return busy_roofs().find(path.string());
  try {
    return read_ceilings_file(path.string()).roofs;
  } catch (const std::runtime_error& problem) {
    remarks.push_back(std::string("the roofs were measured again, as those kept could not be used: ") + problem.what());
    return std::nullopt;
  }
}

}  // namespace

std::string ceilings_cache_folder() {
  const auto variable = [](const char* name) -> std::string_view {
    const char* value = std::getenv(name);
    return value != nullptr ? value : "";
  };
  if (const auto named = variable("ROOFPROF_CACHE_DIR"); !named.empty()) return std::string(named);
  // The XDG rule: what is not absolute does not count.
  fs::path base(variable("XDG_CACHE_HOME"));
  if (!base.is_absolute()) base = fs::path(variable("HOME")) / ".cache";
  return (base / "roofprof").string();
}

CachedCeilings cached_ceilings(const std::string& device, const Progress& progress, bool again,
                               const RoofSource& source) {
  const std::string named = named_device(device);
  const Environment key = key_of(named, source);
  const fs::path path = file_for(named, key);
  std::vector<std::string> remarks;
  if (auto known = again ? std::nullopt : kept_roofs(path, remarks)) return {std::move(*known), false};
  const MeasurementLock turn(source);
  // Who had the turn before may have kept them.
  remarks.clear();
  if (auto known = again ? std::nullopt : kept_roofs(path, remarks)) return {std::move(*known), false};

  MeasuredCeilings measured = source.measure(named, progress ? progress : LinesOnStderr(source));
  if (measured.ceilings.busy_share > 0) {
    busy_roofs().keep(path.string(), measured);
  } else {
    busy_roofs().forget(path.string());
    try {
      fs::create_directories(path.parent_path());
      if (fs::exists(path) && !fs::is_regular_file(path)) throw RuntimeError(path.string() + " is no file");
      write_ceilings_file({key, measured}, path.string());
    } catch (const std::exception& problem) {
      remarks.push_back(std::string("the roofs were not kept for the next run: ") + problem.what());
    }
  }
  measured.notes.insert(measured.notes.begin(), remarks.begin(), remarks.end());
  return {std::move(measured), true};
}

}  // namespace roofprof
