// Counters kernel by kernel and module by module, on the simulated device: what comes back is what each kernel was
// given. What real kernels count is in tests/python/collect/test_recorded_h100.py, and what chips have in
// test_metric_sets.py.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "device/cupti/api.h"
#include "device/cupti/metric_sets.h"
#include "device/cupti/range_counting.h"
#include "device/cupti/range_session.h"
#include "device/nvidia/driver.h"
#include "support/fake_libraries.h"

namespace roofprof::cupti {
namespace {

// A kernel that reads and writes these bytes of DRAM, asks twice as many of L2 and three times as many of L1, takes
// 1,000 ns, and does one operation for each byte that it reads.
void launch(double read, double write = 0, unsigned device = 0) {
  fake_launch(FakeLaunch{.device = device,
                         .duration_ns = 1000,
                         .dram_read_bytes = read,
                         .dram_write_bytes = write,
                         .l2_bytes = 2 * (read + write),
                         .l1_bytes = 3 * (read + write),
                         .flops = read});
}
void one_kernel(LaunchMarker* /*marker*/) { launch(5); }

std::optional<double> value(const CounterRecord& record, Counter counter) {
  return record.values[static_cast<std::size_t>(counter)];
}

// Why a counter is missing.
std::string missing(const CounterTrace& trace, Counter counter) {
  const auto found = std::ranges::find(trace.sources, counter, &CounterSource::counter);
  return found != trace.sources.end() ? found->missing : "(was not asked for)";
}

// DRAM bytes by module.
using Bytes = std::map<LaunchId, std::optional<double>>;
Bytes bytes(const CounterTrace& trace) {
  Bytes found;
  for (const CounterRecord& record : trace.records) found[record.range] = value(record, Counter::dram_bytes);
  return found;
}

// Device 0 is current, as it is where torch has launched something; what was taken is given back afterwards.
class Counting : public WithFakes {
 protected:
  void SetUp() override {
    WithFakes::SetUp();
    context_.emplace(cuda::driver(), 0);
  }
  void TearDown() override {
    expect_nothing_left();
    EXPECT_EQ(fake_live("disabled_while_counting"), 0);
    context_.reset();
    EXPECT_EQ(fake_live("primary_context"), 0);
    WithFakes::TearDown();
  }
  static void expect_nothing_left() {
    for (const char* what : {"host_object", "range_profiler", "profiler"}) EXPECT_EQ(fake_live(what), 0) << what;
  }
  static std::string count_message() {
    return message_of<CollectorError>([] { count_ranges({}, one_kernel); });
  }

  std::optional<cuda::PrimaryContext> context_;
};

using KernelRanges = Counting;

TEST_F(KernelRanges, FlopsTakeFurtherPassesInWhichTheBodyRunsAgain) {
  fake_set("tensor_flops", 64);
  for (const bool flops : {false, true}) {
    int runs = 0;
    const CounterTrace trace = count_ranges({.executed_flops = flops}, [&](LaunchMarker* marker) {
      ++runs;
      EXPECT_EQ(marker, nullptr);
      launch(100, 10);
      launch(30);
    });
    // Of GH100: memory, SASS, and for each of six tensor types a run of its own, as no two fit one pass here.
    EXPECT_EQ(runs, flops ? 8 : 1);
    EXPECT_EQ(trace.passes, runs);
    EXPECT_EQ(trace.chip, "GH100");
    EXPECT_EQ(trace.ranges, CounterRanges::kernels);
    EXPECT_EQ(all_notes(trace), "");
    ASSERT_EQ(trace.records.size(), 2U);
    const auto known = [&](double number) { return flops ? std::optional(number) : std::nullopt; };
    const std::vector<std::tuple<Counter, std::optional<double>, std::optional<double>>> expected = {
        {Counter::dram_read_bytes, 100, 30},
        {Counter::dram_write_bytes, 10, 0},
        {Counter::dram_bytes, 110, 30},
        {Counter::l2_bytes, 220, 60},
        {Counter::l1_bytes, 330, 90},
        {Counter::time_ns, 1000, 1000},
        {Counter::fp32_flops, known(100), known(30)},
        {Counter::tensor_bf16_flops, known(64), known(64)},
        {Counter::tensor_fp16_flops, known(0), known(0)}};
    for (const auto& [counter, first, second] : expected) {
      EXPECT_EQ(value(trace.records[0], counter), first);
      EXPECT_EQ(value(trace.records[1], counter), second);
    }
    EXPECT_EQ(missing(trace, Counter::tensor_fp4_flops),
              flops ? "this chip (GH100) has no tensor-core fp4 counter" : "(was not asked for)");
  }
}

TEST_F(KernelRanges, RunsThatLaunchDifferentlyAreNotJoined) {
  int runs = 0;
  const CounterTrace trace = count_ranges({.executed_flops = true}, [&](LaunchMarker*) {
    launch(100);
    if (++runs == 2) launch(1);  // the SASS pass
  });
  ASSERT_EQ(trace.records.size(), 1U);
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), std::nullopt);
  EXPECT_EQ(value(trace.records[0], Counter::tensor_bf16_flops), 0);
  EXPECT_EQ(missing(trace, Counter::fp32_flops),
            "the code did not launch the same in each run: 1 ranges in the first one, 2 in that of this counter");
}

