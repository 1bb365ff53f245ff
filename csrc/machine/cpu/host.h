#pragma once
// Reads what the operating system knows about this host, and what it allows this process.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof {

// The first line of a small text file; empty where it cannot be read.
std::string first_line(const std::filesystem::path& path);

// Returns the whole number that a text starts with, in units of one: "1024", "32768K" (K and M are powers of 1024), "7
// kB" (7); empty where the text starts with no number.
std::optional<std::int64_t> number_at_start(std::string_view text);

// Returns the number at the start of a file's first line.
std::optional<std::int64_t> first_number(const std::filesystem::path& path);

// Returns "key : value" lines, of which the first with each key counts (/proc/cpuinfo, /proc/meminfo).
std::map<std::string, std::string, std::less<>> key_values(const std::filesystem::path& path);

// Returns the number of CPUs that a list such as "0-3,8" names; 0 for an empty one.
int cpu_list_size(std::string_view list);

// Returns the logical CPUs that this process may run on; never empty.
std::vector<int> allowed_cpus();

// Returns the bytes that can still be allocated without swapping, under the limits of this process's control groups (of
// either version, with all groups around them); empty where the system does not say. `root` is where proc and sys are.
std::optional<std::int64_t> available_memory_bytes(const std::filesystem::path& root = "/");

// Returns the bytes that the smallest limit of the control groups allows to all their processes; empty: not limited.
std::optional<std::int64_t> memory_limit_bytes(const std::filesystem::path& root = "/");

// Returns the CPU time per second of wall time that the control groups grant; empty: not limited.
std::optional<double> cpu_quota(const std::filesystem::path& root = "/");

// Returns the seconds that these CPUs have worked since the system started, for all programs; empty where the system
// does not report them.
std::optional<double> busy_seconds(const std::vector<int>& cpus);

// Returns the CPU seconds that the other processes of this one's parent have used so far, such as those of torchrun's
// ranks; 0 where the system does not report them. A process that has ended is not included.
double seconds_of_siblings(const std::filesystem::path& proc = "/proc");

// The data caches that this process can use.

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

}  // namespace roofprof
