#include "analysis/predict/prediction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>

#include "analysis/predict/plain_device.h"
#include "commas.h"
#include "core/json/members.h"

namespace roofprof {
namespace {

using testing::published_card;
using testing::work_of;

const Note* note_of(const Profile& data, std::string_view code) {
  const auto found = std::ranges::find(data.notes, code, &Note::code);
  return found == data.notes.end() ? nullptr : &*found;
}

// In fp32: on the card by hand 1e4 FLOPs take 1 ns, 1,000 bytes likewise.
struct Net : testing::ProfileBuilder {
  ModuleId body = module("body", "Conv2d");
  ModuleId head = module("head", "Linear");

  Net() {
    data.run.mode = Mode::count;
    data.tree.modules[kModel].input_shapes = {{2, 64, 56, 56}};
    data.tree.modules[kModel].param_bytes = 4'000;
    op("aten::conv2d", body, work_of(800'000'000, 2'000'000, 1'000'000), {}, 2).shapes =
        testing::shapes("2x64x56x56, 64x64x3x3");
    op("aten::relu_", kModel, work_of(0, 5'000'000, 5'000'000)).shapes = testing::shapes("2x64x56x56");
    op("aten::view", kModel, {}).shapes = testing::shapes("2x64x56x56");
    op("aten::linear", head, work_of(40'000'000, 100'000, 100'000)).shapes = testing::shapes("2x512, 1000x512, 1000");
    auto& unknown = op("mylib::own", head, {});
    unknown.costed = false;
    time(body, {}, 2);
    time(head, {}, 1);
  }

