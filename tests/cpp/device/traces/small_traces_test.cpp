// Traces by hand as CUPTI's records: the same figures, in closed form.
#include <gtest/gtest.h>

#include <tuple>

#include "device/replay/replay.h"
#include "device/traces/checks.h"
#include "kineto/trace_builder.h"

namespace roofprof {
namespace {

using testing::collected;
using testing::Delivery;
using testing::expect_same_by;
using testing::FakeCosts;
using testing::report_of;
using testing::take_notes;
using testing::TraceText;

constexpr std::int64_t kUs = 1000;

class SmallTraces : public WithFakes {
 protected:
  // Returns the report of the collector's trace.
  static Report same(const TraceText& text,
                     const std::vector<Delivery>& deliveries = {{}, {.reversed = true}, {.by_ids = true}}) {
    const auto trace = text.trace();
    const auto observed = testing::observed_of(text);
    expect_same_by(deliveries, trace, observed);
    auto device = collected(trace.host, *observed.timed.at(0).device, deliveries.at(0));
    notes_ = take_notes(device);
    return report_of(observed, std::move(device));
  }
  static inline std::string notes_;  // of the collector's last trace
};

// A step of two layers. The kernels of the first stream overlap: the second begins 5 µs before the first ends.
TraceText training() {
  TraceText text;
  text.module("Net_0", 0, 100)
      .module("Linear_0", 10, 30)
      .op("aten::mm", 12, 20, R"("Sequence number": 1)")
      .launch(1, 14)
      .module("Linear_1", 50, 30)
      .op("aten::linear", 51, 28)
      .op("aten::addmm", 52, 20, R"("Sequence number": 2)")
      .launch(2, 54)
      .launch(3, 56);
  text.node("AddmmBackward0", 2, 110, 30).op("aten::mm", 112, 20, "", "2").launch(4, 115, 1, "2");
  text.node("MmBackward0", 1, 150, 30).op("aten::mm", 152, 20, "", "2").launch(5, 155, 1, "2");
  text.range("Optimizer.step#SGD.step", 200, 50).op("aten::add", 210, 20).launch(6, 215);
  text.kernel("gemm", 1, 30, 40)
      .kernel("gemm", 2, 65, 40)
      .copy("Memset (Device)", 3, 60, 2, 512)
      .kernel("gemm", 4, 130, 60)
      .kernel("gemm", 5, 190, 70, 20)
      .kernel("add", 6, 240, 8, 21);
  return text;
}

void expect_training(const Report& report) {
  EXPECT_EQ(report.total().time_ns, 220 * kUs);
  EXPECT_EQ(report.total().busy_ns, (75 + 60 + 70) * kUs);  // 30 to 105, 130 to 260 with what lies within
  EXPECT_EQ(report.row("Linear_0").time_ns, (40 + 70) * kUs);
  EXPECT_EQ(report.row("Linear_1").time_ns, (40 + 2 + 60) * kUs);
  EXPECT_EQ(report.row("(optimizer)").time_ns, 8 * kUs);
  EXPECT_EQ(report.row("Linear_1").kernel_count, 2);
  EXPECT_EQ(report.total().kernel_count, 5);
  EXPECT_EQ(report.coverage().unattributed_kernels, 0);
  const auto of_ops = report.by_operator();
  EXPECT_EQ(of_ops.at("aten::mm").time_ns, (40 + 60 + 70) * kUs);
  EXPECT_EQ(of_ops.at("aten::addmm").time_ns, 42 * kUs);
  EXPECT_FALSE(report.total().incomplete);
}

// bytes used of a buffer (0: all), bytes of a kernel's record and of a copy's, in reverse?, on a thread of its own?
using HowDelivered = std::tuple<int, int, int, bool, bool>;
class Deliveries : public SmallTraces, public ::testing::WithParamInterface<HowDelivered> {};

TEST_P(Deliveries, OfATrainingStepGiveTheSameFigures) {
  const auto [room, kernel_bytes, copy_bytes, reversed, on_its_own_thread] = GetParam();
  expect_training(same(training(), {{room, kernel_bytes, copy_bytes, reversed, on_its_own_thread}}));
}

INSTANTIATE_TEST_SUITE_P(OfAllKinds, Deliveries,
                         ::testing::Combine(::testing::Values(0, 256, 1024), ::testing::Values(208, 216, 224),
                                            ::testing::Values(80, 88), ::testing::Bool(), ::testing::Bool()));

// One launch runs kernels, a copy and a fill, none of them by an op: what they computed is not known.
TEST_F(SmallTraces, OneLaunchOfAGraphRunsManyKernels) {
  TraceText text;
  text.module("Net_0", 0, 100).launch(1, 20).launch(2, 60);
  for (int replay = 0; replay < 2; ++replay) {
    text.copy("Memset (Device)", replay + 1, 30 + 100 * replay, 5, 64)
        .kernel("gemm", replay + 1, 40 + 100 * replay, 10)
        .kernel("relu", replay + 1, 55 + 100 * replay, 10, 8)
        .kernel("gemm", replay + 1, 60 + 100 * replay, 10)
        .copy("Memcpy DtoD (Device -> Device)", replay + 1, 80 + 100 * replay, 4, 1 << 20);
  }
  const auto report = same(text);
  EXPECT_EQ(report.row("").time_ns, 2 * (5 + 10 + 10 + 10 + 4) * kUs);
  EXPECT_EQ(report.row("").busy_ns, 2 * (5 + 10 + 15 + 4) * kUs);
  EXPECT_EQ(report.row("").kernel_count, 6);
  EXPECT_TRUE(report.row("").incomplete);
  EXPECT_EQ(report.coverage().uncosted.at("(no operator)"), 6);
  for (const auto& kernel : report.kernels()) EXPECT_TRUE(kernel.in_graph) << kernel.name;
  EXPECT_TRUE(notes_.starts_with("launches of CUDA graphs: 2, which ran 10 kernels and copies")) << notes_;
}

// A copy between devices has no device of its own in Kineto's traces: it counts where it comes from.
TEST_F(SmallTraces, CopiesOfAllKinds) {
  TraceText text;
  text.module("Net_0", 0, 100);
  const std::vector<std::pair<std::string, std::string>> copies = {
      {"Memcpy HtoD (Pageable -> Device)", R"("device": 1)"},
      {"Memcpy HtoD (Pinned -> Device)", R"("device": 1)"},
      {"Memcpy DtoH (Device -> Pinned)", R"("device": 1)"},
      {"Memcpy DtoD (Device -> Array)", R"("device": 1)"},
      {"Memcpy DtoH (Managed Static -> Unknown)", R"("device": 1)"},
      {"Memcpy HtoD (Unknown -> Unknown)", R"("device": 1)"},
      {"Memcpy PtoP (Device -> Device)", R"("fromDevice": 1, "inDevice": 1, "toDevice": 3)"}};
  for (std::size_t i = 0; i < copies.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const auto correlated = R"("correlation": )" + std::to_string(i + 1) + R"(, "stream": 7, "bytes": 100, )";
    text.op("aten::copy_", 10 + 10 * at, 5).launch(at + 1, 12 + 10 * at);
    text.event("gpu_memcpy", copies[i].first, 20 + 10 * at, 10, correlated + copies[i].second);
  }
  const auto report = same(text);
  std::map<std::string, std::int64_t> instances;
  for (const auto& kernel : report.kernels()) {
    instances[kernel.name] += kernel.instances;
    EXPECT_EQ(kernel.device, 1) << kernel.name;
  }
  EXPECT_EQ(instances, (std::map<std::string, std::int64_t>{{"[memcpy pageable to device]", 1},
                                                            {"[memcpy pinned to device]", 1},
                                                            {"[memcpy device to pinned]", 1},
                                                            {"[memcpy device to device]", 1},
                                                            {"[memcpy managed to unknown]", 1},
                                                            {"[memcpy unknown to device]", 1},
                                                            {"[memcpy device 1 to device 3]", 1}}));
  EXPECT_EQ(report.total().busy_ns, 70 * kUs);
}

// CUPTI's ids of 32 bits begin again after the last: the kernels before that are still the first.
TEST_F(SmallTraces, CorrelationIdsBeginAgain) {
  constexpr std::int64_t kLast = (std::int64_t{1} << 32) - 1;
  TraceText text;
  text.module("Net_0", 0, 100);
  for (int i = 0; i < 6; ++i) {
    const auto correlation = i < 3 ? kLast - 2 + i : i - 2;
    text.op("aten::mm", 10 * i, 5).launch(correlation, 10 * i + 1);
    text.kernel("kernel" + std::to_string(i), correlation, 10 * i + 3, 7);
  }
  const auto report = same(text);
  ASSERT_EQ(report.kernels().size(), 6);  // of equal time: in launch order
  for (std::size_t i = 0; i < 6; ++i) EXPECT_EQ(report.kernels()[i].name, "kernel" + std::to_string(i));
  EXPECT_EQ(report.row("").time_ns, 42 * kUs);
}

// Their names are as the machine that recorded them read them, or as the compiler made them.
TEST_F(SmallTraces, MangledNamesAreRead) {
  TraceText text;
  text.module("Net_0", 0, 100).op("aten::mm", 0, 50).launch(1, 10).launch(2, 20);
  text.kernel("_Z4gemmPfi", 1, 15, 10).kernel("gemm(float*, int)", 2, 30, 10);
  const auto report = same(text);
  ASSERT_EQ(report.kernels().size(), 1);
  EXPECT_EQ(report.kernels()[0].name, "gemm(float*, int)");
  EXPECT_EQ(report.kernels()[0].instances, 2);
}

// A kernel that was launched before anything was recorded: the import leaves it out, with a note. Live, a trace begins
// when the device has nothing to do; what runs nevertheless is of no module, and listed.
TEST_F(SmallTraces, WhatWasLaunchedBeforeHasNoModule) {
  TraceText text;
  text.module("Net_0", 0, 100).op("aten::mm", 10, 50).launch(2, 20);
  text.kernel("gemm", 2, 30, 10);
  const auto observed = testing::observed_of(TraceText(text).kernel("early", 1, 5, 20));
  EXPECT_EQ(observed.timed.at(0).device->records.size(), 1U);
  EXPECT_NE(testing::note_of(observed.notes, "launched-before").find("1 kernel, copy or fill that took 20.0 µs"),
            std::string::npos);

  const auto trace = TraceText(text).kernel("early", 1, 5, 20).trace();
  auto all = *observed.timed.at(0).device;
  all.start_ns = trace.host.front().begin_ns;
  all.records.insert(all.records.end(), trace.device.records.begin(), trace.device.records.end());
  std::erase_if(all.records, [](const KernelRecord& record) { return record.correlation == 2 && record.launch == 0; });
  const auto report = report_of(observed, collected(trace.host, all, {}));
  EXPECT_EQ(report.row("").time_ns, 10 * kUs);
  EXPECT_EQ(report.row("(outside)").time_ns, 20 * kUs);
  EXPECT_EQ(report.coverage().unattributed_kernels, 1);
  EXPECT_TRUE(report.row("(outside)").incomplete);
}

// CUPTI drops the third and the sixth of them in the order in which they end: a product of 40 µs and one of 70 µs.
TEST_F(SmallTraces, WhatIsDroppedIsCounted) {
  const auto trace = training().trace();
  const auto observed = testing::observed_of(training());
  const auto report = report_of(observed, collected(trace.host, *observed.timed.at(0).device, {.drop_every = 3}));
  EXPECT_EQ(report.coverage().dropped_records, 2);
  EXPECT_EQ(report.total().kernel_count, 3);
  EXPECT_EQ(report.total().time_ns, (40 + 2 + 60 + 8) * kUs);
}

// An id also says which call of an op it was, where single calls are kept.
TEST_F(SmallTraces, IdsOfSingleCallsComeBackWhole) {
  const auto trace = training().trace();
  const auto observed = testing::observed_of(training());
  auto device = *observed.timed.at(0).device;
  std::uint32_t call = 0xFFFFFFF0U;
  for (auto& record : device.records) record.launch = with_event(record.launch, ++call);
  auto found = collected(trace.host, device, {});
  testing::expect_same_records(device, found);
  expect_training(report_of(observed, std::move(found)));
}

// Recorded data in place of a device goes the same way.
TEST_F(SmallTraces, WhatTheCollectorRecordedIsReplayed) {
  const auto trace = training().trace();
  const auto observed = testing::observed_of(training());
  RecordedData recorded;
  recorded.traces.push_back(collected(trace.host, *observed.timed.at(0).device, {}));
  const auto replayed = recorded_from_json(to_json(recorded));
  EXPECT_EQ(replayed, recorded);
  expect_training(report_of(observed, replayed.traces.at(0)));
}

}  // namespace
}  // namespace roofprof
