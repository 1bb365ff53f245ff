// What is measured on a GPU, run on the CPU: the work that it is counted for, that it does that work, and the rates
// made of it by a timer that says what we tell it.

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "machine/common/dispatch_defaults.h"
#include "machine/gpu/measure_gpu.h"
#include "machine/gpu/peaks.h"
#include "support/one_thread.h"

namespace roofprof {
namespace {

using Seconds = std::chrono::duration<double>;

const c10::Device kCpu = c10::kCPU;

double work_of(const std::vector<Trial>& trials, const std::string& name) {
  for (const Trial& trial : trials) {
    if (trial.name == name) return trial.work;
  }
  throw std::out_of_range(name);
}

TEST(Contractions, OperationsAreThoseOfTheClosedForms) {
  EXPECT_EQ((ProductShape{8192, 8192, 8192}.operations()), 1'099'511'627'776.0);  // 2 x 8192^3
  EXPECT_EQ((ProductShape{3, 5, 7}.operations()), 210.0);
  EXPECT_EQ(ConvolutionShape{}.operations(), 858'993'459'200.0);  // 512->512, k 5, pad 2, of 1x512x256x256
  EXPECT_EQ((ConvolutionShape{.channels = 4, .side = 8, .kernel = 3}.operations()), 2.0 * 4 * 64 * 4 * 9);
}

TEST(Contractions, RunInEachDtypeThatTheCpuHas) {
  const DispatchDefaults defaults;
  at::Generator generator = own_generator(kCpu);
  for (const DType dtype : {DType::fp64, DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::int8}) {
    for (const Layout layout : {Layout::plain, Layout::left_transposed, Layout::right_transposed}) {
      const Trial trial = product(dtype, {32, 64, 16, layout}, kCpu, generator);
      EXPECT_EQ(trial.work, 2.0 * 32 * 64 * 16);
      EXPECT_NO_THROW(trial.run()) << name_of(dtype);
    }
  }
  for (const DType dtype : {DType::fp32, DType::tf32, DType::bf16}) {
    const Trial trial = convolution(dtype, {.channels = 4, .side = 8, .kernel = 5}, kCpu, generator);
    EXPECT_NO_THROW(trial.run()) << name_of(dtype);
  }
  EXPECT_THROW(product(DType::boolean, {2, 2, 2}, kCpu, generator), c10::Error);
}

TEST(Transfers, BytesAreThoseThatAProgramAsksFor) {
  const std::vector<Trial> trials = dram_trials(4096, kCpu);
  EXPECT_EQ(work_of(trials, "copy"), 2 * 4096);
  EXPECT_EQ(work_of(trials, "triad"), 3 * 4096);
  EXPECT_EQ(work_of(trials, "read"), 4096);
  EXPECT_EQ(work_of(trials, "write"), 4096);
  EXPECT_EQ(work_of(trials, "update"), 2 * 4096);
  for (const Trial& trial : trials) EXPECT_NO_THROW(trial.run()) << trial.name;
}

TEST(Transfers, TheCacheIsReadInManyRowsAndCopiedManyTimes) {
  constexpr std::int64_t kSet = std::int64_t{1} << 20;
  const std::vector<Trial> trials = cache_trials(kSet, 132, kCpu);
  EXPECT_EQ(work_of(trials, "read"), 132.0 * kSet / 2);     // a row of half the set for each multiprocessor
  EXPECT_EQ(work_of(trials, "copy"), 64 * 2.0 * kSet / 2);  // 64 copies of one half into the other
  EXPECT_EQ(work_of(trials, "triad"), 64 * 3.0 * kSet / 2);
  EXPECT_EQ(work_of(trials, "write"), 64.0 * kSet);
  EXPECT_EQ(work_of(trials, "update"), 64 * 2.0 * kSet);
  for (const Trial& trial : trials) EXPECT_NO_THROW(trial.run()) << trial.name;
}

// A machine on which each call takes a known time.
struct Machine {
  double seconds_per_call = 0.001;
  int calls = 0;

  Timer timer() {
    return [this](int times, const std::function<void()>& body) {
      for (int call = 0; call < times; ++call) body();
      calls += times;
      return times * seconds_per_call;
    };
  }
};

TEST(Rates, AreWorkPerSecond) {
  Machine machine;
  int ran = 0;
  const Rate rate = measured_rate({"copy", 5000, [&] { ++ran; }}, machine.timer(), Seconds(0.07));
  EXPECT_EQ(rate.name, "copy");
  EXPECT_DOUBLE_EQ(rate.per_second, 5'000'000);
  EXPECT_DOUBLE_EQ(rate.spread, 0);
  EXPECT_EQ(rate.repeats, 7);
  EXPECT_EQ(ran, machine.calls);
  EXPECT_EQ(machine.calls, 2 + 7 * 10);  // warm-up, one to see how long it takes, then a seventh of the budget each
}

TEST(Rates, TheBestIsFirst) {
  Machine machine;
  const auto rates =
      measured_rates({{"slow", 1, [] {}}, {"fast", 3, [] {}}, {"middling", 2, [] {}}}, machine.timer(), Seconds(0.01));
  EXPECT_EQ(rates[0].name, "fast");
  EXPECT_EQ(rates[2].name, "slow");

  const MemoryCeiling roof = memory_ceiling("DRAM", 0, rates, "arrays of 1 GiB");
  EXPECT_EQ(roof.level, "DRAM");
  EXPECT_DOUBLE_EQ(roof.bytes_per_second, 3000);
  EXPECT_EQ(roof.provenance.source, "measured");
  EXPECT_EQ(roof.provenance.method.find("fast over arrays of 1 GiB, best of 7 (middling "), 0u)
      << roof.provenance.method;
}

TEST(Memory, SizesAreHalvedUntilTheyFit) {
  std::vector<std::int64_t> tried;
  const auto needs = [&](std::int64_t most) {
    return [&tried, most](std::int64_t size) {
      tried.push_back(size);
      if (size > most) throw c10::OutOfMemoryError(c10::SourceLocation{}, "full");
    };
  };
  EXPECT_TRUE(with_memory(1024, 100, needs(300)));
  EXPECT_EQ(tried, (std::vector<std::int64_t>{1024, 512, 256}));
  tried.clear();
  EXPECT_FALSE(with_memory(1024, 300, needs(1)));
  EXPECT_EQ(tried, (std::vector<std::int64_t>{1024, 512}));
  const auto fails = [](std::int64_t) { throw std::runtime_error("something else"); };
  EXPECT_THROW(with_memory(4, 1, fails), std::runtime_error);
}

PeakOptions small_options(Timer timer) {
  return {.device = kCpu,
          .timer = std::move(timer),
          .budget = Seconds(15),  // of which a busy machine may need much for the first calls
          .shapes = {{32, 32, 32}, {64, 64, 64}},
          .convolution = {.channels = 4, .side = 32, .kernel = 5}};
}

TEST(Peaks, TheBetterOfProductsAndConvolutionWinsAndTheMethodSaysSo) {
  const DispatchDefaults defaults;
  const OneThread one_thread;
  Machine machine{.seconds_per_call = 0.015};  // all calls take as long, so the largest work has the highest rate
  PeakOptions options = small_options(machine.timer());
  const double product_rate = 2.0 * 64 * 64 * 64 / machine.seconds_per_call;
  const double convolution_rate = 2.0 * 4 * 4 * 32 * 32 * 25 / machine.seconds_per_call;
  ASSERT_GT(convolution_rate, product_rate);

  options.limit = 1e18;
  const ComputePeak convolved = measure_gpu_peak(DType::fp32, options);
  EXPECT_DOUBLE_EQ(convolved.operations_per_second, convolution_rate);
  EXPECT_EQ(convolved.shape, "convolution 4->4 5x5 over 32x32");
  // Two sizes of products in three layouts, and the convolution.
  EXPECT_EQ(convolved.method.find("fastest of 7 shapes and layouts, best of 3 bursts"), 0u) << convolved.method;
  EXPECT_NE(convolved.method.find("at::mm 64x64x64"), std::string::npos) << convolved.method;

  // fp64 has no convolution here, and a convolution beyond the hardware's limit is no peak.
  EXPECT_DOUBLE_EQ(measure_gpu_peak(DType::fp64, options).operations_per_second, product_rate);
  options.limit = product_rate * 1.01;
  const ComputePeak limited = measure_gpu_peak(DType::fp32, options);
  EXPECT_DOUBLE_EQ(limited.operations_per_second, product_rate);
  EXPECT_NE(limited.method.find("so it does fewer"), std::string::npos) << limited.method;
  // Without a known limit, more than half above the best product is taken for that too.
  options.limit.reset();
  ASSERT_GT(convolution_rate, product_rate * 1.5);
  EXPECT_DOUBLE_EQ(measure_gpu_peak(DType::bf16, options).operations_per_second, product_rate);
}

// A device whose last calls, those with zeros among the operands, take two thirds of the time of the others, or as
// long.
TEST(Peaks, AreOfTheOperandsThatRunFaster) {
  const DispatchDefaults defaults;
  const OneThread one_thread;
  constexpr int kUnlimited = 1 << 20;
  int calls = 0;
  int slow = kUnlimited;
  PeakOptions options = small_options([&](int times, const std::function<void()>& body) {
    for (int call = 0; call < times; ++call) body();
    calls += times;
    return times * (calls > slow ? 0.010 : 0.015);
  });
  options.shapes = {{64, 64, 64}};
  const double work = 2.0 * 64 * 64 * 64;
  const ComputePeak alike = measure_gpu_peak(DType::fp64, options);
  EXPECT_DOUBLE_EQ(alike.operations_per_second, work / 0.015);
  EXPECT_EQ(alike.method.find("zeros"), std::string::npos) << alike.method;
  // One call before three bursts of three calls, which are longer than 40 ms.
  slow = std::exchange(calls, 0) - (1 + 3 * 3);
  const ComputePeak faster = measure_gpu_peak(DType::fp64, options);
  EXPECT_DOUBLE_EQ(faster.operations_per_second, work / 0.010);
  EXPECT_NE(faster.method.find("half of the operands are zeros, without them"), std::string::npos) << faster.method;
  EXPECT_NO_THROW(faster.again().run());
}

// A device that is fast for 40 calls, at 1980 MHz, and then held down to 1500 MHz and 700 W.
TEST(Peaks, ABurstIsFasterThanWhatIsSustained) {
  const DispatchDefaults defaults;
  const OneThread one_thread;
  std::atomic<int> calls = 0;
  constexpr int kFast = 40;
  PeakOptions options = small_options([&](int times, const std::function<void()>& body) {
    double seconds = 0;
    for (int call = 0; call < times; ++call) {
      body();
      seconds += ++calls <= kFast ? 0.010 : 0.0125;
    }
    return seconds;
  });
  options.shapes = {{64, 64, 64}};
  options.with_convolution = false;
  options.budget = Seconds(0.2);
  options.clock_hz = [&] { return std::optional<std::int64_t>(calls <= kFast ? 1'980'000'000 : 1'500'000'000); };
  options.power_watts = [] { return std::optional(700.0); };
  options.sustained_for = Seconds(2);
  const ComputePeak peak = measure_gpu_peak(DType::fp64, options);
  const double work = 2.0 * 64 * 64 * 64;
  EXPECT_DOUBLE_EQ(peak.operations_per_second, work / 0.010);
  ASSERT_TRUE(peak.sustained);
  EXPECT_DOUBLE_EQ(peak.sustained->operations_per_second, work / 0.0125);
  EXPECT_GE(peak.sustained->seconds, 2);
  EXPECT_DOUBLE_EQ(peak.sustained->clock_hz, 1'500e6);
  EXPECT_DOUBLE_EQ(peak.sustained->power_watts, 700);
  EXPECT_FALSE(measure_gpu_peak(DType::fp64, small_options(Machine{}.timer())).sustained);
}

// The peaks of NVIDIA's documents: SMs x clock x operations of one SM in a clock. H100 SXM: 132 SMs at 1830 MHz (fp64
// at 1980), A100: 108 at 1410.
TEST(Peaks, OperationsOfAClockAreThoseOfTheDocuments) {
  const auto h100 = [](DType dtype, double hz) { return 132 * hz * tensor_operations_per_clock(dtype, 9, 0).value(); };
  const auto a100 = [](DType dtype) { return 108 * 1.41e9 * tensor_operations_per_clock(dtype, 8, 0).value(); };
  EXPECT_NEAR(h100(DType::bf16, 1.83e9), 989.4e12, 1e12);
  EXPECT_NEAR(h100(DType::tf32, 1.83e9), 494.7e12, 1e12);
  EXPECT_NEAR(h100(DType::fp8, 1.83e9), 1978.9e12, 2e12);
  EXPECT_NEAR(h100(DType::int8, 1.83e9), 1978.9e12, 2e12);
  EXPECT_NEAR(h100(DType::fp64, 1.98e9), 66.9e12, 0.1e12);
  EXPECT_NEAR(a100(DType::fp16), 312e12, 1e12);
  EXPECT_NEAR(a100(DType::tf32), 156e12, 1e12);
  EXPECT_NEAR(a100(DType::int8), 624e12, 2e12);
  EXPECT_NEAR(a100(DType::fp64), 19.5e12, 0.1e12);
  EXPECT_FALSE(tensor_operations_per_clock(DType::fp8, 8, 0));
  EXPECT_FALSE(tensor_operations_per_clock(DType::bf16, 8, 9));
  EXPECT_FALSE(tensor_operations_per_clock(DType::fp32, 9, 0));
  // What was recorded of int8: 976 TOP/s at 1440 MHz.
  EXPECT_NEAR(976.46e12 / h100(DType::int8, 1.44e9), 0.627, 0.001);
}

TEST(Peaks, WhatTorchRefusesSaysWhy) {
  const DispatchDefaults defaults;
  const OneThread one_thread;
  PeakOptions options =
      small_options([](int, const std::function<void()>&) -> double { TORCH_CHECK(false, "no such kernel\nframe 1"); });
  ComputePeak peak = measure_gpu_peak(DType::bf16, options);
  EXPECT_EQ(peak.operations_per_second, 0);
  EXPECT_EQ(peak.left_out, "torch refuses: no such kernel");

  options.timer = [](int, const std::function<void()>&) -> double {
    throw c10::OutOfMemoryError(c10::SourceLocation{}, "full");
  };
  EXPECT_EQ(measure_gpu_peak(DType::bf16, options).left_out, "there is no memory for it");
  // A device in trouble is not a dtype that is missing.
  options.timer = [](int, const std::function<void()>&) -> double {
    throw c10::AcceleratorError(c10::SourceLocation{}, 700, "an illegal address");
  };
  EXPECT_THROW(measure_gpu_peak(DType::bf16, options), c10::AcceleratorError);
}

TEST(MeasureGpu, WithoutAGpuSaysWhyInASentence) {
  for (const std::string device : {"cuda", "cuda:0", "cuda:x"}) {
    try {
      measure_gpu(device, {});
      GTEST_SKIP() << "there is a GPU here";
    } catch (const std::invalid_argument& error) {
      const std::string text = error.what();
      EXPECT_EQ(text.find("the roofs of \"" + device + "\" cannot be measured: "), 0u) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      EXPECT_GT(text.size(), 60u);
    }
  }
}

}  // namespace
}  // namespace roofprof
