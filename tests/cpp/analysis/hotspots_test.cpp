#include "analysis/hotspots.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/profile_builder.h"

namespace roofprof {
namespace {

using testing::ProfileBuilder;
using testing::work_of;

// fp32 work: 1,000 FLOPs take 1 ns, so the waste is what is above that.
struct Wasteful : ProfileBuilder {
  ModuleId block = module("block", "Block");
  ModuleId leaf = module("block.leaf", "Linear", block);
  ModuleId slow = module("slow", "Softmax");

  Wasteful() {
    op("aten::linear", leaf, work_of(1'000'000, 10), 5'000);   // wastes 4,000
    op("aten::matmul", block, work_of(1'000'000, 10), 9'000);  // 8,000
    op("aten::add", block, work_of(1'000, 10), 2'001);         // 2,000
    op("aten::softmax", slow, work_of(1'000, 10), 3'001);      // 3,000
    time(leaf, {5'000});
    time(block, {12'001});  // 1,000 outside of its ops
    time(slow, {3'001});
    time(kModel, {7'000});  // all of it outside of ops
  }
  // Adds an all-reduce among two ranks, in `slow`, and where it was exposed.
  void all_reduce(const Work& work, const std::vector<ExposedIn>& exposed_in) {
    op("c10d::allreduce_", slow, work, 900);
    time(slow, {1'000});  // 100 outside of its ops
    std::int64_t exposed_ns = 0;
    for (const auto& exposed : exposed_in) exposed_ns += exposed.exposed_ns;
    auto& comms = data.comms.make();
    comms.groups = {{"0", "gloo", 2}};
    comms.collectives = {{.bucket = std::ssize(data.counts.ops) - 1,
                          .group = 0,
                          .calls = 1,
                          .timed_calls = 1,
                          .time_ns = 2'000,
                          .exposed_ns = exposed_ns,
                          .exposed_known = true}};
    comms.exposed_in = exposed_in;
  }
  std::vector<GroupRow> top(std::size_t most) {
    const testing::Derived report = derived();
    return most_wasting(ops_in_modules(report.data(), report.rows(), report.total()), most);
  }
};

TEST(Hotspots, AreTheModulesAndOpsThatWasteMost) {
  const std::vector<std::tuple<std::string, std::string, std::int64_t>> expected = {
      {"block", "aten::matmul", 8'000}, {"", "(outside ops)", 7'000},  {"block.leaf", "aten::linear", 4'000},
      {"slow", "aten::softmax", 3'000}, {"block", "aten::add", 2'000}, {"block", "(outside ops)", 1'000}};
  const auto all = Wasteful().top(100);
  ASSERT_EQ(all.size(), expected.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(std::tuple(*all[i].module, *all[i].op, *all[i].wasted_time_ns), expected[i]);
  }
  EXPECT_EQ(all[0].bound, (Bound{BoundKind::compute, "fp32"}));
  EXPECT_EQ(all[1].bound.kind, BoundKind::overhead);
  EXPECT_EQ(Wasteful().top(2).size(), 2U);
  Wasteful without;
  without.data.roofs = {};
  EXPECT_TRUE(without.top(5).empty());
}

// 700 of the model's 7,000 and all of what `slow` spent outside of computing.
TEST(Hotspots, ExposedCommunicationIsApart) {
  Wasteful net;
  net.all_reduce(work_of(0, 1'000),
                 {{0, {kModel, Phase::forward, kNoRegion}, 700}, {0, {net.slow, Phase::forward, kNoRegion}, 1'000}});
  std::int64_t sum = 0;
  std::map<std::pair<std::string, std::string>, std::int64_t> wasted;
  for (const auto& row : net.top(100)) {
    wasted[{*row.module, *row.op}] = *row.wasted_time_ns;
    sum += *row.wasted_time_ns;
  }
  EXPECT_EQ((wasted[{"", "(outside ops)"}]), 6'300);
  EXPECT_EQ((wasted[{"", "(exposed communication)"}]), 700);
  EXPECT_EQ((wasted[{"slow", "(exposed communication)"}]), 1'000);
  EXPECT_FALSE(wasted.contains({"slow", "(outside ops)"}));
  EXPECT_FALSE(wasted.contains({"slow", "c10d::allreduce_"}));
  EXPECT_EQ(sum, net.derived().total().wasted_time_ns);
}

// An all-reduce of 1,000 bytes among two ranks sends 1,000, which takes 100 ns after a latency of 100 ns.
TEST(Hotspots, ExposedCommunicationIsHeldAgainstTheNetworkAlone) {
  for (const bool has_roof : {true, false}) {
    Wasteful net;
    net.all_reduce(work_of(0, 1'000, 1'000), {{0, {net.slow, Phase::forward, kNoRegion}, 1'000}});
    if (has_roof) net.data.roofs.network = {{"all_reduce", "gloo", 2, 100, 1e10, testing::given_roof()}};
    const auto all = net.top(100);
    const auto row = std::ranges::find(all, std::optional<std::string>("(exposed communication)"), &GroupRow::op);
    ASSERT_NE(row, all.end());
    EXPECT_EQ(row->percent_of_roof.has_value(), has_roof);
    EXPECT_EQ(row->lower_bound_time_ns, has_roof ? std::optional<std::int64_t>(200) : std::nullopt);
    EXPECT_EQ(row->wasted_time_ns, has_roof ? 800 : 1'000);
    EXPECT_EQ(to_string(row->bound), "network gloo");
    const auto derived = net.derived();
    const auto* note = find_note(derived.coverage().notes, "no-roof");
    ASSERT_EQ(note == nullptr, has_roof);
    const std::string text = note == nullptr ? "the network for c10d::allreduce_" : note->text;
    EXPECT_NE(text.find("the network for c10d::allreduce_"), std::string::npos) << text;
  }
}

// All of its time may be wasted, which nobody knows.
TEST(Hotspots, AnOpWithoutARoofIsNotLeftOut) {
  Wasteful net;
  net.op("aten::mm", net.slow, work_of(1'000, 10, 0, DType::fp64), 6'000);
  net.time(net.slow, {9'001});
  const auto top = net.top(3);
  ASSERT_EQ(top.size(), 3U);
  EXPECT_EQ(*top[2].op, "aten::mm");
  EXPECT_FALSE(top[2].wasted_time_ns);
}

TEST(Hotspots, ThemselvesAreModulesWithOthersBelow) {
  const testing::Derived report = Wasteful().derived();
  const auto wasting = wasting_themselves(report.rows(), report.total());
  // block: 11,000 itself of 15,000. The model: 7,000 of 25,000. A leaf has nobody else to blame.
  EXPECT_EQ(wasting, std::set<const RooflineRow*>{&report.row("block")});
}

// On a device a row has the time of a collective's kernels that others hid. That time is no waste, and it excuses none
// of what was exposed.
TEST(Hotspots, HiddenCommunicationExcusesNoExposedOne) {
  Wasteful net;
  net.data.device.make();
  net.op("c10d::allreduce_", net.slow, work_of(0, 1'000), 900);
  net.time(net.slow, {1'000});
  net.data.comms.make().groups = {{"0", "nccl", 2}};
  net.data.comms.make().collectives = {{.bucket = std::ssize(net.data.counts.ops) - 1,
                                        .group = 0,
                                        .calls = 1,
                                        .timed_calls = 1,
                                        .time_ns = 900,
                                        .exposed_ns = 600,
                                        .exposed_known = true}};
  net.data.comms.make().exposed_in = {{0, {net.slow, Phase::forward, kNoRegion}, 600}};
  std::int64_t exposed = 0;
  for (const auto& row : net.top(100)) {
    if (*row.op == "(exposed communication)" && *row.module == "slow") exposed = *row.wasted_time_ns;
  }
  EXPECT_EQ(exposed, 600);
}

}  // namespace
}  // namespace roofprof
