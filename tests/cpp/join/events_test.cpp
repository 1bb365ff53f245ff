// The events of the run that the rows come from, by hand.

#include "join/events.h"

#include <gtest/gtest.h>

#include "support/device_builder.h"
#include "support/pass_builder.h"

namespace roofprof {
namespace {

using testing::op_in_pass;

// Two threads; one op in a layer, whose kernel begins 500 ns into a device's trace that began 100 ns before the pass.
struct Kept : testing::ObservedBuilder {
  ModuleId layer = module("layer", "Linear");

  Kept() {
    observed.counting.ops = {op_in_pass(2, "aten::relu", kModel, 1, 20), op_in_pass(1, "aten::linear", layer, 1, 70)};
    observed.launches = {{}, {{1, {layer, Phase::forward}, 1}, "aten::linear"}};
  }

  // The ops in another order than the counted ones.
  Pass pass(std::int64_t wall_ns) const {
    Pass pass;
    pass.ops = {op_in_pass(1, "aten::linear", layer, 1, 70), op_in_pass(2, "aten::relu", kModel, 1, 20)};
    pass.wall_ns = wall_ns;
    auto events = std::make_shared<PassEvents>();
    events->host = {{.id = 3, .thread = 77, .owner = {layer}, .bucket = 0, .begin_ns = 20, .end_ns = 90},
                    {.id = 4, .thread = 5, .bucket = 1, .begin_ns = wall_ns, .end_ns = wall_ns + 20},
                    {.id = 1, .kind = EventKind::module, .thread = 77, .begin_ns = -1, .end_ns = 95}};
    pass.events = events;
    return pass;
  }
};

TEST(Events, AreThoseOfTheMedianRunInOrder) {
  Kept net;
  net.observed.timed = {net.pass(300), net.pass(100), net.pass(200)};
  const auto data = join(net.observed);
  ASSERT_EQ(data.run.runs.chosen, 2);
  ASSERT_TRUE(data.times->events.kept);
  ASSERT_EQ(data.times->events.host.size(), 3U);
  const auto& [model, linear, relu] =
      std::tie(data.times->events.host[0], data.times->events.host[1], data.times->events.host[2]);
  EXPECT_EQ(model.kind, EventKind::module);
  EXPECT_EQ(model.begin_ns, 0);
  EXPECT_EQ(relu.thread, 1);
  EXPECT_EQ(relu.begin_ns, 200);
  EXPECT_EQ(data.times->events.names.at(static_cast<std::size_t>(linear.name)), "aten::linear");
  EXPECT_EQ(data.counts.ops.at(static_cast<std::size_t>(linear.bucket)).op, "aten::linear");
}

TEST(Events, AreNotThereWhereNoneWereKept) {
  Kept net;
  net.observed.timed = {net.pass(300)};
  net.observed.timed[0].events.reset();
  EXPECT_EQ(join(net.observed).times->events, Events{});
}

TEST(Events, WhatThereWasNoRoomForIsReported) {
  Kept net;
  net.observed.timed = {net.pass(300)};
  auto events = std::make_shared<PassEvents>();
  events->left_out = 12;
  net.observed.timed[0].events = events;
  const auto data = join(net.observed);
  EXPECT_EQ(data.times->events.left_out, 12);
  ASSERT_EQ(data.notes.size(), 1U);
  EXPECT_EQ(data.notes[0].code, "events-left-out");
  EXPECT_NE(data.notes[0].text.find("12 further events"), std::string::npos);
}

Events on_device(const Kept& net, testing::RunBuilder run, std::int64_t trace_start_ns) {
  auto pass = net.pass(300);
  run.run.trace.start_ns = trace_start_ns;
  pass.trace_start_ns = -100;
  pass.device = std::make_shared<const DeviceTrace>(run.run.trace);
  const std::vector<LaunchOwner> owners = {{}, {{net.layer, Phase::forward}, "aten::linear", 1}};
  return with_launches(host_events(pass, {pass.ops[1], pass.ops[0]}), pass, owners);
}

TEST(Events, LaunchesStandOnTheHostsClockWithTheCallThatLaunchedThem) {
  const Kept net;
  testing::RunBuilder run;
  run.kernel("late", with_event(1, 4), 9'000, 9'010);  // an op of another module: not that one's
  run.kernel("gemm", with_event(1, 3), 5'500, 5'540).stream = 7;
  run.kernel("of a graph", with_event(1, 3), 6'000, 6'010).graph_node = 3;
  run.fill(1, 7'000, 7'010, 4);  // its call is not known
  const auto events = on_device(net, run, 5'000);
  ASSERT_EQ(events.device.size(), 4U);
  const auto& gemm = events.device[0];
  EXPECT_EQ(events.names.at(static_cast<std::size_t>(gemm.name)), "gemm");
  EXPECT_EQ(gemm.begin_ns, 400);
  EXPECT_EQ(gemm.end_ns, 440);
  EXPECT_EQ(gemm.stream, 7);
  EXPECT_EQ(gemm.event, 3);
  EXPECT_EQ(gemm.owner.module, net.layer);
  EXPECT_EQ(gemm.bucket, 1);
  EXPECT_EQ(events.device[1].event, 0);
  EXPECT_EQ(events.device[2].event, 0);
  EXPECT_EQ(events.names.at(static_cast<std::size_t>(events.device[2].name)), "[memset]");
  EXPECT_EQ(events.device[3].event, 0);
}

TEST(Events, ADeviceWhoseClockCannotBeHeldAgainstTheHostsHasNone) {
  const Kept net;
  testing::RunBuilder run;
  run.kernel("gemm", with_event(1, 3), 5'500, 5'540);
  EXPECT_TRUE(on_device(net, run, 0).device.empty());
  auto pass = net.pass(300);
  pass.device = std::make_shared<const DeviceTrace>(run.run.trace);
  const auto notes = notes_on_events(host_events(pass, {}), pass);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes[0].code, "events-left-out");
}

}  // namespace
}  // namespace roofprof
