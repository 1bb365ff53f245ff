// A whole measurement of a GPU's roofs, run on the CPU with a timer that says what we tell it, beside simulated driver
// and NVML: what it puts together, in which order and words.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "machine/common/dispatch_defaults.h"
#include "machine/gpu/measure_gpu.h"
#include "support/one_thread.h"

#ifdef ROOFPROF_FAKES
#include "support/fake_libraries.h"

namespace roofprof {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr double kSecondsPerCall = 1;
constexpr std::int64_t kCache = std::int64_t{1} << 20;

class GpuRoofs : public WithFakes {
 protected:
  void SetUp() override {
    WithFakes::SetUp();
    use("ROOFPROF_NVML_LIB", fake_library("all", "libnvidia-ml.so.1"));
  }

  static RoofOptions options() {
    const Timer timer = [](int calls, const std::function<void()>& body) {
      for (int call = 0; call < calls; ++call) body();
      return calls * kSecondsPerCall;
    };
    cuda::NvidiaDevice facts;
    facts.name = "Simulated GPU";
    facts.pci_bus_id = "0000:01:00.0";
    facts.compute_major = 9;
    facts.sm_count = 132;
    facts.clock_hz = 1'980'000'000;
    facts.l2_bytes = kCache;
    return {.peaks = {.device = c10::kCPU,
                      .timer = timer,
                      .budget = Seconds(3),
                      .shapes = {{64, 64, 64}},
                      .with_convolution = false},
            .facts = facts,
            .array_bytes = std::int64_t{8} << 20,
            .link_bytes = std::int64_t{2} << 20};
  }

  MeasuredCeilings measure(const RoofOptions& options) {
    const DispatchDefaults defaults;
    const OneThread one_thread;
    return measure_roofs(options, [this](std::string_view line) { lines_.emplace_back(line); });
  }

  bool has_line(const std::string& part) const {
    for (const auto& line : lines_) {
      if (line.find(part) != std::string::npos) return true;
    }
    return false;
  }

