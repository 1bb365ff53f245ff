#pragma once
// The data caches that this process can use.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace roofprof {

// All caches of one level; on parts with two kinds of cores, of the kind seen first.
struct CacheLevel {
  int level = 0;                // 1, 2, 3
  std::int64_t size_bytes = 0;  // of one cache
  int instances = 0;            // caches that the allowed CPUs reach
  int shared_by = 0;            // logical CPUs of the machine on one cache; 0: not known

  std::string name() const { return "L" + std::to_string(level); }
  // Returns the bytes that `threads` threads can use together: a private cache counts once for each thread, a shared
  // one once. Assumes that the threads are spread over the caches, as schedulers do.
  std::int64_t capacity_bytes(int threads) const { return size_bytes * std::clamp(threads, 1, std::max(1, instances)); }
};

// Data and unified caches of the CPUs that this process may run on, smallest level first; a level that neither sysfs
// nor sysconf knows is left out. `sysfs_cpu` is where the kernel describes CPUs.
std::vector<CacheLevel> cpu_caches(const std::filesystem::path& sysfs_cpu = "/sys/devices/system/cpu");

// The bytes that a number of threads can use of each level; 0 where the level is missing.
struct CacheCapacity {
  std::int64_t l1d_bytes = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t l3_bytes = 0;
  std::int64_t last_level_bytes() const { return std::max({l1d_bytes, l2_bytes, l3_bytes}); }
};
CacheCapacity cache_capacity(const std::vector<CacheLevel>& caches, int threads);

}  // namespace roofprof
