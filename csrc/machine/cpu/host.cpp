#include "machine/cpu/host.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <fstream>
#include <functional>
#include <locale>
#include <map>
#include <set>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace roofprof {

namespace {

namespace fs = std::filesystem;

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Calls visit(folder, unified) for this process's control group and all groups above it: each of them can limit. A
// container may show the host's path, so that only the root exists; that root is then the container's group.
void for_each_cgroup(const fs::path& system, std::string_view controller,
                     const std::function<void(const fs::path&, bool unified)>& visit) {
  std::ifstream file(system / "proc/self/cgroup");
  const fs::path groups = system / "sys/fs/cgroup";
  for (std::string line; std::getline(file, line);) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find("," + std::string(controller) + ",") == std::string::npos) continue;
    const fs::path root = unified ? groups : groups / controller;
    for (fs::path group = line.substr(second + 1); !group.empty(); group = group.parent_path()) {
      visit(root / group.relative_path(), unified);
      if (group == group.root_path()) break;
    }
  }
}

// Returns the limit; empty: none, for which version 1 has a number near the largest possible.
std::optional<std::int64_t> memory_limit_of(const fs::path& group, bool unified) {
  constexpr std::int64_t kNone = std::int64_t{1} << 60;
  const auto limit = first_number(group / (unified ? "memory.max" : "memory.limit_in_bytes"));
  return limit && *limit < kNone ? limit : std::nullopt;
}

// Returns the value of `key` in a file of "key value" lines; 0 where the file lacks it.
std::int64_t statistic(const fs::path& path, std::string_view key) {
  std::ifstream file(path);
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;) {
    if (name == key) return value;
  }
  return 0;
}

}  // namespace

std::string first_line(const fs::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return std::string(trimmed(line));
}

std::optional<std::int64_t> number_at_start(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  const char unit = end == text.data() + text.size() ? ' ' : *end;
  if (unit == 'K') return value << 10;
  if (unit == 'M') return value << 20;
  return value;
}

std::optional<std::int64_t> first_number(const fs::path& path) { return number_at_start(first_line(path)); }

std::map<std::string, std::string, std::less<>> key_values(const fs::path& path) {
  std::map<std::string, std::string, std::less<>> values;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view text = line;
    values.emplace(trimmed(text.substr(0, colon)), trimmed(text.substr(colon + 1)));
  }
  return values;
}

int cpu_list_size(std::string_view list) {
  int count = 0;
  while (!list.empty()) {
    const auto comma = list.find(',');
    const std::string_view range = list.substr(0, comma);
    const auto dash = range.find('-');
    const auto first = number_at_start(range);
    const auto last = dash == std::string_view::npos ? first : number_at_start(range.substr(dash + 1));
    if (first && last && *last >= *first) count += static_cast<int>(*last - *first) + 1;
    list = comma == std::string_view::npos ? std::string_view{} : list.substr(comma + 1);
  }
  return count;
}

std::vector<int> allowed_cpus() {
  std::vector<int> cpus;
  // The kernel refuses a mask smaller than its own, which may exceed cpu_set_t's 1024.
  for (int capacity = CPU_SETSIZE; cpus.empty() && capacity <= (1 << 20); capacity *= 4) {
    cpu_set_t* mask = CPU_ALLOC(capacity);
    if (mask == nullptr) break;
    const std::size_t size = CPU_ALLOC_SIZE(capacity);
    CPU_ZERO_S(size, mask);
    if (sched_getaffinity(0, size, mask) == 0) {
      for (int cpu = 0; cpu < capacity; ++cpu) {
        if (CPU_ISSET_S(cpu, size, mask)) cpus.push_back(cpu);
      }
    }
    CPU_FREE(mask);
  }
  if (cpus.empty()) {
    const auto count = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
    for (int cpu = 0; cpu < count; ++cpu) {
      cpus.push_back(cpu);
    }
  }
  return cpus;
}

std::optional<std::int64_t> available_memory_bytes(const fs::path& root) {
  std::optional<std::int64_t> available;
  const auto system = key_values(root / "proc/meminfo");
  if (const auto found = system.find("MemAvailable"); found != system.end()) {
    if (const auto kib = number_at_start(found->second)) available = *kib << 10;
  }
  for_each_cgroup(root, "memory", [&](const fs::path& group, bool unified) {
    auto limit = memory_limit_of(group, unified);
    // The kernel slows the group's processes down from there on.
    if (const auto high = first_number(group / "memory.high"); unified && high)
      limit = std::min(limit.value_or(*high), *high);
    const auto used = first_number(group / (unified ? "memory.current" : "memory.usage_in_bytes"));
    if (!limit || !used) return;
    // Cached file pages count as used and are given back on demand.
    const auto cached = statistic(group / "memory.stat", unified ? "inactive_file" : "total_inactive_file");
    const std::int64_t left = std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, *used - cached));
    available = std::min(available.value_or(left), left);
  });
  return available;
}

std::optional<std::int64_t> memory_limit_bytes(const fs::path& root) {
  std::optional<std::int64_t> smallest;
  for_each_cgroup(root, "memory", [&](const fs::path& group, bool unified) {
    if (const auto limit = memory_limit_of(group, unified)) smallest = std::min(smallest.value_or(*limit), *limit);
  });
  return smallest;
}

