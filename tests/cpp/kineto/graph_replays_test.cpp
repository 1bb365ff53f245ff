// Replays of graphs and the traces of their capture, by hand; figures in closed form.

#include "kineto/graph_replays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kineto/graph_sequences.h"
#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::Derived;
using testing::FakeCosts;
using testing::note_of;
using testing::round_ceilings;
using testing::TraceText;

constexpr std::int64_t kReplayUs = 1000;

// The times of rows that have some, in microseconds.
using Times = std::map<std::string, std::int64_t>;
Times times_of(const Derived& report) {
  Times times;
  for (const auto& row : report.rows()) {
    if (row.time_ns.value_or(0) > 0) times[row.path] = *row.time_ns / kReplayUs;
  }
  return times;
}

// A call of the runtime. `kernel`: as ROCm's launches name it; empty: as CUDA's.
void call(TraceText& text, const std::string& name, std::int64_t correlation, std::int64_t begin,
          const std::string& kernel = "") {
  text.event("cuda_runtime", name, begin, 1,
             R"("correlation": )" + std::to_string(correlation) +
                 (kernel.empty() ? "" : R"(, "kernel": ")" + kernel + R"(", "grid": [8, 1, 1], "block": [256, 1, 1])"));
}

// A capture of Net_0: in Linear_0 and Linear_1 a product and a view, then a sum and a copy. Correlations are those of
// another recording. `named`: launches name their kernels.
TraceText capture_of_net(bool named = true, const std::string& range = "") {
  TraceText text;
  if (!range.empty()) text.range(range, 0, 1000);
  call(text, "hipStreamBeginCapture", 1, 10);
  text.module("Net_0", 20, 180);
  for (int i = 0; i < 2; ++i) {
    const std::int64_t begin = 30 + 50 * i;
    text.module("Linear_" + std::to_string(i), begin, 40).op("aten::linear", begin + 1, 38);
    text.op("aten::view", begin + 2, 2).op("aten::mm", begin + 10, 20);
    call(text, "hipLaunchKernel", 2 + i, begin + 15, named ? "gemm" : "");
  }
  text.op("aten::add", 140, 20);
  call(text, "hipLaunchKernel", 4, 150, named ? "add" : "");
  text.op("aten::copy_", 170, 20);
  call(text, "hipMemcpyAsync", 5, 175);
  call(text, "hipStreamEndCapture", 6, 210);
  text.op("aten::mm", 300, 20);  // behind the capture: it does not belong to the graph
  call(text, "hipLaunchKernel", 7, 310, named ? "gemm" : "");
  return text;
}

// One launch of the graph, and its kernels: 10, 20, 5 and 3 µs.
void replay_of_net(TraceText& text, std::int64_t correlation, std::int64_t begin) {
  call(text, "hipGraphLaunch", correlation, begin);
  text.kernel("gemm", correlation, begin + 10, 10).kernel("gemm", correlation, begin + 20, 20);
  text.kernel("add", correlation, begin + 40, 5);
  text.copy("Memcpy DtoD (Device -> Device)", correlation, begin + 45, 3, 4096);
}

Capture given(const TraceText& text, const std::string& name = "capture.json", std::int64_t batch = 0) {
  return {name, text.trace(), batch, true};
}
Capture found(const TraceText& text, const std::string& name = "capture.json", std::int64_t batch = 0) {
  return {name, text.trace(), batch, false};
}

template <class... Captures>
Derived imported(const TraceText& text, Captures&&... captures) {
  FakeCosts costs;
  std::vector<Capture> all;
  (all.push_back(std::forward<Captures>(captures)), ...);
  auto observed = trace_record(text.trace(), costs, {}, nullptr, std::move(all));
  observed.roofs = round_ceilings();
  return Derived(join(std::move(observed)));
}

std::string refusal(const TraceText& text, Capture capture) {
  try {
    imported(text, std::move(capture));
  } catch (const TraceError& error) {
    return error.what();
  }
  return "";
}

