// Random traces held against a count of every nanosecond, and against what must add up whatever ran.

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "support/device_builder.h"

namespace roofprof {
namespace {

using testing::DeviceProfileBuilder;
using testing::dram_counters;
using testing::RunBuilder;
using testing::work_of;

constexpr std::int64_t kBegin = 1'000;
constexpr std::int64_t kEnd = 1'400;
constexpr std::uint32_t kDevices = 2;

struct RandomProfile {
  explicit RandomProfile(unsigned seed) : random(seed) {
    for (int i = 0; i < 9; ++i) {
      // Any earlier module may be the parent, the model most often.
      const auto count = static_cast<ModuleId>(builder.data.tree.modules.size());
      const ModuleId parent = below(3) == 0 || count == 3 ? kModel : 3 + below(count - 3);
      builder.module("m" + std::to_string(i), "M", parent);
    }
    const auto modules = static_cast<ModuleId>(builder.data.tree.modules.size());
    for (int i = 0; i < 12; ++i) builder.op_index("op" + std::to_string(i % 5), below(modules), work_of(100, 50));
    for (int i = 0; i < 10; ++i) {
      const auto op = below(12) - 3;  // some have none
      const bool known = op >= 0;
      const auto& bucket = builder.data.counts.ops[static_cast<std::size_t>(std::max(op, 0))];
      run.owner(known ? bucket.owner.module : below(modules), known ? bucket.op : "", known ? op : -1,
                static_cast<Phase>(below(kPhaseCount)));
    }
    const int launches = 1 + below(40);
    for (int i = 0; i < launches; ++i) {
      const auto place = static_cast<LaunchId>(below(12));  // 0 and 11 are nobody's
      const std::int64_t start = kBegin + below(kEnd - kBegin - 50);
      const std::int64_t end = start + below(50);
      const int kind = below(6);
      KernelRecord& record = kind == 0   ? run.fill(place, start, end, 10)
                             : kind == 1 ? run.copy(Memory::pinned, Memory::device, place, start, end, 100)
                                         : run.kernel("k" + std::to_string(below(4)), place, start, end);
      record.device = static_cast<std::uint32_t>(below(kDevices));
      record.stream = static_cast<std::uint32_t>(below(3));
    }
    run.run.trace.start_ns = kBegin;
    run.run.trace.end_ns = kEnd;
    std::shuffle(run.run.trace.records.begin(), run.run.trace.records.end(), random);
  }

  template <class Integer>
  Integer below(Integer limit) {
    return static_cast<Integer>(random() % static_cast<unsigned long>(limit));
  }

  ModuleId module_of(const KernelRecord& record) const {
    return record.launch < run.run.owners.size() ? run.run.owners[record.launch].owner.module : kOutside;
  }

  ModuleId id_of(std::string_view path) const {
    const auto& modules = builder.data.tree.modules;
    return static_cast<ModuleId>(std::ranges::find(modules, path, &Module::path) - modules.begin());
  }

  bool in_subtree(ModuleId id, ModuleId root) const {
    for (; id >= 0; id = builder.data.tree.modules[static_cast<std::size_t>(id)].parent) {
      if (id == root) return true;
    }
    return false;
  }