std::optional<double> cpu_quota(const fs::path& root) {
  std::optional<double> quota;
  for_each_cgroup(root, "cpu", [&](const fs::path& group, bool unified) {
    std::optional<std::int64_t> granted;
    std::optional<std::int64_t> period;
    if (unified) {
      const std::string line = first_line(group / "cpu.max");  // "200000 100000" or "max 100000"
      granted = number_at_start(line);
      if (const auto space = line.find(' '); granted && space != std::string::npos) {
        period = number_at_start(std::string_view(line).substr(space + 1));
      }
    } else {
      granted = first_number(group / "cpu.cfs_quota_us");  // -1: no limit
      period = first_number(group / "cpu.cfs_period_us");
    }
    if (!granted || !period || *granted <= 0 || *period <= 0) return;
    const double cores = static_cast<double>(*granted) / static_cast<double>(*period);
    quota = std::min(quota.value_or(cores), cores);
  });
  return quota;
}

std::optional<double> busy_seconds(const std::vector<int>& cpus) {
  std::ifstream file("/proc/stat");
  double ticks = 0;
  bool found = false;
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    fields.imbue(std::locale::classic());
    std::string name;
    fields >> name;
    if (name.size() < 4 || !name.starts_with("cpu")) continue;
    if (std::ranges::find(cpus, number_at_start(std::string_view(name).substr(3)).value_or(-1)) == cpus.end()) continue;
    // user, nice, system, idle, iowait, irq, softirq, steal; the guest times after them are part of user and nice.
    double value = 0;
    for (int column = 0; column < 8 && fields >> value; ++column) {
      if (column != 3 && column != 4) ticks += value;
    }
    found = true;
  }
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  if (!found || ticks_per_second <= 0) return std::nullopt;
  return ticks / static_cast<double>(ticks_per_second);
}

double seconds_of_siblings(const std::filesystem::path& proc) {
  const std::int64_t self = getpid(), parent = getppid();
  std::int64_t ticks = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(proc, error)) {
    const auto process = number_at_start(entry.path().filename().string());
    if (!process || *process == self) continue;
    const std::string line = first_line(entry.path() / "stat");
    // "42 (name of any kind) S 1 ...": the parent is the 4th field, user and system time are the 14th and 15th.
    std::istringstream fields(line.substr(std::min(line.size(), line.rfind(')') + 1)));
    fields.imbue(std::locale::classic());
    std::string state;
    std::int64_t value = 0, its_parent = 0;
    fields >> state >> its_parent;
    if (its_parent != parent) continue;
    for (int field = 5; field <= 15 && fields >> value; ++field) {
      if (field >= 14) ticks += value;
    }
  }
  const long ticks_per_second = sysconf(_SC_CLK_TCK);
  return ticks_per_second > 0 ? static_cast<double>(ticks) / static_cast<double>(ticks_per_second) : 0;
}

namespace {

std::vector<CacheLevel> from_sysfs(const std::filesystem::path& sysfs_cpu, const std::vector<int>& cpus) {
  std::map<int, CacheLevel> levels;
  std::set<std::pair<int, std::string>> seen;  // a cache is known by its level and the CPUs that share it
  for (const int cpu : cpus) {
    const auto folder = sysfs_cpu / ("cpu" + std::to_string(cpu)) / "cache";
    for (int index = 0; index < 16; ++index) {
      const auto cache = folder / ("index" + std::to_string(index));
      const std::string type = first_line(cache / "type");
      if (type.empty()) break;
      const auto level = first_number(cache / "level");
      const auto size = first_number(cache / "size");
      if (type == "Instruction" || !level || !size || *size <= 0) continue;
      std::string sharers = first_line(cache / "shared_cpu_list");
      const int shared_by = cpu_list_size(sharers);
      if (sharers.empty()) sharers = std::to_string(cpu);
      if (!seen.emplace(static_cast<int>(*level), std::move(sharers)).second) continue;
      auto& entry = levels[static_cast<int>(*level)];
      if (entry.instances == 0) {
        entry = {.level = static_cast<int>(*level), .size_bytes = *size, .instances = 0, .shared_by = shared_by};
      }
      ++entry.instances;
    }
  }
  std::vector<CacheLevel> result;
  result.reserve(levels.size());
  for (const auto& [level, entry] : levels) result.push_back(entry);
  return result;
}

// sysconf gives sizes only: L1 and L2 are taken as private, L3 as shared by all.
std::vector<CacheLevel> from_sysconf(int cpus) {
  std::vector<CacheLevel> result;
  const auto add = [&](int level, [[maybe_unused]] int name, int instances) {
    const long size = sysconf(name);
    if (size > 0) result.push_back({.level = level, .size_bytes = size, .instances = instances, .shared_by = 0});
  };
#ifdef _SC_LEVEL1_DCACHE_SIZE
  add(1, _SC_LEVEL1_DCACHE_SIZE, cpus);
  add(2, _SC_LEVEL2_CACHE_SIZE, cpus);
  add(3, _SC_LEVEL3_CACHE_SIZE, 1);
#endif
  return result;
}

}  // namespace

std::vector<CacheLevel> cpu_caches(const std::filesystem::path& sysfs_cpu) {
  const std::vector<int> cpus = allowed_cpus();
  auto caches = from_sysfs(sysfs_cpu, cpus);
  if (caches.empty()) caches = from_sysconf(static_cast<int>(cpus.size()));
  return caches;
}

}  // namespace roofprof
