// From traces by hand to the figures of reports, in closed form.

#include "kineto/trace_record.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kineto/trace_builder.h"
#include "support/pass_builder.h"

namespace roofprof::kineto {
namespace {

using testing::derived_of;
using testing::note_of;
using testing::observed_of;
using testing::TraceText;

constexpr std::int64_t kUs = 1000;

// The report of a trace, of which every sum over rows must give the total.
testing::Derived additive(const TraceText& text, const std::optional<StepRange>& steps = {}) {
  auto report = derived_of(text, steps);
  std::int64_t time = 0;
  std::int64_t idle = 0;
  std::int64_t flops = 0;
  std::int64_t kernels = 0;
  std::int64_t kernel_time = 0;
  for (const auto& row : report.rows()) {
    time += row.self.time_ns.value_or(0);
    idle += row.self.idle_ns.value_or(0);
    flops += row.self.flops;
    kernels += row.self.kernel_count.value_or(0);
  }
  for (const auto& kernel : report.kernels()) kernel_time += kernel.total_ns;
  EXPECT_EQ(time, report.total().time_ns.value_or(0));
  EXPECT_EQ(idle, report.total().idle_between_ns.value_or(0));
  EXPECT_EQ(flops, report.total().flops);
  EXPECT_EQ(kernels, report.total().kernel_count.value_or(0));
  if (report.data().device) {
    EXPECT_EQ(kernel_time, time);
  }
  return report;
}

TEST(ObservedTrace, OnTheCpuOpsAndModulesHaveTheHostsTimes) {
  const auto report = additive(
      TraceText().module("Net_0", 0, 100).module("Linear_0", 10, 40).op("aten::mm", 20, 25).op("aten::add", 60, 10));
  EXPECT_EQ(report.data().run.device, "cpu");
  EXPECT_EQ(report.data().run.model, "Net");
  EXPECT_EQ(report.row("Linear_0").time_ns, 40 * kUs);
  EXPECT_EQ(report.row("Linear_0").op_time_ns, 25 * kUs);
  EXPECT_EQ(report.row("Linear_0").flops, 1000);
  EXPECT_EQ(report.row("").self.flops, 16);
  EXPECT_EQ(report.data().run.runs.total_ns.at(0), 100 * kUs);
}

// Two streams: 100 µs and 100 µs that overlap by 40 µs.
TEST(ObservedTrace, OverlappingKernelsAreBusyOnce) {
  TraceText text;
  text.module("Net_0", 0, 100).op("aten::mm", 10, 20).launch(1, 15).op("aten::add", 40, 20).launch(2, 45);
  text.kernel("gemm", 1, 50, 100, 7).kernel("add", 2, 110, 100, 8);
  const auto report = additive(text);
  EXPECT_EQ(report.data().run.device, "cuda:0");
  EXPECT_EQ(report.total().time_ns, 200 * kUs);
  EXPECT_EQ(report.total().busy_ns, 160 * kUs);
  // From the trace's begin on: 50 µs until the first kernel.
  EXPECT_EQ(report.total().idle_ns, 50 * kUs);
  EXPECT_EQ(report.row("").busy_ns, 160 * kUs);
  EXPECT_EQ(report.data().run.runs.total_ns.at(0), 210 * kUs);
  EXPECT_EQ(report.total().kernel_count, 2);
  EXPECT_EQ(report.kernels().at(0).op, "aten::mm");
  EXPECT_EQ(report.kernels().at(0).grid, (std::array<std::int32_t, 3>{8, 1, 1}));
}

TEST(ObservedTrace, TheDeviceIsThatOfMostKernels) {
  TraceText text;
  text.op("aten::mm", 0, 20).launch(1, 2).launch(2, 4).launch(3, 6);
  text.kernel("gemm", 1, 10, 50, 7, 0).kernel("gemm", 2, 20, 40, 7, 3).kernel("gemm", 3, 70, 10, 7, 3);
  EXPECT_EQ(derived_of(text).data().run.device, "cuda:3");
}

TEST(ObservedTrace, CopiesAndFillsAreOfTheOpAroundTheirCall) {
  TraceText text;
  text.op("aten::add", 0, 20).launch(1, 2).launch(2, 6).copy("Memcpy HtoD (Pinned -> Device)", 1, 10, 30, 4096);
  text.copy("Memset (Device)", 2, 50, 5, 64);
  const auto report = additive(text);
  ASSERT_EQ(report.kernels().size(), 2);
  EXPECT_EQ(report.kernels()[0].kind, KernelKind::copy);
  EXPECT_EQ(report.kernels()[0].copied, "pinned to device");
  EXPECT_EQ(report.kernels()[0].bytes, 4096);
  EXPECT_EQ(report.kernels()[0].op, "aten::add");
  EXPECT_EQ(report.kernels()[1].kind, KernelKind::fill);
}

// What was launched before the trace began is no row's, and named with its amount: rows and that are all.
TEST(ObservedTrace, LaunchedBeforeTheWindow) {
  TraceText text;
  text.op("aten::mm", 100, 20).launch(9, 105).kernel("early", 4, 10, 70).kernel("early", 5, 90, 40);
  text.event("kernel", "early", 131, 1, R"("device": 0)").kernel("gemm", 9, 140, 60);
  const auto report = additive(text);
  EXPECT_EQ(report.total().time_ns, 60 * kUs);
  EXPECT_EQ(report.total().kernel_count, 1);
  const auto note = note_of(report.data().notes, "launched-before");
  EXPECT_TRUE(note.starts_with("3 kernels, copies and fills that took 111.0 µs were launched before")) << note;
  // They kept the device busy until 130 and from 131 to 132.
  EXPECT_EQ(report.total().idle_ns, 9 * kUs);
}

TEST(ObservedTrace, KernelsWithoutAnOpAreTheModules) {
  TraceText text;
  text.module("Net_0", 0, 100).module("Custom_0", 10, 50).launch(1, 20).launch(2, 200).kernel("mine", 1, 30, 40);
  text.kernel("other", 2, 210, 5);
  const auto report = additive(text);
  EXPECT_EQ(report.row("Custom_0").self.time_ns, 40 * kUs);
  EXPECT_EQ(report.row("(outside)").time_ns, 5 * kUs);
  EXPECT_EQ(report.kernels()[0].op, "(no operator)");
  // What they did is not known: their rows say so, in place of a waste of all their time.
  EXPECT_TRUE(report.row("Custom_0").self.incomplete);
  EXPECT_TRUE(report.row("(outside)").incomplete);
  EXPECT_EQ(report.coverage().uncosted.at("(no operator)"), 2);
}

// A composite, or an op with others inside that count, which launches a kernel of its own.
TEST(ObservedTrace, KernelsBesideOpsThatCountAreNotTheirs) {
  TraceText text;
  text.module("Net_0", 0, 100).op("vllm::attention", 10, 50).op("aten::mm", 12, 10).launch(1, 14).launch(2, 40);
  text.kernel("gemm", 1, 20, 7).kernel("attention", 2, 60, 30);
  const auto report = additive(text);
  EXPECT_EQ(report.row("").self.time_ns, 37 * kUs);
  EXPECT_EQ(report.row("").self.flops, 1000);
  EXPECT_TRUE(report.row("").self.incomplete);
  EXPECT_EQ(report.coverage().uncosted.at("vllm::attention"), 1);
}

// One launch, many kernels: each keeps its own times.
TEST(ObservedTrace, AGraphsLaunchHasAllItsKernels) {
  TraceText text;
  text.module("Net_0", 0, 100).launch(1, 20);
  for (int i = 0; i < 10; ++i) text.kernel("node" + std::to_string(i % 2), 1, 30 + 20 * i, 10);
  const auto report = additive(text);
  EXPECT_EQ(report.row("").time_ns, 100 * kUs);
  EXPECT_EQ(report.row("").kernel_count, 10);
  ASSERT_EQ(report.kernels().size(), 2);
  EXPECT_TRUE(report.kernels()[0].in_graph);
  EXPECT_EQ(report.kernels()[0].instances, 5);
}

// Names are as the machine that recorded them read them, or as the compiler made them.
TEST(ObservedTrace, MangledNamesAreRead) {
  TraceText text;
  text.op("aten::mm", 0, 50).launch(1, 10).launch(2, 20);
  text.kernel("_Z4gemmPfi", 1, 15, 10).kernel("gemm(float*, int)", 2, 30, 10);
  const auto report = derived_of(text);
  ASSERT_EQ(report.kernels().size(), 1);
  EXPECT_EQ(report.kernels()[0].name, "gemm(float*, int)");
  EXPECT_EQ(report.kernels()[0].instances, 2);
}

// Three steps, each with an op of its own and a kernel that ends in the next step.
TraceText three_steps() {
  TraceText text;
  for (int step = 0; step < 3; ++step) {
    const auto begin = 1000 * step;
    text.range("ProfilerStep#" + std::to_string(step + 7), begin, 900)
        .module("Net_0", begin + 10, 500)
        .op("aten::mm", begin + 20, 50)
        .launch(step + 1, begin + 30)
        .kernel("gemm", step + 1, begin + 800, 300 + 10 * step);
  }
  return text;
}

TEST(ObservedTrace, AllStepsOrSomeOfThem) {
  const auto all = derived_of(three_steps());
  EXPECT_EQ(all.data().run.runs.steps, 3);
  EXPECT_EQ(all.data().run.runs.step_ns, (std::vector<std::int64_t>{900 * kUs, 900 * kUs, 900 * kUs}));
  EXPECT_EQ(all.total().time_ns, 930 * kUs);
  EXPECT_EQ(all.total().flops, 3000);
  const auto second = additive(three_steps(), StepRange{8, 8});
  EXPECT_EQ(second.data().run.runs.steps, 1);
  EXPECT_EQ(second.total().time_ns, 310 * kUs);
  EXPECT_EQ(second.total().flops, 1000);
  EXPECT_EQ(second.row("").calls, 1);
  EXPECT_EQ(second.data().run.runs.total_ns.at(0), (800 + 310) * kUs);
  // The kernel of the step before ran until 1,100, the step's own begins at 1,800; the one after it is no part.
  EXPECT_EQ(second.total().idle_ns, 700 * kUs);
  EXPECT_EQ(derived_of(three_steps(), StepRange{8, 100}).total().flops, 2000);
}

TEST(ObservedTrace, StepsThatAreNotThere) {
  const auto problem = [](const TraceText& text, StepRange steps) -> std::string {
    try {
      observed_of(text, steps);
    } catch (const TraceError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem(three_steps(), {9, 8}), "it has the steps 7 to 9, none of 9 to 8");
  EXPECT_EQ(problem(TraceText().op("aten::mm", 0, 5), {1, 1}),
            "it has no steps to choose from: call prof.step() after each step while recording");
}

TEST(ObservedTrace, BackwardAndOptimizerKeepTheirKernels) {
  TraceText text;
  text.module("Net_0", 0, 200).module("Linear_0", 10, 80).op("aten::addmm", 20, 10, R"("Sequence number": 5)");
  text.launch(1, 22).kernel("gemm", 1, 30, 10).node("AddmmBackward0", 5, 330, 40).op("aten::mm", 335, 10, "", "2");
  text.launch(2, 340, 1, "2").kernel("gemm", 2, 350, 20).range("Optimizer.step#SGD.step", 500, 50);
  text.op("aten::add", 510, 10).launch(3, 512).kernel("add", 3, 520, 5);
  const auto report = additive(text);
  EXPECT_EQ(report.row("Linear_0").time_ns, 30 * kUs);
  EXPECT_EQ(report.row("(optimizer)").time_ns, 5 * kUs);
  for (const auto& group : report.group({"phase"})) {
    const auto expected = group.keys[0] == "forward" ? 10 : group.keys[0] == "backward" ? 20 : 5;
    EXPECT_EQ(group.time_ns, expected * kUs) << group.keys[0];
  }
}

TEST(ObservedTrace, SaysWhatTheTraceLacks) {
  const auto lacks = [](const TraceText& text) { return note_of(observed_of(text).notes, "trace-lacks"); };
  EXPECT_NE(lacks(TraceText().event("cpu_op", "aten::mm", 0, 5)).find("record_shapes=True"), std::string::npos);
  EXPECT_NE(lacks(TraceText().op("aten::mm", 0, 5)).find("with_stack=True"), std::string::npos);
  EXPECT_NE(lacks(TraceText().op("aten::mm", 0, 5).launch(1, 2)).find("ProfilerActivity.CUDA"), std::string::npos);
  EXPECT_EQ(lacks(TraceText().module("Net_0", 0, 10).op("aten::mm", 0, 5)), "");
  const auto stacks = lacks(TraceText().event("python_function", "t.py(1): f", 0, 10).op("aten::mm", 0, 5));
  EXPECT_NE(stacks.find("no call of an nn.Module"), std::string::npos) << stacks;
  EXPECT_EQ(stacks.find("with_stack"), std::string::npos) << stacks;
  EXPECT_TRUE(
      lacks(TraceText().event("python_function", "t.py(1): f", 0, 10)).starts_with("the trace has no operators"));
}

// The profiler opens a step behind the last one of the program: it is none, and no mean is of it.
TEST(ObservedTrace, StepsWithoutAnyOpAreNone) {
  const auto text = TraceText()
                        .range("ProfilerStep#3", 0, 100)
                        .op("aten::mm", 10, 20)
                        .range("ProfilerStep#4", 100, 100)
                        .op("aten::mm", 110, 20)
                        .range("ProfilerStep#5", 200, 50);
  for (const auto& steps : {std::optional<StepRange>(), std::optional(StepRange(0, 9))}) {
    const auto observed = observed_of(text, steps);
    EXPECT_EQ(observed.run.runs.steps, 2);
    EXPECT_EQ(observed.run.runs.step_ns, (std::vector<std::int64_t>{100 * kUs, 100 * kUs}));
    EXPECT_NE(note_of(observed.notes, "trace-lacks").find("1 step of the trace without any op"), std::string::npos);
  }
  EXPECT_THROW(observed_of(text, StepRange(5, 5)), TraceError);
  const auto kernels = TraceText().range("ProfilerStep#3", 0, 100).kernel("gemm", 1, 20, 30);
  EXPECT_EQ(observed_of(kernels).run.runs.steps, 1) << "without ops nothing tells";
}

// A time that lies decades from all others would make the window decades long: it is damaged.
TEST(ObservedTrace, AStrayTimeIsLeftOut) {
  const auto with = [](std::int64_t begin, std::int64_t length) {
    return observed_of(TraceText()
                           .module("Net_0", 0, 100)
                           .op("aten::mm", 10, 20)
                           .launch(1, 15)
                           .kernel("gemm", 1, 20, 30)
                           .op("aten::add", begin, length)
                           .kernel("gemm", 1, begin, length));
  };
  constexpr std::int64_t kDecadeUs = 315'360'000'000'000;
  for (const auto& observed : {with(kDecadeUs, 5), with(-kDecadeUs, 5), with(50, kDecadeUs)}) {
    EXPECT_NE(note_of(observed.notes, "trace-lacks").find("2 events"), std::string::npos)
        << note_of(observed.notes, "trace-lacks");
    const testing::Derived report(join(observed));
    EXPECT_EQ(report.total().time_ns, 30 * kUs);
    EXPECT_EQ(report.data().run.runs.total_ns.at(0), 100 * kUs);
  }
}

}  // namespace
}  // namespace roofprof::kineto