TEST(GraphReplays, WithoutACaptureTheirKernelsHaveARow) {
  TraceText text;
  text.range("step", 0, 100).op("aten::mm", 1, 5).launch(1, 2).kernel("gemm", 1, 4, 2);
  replay_of_net(text, 9, 20);
  const auto report = imported(text);
  EXPECT_EQ(report.total().time_ns, 40 * kReplayUs);
  EXPECT_EQ(report.total().flops, 1000);
  EXPECT_TRUE(report.total().incomplete);
  EXPECT_EQ(report.coverage().uncosted.at("(graph replay)"), 3);  // kernels: its copy computes nothing
  EXPECT_FALSE(report.coverage().uncosted.contains("(no operator)"));
  for (const auto& kernel : report.kernels()) {
    EXPECT_EQ(kernel.op, kernel.total_ns == 2 * kReplayUs ? "aten::mm" : "(graph replay)") << kernel.name;
  }
  const auto note = note_of(report.data().notes, "graph-replays");
  EXPECT_TRUE(
      note.starts_with("1 replay of a graph ran 4 kernels, copies and fills (38.0 µs), whose operators are not "
                       "known"))
      << note;
  EXPECT_NE(note.find("--capture FILE"), std::string::npos) << note;
}

// Each replay counts the captured calls once: 1000 FLOPs a product, 16 the sum.
TEST(GraphReplays, TheirKernelsHaveTheOpsAndModulesOfTheCapture) {
  TraceText text;
  text.range("step", 0, 1000);
  for (int i = 0; i < 3; ++i) replay_of_net(text, 9 + i, 20 + 100 * i);
  const auto report = imported(text, given(capture_of_net()));
  EXPECT_EQ(report.data().run.model, "Net");
  EXPECT_EQ(report.total().flops, 3 * (1000 + 1000 + 16));
  EXPECT_EQ(report.row("Linear_0").flops, 3 * 1000);
  EXPECT_EQ(report.row("Linear_0").calls, 3);
  EXPECT_EQ(times_of(report), (Times{{"", 3 * 38}, {"Linear_0", 3 * 10}, {"Linear_1", 3 * 20}}));
  EXPECT_EQ(report.data().run.runs, imported(text).data().run.runs) << "the host's time is of the trace alone";
  EXPECT_FALSE(report.coverage().uncosted.contains("(graph replay)"));
  Times times;
  for (const auto& kernel : report.kernels()) times[kernel.op] += kernel.total_ns / kReplayUs;
  EXPECT_EQ(times, (Times{{"aten::mm", 90}, {"aten::add", 15}, {"aten::copy_", 9}}));
  EXPECT_EQ(note_of(report.data().notes, "graph-captures"),
            "3 replays of graphs have the operators of the capture in capture.json: 12 kernels, copies and fills "
            "(114.0 µs)\n");
  EXPECT_EQ(note_of(report.data().notes, "graph-replays"), "");
}

TEST(GraphReplays, MatchAroundKernelsThatOneSideLacks) {
  auto capture = TraceText();
  call(capture, "hipStreamBeginCapture", 1, 0);
  TraceText text;
  call(text, "hipGraphLaunch", 9, 0);
  for (int i = 0; i < 20; ++i) {
    capture.module("Linear_" + std::to_string(i), 100 * i + 10, 80).op("aten::mm", 100 * i + 20, 20);
    call(capture, "hipLaunchKernel", 10 + i, 100 * i + 25, "gemm" + std::to_string(i));
    if (i == 7) continue;  // did not run
    text.kernel("gemm" + std::to_string(i), 9, 100 * i + 10, 10);
    if (i == 12) text.kernel("library", 9, 100 * i + 30, 7);  // its launch was not recorded
  }
  call(capture, "hipStreamEndCapture", 90, 5000);
  const auto report = imported(text, given(capture));
  EXPECT_EQ(report.total().flops, 20 * 1000);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(report.row("Linear_" + std::to_string(i)).time_ns.value_or(0), i == 7 ? 0 : 10 * kReplayUs) << i;
  }
  EXPECT_EQ(report.coverage().uncosted.at("(graph replay)"), 1);
  const auto note = note_of(report.data().notes, "graph-replays");
  EXPECT_NE(note.find("1 kernel, copy or fill (7.0 µs) of replays match"), std::string::npos) << note;
  EXPECT_NE(note.find("1 captured launch match"), std::string::npos) << note;
}