TEST_F(KernelRanges, RangesWithoutARoomAreReported) {
  const auto body = [](LaunchMarker*) {  // tells the marker of nothing
    for (int i = 0; i < 1300; ++i) launch(1);
  };
  EXPECT_EQ(count_ranges({}, body).records.size(), 1024U);
  EXPECT_EQ(count_ranges({}, body).dropped, 276);
  EXPECT_EQ(count_ranges({.expected_launches = 1150}, body).records.size(), 1300U) << "with a margin of an eighth";
}

// Ops of up to three kernels, the i-th of all with i bytes, in modules of ten ops: as an observer tells of them.
void ops_with_kernels(LaunchMarker* marker, int kernels) {
  int launched = 0;
  for (int op = 0; launched < kernels; ++op) {
    if (marker != nullptr && op % 10 == 0) marker->push(1000, LaunchLevel::module);
    if (marker != nullptr) marker->push(static_cast<LaunchId>(op), LaunchLevel::op);
    for (int i = 0; i < op % 4 && launched < kernels; ++i) launch(launched++);
    if (marker != nullptr) marker->pop(LaunchLevel::op);
    if (marker != nullptr && op % 10 == 9) marker->pop(LaunchLevel::module);
  }
}

TEST_F(KernelRanges, EachKernelIsCountedWhateverCuptiTakesAtATime) {
  for (const auto& [kernels, most] : {std::pair(700, 64), std::pair(1000, 250), std::pair(1000, 600)}) {
    fake_set("most_ranges", most);
    int runs = 0;
    const CounterTrace trace =
        count_ranges({.expected_launches = kernels}, [&runs, of = kernels](LaunchMarker* marker) {
          ++runs;
          ops_with_kernels(marker, of);
        });
    ASSERT_EQ(trace.records.size(), kernels);
    EXPECT_EQ(trace.dropped, 0);
    for (int i = 0; i < kernels; ++i) {
      ASSERT_EQ(trace.records[i].range, i);
      ASSERT_EQ(value(trace.records[i], Counter::dram_bytes), i);
    }
    EXPECT_EQ(trace.passes, runs);
    EXPECT_LE(runs, 4 * kernels / most + 8);
    EXPECT_SAYS("counters-in-rounds: CUPTI took ", all_notes(trace));
  }
}

// Some versions see no kernels without a pushed range.
TEST_F(KernelRanges, AreFoundInAPushedRange) {
  fake_set("auto_range_needs_push", 1);
  int runs = 0;
  const CounterTrace trace = count_ranges({.executed_flops = true, .expected_launches = 12}, [&](LaunchMarker*) {
    ++runs;
    for (int i = 0; i < 12; ++i) launch(i);
  });
  EXPECT_EQ(runs, 9) << "eight sets, and the first one twice";
  ASSERT_EQ(trace.records.size(), 12U);
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ(value(trace.records[i], Counter::fp32_flops), i);
}

