#include "roofs/cpu/compute_peak.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/autocast_mode.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/ones.h>
#include <ATen/record_function.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <atomic>
#include <memory>

#include "roofs/common/dispatch_defaults.h"
#include "roofs/possible.h"

namespace roofprof {
namespace {

using Seconds = std::chrono::duration<double>;
constexpr Seconds kShort{0.1};

std::atomic<int> observed = 0;

std::unique_ptr<at::ObserverContext> observe(const at::RecordFunction&) {
  ++observed;
  return nullptr;
}

class AutocastOnCpu {
 public:
  AutocastOnCpu() { at::autocast::set_autocast_enabled(at::kCPU, true); }
  ~AutocastOnCpu() { at::autocast::set_autocast_enabled(at::kCPU, before_); }
  AutocastOnCpu(const AutocastOnCpu&) = delete;
  AutocastOnCpu& operator=(const AutocastOnCpu&) = delete;

 private:
  bool before_ = at::autocast::is_autocast_enabled(at::kCPU);
};

TEST(Gemm, Fp32HasAPeakWithItsMethod) {
  const DispatchDefaults defaults;
  const ComputePeak peak = measure_compute_peak(DType::fp32, kShort);
  EXPECT_EQ(peak.left_out, "");
  testing::expect_possible_fp32_rate(peak.operations_per_second);
  EXPECT_GE(peak.spread, 0);
  EXPECT_LE(peak.spread, 1);
  EXPECT_NE(peak.method.find("at::"), std::string::npos) << peak.method;
}

TEST(Gemm, EveryDtypeHasAPeakOrAReason) {
  const DispatchDefaults defaults;
  for (const DType dtype : {DType::fp64, DType::bf16, DType::fp16, DType::int8, DType::fp8, DType::boolean}) {
    const ComputePeak peak = measure_compute_peak(dtype, kShort);
    EXPECT_NE(peak.operations_per_second > 0, !peak.left_out.empty()) << name_of(dtype);
  }
}

TEST(Gemm, ASlowDtypeIsLeftOut) {
  const DispatchDefaults defaults;
  const ComputePeak peak = measure_compute_peak(DType::fp32, kShort, /*sane_rate=*/1e18);
  EXPECT_EQ(peak.operations_per_second, 0);
  EXPECT_NE(peak.left_out, "");
}

TEST(Gemm, LeavesRandomNumbersModesAndObserversAlone) {
  const auto& generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&observe));
  at::mm(at::ones({2, 2}), at::ones({2, 2}));
  const int seen = observed.exchange(0);
  {
    const DispatchDefaults defaults;
    measure_compute_peak(DType::fp32, kShort);
  }
  const int measured = observed;
  at::removeCallback(handle);
  EXPECT_GT(seen, 0);
  EXPECT_EQ(measured, 0);
  EXPECT_TRUE(before.equal(generator.get_state()));
  EXPECT_TRUE(c10::GradMode::is_enabled());
}

TEST(DispatchDefaults, SuspendAutocastAndGradWhileTheyLive) {
  const AutocastOnCpu autocast;
  const at::Tensor matrix = at::ones({4, 4}).set_requires_grad(true);
  EXPECT_EQ(at::mm(matrix, matrix).scalar_type(), at::kBFloat16);
  {
    const DispatchDefaults defaults;
    const at::Tensor product = at::mm(matrix, matrix);
    EXPECT_EQ(product.scalar_type(), at::kFloat);
    EXPECT_FALSE(product.requires_grad());
  }
  EXPECT_EQ(at::mm(matrix, matrix).scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::mm(matrix, matrix).requires_grad());
}

}  // namespace
}  // namespace roofprof
