#include "device/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "core/phrases.h"
#include "device/nvidia/driver.h"
#include "device/nvidia/nvml.h"

#ifndef ROOFPROF_WITHOUT_CUPTI
#include "device/cupti/collector.h"
#endif

namespace roofprof {
namespace cuda {
namespace {

constexpr int kCapSysAdmin = 21;
constexpr int kCapPerfmon = 38;
constexpr int kOldestCuda = 13000;  // of the driver, for CUPTI 13

std::string contents(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text between a key and the end of its line.
std::string_view value_of(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return {};
  std::string_view rest = text.substr(at + key.size());
  rest = rest.substr(0, rest.find('\n'));
  rest.remove_prefix(std::min(rest.find_first_not_of(" \t"), rest.size()));
  return rest;
}

std::string simulated(bool is) { return is ? ", simulated" : ""; }

Examined driver_finding(const Driver& driver) {
  const std::string module = kernel_module_version(contents("/proc/driver/nvidia/version"));
  Examined finding{"driver",
                   (module.empty() || driver.simulated ? "" : module + ", ") + "CUDA " + version_text(driver.version) +
                       " (" + driver.path + ")" + simulated(driver.simulated),
                   ""};
  if (driver.version < kOldestCuda) finding.advice = "CUPTI 13 needs a driver of CUDA 13 (580 or newer): update it";
  return finding;
}

std::string gibibytes(std::int64_t bytes) { return fixed_text(static_cast<double>(bytes) / (1 << 30), 1) + " GiB"; }

Examined device_finding(const NvidiaDevice& device, const Nvml& nvml) {
  Examined finding{"cuda:" + std::to_string(device.index),
                   device.name + ", compute capability " + std::to_string(device.compute_major) + "." +
                       std::to_string(device.compute_minor) + ", " + gibibytes(device.memory_bytes),
                   ""};
  const bool is_instance = device.name.find(" MIG ") != std::string::npos;
  if (is_instance || nvml.state(device.pci_bus_id).mig.value_or(false)) {
    finding.found += ", in MIG mode";
    finding.advice = "counters of what its instances share (L2, DRAM) may be missing; profile without MIG for those";
  }
  return finding;
}

void add_devices(const Driver& driver, std::vector<Examined>& findings) {
  const Nvml nvml;
  for (const NvidiaDevice& device : devices(driver)) findings.push_back(device_finding(device, nvml));
  if (nvml.problem().empty()) {
    findings.push_back({"NVML", "available", ""});
  } else {
    findings.push_back({"NVML", nvml.problem(), "it comes with the driver; without it clocks and power stay unknown"});
  }
}

void add_profilers(std::vector<Examined>& findings) {
  const std::string names = listed(profilers_in_environment());
  if (names.empty()) {
    findings.push_back({"other profilers", "none", ""});
  } else {
    findings.push_back(
        {"other profilers", "this process runs under " + names, "start it without to profile with roofprof"});
  }
}

#ifndef ROOFPROF_WITHOUT_CUPTI
// Returns whether the driver's module refuses counters to this process; this can be found out without CUPTI.
bool admins_only() {
  return counters_need_admin(contents("/proc/driver/nvidia/params")).value_or(false) &&
         !may_profile(contents("/proc/self/status"), kernel_module_version(contents("/proc/driver/nvidia/version")));
}
#endif

void add_cupti([[maybe_unused]] const Driver& driver, [[maybe_unused]] std::vector<Examined>& findings) {
#ifndef ROOFPROF_WITHOUT_CUPTI
  cupti::examine(!driver.simulated && admins_only(), findings);
#endif
}

// Adds a line that says if this build can measure on a GPU, also on machines without one, where it may have been built.
void add_build(std::vector<Examined>& findings) {
#ifndef ROOFPROF_WITHOUT_CUPTI
  findings.push_back({"this build", "has kernel times and counters of GPUs", ""});
#else
  findings.push_back({"this build", "has no kernel times and counters of GPUs: " ROOFPROF_WITHOUT_CUPTI,
                      ROOFPROF_WITHOUT_CUPTI_ADVICE});
#endif
}

}  // namespace

std::string kernel_module_version(std::string_view proc_version) {
  // "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build": the first word of digits and
  // dots.
  std::string_view line = value_of(proc_version, "NVRM version:");
  while (!line.empty()) {
    const std::string_view word = line.substr(0, line.find(' '));
    const bool is_version =
        word.find('.') != std::string_view::npos && word.find_first_not_of("0123456789.") == std::string_view::npos;
    if (is_version) return std::string(word);
    line.remove_prefix(std::min(word.size() + 1, line.size()));
  }
  return {};
}

std::optional<bool> counters_need_admin(std::string_view proc_params) {
  const std::string_view value = value_of(proc_params, "RmProfilingAdminOnly:");
  if (value.empty()) return std::nullopt;
  return value.front() != '0';
}

bool may_profile(std::string_view proc_status, std::string_view module_version) {
  const std::string mask(value_of(proc_status, "CapEff:"));
  const auto capabilities = std::strtoull(mask.c_str(), nullptr, 16);
  const auto has = [&](unsigned capability) { return (capabilities >> capability & 1U) != 0; };
  constexpr unsigned long kTakesPerfmon = 565;
  const bool perfmon = std::strtoul(std::string(module_version).c_str(), nullptr, 10) >= kTakesPerfmon;
  return has(kCapSysAdmin) || (perfmon && has(kCapPerfmon));
}

}  // namespace cuda

std::vector<Examined> doctor() {
  std::vector<Examined> findings;
  cuda::add_build(findings);
  try {
    const cuda::Driver& driver = cuda::driver();
    findings.push_back(cuda::driver_finding(driver));
    cuda::add_devices(driver, findings);
    cuda::add_cupti(driver, findings);
  } catch (const CollectorError& error) {
    findings.push_back({"driver", error.found(), error.advice()});
  }
  cuda::add_profilers(findings);
  return findings;
}

}  // namespace roofprof