TEST_F(KernelRanges, CopiesAndOtherDevicesAreNotCountedAndTheCurrentOneStays) {
  fake_set("devices", 2);
  for (const int device : {0, 1}) {
    const CounterTrace trace = count_ranges({.device = device}, [](LaunchMarker*) {
      EXPECT_EQ(cuda::current_device(cuda::driver()), 0);
      launch(100);
      launch(1, 0, 1);
      fake_launch(FakeLaunch{.kind = FAKE_COPY});
    });
    EXPECT_EQ(bytes(trace), (Bytes{{0, device == 0 ? 100 : 1}}));
    EXPECT_EQ(cuda::current_device(cuda::driver()), 0);
    if (device == 1) {
      EXPECT_EQ(all_notes(trace),
                "counters-of-one-device: the counters are of cuda:1 alone; this process uses cuda:0 too\n");
    }
  }
  context_.reset();  // a thread without one counts on the device in use
  EXPECT_SAYS("no device is in use", (fake_reset(), count_message()));
  launch(1);
  EXPECT_EQ(count_ranges({}, one_kernel).records.size(), 1U);
  EXPECT_EQ(cuda::current_context(cuda::driver()), nullptr);
}

// ---- what stands in the way: a sentence each, and nothing left behind

TEST_F(KernelRanges, EachErrorSaysWhatIsWrongAndLeavesNothing) {
  for (const auto& [function, code] :
       std::vector<std::pair<const char*, int>>{{"cuptiProfilerInitialize", CUPTI_ERROR_NOT_INITIALIZED},
                                                {"cuptiProfilerDeviceSupported", CUPTI_ERROR_NOT_SUPPORTED},
                                                {"cuptiDeviceGetChipName", CUPTI_ERROR_INVALID_DEVICE},
                                                {"cuptiProfilerHostInitialize", CUPTI_ERROR_INVALID_CHIP_NAME},
                                                {"cuptiProfilerHostGetBaseMetrics", CUPTI_ERROR_INVALID_PARAMETER},
                                                {"cuptiRangeProfilerEnable", CUPTI_ERROR_INSUFFICIENT_PRIVILEGES},
                                                {"cuptiRangeProfilerGetCounterDataSize", CUPTI_ERROR_INVALID_PARAMETER},
                                                {"cuptiRangeProfilerCounterDataImageInitialize", CUPTI_ERROR_UNKNOWN},
                                                {"cuptiRangeProfilerSetConfig", CUPTI_ERROR_INVALID_PARAMETER},
                                                {"cuptiRangeProfilerStart", CUPTI_ERROR_HARDWARE_BUSY},
                                                {"cuptiRangeProfilerDecodeData", CUPTI_ERROR_UNKNOWN},
                                                {"cuptiRangeProfilerGetCounterDataInfo", CUPTI_ERROR_UNKNOWN},
                                                {"cuptiRangeProfilerCounterDataGetRangeInfo", CUPTI_ERROR_UNKNOWN}}) {
    fake_fail(function, code, 0);
    EXPECT_SAYS(CuptiError(function, code).what(), count_message());  // loading_test.cpp has what each code means
    expect_nothing_left();
    fake_fail(function, 0, 0);
    EXPECT_EQ(count_ranges({}, one_kernel).records.size(), 1U) << "and works again";
  }
  fake_fail("cuCtxSynchronize", 719, 0);
  EXPECT_SAYS("waiting for cuda:0 (Simulated GPU) failed: the driver says error (719)", count_message());
  fake_fail("cuCtxSynchronize", 0, 0);
  fake_set("wsl", 1);
  EXPECT_SAYS("the reason is Windows' Linux (WSL)", count_message());
}

