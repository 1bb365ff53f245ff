// Launches of replayed CUDA graphs in compiled code: no operator ran, so names and order alone tell their modules.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <random>

#include "support/device_builder.h"
#include "support/pass_builder.h"

namespace roofprof {
namespace {

// A compiled model with a module for each kernel of its code, in order, and what one call of it launched.
struct Replayed : testing::ObservedBuilder {
  testing::RunBuilder run;
  LaunchId region = 1;
  LaunchId copying = 2;
  LaunchId other = 3;
  std::vector<ModuleId> modules;  // of the code's kernels
  std::uint64_t replay = 0;
  std::int64_t now_ns = 100;

  Replayed() {
    observed.run.device = "cuda:0";
    observed.on_device = DeviceFacts{};
    observed.graphs.emplace_back();
    observed.launches.emplace_back();
    std::uint32_t number = 2;  // that of the region's op
    for (const auto& op : {std::string(kCompiledRegion), std::string("aten::_foreach_copy_"), std::string("mylib::op")})
      observed.launches.push_back({{number++, {kModel, Phase::forward}, 1}, op});
  }

  // A kernel of the code; with "::" it is a call of an operator.
  void code(const std::string& name, std::int64_t bytes = 8) {
    modules.push_back(module("m" + std::to_string(modules.size()), "M"));
    CompiledKernel kernel;
    kernel.name = name;
    kernel.parts = {{modules.back(), 1}};
    kernel.work.read_bytes = bytes;
    observed.graphs[0].kernels.push_back({kernel, ""});
  }

  // The next launch of the replay; by no name: a fill.
  KernelRecord& launch(const std::string& name, std::int64_t ns) {
    auto& record =
        name.empty() ? run.fill(region, now_ns, now_ns + ns, 4) : run.kernel(name, region, now_ns, now_ns + ns);
    record.graph_node = run.run.trace.records.size();
    record.correlation = replay;
    now_ns += ns;
    return record;
  }

  void eager(const std::string& name, LaunchId by, std::int64_t ns) {
    auto& record = launch(name, ns);
    record.launch = by;
    record.graph_node = 0;
    record.correlation = ++replay;
  }

  // What follows is of the next launch of a graph, whose inputs are copied before.
  void begin_replay(std::int64_t copy_ns) {
    eager("multi_tensor_apply_kernel", copying, copy_ns);
    ++replay;
  }

  // The time of each module of the code; kModel: that of the rest of the region.
  std::map<ModuleId, std::int64_t> times() {
    Pass pass;
    Pass::Op op = testing::op_in_pass(2, std::string(kCompiledRegion), kModel, 1, 40);
    op.kind = Pass::Op::Kind::compiled_region;
    op.costed = false;
    op.work = {};
    pass.ops = {op};
    pass.clocks = {{{kModel, Phase::forward}, 1, 70}};
    pass.wall_ns = now_ns;
    observed.counting = pass;
    pass.device = std::make_shared<const DeviceTrace>(run.run.trace);
    observed.timed = {pass};
    pass.graph_calls = {{0, {kModel, Phase::forward}, {}}};
    observed.kernel_passes = {pass};
    const Profile data = join(observed);
    std::map<ModuleId, std::int64_t> times;
    for (const auto& bucket : data.device->kernels) times[bucket.owner.module] += bucket.total_ns;
    notes = data.notes;
    return times;
  }

  std::vector<Note> notes;
};

using Times = std::map<ModuleId, std::int64_t>;

// What may stand among the launches or calls between two generated kernels, so that they are not told, or not all.
enum class Doubt : std::uint8_t {
  none,
  other_code,   // a generated kernel that the code does not have
  eager,        // a kernel that no graph launched, between two replays
  of_an_op,     // a kernel that another operator launched
  not_launched  // a generated kernel of the code that was not launched
};
constexpr int kDoubts = 5;

class RandomCode : public ::testing::TestWithParam<unsigned> {
 protected:
  struct Given {
    ModuleId module;
    std::uint64_t replay;
    std::int64_t ns;
  };

