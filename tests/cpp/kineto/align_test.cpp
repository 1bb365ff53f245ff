// A trace's calls beside those of the model: which instance is which module, or where they first differ.

#include "kineto/align.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

namespace roofprof::kineto {
namespace {

struct Recorded : CalledInstances {
  std::vector<RecordedCall> recorded;

  std::int32_t instance(const std::string& type) {
    names.push_back(type + "_" + std::to_string(std::ranges::count(types, type)));
    types.push_back(type);
    return static_cast<std::int32_t>(types.size() - 1);
  }
  std::int32_t call(std::int32_t instance, std::int32_t around = kNone) {
    calls.push_back({instance, around, {}});
    return static_cast<std::int32_t>(calls.size() - 1);
  }
  // `sizes` in JSON: "[[4, 8], [16, 8]]", all of tensors.
  void op(std::int32_t call, const std::string& name, const std::string& sizes, const std::string& types) {
    recorded.push_back({name, true, sizes, types, "", "", ""});
    calls[at(call)].ops.push_back(static_cast<std::int32_t>(recorded.size() - 1));
  }
};

// Net: first (Linear), act (ReLU), block (Block: fc (Linear)); called in this order.
struct Net : CalledModel {
  ModuleId first = add("first", "Linear");
  ModuleId act = add("act", "ReLU");
  ModuleId block = add("block", "Block");
  ModuleId fc = add("block.fc", "Linear");