TEST_F(KernelRanges, WhatCannotBeHadIsUnknownAndReportedToBe) {
  fake_fail("cuptiProfilerGetCounterAvailability", CUPTI_ERROR_UNKNOWN, 0);
  fake_fail("cuptiProfilerHostEvaluateToGpuValues", CUPTI_ERROR_INVALID_METRIC_NAME, 1);
  fake_set_text("refused_metric", "lts__");
  const CounterTrace trace = count_ranges({}, [](LaunchMarker*) {
    for (const int read : {5, 6, 7}) launch(read);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{0, 5}, {1, std::nullopt}, {2, std::nullopt}}));
  EXPECT_EQ(value(trace.records[0], Counter::l2_bytes), std::nullopt);
  EXPECT_SAYS("CUPTI_ERROR_INVALID_PARAMETER", missing(trace, Counter::l2_bytes));
  EXPECT_SAYS("which counters this system allows is not known: ", all_notes(trace));
  EXPECT_SAYS("CUPTI could not work out counters of 2 of 3 ranges (CUPTI_ERROR_INVALID_METRIC_NAME)", all_notes(trace));
}

TEST_F(KernelRanges, WhenALaterSetFailsTheFirstRemains) {
  fake_fail("cuptiRangeProfilerEnable", CUPTI_ERROR_UNKNOWN, 1);  // from the SASS pass on
  const CounterTrace trace = count_ranges({.executed_flops = true}, one_kernel);
  EXPECT_EQ(bytes(trace), (Bytes{{0, 5}}));
  EXPECT_EQ(value(trace.records[0], Counter::fp32_flops), std::nullopt);
  EXPECT_SAYS("cuptiRangeProfilerEnable", missing(trace, Counter::fp32_flops));
  EXPECT_EQ(missing(trace, Counter::dram_bytes), "");
}

struct ModelsOwn {
  int value = 0;
};

TEST_F(KernelRanges, WhatTheBodyThrowsComesThroughAsItWas) {
  for (const CounterRanges ranges : {CounterRanges::kernels, CounterRanges::modules}) {
    for (const int failing_run : {1, 5}) {
      int runs = 0;
      try {
        count_ranges({.executed_flops = true, .ranges = ranges}, [&](LaunchMarker* marker) {
          if (marker != nullptr) marker->push(3, LaunchLevel::module);
          launch(1);
          if (++runs == failing_run) throw ModelsOwn{42};
          if (marker != nullptr) marker->pop(LaunchLevel::module);
        });
        ADD_FAILURE() << "nothing was thrown";
      } catch (const ModelsOwn& thrown) {
        EXPECT_EQ(thrown.value, 42);
      }
      EXPECT_EQ(runs, failing_run);
      expect_nothing_left();
    }
  }
}

// ---- module by module; the simulated device takes one flat range at a time and no name twice

using ModuleRangesOfARun = Counting;

constexpr CounterRequest kModules = {.ranges = CounterRanges::modules};

void enter(LaunchMarker* marker, LaunchId module) { marker->push(module, LaunchLevel::module); }
void leave(LaunchMarker* marker) { marker->pop(LaunchLevel::module); }
void call(LaunchMarker* marker, LaunchId module, double read) {
  enter(marker, module);
  launch(read);
  leave(marker);
}

TEST_F(ModuleRangesOfARun, ALaunchCountsInItsInnermostModule) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    ASSERT_NE(marker, nullptr);
    launch(1);  // outside
    enter(marker, 10);
    launch(100);
    marker->push(77, LaunchLevel::op);  // ops have no ranges
    launch(200);
    call(marker, 11, 1000);
    call(marker, 10, 400);  // inside itself
    marker->pop(LaunchLevel::op);
    leave(marker);
    call(marker, 11, 2000);  // called once more
    launch(2);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 3}, {10, 700}, {11, 3000}}));
  EXPECT_EQ(trace.ranges, CounterRanges::modules);
  EXPECT_EQ(trace.passes, 1);
  EXPECT_EQ(all_notes(trace), "");
}