TEST(GraphReplays, AnotherGraphIsRefusedWithItsFirstDifference) {
  TraceText text;
  call(text, "hipGraphLaunch", 9, 20);
  text.kernel("gemm", 9, 30, 10).kernel("softmax", 9, 40, 20).kernel("add", 9, 60, 5);
  const auto why = refusal(text, given(capture_of_net()));
  EXPECT_NE(why.find("they first differ at number 2, where it captured 'gemm' and 'softmax' ran"), std::string::npos)
      << why;
  const auto report = imported(text, found(capture_of_net()));
  EXPECT_EQ(report.total().flops, 0);
  EXPECT_EQ(report.coverage().uncosted.at("(graph replay)"), 3);
  EXPECT_NE(note_of(report.data().notes, "graph-replays").find("a capture was not taken: capture.json captured"),
            std::string::npos);
}

TEST(GraphReplays, ACaptureThatHasNoUseIsRefused) {
  TraceText eager;
  eager.op("aten::mm", 0, 10).launch(1, 5).kernel("gemm", 1, 10, 10);
  EXPECT_NE(refusal(eager, given(capture_of_net())).find("no kernel of it was launched by a graph"), std::string::npos);
  TraceText text;
  replay_of_net(text, 9, 20);
  EXPECT_NE(refusal(text, given(eager)).find("has no launch that a graph captured"), std::string::npos);
}

// Pieces of a model, one graph each, which are alike but the last: a recording may begin at any of them.
TEST(GraphReplays, PiecesFollowEachOtherAsTheyWereCaptured) {
  TraceText capture;
  capture.module("Net_0", 0, 1000);
  for (int i = 0; i < 4; ++i) {
    call(capture, "hipStreamBeginCapture", 10 * i + 1, 100 * i + 10);
    capture.module("Layer_" + std::to_string(i), 100 * i + 20, 60)
        .op(i < 3 ? "aten::mm" : "aten::add", 100 * i + 30, 20);
    call(capture, "hipLaunchKernel", 10 * i + 2, 100 * i + 35, i < 3 ? "gemm" : "add");
    call(capture, "hipStreamEndCapture", 10 * i + 3, 100 * i + 90);
  }
  TraceText text;
  for (int i = 2; i < 8; ++i) {  // pieces 2 3 0 1 2 3
    call(text, "hipGraphLaunch", 100 + i, 100 * i);
    text.kernel(i % 4 == 3 ? "add" : "gemm", 100 + i, 100 * i + 10, 1 << i);
  }
  const auto report = imported(text, given(capture));
  EXPECT_EQ(times_of(report),
            (Times{{"", 252}, {"Layer_0", 16}, {"Layer_1", 32}, {"Layer_2", 4 + 64}, {"Layer_3", 8 + 128}}));
  EXPECT_EQ(report.row("").calls, 2);  // of the model that is around all pieces: 2 3, and 0 1 2 3
  EXPECT_EQ(report.total().flops, 4 * 1000 + 2 * 16);
}

