#include "machine/cpu/caches.h"

#include <unistd.h>

#include <array>
#include <map>
#include <set>
#include <utility>

#include "machine/cpu/host.h"

namespace roofprof {
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

CacheCapacity cache_capacity(const std::vector<CacheLevel>& caches, int threads) {
  CacheCapacity capacity;
  for (const auto& cache : caches) {
    if (cache.level == 1) capacity.l1d_bytes = cache.capacity_bytes(threads);
    if (cache.level == 2) capacity.l2_bytes = cache.capacity_bytes(threads);
    if (cache.level == 3) capacity.l3_bytes = cache.capacity_bytes(threads);
  }
  return capacity;
}

}  // namespace roofprof
