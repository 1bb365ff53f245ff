#include "machine/cpu/host.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <string>

namespace roofprof {
namespace {

namespace fs = std::filesystem;

// A folder with the kernel's description of the CPUs that this process may run on.
class FakeSysfs : public ::testing::Test {
 protected:
  FakeSysfs() : root_(fs::temp_directory_path() / ("roofprof_sysfs_" + std::to_string(getpid()))) {
    fs::create_directories(root_);
  }
  ~FakeSysfs() override { fs::remove_all(root_); }

  void add_cache(int cpu, int index, const std::string& type, const std::string& level, const std::string& size,
                 const std::string& shared_by) {
    const fs::path folder = root_ / ("cpu" + std::to_string(cpu)) / "cache" / ("index" + std::to_string(index));
    fs::create_directories(folder);
    std::ofstream(folder / "type") << type << '\n';
    std::ofstream(folder / "level") << level << '\n';
    std::ofstream(folder / "size") << size << '\n';
    std::ofstream(folder / "shared_cpu_list") << shared_by << '\n';
  }

  fs::path root_;
};

TEST_F(FakeSysfs, PrivateCachesCountForEachCpuAndSharedOnesOnce) {
  const auto cpus = allowed_cpus();
  for (const int cpu : cpus) {
    add_cache(cpu, 0, "Data", "1", "48K", std::to_string(cpu));
    add_cache(cpu, 1, "Instruction", "1", "32K", std::to_string(cpu));
    add_cache(cpu, 2, "Unified", "2", "1024K", std::to_string(cpu));
    add_cache(cpu, 3, "Unified", "3", "32M", "0-63,128-191");
  }
  const auto caches = cpu_caches(root_);
  ASSERT_EQ(caches.size(), 3u);
  const int count = static_cast<int>(cpus.size());
  EXPECT_EQ(caches[0].name(), "L1");
  EXPECT_EQ(caches[0].size_bytes, 48 * 1024);
  EXPECT_EQ(caches[0].instances, count);
  EXPECT_EQ(caches[0].shared_by, 1);
  EXPECT_EQ(caches[1].instances, count);
  EXPECT_EQ(caches[2].size_bytes, 32 << 20);
  EXPECT_EQ(caches[2].instances, 1);
  EXPECT_EQ(caches[2].shared_by, 128);

  EXPECT_EQ(caches[0].capacity_bytes(count), count * 48 * 1024);
  EXPECT_EQ(caches[1].capacity_bytes(count), std::int64_t{count} << 20);
  EXPECT_EQ(caches[2].capacity_bytes(count), 32 << 20);
}

TEST(Host, NumbersAndListsAsTheKernelWritesThem) {
  EXPECT_EQ(number_at_start("1024"), 1024);
  EXPECT_EQ(number_at_start("32768K"), 32768 * 1024);
  EXPECT_EQ(number_at_start("2M"), 2 << 20);
  EXPECT_EQ(number_at_start("24684092 kB"), 24684092);
  EXPECT_EQ(number_at_start("2596.122"), 2596);
  EXPECT_EQ(number_at_start("-1"), -1);
  EXPECT_FALSE(number_at_start("max"));
  EXPECT_FALSE(number_at_start(""));
  EXPECT_EQ(cpu_list_size("0-3,8"), 5);
  EXPECT_EQ(cpu_list_size("7"), 1);
  EXPECT_EQ(cpu_list_size(""), 0);
  EXPECT_EQ(first_line("/no/such/file"), "");
  EXPECT_FALSE(first_number("/no/such/file"));
}

// What the kernel shows of control groups, in a folder.
class ControlGroups : public ::testing::Test {
 protected:
  ControlGroups() : root_(std::filesystem::temp_directory_path() / ("roofprof_groups_" + std::to_string(::getpid()))) {
    std::filesystem::remove_all(root_);
    put("proc/meminfo", "MemTotal: 65536000 kB\nMemAvailable: 32768000 kB\n");
  }
  ~ControlGroups() override {
    std::error_code ignored;
    std::filesystem::remove_all(root_, ignored);
  }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }

  std::filesystem::path root_;
};

constexpr std::int64_t kGiB = std::int64_t{1} << 30;

TEST_F(ControlGroups, NoneIsNoLimit) {
  EXPECT_EQ(available_memory_bytes(root_), std::int64_t{32768000} << 10);
  put("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(available_memory_bytes(root_), std::int64_t{32768000} << 10);
  EXPECT_FALSE(cpu_quota(root_));
  EXPECT_FALSE(memory_limit_bytes(root_));
}

TEST_F(ControlGroups, OfVersion2LimitWithAllThatAreAroundThem) {
  put("proc/self/cgroup", "0::/outer/inner\n");
  const std::string outer = "sys/fs/cgroup/outer/";
  put(outer + "memory.max", "4294967296\n");
  put(outer + "memory.current", "2147483648\n");
  put(outer + "memory.stat", "anon 5\ninactive_file 1073741824\n");
  put(outer + "cpu.max", "150000 100000\n");
  put(outer + "inner/memory.max", "max\n");
  put(outer + "inner/memory.current", "1073741824\n");
  put(outer + "inner/cpu.max", "max 100000\n");
  EXPECT_EQ(available_memory_bytes(root_), 3 * kGiB);
  EXPECT_EQ(cpu_quota(root_), 1.5);
  EXPECT_EQ(memory_limit_bytes(root_), 4 * kGiB);
  put(outer + "inner/memory.max", "2147483648\n");
  EXPECT_EQ(available_memory_bytes(root_), 1 * kGiB);
  put(outer + "inner/memory.high", "1610612736\n");
  EXPECT_EQ(available_memory_bytes(root_), kGiB / 2);
  EXPECT_EQ(memory_limit_bytes(root_), 2 * kGiB);
}

TEST_F(ControlGroups, OfVersion1Too) {
  put("proc/self/cgroup", "12:cpu,cpuacct:/docker/abc\n7:memory:/docker/abc\n1:name=systemd:/docker/abc\n0::/\n");
  const std::string memory = "sys/fs/cgroup/memory/";
  put(memory + "memory.limit_in_bytes", "9223372036854771712\n");
  put(memory + "memory.usage_in_bytes", "1073741824\n");
  put(memory + "docker/abc/memory.limit_in_bytes", "2147483648\n");
  put(memory + "docker/abc/memory.usage_in_bytes", "1610612736\n");
  put(memory + "docker/abc/memory.stat", "total_inactive_file 536870912\n");
  put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_quota_us", "50000\n");
  put("sys/fs/cgroup/cpu/docker/abc/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(available_memory_bytes(root_), 1 * kGiB);
  EXPECT_EQ(cpu_quota(root_), 0.5);
  EXPECT_EQ(memory_limit_bytes(root_), 2 * kGiB);
  put(memory + "docker/abc/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(memory_limit_bytes(root_));
}

// The path is the host's, and the container's own group is the root that it sees.
TEST_F(ControlGroups, OfAContainerAreAtTheRoot) {
  put("proc/self/cgroup", "0::/system.slice/docker-abc.scope\n");
  put("sys/fs/cgroup/memory.max", "2147483648\n");
  put("sys/fs/cgroup/memory.current", "1073741824\n");
  EXPECT_EQ(available_memory_bytes(root_), 1 * kGiB);
}

}  // namespace
}  // namespace roofprof