// Another batch with the same kernels: the step's range says which capture it is.
TEST(GraphReplays, TheBatchOfTheStepChoosesTheCapture) {
  const auto capture_of = [](int batch) {
    TraceText text;
    text.range("capture_" + std::to_string(batch) + "_FULL", 0, 100);
    call(text, "hipStreamBeginCapture", 1, 5);
    text.event("cpu_op", "aten::mm", 10, 20,
               R"("Input Dims": [[)" + std::to_string(batch) + R"(, 4]], "Input type": ["float"])");
    call(text, "hipLaunchKernel", 2, 15, "gemm");
    call(text, "hipStreamEndCapture", 3, 40);
    return text;
  };
  const auto run_of = [](int batch) {
    TraceText text;
    if (batch > 0) text.range("step[DECODE bs=" + std::to_string(batch) + "]", 0, 100);
    call(text, "hipGraphLaunch", 9, 20);
    text.kernel("gemm", 9, 30, 10);
    return text;
  };
  const auto used = [&](int batch) {
    const auto report = imported(run_of(batch), found(capture_of(16), "16.json"), found(capture_of(32), "32.json"),
                                 found(capture_of(64), "64.json"));
    return note_of(report.data().notes, "graph-captures") + note_of(report.data().notes, "graph-replays");
  };
  EXPECT_NE(used(32).find("without), 32.json: 1 kernel"), std::string::npos) << used(32);
  EXPECT_NE(used(20).find("without), 32.json: 1 kernel"), std::string::npos) << used(20);
  EXPECT_NE(used(20).find("a larger batch than the step had"), std::string::npos) << used(20);
  EXPECT_EQ(used(32).find("a larger batch"), std::string::npos);
  EXPECT_NE(used(65).find("64.json is the capture of a batch of 64, the replay is of 65"), std::string::npos)
      << used(65);
  // Nothing tells which one it was.
  EXPECT_NE(used(0).find("16.json and 32.json have graphs with the kernels of the replay"), std::string::npos)
      << used(0);
  EXPECT_NE(refusal(run_of(33), given(capture_of(32))).find("batch of 32, the replay is of 33"), std::string::npos);
  EXPECT_EQ(batches_of_replays(run_of(20).trace()), (std::vector<std::int64_t>{20}));
  EXPECT_EQ(batches_of_replays(run_of(0).trace()), (std::vector<std::int64_t>{0}));
  EXPECT_TRUE(batches_of_replays(capture_of(16).trace()).empty());
}

TEST(GraphReplays, RangesOfEnginesSayTheBatch) {
  EXPECT_EQ(batch_of_range("execute_32_context_0(sq0sk0)_generation_32(sq32sk3)"), 32);
  EXPECT_EQ(batch_of_range("execute_context_1(7)_generation_5(5)"), 12);
  EXPECT_EQ(batch_of_range("step[DECODE bs=8]"), 8);
  EXPECT_EQ(batch_of_range("capture_256_FULL"), 256);
  EXPECT_EQ(batch_of_range("ProfilerStep#7"), 0);
}

// Each recording numbers the instances of a class from 0 on.
TEST(GraphReplays, InstancesWithOneNumberStayApart) {
  TraceText text;
  text.module("Head_0", 0, 19).module("Linear_0", 1, 10).op("aten::mm", 2, 5).launch(1, 3).kernel("gemm", 1, 5, 7);
  replay_of_net(text, 9, 20);
  const auto report = imported(text, given(capture_of_net()));
  const Times times = {{"", 45},      {"Head_0", 7},          {"Head_0.Linear_0", 7},
                       {"Net_0", 38}, {"Net_0.Linear_2", 10}, {"Net_0.Linear_1", 20}};
  EXPECT_EQ(times_of(report), times);
}

TEST(GraphReplays, ModulesAroundALaunchAreNotAddedAgain) {
  TraceText capture;
  capture.module("Net_0", 0, 200).module("Block_0", 5, 150);
  call(capture, "hipStreamBeginCapture", 1, 10);
  capture.op("aten::mm", 20, 20);
  call(capture, "hipLaunchKernel", 2, 25, "gemm");
  call(capture, "hipStreamEndCapture", 3, 90);
  TraceText text;
  text.module("Net_0", 0, 50);
  call(text, "hipGraphLaunch", 9, 20);
  text.kernel("gemm", 9, 30, 10);
  const auto report = imported(text, given(capture));
  EXPECT_EQ(report.data().run.model, "Net");
  EXPECT_EQ(report.row("").calls, 1);
  EXPECT_EQ(report.row("Block_0").calls, 1);
  EXPECT_EQ(times_of(report), (Times{{"", 10}, {"Block_0", 10}}));
}