  int below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }
  std::int64_t any_ns() { return 1 + below(1'000'000'000); }

  KernelRecord& foreign(const std::string& name) {
    const auto ns = any_ns();
    expected_[kModel] += ns;
    return net_.launch(name, ns);
  }
  void begin_replay() {
    const auto ns = any_ns();
    expected_[kModel] += ns;
    net_.begin_replay(ns);
  }
  // One in a few launches is the first of another replay.
  void may_begin_replay() {
    if (below(8) == 0) begin_replay();
  }

  // Adds a call of an operator that launches 1 to 3 kernels, each with up to 2 fills before it.
  void add_call(bool moves, std::vector<Given>& given) {
    const std::vector<std::string> operators = {"aten::mm", "aten::convolution", "aten::addmm"};
    net_.code(operators[static_cast<std::size_t>(below(3))], moves ? 8 : 0);
    for (int kernels = 1 + below(3); kernels > 0; --kernels) {
      may_begin_replay();
      const auto fills = below(3);
      for (int i = 0; i <= fills; ++i) {
        given.push_back({net_.modules.back(), net_.replay, any_ns()});
        net_.launch(i < fills ? "" : "kernel", given.back().ns);
      }
      ++kernels_;
    }
  }

  void add(Doubt doubt) {
    if (doubt == Doubt::other_code) foreign("triton_poi_fused_of_other_code_7");
    if (doubt == Doubt::eager) {
      const auto ns = any_ns();
      expected_[kModel] += ns;
      net_.eager("kernel", net_.region, ns);
      begin_replay();
    }
    if (doubt == Doubt::of_an_op) foreign("kernel").launch = net_.other;
    if (doubt == Doubt::not_launched) net_.code("triton_red_fused_that_is_not_launched_9");
  }

  Replayed net_;
  Times expected_;
  int kernels_ = 0;  // that operators launched since the last generated one
  std::mt19937 random_{GetParam()};
};

TEST_P(RandomCode, GivesEachCallItsOwnLaunchesOrNone) {
  begin_replay();
  const auto generated = 1 + below(8);
  std::uint64_t replay_before = 0;  // of the generated kernel before
  for (int i = 0; i <= generated; ++i) {
    std::vector<Given> given;
    kernels_ = 0;
    const auto calls = below(4);
    const bool moves = below(4) != 0;
    const auto doubt = below(3) == 0 ? static_cast<Doubt>(below(kDoubts)) : Doubt::none;
    for (int call = 0; call < calls; ++call) add_call(moves, given);
    add(doubt);
    may_begin_replay();
    const auto replay_after = i < generated ? net_.replay : 0;
    const bool alone = std::ranges::any_of(
        given, [&](const Given& launch) { return launch.replay != replay_before && launch.replay != replay_after; });
    const bool known = doubt == Doubt::none && !alone && (calls == 1 || (kernels_ == calls && moves));
    for (const auto& launch : given) expected_[known ? launch.module : kModel] += launch.ns;
    if (i == generated) break;
    const std::string name = "triton_poi_fused_" + std::to_string(below(3));
    const auto ns = any_ns();
    net_.code(name);
    net_.launch(name, ns);
    expected_[net_.modules.back()] += ns;
    replay_before = net_.replay;
  }
  EXPECT_EQ(net_.times(), expected_);
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomCode, ::testing::Range(0U, 300U));

// What an H200 ran for the model of tests/gpu/acceptance/graphs.py under mode="reduce-overhead", in nanoseconds. Of
// kernels that were launched several times their least and longest are known, and which of the convolutions each was of
// is as in mode="default".
TEST(ReplayedLaunches, OfASmallResNetOnAnH200AreAllKnownButTheCopyOfItsInput) {
  Replayed net;
  const std::string relu = "triton_poi_fused__native_batch_norm_legit_no_training_relu_4";
  const std::string weights = "triton_poi_fused__native_batch_norm_legit_no_training_convolution_relu_5";
  const std::string conv = "aten::convolution";
  Times expected;
  const auto generated = [&](const std::string& name, std::int64_t ns) {
    net.code(name);
    net.launch(name, ns);
    expected[net.modules.back()] = ns;
  };
  const auto called = [&](const std::string& op, const std::vector<std::pair<std::string, std::int64_t>>& launches) {
    net.code(op);
    for (const auto& [name, ns] : launches) {
      net.launch(name, ns);
      expected[net.modules.back()] += ns;
    }
  };
  const std::string narrow = "nvjet_sm90_tst_64x384_64x3_1x2_h_bz_coopB_TNT";
  const std::string wide = "nvjet_sm90_tst_128x256_64x4_2x1_v_ssched_bz_coopA_TNN";
  const std::string implicit = "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc";
  net.begin_replay(15'168);
  generated("triton_poi_fused_convolution_0", 29'695);
  generated("triton_poi_fused_convolution_1", 1'600);
  called(conv, {{"", 6'688},
                {"nhwcAddPaddingKernel", 13'408},
                {"", 856},
                {"nhwcAddPaddingKernel", 2'048},
                {"cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8", 197'470}});
  generated("triton_poi_fused__native_batch_norm_legit_no_training_relu_2", 35'039);
  generated("triton_poi_fused__native_batch_norm_legit_no_training_max_pool2d_with_indices_relu_3", 24'000);
  called(conv, {{narrow, 7'040}});
  generated(relu, 9'408);
  generated(weights, 1'857);
  called(conv, {{"", 736}, {implicit, 23'039}});
  generated(relu, 9'312);
  called(conv, {{wide, 16'512}});
  called(conv, {{wide, 17'471}});
  generated("triton_poi_fused__native_batch_norm_legit_no_training_add_relu_6", 63'040);
  called(conv, {{narrow, 18'336}});
  generated(relu, 9'439);
  generated(weights, 1'760);
  called(conv, {{"", 840}, {implicit, 22'944}});
  generated(relu, 9'568);
  called(conv, {{wide, 16'928}});
  generated("triton_red_fused__native_batch_norm_legit_no_training_add_mean_relu_7", 35'007);
  generated("triton_per_fused__native_batch_norm_legit_no_training_add_mean_relu_8", 2'368);
  called("aten::addmm", {{"nvjet_sm90_tst_64x8_64x16_2x4_h_bz_bias_TNT", 3'520}});
  expected[kModel] = 15'168;
  EXPECT_EQ(net.times(), expected);
  const auto note = std::ranges::find(net.notes, "compiled-kernels", &Note::code);
  ASSERT_NE(note, net.notes.end());
  EXPECT_NE(note->text.find("1 launch that no name, operator or order tells (2.5%)"), std::string::npos) << note->text;
}

}  // namespace
}  // namespace roofprof