  std::mt19937 random;
  DeviceProfileBuilder builder;
  RunBuilder run;
};

// In how many nanoseconds, devices added up, one of these modules ran.
template <class Belongs>
std::int64_t busy_by_ticks(const RandomProfile& profile, Belongs belongs) {
  std::int64_t busy = 0;
  for (std::uint32_t device = 0; device < kDevices; ++device) {
    for (std::int64_t tick = kBegin; tick < kEnd; ++tick) {
      for (const auto& record : profile.run.run.trace.records) {
        const bool runs = record.device == device && record.start_ns <= tick && tick < record.end_ns;
        if (runs && belongs(profile.module_of(record))) {
          ++busy;
          break;
        }
      }
    }
  }
  return busy;
}

class RandomTraces : public ::testing::TestWithParam<unsigned> {};

TEST_P(RandomTraces, BusyIsEveryNanosecondInWhichSomethingRan) {
  RandomProfile profile(GetParam());
  const testing::Derived report = profile.builder.derived_of({profile.run.run});
  for (const auto& row : report.rows()) {
    if (!row.time_ns) continue;
    const auto root = profile.id_of(row.path);
    const auto below_root = [&](ModuleId module) { return profile.in_subtree(module, root); };
    EXPECT_EQ(row.busy_ns, busy_by_ticks(profile, below_root)) << row.path;
    EXPECT_EQ(row.self.busy_ns, busy_by_ticks(profile, [&](ModuleId module) { return module == root; })) << row.path;
  }
  EXPECT_EQ(report.total().busy_ns, busy_by_ticks(profile, [](ModuleId) { return true; }));
  // Busy and idle fill the window of each device that ran.
  std::set<std::uint32_t> devices;
  for (const auto& record : profile.run.run.trace.records) devices.insert(record.device);
  EXPECT_EQ(report.total().busy_ns.value_or(0) + report.total().idle_ns.value_or(0),
            static_cast<std::int64_t>(devices.size()) * (kEnd - kBegin));
}

TEST_P(RandomTraces, SelfFiguresAddUpToSubtreesAndToTheTotal) {
  RandomProfile profile(GetParam());
  std::vector<double> dram;
  std::int64_t dram_sum = 0;
  for (const auto& record : profile.run.run.trace.records) {
    if (record.kind != KernelKind::kernel || record.device != 0) continue;
    dram.push_back(static_cast<double>(profile.below(1'000'000)));
    dram_sum += static_cast<std::int64_t>(dram.back());
  }
  // Counters are of one device, so on the other nothing is left to run here.
  auto& records = profile.run.run.trace.records;
  std::erase_if(records, [](const auto& record) { return record.device != 0; });
  const testing::Derived report = profile.builder.derived_of({profile.run.run}, dram_counters(dram));

  std::int64_t time = 0;
  std::int64_t kernels = 0;
  for (const auto& record : records) {
    time += record.end_ns - record.start_ns;
    kernels += record.kind == KernelKind::kernel ? 1 : 0;
  }
  EXPECT_EQ(report.total().time_ns.value_or(0), time);
  EXPECT_EQ(report.total().kernel_count, kernels);
  EXPECT_EQ(report.total().dram_bytes.value_or(0), dram_sum);
  const auto sum = [&](const std::string& below, auto member) {
    std::int64_t total = 0;
    for (const auto& row : report.rows()) {
      const bool inside = below == "total" || profile.in_subtree(profile.id_of(row.path), profile.id_of(below));
      total += inside ? (row.self.*member).value_or(0) : 0;
    }
    return total;
  };
  for (const auto& row : report.rows()) {
    EXPECT_EQ(row.time_ns.value_or(0), sum(row.path, &Figures::time_ns)) << row.path;
    EXPECT_EQ(row.idle_ns.value_or(0), sum(row.path, &Figures::idle_ns)) << row.path;
    EXPECT_EQ(row.kernel_count, sum(row.path, &Figures::kernel_count)) << row.path;
    // Unknown only where all that was launched are copies and fills.
    EXPECT_EQ(row.dram_bytes.value_or(0), sum(row.path, &Figures::dram_bytes)) << row.path;
    EXPECT_TRUE(row.dram_bytes || row.kernel_count == 0) << row.path;
  }
  EXPECT_EQ(report.total().idle_between_ns.value_or(0), sum("total", &Figures::idle_ns));
  // So do kernels, and ops what was launched in them.
  std::int64_t of_kernels = 0;
  double percent = 0;
  for (const auto& kernel : report.kernels()) {
    of_kernels += kernel.total_ns;
    percent += kernel.percent_of_time;
    EXPECT_LE(kernel.min_ns, kernel.median_ns);
    EXPECT_LE(kernel.median_ns, kernel.max_ns);
  }
  EXPECT_EQ(of_kernels, time);
  EXPECT_NEAR(percent, time > 0 ? 100 : 0, 1e-9);
  std::int64_t of_ops = 0;
  for (const auto& bucket : profile.builder.data.counts.ops) of_ops += bucket.time_ns.value_or(0);
  EXPECT_EQ(report.total().op_time_ns, of_ops);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomTraces, ::testing::Range(0U, 200U));

}  // namespace
}  // namespace roofprof
