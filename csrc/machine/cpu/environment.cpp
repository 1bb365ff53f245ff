#include "machine/cpu/environment.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/Version.h>
#include <ATen/ops/empty.h>
#include <sys/utsname.h>
#include <torch/version.h>

#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "machine/cpu/host.h"

namespace roofprof {

void on_each_torch_thread(const std::function<void(int index)>& body) {
  // at::parallel_for is a template that runs serially unless compiled with torch's own OpenMP, and linking an OpenMP
  // here would bring a second pool of threads. TensorIterator's loop is compiled inside torch: one element per thread.
  const std::int64_t threads = at::get_num_threads();
  at::Tensor indices = at::empty({threads}, at::TensorOptions().dtype(at::kLong).device(at::kCPU));
  auto* values = indices.data_ptr<std::int64_t>();
  for (std::int64_t i = 0; i < threads; ++i) values[i] = i;
  at::TensorIterator iterator = at::TensorIterator::nullary_op(indices);
  const auto loop = [&](char** data, const std::int64_t* strides, std::int64_t columns, std::int64_t rows) {
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t column = 0; column < columns; ++column) {
        body(
            static_cast<int>(*reinterpret_cast<const std::int64_t*>(data[0] + row * strides[1] + column * strides[0])));
      }
    }
  };
  iterator.for_each(loop, /*grain_size=*/1);
}

std::string torch_threads_text() {
  const int threads = at::get_num_threads();
  return std::to_string(threads) + (threads == 1 ? " thread" : " threads");
}

namespace {

namespace fs = std::filesystem;

constexpr const char* kSysfsCpu = "/sys/devices/system/cpu";

std::string kernel_name() {
  utsname names{};
  if (uname(&names) != 0) return {};
  return std::string(names.sysname) + " " + names.release + " " + names.machine;
}

void add_topology(Environment& environment, const std::vector<int>& cpus) {
  std::set<std::string> sockets;
  std::set<std::string> cores;
  for (const int cpu : cpus) {
    const fs::path topology = fs::path(kSysfsCpu) / ("cpu" + std::to_string(cpu)) / "topology";
    const std::string socket = first_line(topology / "physical_package_id");
    const std::string core = first_line(topology / "core_id");
    if (socket.empty() || core.empty()) continue;
    sockets.insert(socket);
    // Core numbers start again in each socket, and on some machines in each die.
    cores.insert(std::string(socket).append(":").append(first_line(topology / "die_id")).append(":").append(core));
  }
  if (!sockets.empty()) {
    environment.emplace_back("sockets", static_cast<std::int64_t>(sockets.size()));
    environment.emplace_back("cores", static_cast<std::int64_t>(cores.size()));
  }
  environment.emplace_back("logical_cpus", static_cast<std::int64_t>(cpus.size()));
  if (const auto quota = cpu_quota()) environment.emplace_back("cpu_quota", *quota);
}

void add_caches(Environment& environment) {
  for (const auto& cache : cpu_caches()) {
    const std::string prefix = (cache.level == 1 ? "l1d" : "l" + std::to_string(cache.level)) + "_cache_";
    environment.emplace_back(prefix + "bytes", cache.size_bytes);
    environment.emplace_back(prefix + "instances", static_cast<std::int64_t>(cache.instances));
    if (cache.shared_by > 0) {
      environment.emplace_back(prefix + "shared_by_cpus", static_cast<std::int64_t>(cache.shared_by));
    }
  }
}

void add_frequency(Environment& environment, int cpu, const std::string& cpuinfo_mhz) {
  const fs::path folder = fs::path(kSysfsCpu) / ("cpu" + std::to_string(cpu)) / "cpufreq";
  const std::string governor = first_line(folder / "scaling_governor");
  environment.emplace_back("governor", governor.empty() ? std::string("not exposed") : governor);
  if (const auto khz = first_number(folder / "scaling_cur_freq")) {
    environment.emplace_back("frequency_hz", *khz * 1000);
  } else if (const auto mhz = number_at_start(cpuinfo_mhz)) {
    environment.emplace_back("frequency_hz", *mhz * 1'000'000);
  }
  if (const auto khz = first_number(folder / "cpuinfo_max_freq")) {
    environment.emplace_back("max_frequency_hz", *khz * 1000);
  }
}

std::string model_from(const std::map<std::string, std::string, std::less<>>& cpuinfo) {
  for (const std::string_view key : {"model name", "Model", "cpu model", "Hardware"}) {
    if (const auto found = cpuinfo.find(key); found != cpuinfo.end() && !found->second.empty()) return found->second;
  }
  utsname names{};
  return uname(&names) == 0 ? std::string(names.machine) + " CPU" : std::string("CPU");
}

// Returns a variable of the environment; one that is empty is not set.
std::string environment_variable(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr ? "" : text;
}

std::optional<std::int64_t> whole_number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

void add_rank(Environment& environment) {
  const auto [rank, world_size, wrong] = rank_of_environment();
  if (world_size == 0) return;
  environment.emplace_back("rank", rank);
  environment.emplace_back("world_size", world_size);
  utsname names{};
  if (uname(&names) == 0) environment.emplace_back("host", std::string(names.nodename));
  // Processes of one boot have one monotonic clock, whatever their containers call the host.
  std::ifstream boot("/proc/sys/kernel/random/boot_id");
  std::string id;
  if (std::getline(boot, id)) environment.emplace_back("boot", id);
}

}  // namespace