  Net() { calls = {{kModel, kNone, {}}, {first, 0, {}}, {act, 0, {}}, {block, 0, {}}, {fc, 3, {}}}; }

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
  const auto result = aligned(trace, trace.recorded, model);
  const auto* text = std::get_if<std::string>(&result);
  return text == nullptr ? "" : *text;
}

void expect_net(const Recorded& trace, const std::vector<std::int32_t>& instances, const Net& net) {
  const auto result = aligned(trace, trace.recorded, net);
  const auto* found = std::get_if<Alignment>(&result);
  ASSERT_NE(found, nullptr) << std::get<std::string>(result);
  const std::vector<ModuleId> modules = {kModel, net.first, net.act, net.block, net.fc};
  for (std::size_t i = 0; i < modules.size(); ++i) EXPECT_EQ(found->at(instances[i]), modules[i]);
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

TEST(Align, SaysWhereCallsFirstDiffer) {
  const Net net;
  Recorded empty;
  EXPECT_EQ(sentence(empty, net), "the trace has no call of a Net");
  Recorded other;
  other.call(other.instance("Other"));
  EXPECT_EQ(sentence(other, net), "the trace has no call of a Net, but of Other_0");
  Recorded fewer;
  const auto root = fewer.call(fewer.instance("Net"));
  fewer.call(fewer.instance("Linear"), root);
  EXPECT_EQ(sentence(fewer, net), "the model calls 3 modules in the model and 1 in the trace");
  Recorded changed;
  auto instances = instances_of_net(changed);
  changed.types[2] = "GELU";
  forward(changed, instances);
  changed.call(changed.instance("Net"));  // of several that do not fit the first is told
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

// One module at two places of the model: the trace calls one instance for both.
TEST(Align, ASharedModuleIsOneInstance) {
  Net net;
  net.modules[index_of(net.fc)].same_as = net.first;
  Recorded trace;
  auto instances = instances_of_net(trace);
  instances[4] = instances[1];
  forward(trace, instances);
  EXPECT_EQ(std::get<Alignment>(aligned(trace, trace.recorded, net)).at(instances[1]), net.first);
}

TEST(Align, AModuleCalledTwiceIsOneInstance) {
  Net net;
  net.calls.push_back({net.act, 0, {}});
  Recorded trace;
  const auto instances = instances_of_net(trace);
  forward(trace, instances);
  trace.call(instances[2], 0);
  expect_net(trace, instances, net);
  trace.calls.back().module = trace.instance("ReLU");
  EXPECT_EQ(sentence(trace, net), "the trace calls two modules where the model calls act twice");
}

// A model that splits its inputs otherwise has parameters of the recorded sizes, but for one that the trace hides.
TEST(Align, TheSameInputsGiveModulesTheSameSizes) {
  Net net;
  net.reads[net.first] = {{{6, 6}}, "aten::linear", {std::nullopt, Shape{6, 6}}, {{3, 8, 6}, {6, 6}}};
  const auto recorded_as = [&](const std::string& input) {
    Recorded trace;
    forward(trace, instances_of_net(trace));
    trace.op(0, "aten::reshape", "[[3, 8, 6]]", R"(["float"])");
    trace.op(1, "aten::linear", "[" + input + ", [6, 6]]", R"(["float", "float"])");
    return sentence(trace, net);
  };
  EXPECT_EQ(recorded_as("[12, 2, 6]"), "") << "the inputs are not known to be the same";
  net.modules[kModel].input_shapes = {{3, 9, 6}};
  EXPECT_EQ(recorded_as("[12, 2, 6]"), "") << "they are others";
  net.modules[kModel].input_shapes = {{3, 8, 6}};
  EXPECT_EQ(recorded_as("[12, 2, 6]"),
            "first (Linear) calls aten::linear of 3x8x6, 6x6 in the model, and Linear_0 of the trace of 12x2x6, 6x6, "
            "though both got inputs of 3x8x6");
  EXPECT_EQ(recorded_as("[3, 8, 6]"), "");
  EXPECT_EQ(recorded_as("[2, 8, 6]"), "") << "data may decide the first size";
}

// Two instances of one form are two modules, whichever was meant.
TEST(Align, DifferentModulesAreNeverOne) {
  Recorded trace;
  forward(trace, instances_of_net(trace));
  forward(trace, instances_of_net(trace));
  EXPECT_EQ(sentence(trace, Net()), "Net_0 and Net_1 of the trace both fit the model, and cannot be distinguished");
  Recorded routed;  // one Net that calls another Linear the second time
  auto instances = instances_of_net(routed);
  forward(routed, instances);
  instances[4] = routed.instance("Linear");
  forward(routed, instances);
  EXPECT_EQ(sentence(routed, Net()),
            "Linear_1 and Linear_2 of the trace both fit where the model calls block.fc, and cannot be distinguished");
}

TEST(Align, APartOfWhatWasRecorded) {
  Recorded trace;
  const auto whole = trace.call(trace.instance("Whole"));
  const auto wrapper = trace.call(trace.instance("Wrapper"), whole);
  const auto instances = instances_of_net(trace);
  forward(trace, instances, wrapper);
  expect_net(trace, instances, Net());  // what is around calls nothing else
  trace.call(trace.instance("Head"), whole);
  EXPECT_EQ(sentence(trace, Net()),
            "it is a part of what was recorded: Net_0 is called in Whole_0, which calls other modules too");
  // Where it was called as a whole too, it is the model.
  forward(trace, instances);
  expect_net(trace, instances, Net());
}

// The model's first Linear is 8 -> 16 with a bias.
TEST(Align, ParametersHaveTheSizesOfTheModel) {
  Net net;
  net.reads[net.first] = {{{16, 8}, {16}}, "aten::linear", {std::nullopt, Shape{16, 8}, Shape{16}}};
  const auto with_first = [&](const std::string& op, const std::string& sizes, const std::string& types) {
    Recorded trace;
    forward(trace, instances_of_net(trace));
    trace.op(1, op, sizes, types);
    return sentence(trace, net);
  };
  const std::string three = R"(["float", "float", "float"])";
  EXPECT_EQ(with_first("aten::linear", "[[4, 8], [16, 8], [16]]", three), "");
  EXPECT_EQ(with_first("aten::linear", "[[2, 7, 8], [16, 8], [16]]", three), "") << "another batch";
  EXPECT_EQ(with_first("aten::addmm", "[[16], [4, 8], [8, 16]]", three), "") << "transposed";
  EXPECT_EQ(with_first("aten::linear", "[[4, 8], [32, 8], [32]]", three),
            "first (Linear) has a parameter of 16x8 in the model, and the ops of Linear_0 of the trace take none, but "
            "4x8, 32x8, 32");
  EXPECT_EQ(with_first("aten::linear", "[[4, 8], [16, 8], []]", R"(["float", "float", ""])"),
            "first (Linear) has a parameter of 16 in the model, and the ops of Linear_0 of the trace take none, but "
            "4x8, 16x8");
  EXPECT_EQ(with_first("aten::stack", "[[]]", R"(["TensorList"])"), "") << "an old trace, which has no lists";
  net.reads[net.first] = {{{16, 8}}, "aten::linear", {std::nullopt, Shape{16, 8}}};
  EXPECT_EQ(with_first("aten::linear", "[[4, 8], [16, 8], [16]]", three),
            "first (Linear) calls aten::linear of any, 16x8 in the model, and Linear_0 of the trace of 4x8, 16x8, 16");
}

}  // namespace
}  // namespace roofprof::kineto