// SASS, six tensor types; fp16 and int8 take two passes each, which are the body's to repeat. A module that is not
// there in each pass is unknown.
TEST_F(ModuleRangesOfARun, APassMoreRunsTheBodyOnceMoreAndCountsTheSame) {
  for (const int other_run : {0, 3}) {  // the second pass of tensor fp16
    int runs = 0;
    const CounterTrace trace =
        count_ranges({.memory = false, .executed_flops = true, .ranges = CounterRanges::modules},
                     [&](LaunchMarker* marker) { call(marker, ++runs == other_run ? 2 : 1, 5); });
    EXPECT_EQ(runs, 9);
    EXPECT_EQ(trace.passes, 9);
    ASSERT_EQ(trace.records.size(), 2U);
    EXPECT_EQ(value(trace.records[1], Counter::fp32_flops), 5);
    EXPECT_EQ(value(trace.records[1], Counter::tensor_bf16_flops), 0);
    EXPECT_EQ(value(trace.records[1], Counter::tensor_fp16_flops), other_run == 0 ? std::optional(0.0) : std::nullopt);
    EXPECT_EQ(missing(trace, Counter::tensor_fp16_flops).empty(), other_run == 0);
  }
}

TEST_F(ModuleRangesOfARun, AThreadOfItsOwnReturnsToTheModuleThatIsStillOpen) {
  const CounterTrace trace = count_ranges(kModules, [](LaunchMarker* marker) {
    enter(marker, 1);
    launch(100);
    std::thread([marker] {  // as autograd's, while the caller waits
      enter(marker, 2);
      call(marker, 3, 10);
      launch(20);
      leave(marker);
    })
        .join();
    launch(200);
    leave(marker);
  });
  EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 300}, {2, 20}, {3, 10}}));
  EXPECT_SAYS("counters-between-threads: several threads were in modules at once", all_notes(trace));
}

TEST_F(ModuleRangesOfARun, ThreadsAtOnceKeepTheRangesInOrder) {
  constexpr int kTimes = 200;
  const CounterTrace trace =
      count_ranges({.ranges = CounterRanges::modules, .expected_launches = 4 * kTimes}, [](LaunchMarker* marker) {
        const auto work = [marker](LaunchId module) {
          for (int i = 0; i < kTimes; ++i) call(marker, module, 1);
        };
        std::thread first(work, 1);
        std::thread second(work, 2);
        first.join();
        second.join();
        launch(1000);
      });
  double sum = 0;
  for (const auto& [module, counted] : bytes(trace)) sum += counted.value_or(0);
  EXPECT_LE(sum, 1000 + 2 * kTimes);
  EXPECT_GE(sum, 1000 + kTimes);  // while the one thread changes ranges, few of the other's launches can be lost
  EXPECT_EQ(trace.dropped, 0);
}

// A module once, and another one so often that its ranges, 2,203 in all, need several rounds of 1,024.
TEST_F(ModuleRangesOfARun, MoreRangesThanThereIsRoomForTakeSeveralRoundsIfAllRunsAreAlike) {
  for (const bool alike : {true, false}) {
    int runs = 0;
    const CounterTrace trace = count_ranges(kModules, [&](LaunchMarker* marker) {
      call(marker, 1, 5);
      const int times = ++runs > 1 && !alike ? 1101 : 1100;
      for (int i = 0; i < times; ++i) call(marker, 2, 1);
    });
    EXPECT_SAYS("counters-in-rounds", all_notes(trace));
    EXPECT_EQ(runs, alike ? 3 : 2);
    EXPECT_EQ(trace.dropped, alike ? 0 : 2203 - 1024);
    if (alike) {
      EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, 0}, {1, 5}, {2, 1100}}));
    } else {  // what is left stays unknown
      EXPECT_EQ(bytes(trace), (Bytes{{kNoLaunch, std::nullopt}, {1, 5}, {2, std::nullopt}}));
    }
  }
}

TEST_F(ModuleRangesOfARun, ARangeThatCannotBeOpenedEndsTheCounting) {
  fake_fail("cuptiRangeProfilerPushRange", CUPTI_ERROR_OUT_OF_MEMORY, 1);
  EXPECT_SAYS("cuptiRangeProfilerPushRange", message_of<CollectorError>([] {
                count_ranges(kModules, [](LaunchMarker* marker) { call(marker, 1, 5); });
              }));
}

// ---- one session

using Session = Counting;