  std::vector<std::string> lines_;
};

bool noted(const MeasuredCeilings& measured, const std::string& part) {
  for (const auto& note : measured.notes) {
    if (note.find(part) != std::string::npos) return true;
  }
  return false;
}

TEST_F(GpuRoofs, AreAllThereWithTheClosedFormsRates) {
  const auto measured = measure(options());
  const Ceilings& roofs = measured.ceilings;
  EXPECT_EQ(roofs.device, "Simulated GPU, cpu");

  ASSERT_EQ(roofs.memory.size(), 3u);
  EXPECT_EQ(roofs.memory[0].level, "L2");
  // Each call takes as long, so the largest working set has the highest rate, which the smaller ones then have, too:
  // the step is behind it.
  EXPECT_EQ(roofs.memory[0].capacity_bytes, 2 * kCache);
  EXPECT_EQ(roofs.memory[1].level, "DRAM");
  EXPECT_EQ(roofs.memory[1].capacity_bytes, 0);
  EXPECT_EQ(roofs.memory[2].level, "host link");
  // 8 MiB arrays: all trials take as long, so triad's 3N is the best: in the cache 64 times half of twice the cache.
  EXPECT_NEAR(roofs.memory[1].bytes_per_second, 3.0 * (8 << 20) / kSecondsPerCall, 1);
  EXPECT_NE(roofs.memory[1].provenance.method.find("triad over arrays of 8 MiB"), std::string::npos)
      << roofs.memory[1].provenance.method;
  EXPECT_NEAR(roofs.memory[0].bytes_per_second, 64 * 3.0 * kCache / kSecondsPerCall, 4096);
  EXPECT_NEAR(roofs.memory[2].bytes_per_second, (2 << 20) / kSecondsPerCall, 1);
  EXPECT_EQ(roofs.memory_for(2 * kCache)->level, "L2");
  EXPECT_EQ(roofs.memory_for(2 * kCache + 1)->level, "DRAM");  // no footprint fits a link

  // 256 KiB, each the square root of two times the one before, to 2 MiB; then three arrays in DRAM.
  ASSERT_EQ(roofs.curve.points.size(), 8u);
  EXPECT_EQ(roofs.curve.points.front().working_set_bytes, kCache / 4);
  EXPECT_EQ(roofs.curve.points[6].working_set_bytes, 2 * kCache);
  const BandwidthPoint& dram = roofs.curve.points.back();
  EXPECT_EQ(dram.working_set_bytes, 3 * (8 << 20));
  EXPECT_DOUBLE_EQ(dram.read, 8 << 20);
  EXPECT_DOUBLE_EQ(dram.write, 8 << 20);
  EXPECT_DOUBLE_EQ(dram.copy, 2 * (8 << 20));
  EXPECT_DOUBLE_EQ(dram.update, 2 * (8 << 20));
  // An op's roof is that of its mix: half of it written is a copy.
  EXPECT_DOUBLE_EQ(roofs.memory_roof({1'000, 1'000, 0}, std::int64_t{1} << 40)->bytes_per_second, 2 * (8 << 20));
  EXPECT_DOUBLE_EQ(roofs.memory_roof({0, 1'000, 0}, std::int64_t{1} << 40)->bytes_per_second, 8 << 20);

  const double rate = 2.0 * 64 * 64 * 64 / kSecondsPerCall;
  for (const DType dtype : {DType::fp32, DType::tf32, DType::fp16, DType::bf16, DType::int8, DType::fp64}) {
    const auto* roof = roofs.compute_for(dtype);
    ASSERT_NE(roof, nullptr) << name_of(dtype);
    EXPECT_DOUBLE_EQ(roof->operations_per_second, rate) << name_of(dtype);
    EXPECT_EQ(roof->provenance.source, "measured");
    EXPECT_NE(roof->provenance.method.find("SM clock 1755 MHz"), std::string::npos) << roof->provenance.method;
  }
  EXPECT_NE(roofs.compute_for(DType::fp32)
                ->provenance.method.find(
                    "of the CUDA cores' 66.9 TFLOP/s, computed for 132 SMs at their highest clock, 1980 MHz"),
            std::string::npos)
      << roofs.compute_for(DType::fp32)->provenance.method;
  EXPECT_TRUE(noted(measured, "held down by: software power cap"));
  // A million operations a second are far from what 132 SMs do; fp32 has the cores' share.
  EXPECT_TRUE(noted(measured, "int8: the best product reaches "));
  EXPECT_NE(roofs.compute_for(DType::int8)->provenance.method.find("its kernels are the limit"), std::string::npos);
  EXPECT_FALSE(noted(measured, "fp32: the best product"));
}

// A device in whose traces a long kernel and a longer copy follow a short one, and whose L2 counted most outside of all
// ranges, 9e9 bytes in the third one and fewer in the others.
class Scripted final : public DeviceCollector {
 public:
  void synchronize() override {}
  LaunchMarker* marker() override { return nullptr; }
  void start_tracing(Recorded) override {}
  DeviceTrace stop_tracing() override {
    DeviceTrace trace;
    trace.names = {"split", "gemm" + std::to_string(++traces_), "copy"};
    trace.records = {{.name = 0, .end_ns = 10}, {.name = 1, .end_ns = 50}, {.name = 2, .end_ns = 500}};
    trace.records.back().kind = KernelKind::copy;
    return trace;
  }
  CounterTrace count(const CounterRequest&, const std::function<void(LaunchMarker*)>& body) override {
    body(nullptr);
    CounterTrace trace;
    for (LaunchId range = kNoLaunch; range <= 4; ++range) {
      trace.records.push_back({range, {}});
      trace.records.back().values[static_cast<std::size_t>(Counter::l2_bytes)] =
          range == kNoLaunch ? 100e9 : (range == 3 ? 9e9 : 7e9);
    }
    return trace;
  }

 private:
  int traces_ = 0;
};

TEST_F(GpuRoofs, NameTheKernelsAndHaveTheBytesThatTheL2Counts) {
  RoofOptions with_collector = options();
  with_collector.collector = [] { return std::make_unique<Scripted>(); };
  const auto measured = measure(with_collector);
  int number = 0;
  for (const auto& peak : measured.ceilings.compute) {
    ASSERT_TRUE(peak.fastest);
    EXPECT_NE(peak.fastest->shape.find(" 64x64x64 (MxKxN)"), std::string::npos) << peak.fastest->shape;
    EXPECT_EQ(peak.fastest->kernel_name, "gemm" + std::to_string(++number));
    EXPECT_EQ(peak.fastest->missing, "");
  }
  EXPECT_GE(number, 6);
  // Each call takes a second, and one of them counts 9e9 bytes.
  const auto* l2 = measured.ceilings.memory_level("L2");
  ASSERT_NE(l2, nullptr);
  EXPECT_DOUBLE_EQ(l2->counted_bytes_per_second, 9e9 / kSecondsPerCall);
  EXPECT_NE(l2->provenance.method.find("bytes that the L2 counts: 9 GB/s"), std::string::npos) << l2->provenance.method;
  EXPECT_EQ(measured.ceilings.memory_level("DRAM")->counted_bytes_per_second, 0);
}

TEST_F(GpuRoofs, HaveWhatIsSustainedBesideTheBurst) {
  RoofOptions longer = options();
  longer.peaks.sustained_for = Seconds(3);
  const auto measured = measure(longer);
  const auto* roof = measured.ceilings.compute_for(DType::bf16);
  ASSERT_NE(roof, nullptr);
  EXPECT_EQ(roof->sustained, (SustainedRate{2.0 * 64 * 64 * 64 / kSecondsPerCall, 3, 1'755e6, 412.345}));
}

TEST_F(GpuRoofs, SayWhatHoldsThemDownAndWhatIsLeftOut) {
  fake_set("nvml_mig", 1);
  fake_set("nvml_throttle", 0x1 | 0x40);
  RoofOptions older = options();
  older.facts->compute_major = 7;
  older.facts->l2_bytes.reset();
  const auto measured = measure(older);
  EXPECT_TRUE(noted(measured, "MIG"));
  EXPECT_TRUE(noted(measured, "held down by: hardware thermal slowdown"));
  EXPECT_TRUE(noted(measured, "does not tell the size of its L2"));
  EXPECT_EQ(measured.ceilings.memory_level("L2"), nullptr);
  EXPECT_EQ(measured.ceilings.curve.points.size(), 1u);  // DRAM, for each mix
  EXPECT_EQ(measured.ceilings.compute_for(DType::tf32), nullptr);
  EXPECT_EQ(measured.ceilings.compute_for(DType::bf16), nullptr);
  EXPECT_TRUE(has_line("tf32 is left out: the GPU's tensor cores do not have it"));
}

}  // namespace
}  // namespace roofprof
#endif
