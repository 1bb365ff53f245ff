// Damaged traces: each gives a report whose rows add up, or one sentence. ROOFPROF_FUZZ_TRACES sets how many are tried.

#include <gtest/gtest.h>

#include <cstdlib>

#include "kineto/trace_builder.h"
#include "support/damage.h"

namespace roofprof::kineto {
namespace {

using testing::Damage;
using testing::TraceText;

constexpr std::int64_t kTraces = 2'000;

std::vector<std::string> seeds() {
  TraceText training;
  training.range("ProfilerStep#3", 0, 900).range("## forward ##", 5, 300).module("Net_0", 10, 200);
  training.module("Linear_0", 20, 80).op("aten::linear", 25, 40, R"("External id": 3, "Sequence number": 5)");
  training.op("aten::addmm", 30, 20, R"("External id": 4)").launch(1, 35).launch(2, 37);
  training.kernel("gemm<float>", 1, 50, 60, 7).kernel("gemm<float>", 2, 90, 60, 8).kernel("early", 77, 2, 10);
  training.node("AddmmBackward0", 5, 330, 90).op("aten::mm", 340, 10, "", "2").launch(3, 342, 1, "2");
  training.event("python_function", "torch/utils/checkpoint.py(1): recompute_fn", 360, 50, "", "2");
  training.module("Linear_0", 365, 30, "2").op("vllm::custom", 370, 9, "", "2").launch(4, 372, 1, "2");
  training.kernel("gemm", 3, 400, 60).kernel("mine", 4, 470, 10).kernel("mine", 4, 485, 10);
  training.range("Optimizer.step#SGD.step", 500, 50).op("aten::add", 510, 20).launch(5, 512);
  training.copy("Memcpy HtoD (Pinned -> Device)", 5, 600, 7, 4096).copy("Memset (Device)", 5, 620, 2, 64);
  training.event("cpu_op", "c10d::allreduce_", 700, 30).launch(6, 715).kernel("ncclDevKernel_AllReduce(x)", 6, 720, 9);
  training.event("cpu_op", "record_param_comms", 710, 10,
                 R"("Collective name": "allreduce", "dtype": "Float", "In msg nelems": 9, "Out msg nelems": 9, )"
                 R"("Group size": 4, "Process Group Ranks": "[0, 1, 2, 3]", "In split size": "[1, 2]")");
  TraceText plain;
  plain.op("aten::mm", 0, 10).op("aten::add", 20, 10, "", "\"9\"").module("A_0", 40, 10).module("B_0", 60, 10);
  TraceText graphs;
  const auto call = [&](const std::string& name, int correlation, std::int64_t begin, const std::string& more = "") {
    graphs.event("cuda_runtime", name, begin, 1, R"("correlation": )" + std::to_string(correlation) + more);
  };
  graphs.module("Net_0", 0, 90).range("capture_4_FULL", 1, 80);
  for (int i = 0; i < 2; ++i) {
    call("hipStreamBeginCapture", 1, 5 + 40 * i);
    graphs.module("Linear_" + std::to_string(i), 10 + 40 * i, 20).op("aten::mm", 12 + 40 * i, 10);
    call("hipLaunchKernel", 2 + i, 15 + 40 * i, R"(, "kernel": "gemm", "grid": [8, 1, 1])");
    call("hipStreamEndCapture", 4, 35 + 40 * i);
  }
  for (int i = 0; i < 4; ++i) {
    graphs.range("step[DECODE bs=" + std::to_string(2 + i) + "]", 100 + 50 * i, 40);
    call("hipGraphLaunch", 10 + i, 110 + 50 * i);
    graphs.kernel("gemm", 10 + i, 120 + 50 * i, 7);
  }
  return {training.text(), plain.text(), graphs.text(),
          R"([{"ph":"X","cat":"Operator","name":"aten::mm","pid":1,"tid":"1","ts":10,"dur":5,"args":{"Input dims":)"
          R"([[2,2]]}},{"ph":"X","cat":"Runtime","name":"r","pid":1,"tid":"1","ts":11,"dur":1,"args":{"correlation":7)"
          R"(}},{"ph":"X","cat":"Kernel","name":"k","ts":12,"dur":9,"args":{"device":0,"correlation":7}}])"};
}

void expect_rows_add_up(const testing::Derived& report) {
  std::int64_t time = 0;
  std::int64_t flops = 0;
  for (const auto& row : report.rows()) {
    time += row.self.time_ns.value_or(0);
    flops += row.self.flops;
    ASSERT_GE(row.self.time_ns.value_or(0), 0) << row.path;
    ASSERT_GE(row.self.idle_ns.value_or(0), 0) << row.path;
  }
  ASSERT_EQ(time, report.total().time_ns.value_or(0));
  ASSERT_EQ(flops, report.total().flops);
  if (!report.data().device) return;
  std::int64_t kernels = 0;
  for (const auto& kernel : report.kernels()) kernels += kernel.total_ns;
  ASSERT_EQ(kernels, time);
}

// Whether it gave a report.
void read_damaged(const std::string& text, Damage& random, bool& read) {
  auto model = testing::model_of_a_layer("layer");
  model.reads[static_cast<ModuleId>(3)] = {{{4, 4}}, "aten::linear", {std::nullopt, Shape{4, 4}}};
  read = false;
  try {
    TraceReader reader;
    const auto piece = 1 + random.below(random.below(2) == 0 ? 64 : 100'000);
    for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(std::string_view(text).substr(at, piece));
    testing::FakeCosts costs;
    const auto steps = random.below(4) == 0
                           ? std::optional(StepRange{1, 1 + static_cast<std::int64_t>(random.below(9))})
                           : std::optional<StepRange>();
    auto trace = reader.finish();
    std::vector<Capture> captures;
    if (random.below(4) == 0) captures.push_back({"capture.json", trace, 0, random.below(2) == 0});
    auto observed =
        trace_record(std::move(trace), costs, steps, random.below(2) == 0 ? &model : nullptr, std::move(captures));
    observed.roofs = testing::round_ceilings();
    const testing::Derived report(join(std::move(observed)));
    ASSERT_NO_FATAL_FAILURE(expect_rows_add_up(report));
    read = true;
  } catch (const TraceError& problem) {
    const std::string sentence = problem.what();
    ASSERT_FALSE(sentence.empty());
    ASSERT_EQ(sentence.find('\n'), std::string::npos) << sentence;
  }
}

TEST(Fuzz, DamagedTracesGiveAReportOrOneSentence) {
  const auto* const requested = std::getenv("ROOFPROF_FUZZ_TRACES");
  const auto traces = requested == nullptr ? kTraces : std::strtoll(requested, nullptr, 10);
  const auto texts = seeds();
  std::int64_t reports = 0;
  for (std::int64_t i = 0; i < traces; ++i) {
    Damage random(static_cast<std::uint64_t>(i), R"({"ph")");
    auto text = texts[random.below(texts.size())];
    const auto times = 1 + random.below(6);
    for (std::size_t damage = 0; damage < times; ++damage) random.apply(text);
    bool read = false;
    ASSERT_NO_FATAL_FAILURE(read_damaged(text, random, read)) << "trace " << i << ":\n" << text;
    reports += read ? 1 : 0;
  }
  EXPECT_GT(reports, 0);
  EXPECT_LT(reports, traces);
}

}  // namespace
}  // namespace roofprof::kineto