  testing::Derived on_card(const PredictionOptions& options = {},
                           const PredictionParameters& parameters = testing::plain_parameters()) const {
    return testing::Derived(predicted(data, published_card(), options, parameters));
  }
};

TEST(Predicted, TextsFollowNoLocale) {
  const auto texts = [] {
    std::string text = words_of(*Net().on_card({.batch = 1234, .bandwidth = 1.5}).data().origin.predicted());
    try {
      Net().on_card({.peak = -1234.5});
    } catch (const std::invalid_argument& error) {
      text += error.what();
    }
    return text;
  };
  const std::string before = texts();
  EXPECT_NE(before.find("1.5"), std::string::npos) << before;
  EXPECT_NE(before.find("-1234.5"), std::string::npos) << before;
  const testing::WithCommas locale;
  EXPECT_EQ(texts(), before);
}

// Of a product on a card whose architecture is not known.
const std::int64_t kLaunch = std::llround(ProductKernels{}.launch * 1e9);

TEST(Predicted, TimesAreThoseOfTheRooflineWhereNothingElseIsAdded) {
  const auto report = Net().on_card();
  // 800e6 FLOPs at 1e13/s, 10e6 bytes at 1e12/s, 40e6 FLOPs.
  EXPECT_EQ(report.row("body").time_ns, 80'000);
  EXPECT_EQ(report.row("head").time_ns, 4'000 + kLaunch);
  EXPECT_EQ(report.data().counts.ops[1].time_ns, 10'000);
  EXPECT_EQ(report.data().counts.ops[2].time_ns, 0);
  EXPECT_EQ(report.data().counts.ops[4].time_ns, std::nullopt);
  EXPECT_EQ(report.total().time_ns, 80'000 + 10'000 + 4'000 + kLaunch);
}

TEST(Predicted, SelfTimesAddUpToTheTotal) {
  const auto report = Net().on_card({}, PredictionParameters::shipped());
  std::int64_t self = 0;
  for (const auto& time : report.data().times->modules) {
    ASSERT_EQ(time.self_ns.size(), 1U);
    self += time.self_ns[0];
  }
  std::int64_t ops = 0;
  for (const auto& bucket : report.data().counts.ops) ops += bucket.time_ns.value_or(0);
  EXPECT_EQ(self, ops);
  EXPECT_EQ(report.total().time_ns, ops);
  EXPECT_EQ(report.data().run.runs.total_ns, std::vector<std::int64_t>{ops});
  std::int64_t low = 0;
  for (const auto& bucket : report.data().counts.ops) low += bucket.time_low_ns.value_or(0);
  // Errors that ops do not have in common partly cancel out.
  EXPECT_GE(*report.total().time_low_ns, low);
}

TEST(Predicted, IntervalsAreOfTheirClassesAndAddUp) {
  auto parameters = testing::plain_parameters();
  for (auto& of_class : parameters.gpu.classes) of_class.high = 2;
  testing::class_in(parameters.gpu, OpClass::conv_spatial).low = 0.5;
  const auto report = Net().on_card({}, parameters);
  // Products in fp32 have an interval of their own, which is empty here.
  // The convolution's low end would be half of its time, which is its lower bound.
  EXPECT_EQ(report.total().time_low_ns, 80'000 + 10'000 + 4'000 + kLaunch);
  EXPECT_EQ(report.total().time_high_ns, 2 * 90'000 + 4'000 + kLaunch);
  EXPECT_EQ(report.row("body").time_low_ns, 80'000);
  EXPECT_EQ(report.row("head").time_low_ns, 4'000 + kLaunch);
}

TEST(Predicted, NeedsWorkOfOneProcess) {
  const auto refused = [](const Profile& data, const PredictionOptions& options = {}) {
    EXPECT_THROW(static_cast<void>(predicted(data, published_card(), options)), std::invalid_argument);
  };
  refused(testing::ProfileBuilder().data);
  auto merged = Net().data;
  merged.origin.kind.emplace<MergedRanks>().ranks.resize(2);
  refused(merged);
  for (const double factor : {0.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    refused(Net().data, {.bandwidth = factor});
    refused(Net().data, {.peak = factor});
  }
  refused(Net().data, {.precision = DType::int8});
  // Twice the FLOPs of the convolution at twice 1e14 per second.
  const auto data = predicted(Net().data, published_card(), {.precision = DType::fp16, .batch = 4, .peak = 2},
                              testing::plain_parameters());
  EXPECT_EQ(data.counts.ops[0].time_ns, 8'000);
  refused(Net().data, {.batch = 0});
  auto without_inputs = Net().data;
  without_inputs.tree.modules[kModel].input_shapes.clear();
  refused(without_inputs, {.batch = 4});
}

// As many bytes as there are, and one more.
TEST(Predicted, SaysWhereWeightsDoNotFit) {
  Ceilings card = published_card();
  card.facts.memory_bytes = 4'000;
  EXPECT_EQ(note_of(predicted(Net().data, card, {}), "prediction-memory"), nullptr);
  card.facts.memory_bytes = 3'999;
  EXPECT_NE(note_of(predicted(Net().data, card, {}), "prediction-memory"), nullptr);
  card.facts.memory_bytes = 4'000;
  auto with_activations = Net().data;
  with_activations.counts.memory.peak_bytes = 1;
  EXPECT_NE(note_of(predicted(with_activations, card, {}), "prediction-memory"), nullptr);
  card.facts.memory_bytes = 0;  // not known
  EXPECT_EQ(note_of(predicted(with_activations, card, {}), "prediction-memory"), nullptr);
}

TEST(Predicted, ForgetsTheRun) {
  auto data = Net().data;
  data.run.device = "cuda:0";
  data.device.make().compute_capability = "9.0";
  data.device.make().kernels.resize(1);
  data.device.make().timeline.modules.resize(1);
  data.times.make().events.kept = true;
  data.comms.make().calls.resize(1);
  data.device.make().timeline.busy_ns = 1;
  data.run.runs.total_ns = {1, 2, 3};
  data.run.runs.bare_ns = {1};
  data.run.environment = {{"torch", "2.8"}, {"driver", "570"}};
  const auto result = predicted(data, published_card(), {});
  EXPECT_EQ(result.run.device, "a card by hand");
  EXPECT_FALSE(result.device);
  EXPECT_EQ(result.times->events, Events());
  EXPECT_FALSE(result.comms);
  EXPECT_EQ(result.run.runs.total_ns.size(), 1U);
  EXPECT_TRUE(result.run.runs.bare_ns.empty());
  EXPECT_EQ(result.run.environment, (Environment{{"torch", "2.8"}}));
  EXPECT_NE(note_of(result, "predicted"), nullptr);
}

TEST(Predicted, RoofsHaveTheFactors) {
  const auto roofs = predicted(Net().data, published_card(), {.bandwidth = 2, .peak = 3}).roofs;
  EXPECT_DOUBLE_EQ(roofs.memory_level("DRAM")->bytes_per_second, 2e12);
  EXPECT_DOUBLE_EQ(roofs.compute_for(DType::fp32)->operations_per_second, 3e13);
  // A CPU's memory roof is its curve.
  Ceilings machine = testing::round_ceilings();
  machine.curve.points = {{1'000, 1e11, 1e11, 1e11, 1e11, 1e11, 0}};
  const auto faster = predicted(Net().data, machine, {.bandwidth = 2}).roofs;
  EXPECT_DOUBLE_EQ(faster.memory_roof({10'000'000, 0, 0})->bytes_per_second, 2e11);
}

TEST(Predicted, IsReadBackAsItWasWritten) {
  const auto data = Net().on_card({.batch = 6}, PredictionParameters::shipped()).data();
  JsonWriter writer;
  write_value(writer, data);
  const std::string text = writer.take();
  JsonReader reader(text);
  Profile read;
  read_value(reader, read);
  reader.finish();
  EXPECT_EQ(read, data);
}

TEST(Predictor, HasTheTotalsOfPredictedReports) {
  const auto& shipped = PredictionParameters::shipped();
  const Predictor predictor(Net().data, {.batch = 6});
  EXPECT_EQ(predictor.batch(), 6);
  EXPECT_EQ(predictor.weight_bytes(), 4'000);
  const auto total = predictor.total(published_card(), shipped);
  const auto report = Net().on_card({.batch = 6}, shipped);
  // Each op's nanoseconds are rounded.
  EXPECT_NEAR(total.seconds * 1e9, static_cast<double>(*report.total().time_ns), 4);
  EXPECT_NEAR(total.low * 1e9, static_cast<double>(*report.total().time_low_ns), 4);
  EXPECT_NEAR(total.high * 1e9, static_cast<double>(*report.total().time_high_ns), 4);
  double by_class = 0;
  for (const double seconds : predictor.class_seconds(published_card(), shipped)) by_class += seconds;
  EXPECT_NEAR(by_class, total.seconds, 1e-15);
}

}  // namespace
}  // namespace roofprof
