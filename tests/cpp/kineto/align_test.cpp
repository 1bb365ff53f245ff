// A trace's calls beside those of the model: which instance is which module, or where they first differ.

#include "kineto/align.h"

#include <gtest/gtest.h>

namespace roofprof::kineto {
namespace {

// A model whose calls are given as "(Net (Linear) (Act))" is tedious to parse: rows of {module, around}.
struct Recorded {
  std::vector<ModuleCall> calls;
  std::vector<std::string> types;  // by instance

  std::int32_t instance(const std::string& type) {
    types.push_back(type);
    return static_cast<std::int32_t>(types.size() - 1);
  }
  std::int32_t call(std::int32_t instance, std::int32_t around = kNone) {
    calls.push_back({instance, around});
    return static_cast<std::int32_t>(calls.size() - 1);
  }
};

// Net: first (Linear), act (ReLU), block (Block: fc (Linear)); called in this order.
struct Net : CalledModel {
  ModuleId first = add("first", "Linear");
  ModuleId act = add("act", "ReLU");
  ModuleId block = add("block", "Block");
  ModuleId fc = add("block.fc", "Linear");

  Net() { calls = {{kModel, kNone}, {first, 0}, {act, 0}, {block, 0}, {fc, 3}}; }

 private:
  ModuleId add(const std::string& path, const std::string& type) {
    if (modules.empty()) {
      modules.resize(3);
      modules[kModel].type = "Net";
    }
    Module module;
    module.path = path;
    module.type = type;
    module.parent = kModel;
    modules.push_back(module);
    return static_cast<ModuleId>(modules.size() - 1);
  }
};

// The calls of one forward with these instances.
void forward(Recorded& trace, const std::vector<std::int32_t>& instances, std::int32_t around = kNone) {
  const auto net = trace.call(instances[0], around);
  trace.call(instances[1], net);
  trace.call(instances[2], net);
  const auto block = trace.call(instances[3], net);
  trace.call(instances[4], block);
}

std::vector<std::int32_t> instances_of_net(Recorded& trace) {
  return {trace.instance("Net"), trace.instance("Linear"), trace.instance("ReLU"), trace.instance("Block"),
          trace.instance("Linear")};
}

std::string sentence(const Recorded& trace, const CalledModel& model) {
  const auto result = aligned(trace.calls, trace.types, model);
  const auto* text = std::get_if<std::string>(&result);
  return text == nullptr ? "" : *text;
}

void expect_net(const Recorded& trace, const std::vector<std::int32_t>& instances, const Net& net) {
  const auto result = aligned(trace.calls, trace.types, net);
  const auto* found = std::get_if<Alignment>(&result);
  ASSERT_NE(found, nullptr) << std::get<std::string>(result);
  const std::vector<ModuleId> modules = {kModel, net.first, net.act, net.block, net.fc};
  for (std::size_t i = 0; i < modules.size(); ++i) EXPECT_EQ(found->at(instances[i]), modules[i]);
}

TEST(Align, EqualCallsGiveInstancesTheirModules) {
  Recorded trace;
  const auto instances = instances_of_net(trace);
  forward(trace, instances);
  expect_net(trace, instances, Net());
}

TEST(Align, ForwardsAgainAndAWrapperAround) {
  Recorded trace;
  const auto ddp = trace.instance("DistributedDataParallel");
  const auto loss = trace.instance("CrossEntropyLoss");
  const auto instances = instances_of_net(trace);
  for (int step = 0; step < 3; ++step) {
    forward(trace, instances, trace.call(ddp));
    trace.call(loss);
  }
  expect_net(trace, instances, Net());
}

// Two models of one class, of which the first has another form.
TEST(Align, OneCallThatFitsIsEnough) {
  Recorded trace;
  trace.call(trace.instance("Net"));
  const auto instances = instances_of_net(trace);
  forward(trace, instances);
  expect_net(trace, instances, Net());
}

TEST(Align, SaysWhereCallsFirstDiffer) {
  const Net net;
  Recorded empty;
  EXPECT_EQ(sentence(empty, net), "the trace has no call of a Net");
  Recorded other;
  other.call(other.instance("Other"));
  EXPECT_EQ(sentence(other, net), "the trace has no call of a Net");
  Recorded fewer;
  const auto root = fewer.call(fewer.instance("Net"));
  fewer.call(fewer.instance("Linear"), root);
  EXPECT_EQ(sentence(fewer, net), "the model calls 3 modules in the model and 1 in the trace");
  Recorded changed;
  auto instances = instances_of_net(changed);
  changed.types[2] = "GELU";
  forward(changed, instances);
  EXPECT_EQ(sentence(changed, net), "where the model calls act (ReLU), the trace has a GELU");
  Recorded deeper;
  instances = instances_of_net(deeper);
  forward(deeper, instances);
  deeper.call(deeper.instance("Dropout"), 4);
  EXPECT_EQ(sentence(deeper, net), "block.fc calls 0 modules in the model and 1 in the trace");
  Recorded tied;
  instances = instances_of_net(tied);
  instances[4] = instances[1];
  forward(tied, instances);
  EXPECT_EQ(sentence(tied, net), "the trace calls one module where the model calls first and block.fc");
}

// The first of several forwards that do not fit is the one that is told.
TEST(Align, TheFirstDifferenceIsTold) {
  Recorded trace;
  auto instances = instances_of_net(trace);
  trace.types[2] = "GELU";
  forward(trace, instances);
  trace.call(trace.instance("Net"));
  EXPECT_EQ(sentence(trace, Net()), "where the model calls act (ReLU), the trace has a GELU");
}

// One module at two places of the model: the trace calls one instance for both.
TEST(Align, ASharedModuleIsOneInstance) {
  Net net;
  net.modules[index_of(net.fc)].same_as = net.first;
  Recorded trace;
  auto instances = instances_of_net(trace);
  instances[4] = instances[1];
  forward(trace, instances);
  const auto result = aligned(trace.calls, trace.types, net);
  ASSERT_TRUE(std::holds_alternative<Alignment>(result)) << std::get<std::string>(result);
  EXPECT_EQ(std::get<Alignment>(result).at(instances[1]), net.first);
}

// One instance of the trace for each module, and the other way round: two instances where the model calls one module
// twice are another model.
TEST(Align, AModuleCalledTwiceIsOneInstance) {
  Net net;
  net.calls.push_back({net.act, 0});
  Recorded trace;
  const auto instances = instances_of_net(trace);
  forward(trace, instances);
  trace.call(instances[2], 0);
  expect_net(trace, instances, net);
  trace.calls.back().module = trace.instance("ReLU");
  EXPECT_EQ(sentence(trace, net), "the trace calls two modules where the model calls act twice");
}

TEST(Align, AModelThatCalledNothing) {
  Net net;
  net.calls.clear();
  EXPECT_EQ(sentence({}, net), "the model called no module");
}

}  // namespace
}  // namespace roofprof::kineto