RankOfEnvironment rank_of_environment() {
  const auto rank = environment_variable("RANK"), size = environment_variable("WORLD_SIZE");
  if (rank.empty() && size.empty()) return {};
  const auto number = whole_number(rank), ranks = whole_number(size);
  if (rank.empty() && ranks == 1) return {};
  if (number && ranks && *number >= 0 && *number < *ranks) return {*number, *ranks, ""};
  constexpr std::size_t kShown = 40;
  const auto setting = [](const char* name, const std::string& value) {
    return value.empty() ? std::string(name) + " is not set"
                         : std::string(name) + " is '" + value.substr(0, kShown) + "'";
  };
  return {0, 0,
          setting("RANK", rank) + " and " + setting("WORLD_SIZE", size) +
              ": a rank is a whole number from 0 to one less than the number of ranks; set both, as torchrun does, or "
              "neither"};
}

std::string cpu_model() { return model_from(key_values("/proc/cpuinfo")); }

Environment cpu_environment() {
  const auto cpuinfo = key_values("/proc/cpuinfo");
  const auto value = [&](std::string_view key) {
    const auto found = cpuinfo.find(key);
    return found == cpuinfo.end() ? std::string() : found->second;
  };
  const std::vector<int> cpus = allowed_cpus();

  Environment environment;
  environment.emplace_back("torch", std::string(TORCH_VERSION));
  environment.emplace_back("device", model_from(cpuinfo));
  add_topology(environment, cpus);
  environment.emplace_back("torch_threads", static_cast<std::int64_t>(at::get_num_threads()));
  environment.emplace_back("simd", at::get_cpu_capability());
  add_caches(environment);
  add_frequency(environment, cpus.front(), value("cpu MHz"));
  const auto meminfo = key_values("/proc/meminfo");
  if (const auto found = meminfo.find("MemTotal"); found != meminfo.end()) {
    if (const auto kib = number_at_start(found->second)) environment.emplace_back("memory_total_bytes", *kib * 1024);
  }
  if (const auto limit = memory_limit_bytes()) environment.emplace_back("memory_limit_bytes", *limit);
  environment.emplace_back("kernel", kernel_name());
  // Only x86 kernels list it among the flags; elsewhere its absence would say nothing.
  if (const std::string flags = value("flags"); !flags.empty()) {
    const bool hypervisor = (" " + flags + " ").find(" hypervisor ") != std::string::npos;
    environment.emplace_back("hypervisor", std::string(hypervisor ? "yes" : "no"));
  }
  add_rank(environment);
  return environment;
}

}  // namespace roofprof
