#include "analysis/predict/op_time.h"

#include <gtest/gtest.h>

#include <cmath>
#include <stdexcept>
#include <string>

#include "analysis/predict/plain_device.h"
#include "core/json/reader.h"

namespace roofprof {
namespace {

using testing::published_card;

PredictionParameters with_share(const AchievedShare& share) {
  auto parameters = testing::plain_parameters();
  parameters.achieved = {share};
  return parameters;
}

AchievedShare share_by_hand() {
  return {.compute_capability = "9.9",
          .dram = 0.9,
          .tensor = 0.8,
          .picojoules_per_flop = 0,
          .fp16_per_fp32 = 2,
          .source = "by hand"};
}

double rate_of(const TargetDevice& device, DType dtype) { return device.peak[static_cast<std::size_t>(dtype)]; }

std::string refusal_of(const Ceilings& ceilings) {
  try {
    static_cast<void>(target_device(ceilings, testing::plain_parameters(), 1, 1));
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "(it was taken)";
}

TEST(TargetDevice, OfPublishedFiguresSharesAreAchieved) {
  const Ceilings card = published_card();
  const auto parameters = with_share(share_by_hand());
  const auto device = target_device(card, parameters, 1, 1);
  EXPECT_DOUBLE_EQ(device.dram, 0.9e12);
  EXPECT_DOUBLE_EQ(rate_of(device, DType::fp16), 0.8e14);
  // No tensor core has part in it.
  EXPECT_DOUBLE_EQ(rate_of(device, DType::fp32), 1e13);
  EXPECT_DOUBLE_EQ(device.vector_peak, 1e13);
  EXPECT_TRUE(device.is_gpu);
  EXPECT_EQ(device.gpu, &parameters.gpu);
  EXPECT_TRUE(device.remarks.empty());
  // Not of another architecture's.
  auto share = share_by_hand();
  share.compute_capability = "9.8";
  const auto unknown = target_device(card, with_share(share), 1, 1);
  EXPECT_DOUBLE_EQ(unknown.dram, 1e12);
  ASSERT_EQ(unknown.remarks.size(), 1U);
  EXPECT_EQ(unknown.remarks.front(),
            "how much of the published peaks and bandwidth of a card by hand is achieved is not known: they are taken "
            "in full");
  // What was measured is achieved as it is.
  Ceilings measured = card;
  measured.compute[1].provenance.source = measured.memory[0].provenance.source = "measured";
  const auto as_it_is = target_device(measured, with_share(share_by_hand()), 1, 1);
  EXPECT_DOUBLE_EQ(as_it_is.dram, 1e12);
  EXPECT_DOUBLE_EQ(rate_of(as_it_is, DType::fp16), 1e14);
}

// A level of the roofs says no more than the card's facts: with either the same is predicted.
TEST(TargetDevice, TheLastCacheIsThatOfTheFactsAndOfTheLevels) {
  constexpr std::int64_t kCache = 50 << 20;
  Ceilings with_fact = published_card();
  with_fact.facts.l2_bytes = kCache;
  Ceilings with_level = with_fact;
  with_level.memory.insert(with_level.memory.begin(), {"L2", 5e12, kCache, testing::published_roof()});
  auto share = share_by_hand();
  for (const auto* card : {&with_fact, &with_level}) {
    const auto device = target_device(*card, with_share(share), 1, 1);
    EXPECT_EQ(device.cache_bytes, kCache);
    EXPECT_DOUBLE_EQ(device.dram, 0.9e12);
    EXPECT_DOUBLE_EQ(device.dram_roof, 1e12);
  }
  share.cache = 0;  // as of B200
  EXPECT_EQ(target_device(with_level, with_share(share), 1, 1).cache_bytes, 0);
}

// 4 pJ x 1e14 per second are 400 W: at 200 W the clock is the one that takes half the power.
TEST(TargetDevice, ThePowerLimitSlowsTensorCoresDown) {
  auto share = share_by_hand();
  share.picojoules_per_flop = 4;
  Ceilings card = published_card();
  card.facts.tdp_watts = 200;
  card.compute.push_back({DType::fp8, 2e14, testing::published_roof()});
  const double clock = std::pow(0.5, 1 / 2.5);
  const auto limited = target_device(card, with_share(share), 1, 1);
  EXPECT_DOUBLE_EQ(rate_of(limited, DType::fp16), 0.8e14 * clock);
  EXPECT_DOUBLE_EQ(rate_of(limited, DType::fp8), 1.6e14 * clock);
  EXPECT_DOUBLE_EQ(rate_of(limited, DType::fp32), 1e13);
  EXPECT_DOUBLE_EQ(limited.dram, 0.9e12);
  for (const double watts : {400.0, 1000.0, 0.0}) {  // enough of it, or not known
    card.facts.tdp_watts = watts;
    EXPECT_DOUBLE_EQ(rate_of(target_device(card, with_share(share), 1, 1), DType::fp16), 0.8e14) << watts;
  }
}

TEST(TargetDevice, FactorsAreOfBandwidthAndPeaks) {
  const Ceilings card = published_card();
  const auto device = target_device(card, with_share(share_by_hand()), 3, 5);
  EXPECT_DOUBLE_EQ(device.dram, 3 * 0.9e12);
  EXPECT_DOUBLE_EQ(rate_of(device, DType::fp16), 5 * 0.8e14);
  EXPECT_DOUBLE_EQ(rate_of(device, DType::fp32), 5e13);
  EXPECT_DOUBLE_EQ(device.vector_peak, 5e13);
}

// The host link is none.
TEST(TargetDevice, NeedsABandwidthOfItsMemoryAndAPeak) {
  Ceilings card = published_card();
  card.memory[0].bytes_per_second = 0;
  EXPECT_NE(refusal_of(card).find("a card by hand"), std::string::npos) << refusal_of(card);
  card.memory = {{std::string(kHostLink), 6e10, 0, testing::published_roof()}};
  EXPECT_NE(refusal_of(card).find("bandwidth"), std::string::npos) << refusal_of(card);
  card = published_card();
  card.compute.clear();
  EXPECT_NE(refusal_of(card).find("a card by hand"), std::string::npos) << refusal_of(card);
}

TEST(TargetDevice, ACardWithoutAPublishedFp16RateHasItsArchitectures) {
  Ceilings card = published_card();
  card.compute.pop_back();
  const auto device = target_device(card, with_share(share_by_hand()), 1, 1);
  EXPECT_DOUBLE_EQ(rate_of(device, DType::fp16), 2 * 0.8 * 1e13);
  ASSERT_EQ(device.remarks.size(), 1U);
  EXPECT_NE(device.remarks[0].find("fp16"), std::string::npos);
  EXPECT_NE(device.remarks[0].find("a card by hand"), std::string::npos);
}

TEST(TargetDevice, ACurveOrAnL3IsACpus) {
  const auto parameters = testing::plain_parameters();
  Ceilings machine = testing::round_ceilings();
  EXPECT_TRUE(target_device(machine, parameters, 1, 1).is_gpu);
  machine.memory.insert(machine.memory.begin() + 1, {"L3", 5e11, 32 << 20, testing::given_roof()});
  const auto by_level = target_device(machine, parameters, 1, 1);
  EXPECT_FALSE(by_level.is_gpu);
  EXPECT_DOUBLE_EQ(by_level.cache_bytes, 32 << 20);
  EXPECT_DOUBLE_EQ(by_level.dram, testing::kDramBandwidth);
  Ceilings measured = testing::round_ceilings();
  measured.curve.points = {{1000, 1e11, 1e11, 1e11, 1e11, 1e11, 0}};
  EXPECT_FALSE(target_device(measured, parameters, 1, 1).is_gpu);
}

TEST(PeakFor, OfACardAnotherTypeTakesThePlaceOfWhatIsNotPublished) {
  const Ceilings card = published_card();
  const auto device = target_device(card, testing::plain_parameters(), 1, 1);
  EXPECT_EQ(peak_for(device, DType::fp16), 1e14);
  EXPECT_EQ(peak_for(device, DType::tf32), 1e13);
  EXPECT_EQ(peak_for(device, DType::fp8), 1e14);
  EXPECT_EQ(peak_for(device, DType::int8), std::nullopt);
  EXPECT_EQ(peak_for(device, DType::fp64), std::nullopt);
  // Of other roofs only tf32 may be fp32's.
  const Ceilings machine = testing::round_ceilings();
  const auto other = target_device(machine, testing::plain_parameters(), 1, 1);
  EXPECT_EQ(peak_for(other, DType::tf32), testing::kFp32Peak);
  for (const DType dtype : {DType::fp16, DType::bf16, DType::fp8, DType::fp64}) {
    EXPECT_EQ(peak_for(other, dtype), std::nullopt) << name_of(dtype);
  }
}

TEST(ShippedParameters, HaveEveryClassOnGpuAndCpu) {
  const auto& shipped = PredictionParameters::shipped();
  for (const auto* classes : {&shipped.gpu.classes, &shipped.cpu.classes}) {
    ASSERT_EQ(classes->size(), kOpClassCount);
    for (std::size_t i = 0; i < kOpClassCount; ++i) {
      const auto& of_class = parameters_of(*classes, static_cast<OpClass>(i));
      EXPECT_EQ(of_class.name, kOpClassNames[i]);
      EXPECT_TRUE(0 < of_class.low && of_class.low <= 1 && of_class.high >= 1) << of_class.name;
      EXPECT_TRUE(0 < of_class.of_bandwidth && of_class.of_bandwidth <= 1.5) << of_class.name;
      const double least = is_contraction(static_cast<OpClass>(i)) ? 0.01 : 0;
      EXPECT_TRUE(least <= of_class.of_peak && of_class.of_peak <= 1.5) << of_class.name;
    }
  }
  const auto& gpu = shipped.gpu;
  for (const double share : {gpu.product.unaligned, gpu.convolution.unaligned, gpu.inline_ecc, shipped.common_error}) {
    EXPECT_TRUE(0 < share && share <= 1);
  }
  for (const auto& share : shipped.achieved) {
    EXPECT_TRUE(0 < share.dram && share.dram <= 1) << share.compute_capability;
    EXPECT_TRUE(0 < share.tensor && share.tensor <= 1) << share.compute_capability;
    EXPECT_TRUE(0 <= share.cache && share.cache <= 1) << share.compute_capability;
  }
}

// Large fp16 products reach 250 to 290 TFLOP/s on A100 SXM (312 at 400 W) and 600 to 800 on H100 SXM (989 at 700 W).
TEST(ShippedParameters, LargeProductsAreAsFastAsIsKnownOfA100AndH100) {
  const auto achieved = [](const std::string& capability, double tflops, double watts) {
    Ceilings card = published_card();
    card.facts.compute_capability = capability;
    card.facts.tdp_watts = watts;
    card.compute[1].operations_per_second = tflops * 1e12;
    return rate_of(target_device(card, PredictionParameters::shipped(), 1, 1), DType::fp16) / 1e12;
  };
  EXPECT_GT(achieved("8.0", 312, 400), 250);
  EXPECT_LT(achieved("8.0", 312, 400), 290);
  EXPECT_GT(achieved("9.0", 989.4, 700), 600);
  EXPECT_LT(achieved("9.0", 989.4, 700), 800);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

TEST(ParsedParameters, AreFoundByNameInAnyOrderAndMustBeComplete) {
  const std::string text(kPredictionParameters);
  const auto shipped = PredictionParameters::parsed(text);
  // Two classes of the first list, that of GPUs, change places.
  const auto parameters = PredictionParameters::parsed(replaced(
      replaced(replaced(text, R"("linear")", R"("?")"), R"("softmax")", R"("linear")"), R"("?")", R"("softmax")"));
  const auto of_bandwidth = [](const PredictionParameters& of, OpClass op) {
    return parameters_of(of.gpu.classes, op).of_bandwidth;
  };
  EXPECT_NE(of_bandwidth(shipped, OpClass::softmax), of_bandwidth(shipped, OpClass::linear));
  EXPECT_EQ(of_bandwidth(parameters, OpClass::softmax), of_bandwidth(shipped, OpClass::linear));
  EXPECT_EQ(of_bandwidth(parameters, OpClass::linear), of_bandwidth(shipped, OpClass::softmax));
  EXPECT_THROW(static_cast<void>(PredictionParameters::parsed(replaced(text, R"("softmax")", R"("?")"))),
               std::invalid_argument);
  EXPECT_THROW(static_cast<void>(PredictionParameters::parsed("no file")), JsonError);
}

TEST(Calibration, SetsNumbersByTheirNames) {
  auto gpu = testing::plain_parameters().gpu;
  AchievedShare achieved;
  set_number("product.overlap", 3, gpu, achieved);
  set_number("softmax.of_bandwidth", 0.5, gpu, achieved);
  set_number("achieved.product.launch", 7e-6, gpu, achieved);
  set_number("kernel_floor", 1e-6, gpu, achieved);
  EXPECT_EQ(gpu.product.overlap, 3);
  EXPECT_EQ(parameters_of(gpu.classes, OpClass::softmax).of_bandwidth, 0.5);
  EXPECT_EQ(achieved.product.launch, 7e-6);
  EXPECT_EQ(gpu.kernel_floor, 1e-6);
  for (const auto* none : {"", "product", "product.magic", "softmax.magic", "achieved", "classes"}) {
    EXPECT_THROW(set_number(none, 1, gpu, achieved), std::invalid_argument) << none;
  }
}

}  // namespace
}  // namespace roofprof
