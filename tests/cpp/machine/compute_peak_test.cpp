#include "machine/cpu/compute_peak.h"

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

#include "machine/common/dispatch_defaults.h"
#include "machine/possible.h"

namespace roofprof {
namespace {

constexpr std::int64_t kLargest = 64 << 20;

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

TEST(MeasuringComputeTrials, Fp32HasARateWithItsMethod) {
  const DispatchDefaults defaults;
  ComputeTrials trials(DType::fp32, kLargest);
  EXPECT_EQ(trials.left_out(), "");
  testing::expect_possible_fp32_rate(trials.round());
  EXPECT_NE(trials.method(3).find("at::"), std::string::npos) << trials.method(3);
  EXPECT_NE(trials.method(3).find("best of 3"), std::string::npos) << trials.method(3);
}

TEST(MeasuringComputeTrials, EveryDtypeHasARateOrAReason) {
  const DispatchDefaults defaults;
  for (const DType dtype : {DType::fp64, DType::bf16, DType::fp16, DType::int8, DType::fp8, DType::boolean}) {
    ComputeTrials trials(dtype, kLargest);
    if (trials.left_out().empty()) {
      EXPECT_GT(trials.round(), 0) << name_of(dtype);
    } else {
      EXPECT_EQ(trials.round(), 0) << name_of(dtype);
    }
  }
}

TEST(ComputeTrials, LeavesRandomNumbersModesAndObserversAlone) {
  const auto& generator = at::detail::getDefaultCPUGenerator();
  const at::Tensor before = generator.get_state();
  const auto handle = at::addGlobalCallback(at::RecordFunctionCallback(&observe));
  at::mm(at::ones({2, 2}), at::ones({2, 2}));
  const int seen = observed.exchange(0);
  {
    const DispatchDefaults defaults;
    ComputeTrials(DType::fp32, kLargest).round();
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