TEST_F(Session, IsAloneAndTakesTheRoomsThatItIsGiven) {
  const ProfilerLibrary library(api());
  const HostProfiler host(api(), "GH100");
  const Configuration configuration(host, {"dram__bytes.sum"});
  const auto open = [&](RangeRooms rooms) {
    auto* const context = static_cast<CUcontext>(context_->get());
    return std::make_unique<RangeSession>(configuration, context, RangeMode::kernels, rooms);
  };
  {
    const auto session = open({4, 4});
    EXPECT_THROW(open({4, 4}), CuptiError) << "one at a time";
  }
  // What is wanted, then what is needed, then half of that each time; fewer than 16 are not tried.
  for (const auto& [most, taken] : {std::pair(0, 1150), std::pair(1149, 1000), std::pair(999, 500), {300, 250}}) {
    fake_set("most_ranges", most);
    EXPECT_EQ(open({1150, 1000})->rooms(), taken) << most;
  }
  fake_set("most_ranges", 15);
  EXPECT_THROW(open({1150, 1000}), CuptiError) << "it is not their number then";
}

// ---- the table of metrics, against chips made up here

using Metrics = std::set<std::string, std::less<>>;

ResolvedCounter resolved(Counter counter, MetricSet set, const Metrics& metrics, std::string_view chip = "XX100") {
  for (ResolvedCounter& candidate :
       resolve(set, chip, [&](std::string_view metric) { return metrics.contains(metric); })) {
    if (candidate.source.counter == counter) return candidate;
  }
  ADD_FAILURE() << "no line for the counter in that set";
  return {};
}

TEST(MetricSets, WhatTheChipCallsItIsTakenAndWhatItLacksIsReported) {
  for (const std::string name : {"dram__bytes_read", "dram__bytes_op_read"}) {
    const auto found = resolved(Counter::dram_read_bytes, MetricSet::memory, {name});
    EXPECT_EQ(found.source.metrics, std::vector{name + ".sum"});
    EXPECT_EQ(found.source.missing, "");
  }
  const auto integrated = resolved(Counter::dram_bytes, MetricSet::memory, {"lts__t_bytes"}, "GB10B");
  EXPECT_EQ(integrated.source.missing, "this chip (GB10B, integrated) has no DRAM counter");
  EXPECT_EQ(evaluate(integrated, {}), std::nullopt);
  // A parent and its parts are never added up.
  const std::string tensor = "sm__ops_path_tensor_";
  EXPECT_EQ(resolved(Counter::tensor_fp16_flops, MetricSet::tensor,
                     {tensor + "src_fp16", tensor + "src_fp16_dst_fp32", tensor + "op_hmma_src_fp16"})
                .source.metrics,
            std::vector{tensor + "src_fp16.sum"});
}

TEST(MetricSets, AnFmaIsTwoOperationsAndTwoLanesAreTwoInstructions) {
  const auto name = [](const std::string& kind) { return "smsp__sass_thread_inst_executed_op_" + kind + "_pred_on"; };
  Metrics metrics = {name("fadd"), name("fmul"), name("ffma")};
  const auto fp32 = [&] { return resolved(Counter::fp32_flops, MetricSet::sass, metrics); };
  EXPECT_EQ(fp32().source.formula, name("fadd") + ".sum + " + name("fmul") + ".sum + 2 * " + name("ffma") + ".sum");
  // 1,000 additions, 100 multiplications, 10 fused ones.
  EXPECT_EQ(evaluate(fp32(), std::vector{1000.0, 100.0, 10.0}), 1120.0);
  EXPECT_EQ(evaluate(fp32(), std::vector{1.0, std::nan(""), 1.0}), std::nullopt);
  for (const char* kind : {"fadd2", "fmul2", "ffma2"}) metrics.insert(name(kind));
  // 2 additions, 2 multiplications, 2 fused ones of 2 operations each.
  EXPECT_EQ(evaluate(fp32(), std::vector{0.0, 0.0, 0.0, 1.0, 10.0, 100.0}), 2.0 + 20.0 + 400.0);
  metrics.erase(name("ffma"));  // one that must be there
  EXPECT_EQ(fp32().source.missing, "this chip (XX100) has no fp32 instruction counter");
}

}  // namespace
}  // namespace roofprof::cupti