// CUDA's launches do not name kernels: their order matches them, if equal calls ran equal kernels.
TEST(GraphReplays, LaunchesWithoutNamesAreMatchedByOrder) {
  TraceText text;
  replay_of_net(text, 9, 20);
  const auto report = imported(text, given(capture_of_net(false)));
  EXPECT_EQ(report.total().flops, 2016);
  EXPECT_EQ(report.row("Linear_1").time_ns, 20 * kReplayUs);
  EXPECT_NE(note_of(report.data().notes, "graph-captures").find("matched by order alone"), std::string::npos);
  TraceText other;
  call(other, "hipGraphLaunch", 9, 20);
  other.kernel("gemm", 9, 30, 10).kernel("add", 9, 40, 20).kernel("gemm", 9, 60, 5);
  EXPECT_NE(refusal(other, given(capture_of_net(false))).find("equal calls of an operator would have run different"),
            std::string::npos);
}

// Two branches of a graph: their kernels run in another order than they were launched in.
TEST(GraphReplays, NodesSayTheOrderOfBranches) {
  TraceText capture;
  call(capture, "cudaStreamBeginCapture_v10000", 1, 0);
  TraceText text;
  call(text, "cudaGraphLaunch", 9, 0);
  for (int i = 0; i < 4; ++i) {
    capture.module("Linear_" + std::to_string(i), 100 * i + 10, 80);
    capture.event("cpu_op", "aten::mm", 100 * i + 20, 20,
                  R"("Input Dims": [[)" + std::to_string(4 + i) + R"(, 4]], "Input type": ["float"])");
    call(capture, "cudaLaunchKernel", 10 + i, 100 * i + 25);
    // The last one runs first.
    text.event(
        "kernel", "gemm", 100 - 20 * i, 10 + i,
        R"("correlation": 9, "device": 0, "stream": 7, "graph id": 3, "graph node id": )" + std::to_string(50 + i));
  }
  call(capture, "cudaStreamEndCapture_v10000", 90, 5000);
  const auto report = imported(text, given(capture));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(report.row("Linear_" + std::to_string(i)).time_ns, (10 + i) * kReplayUs) << i;
}

// A recording of both: what was captured did not run then.
TEST(GraphReplays, ATraceMayHoldItsOwnCapture) {
  auto text = capture_of_net();
  replay_of_net(text, 100, 1000);
  replay_of_net(text, 101, 1100);
  const auto report = imported(text);
  EXPECT_EQ(report.total().flops, 2 * 2016 + 1000);  // and the product behind the capture
  EXPECT_EQ(report.row("Linear_0").flops, 2000);
  EXPECT_EQ(report.row("Linear_0").time_ns, 20 * kReplayUs);
  EXPECT_NE(note_of(report.data().notes, "graph-captures").find("the capture in the trace itself"), std::string::npos);
}

// Kernels are matched as many as by the table of all pairs.
TEST(GraphSequences, HaveTheLongestInCommon) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    const auto some = [&] {
      Sequence items(random() % 30);
      for (auto& item : items) item = static_cast<std::int32_t>(random() % 4);
      return items;
    };
    const auto a = some();
    const auto b = some();
    std::vector<std::vector<int>> longest(a.size() + 1, std::vector<int>(b.size() + 1, 0));
    for (std::size_t i = 0; i < a.size(); ++i) {
      for (std::size_t j = 0; j < b.size(); ++j) {
        longest[i + 1][j + 1] = a[i] == b[j] ? longest[i][j] + 1 : std::max(longest[i][j + 1], longest[i + 1][j]);
      }
    }
    const auto partner = in_common(a, b);
    int matched = 0;
    std::int32_t last = -1;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (partner[i] == kNone) continue;
      ASSERT_GT(partner[i], last);
      last = partner[i];
      ASSERT_EQ(a[i], b[at(last)]);
      ++matched;
    }
    ASSERT_EQ(matched, longest[a.size()][b.size()]) << round;
  }
}

}  // namespace
}  // namespace roofprof::kineto
