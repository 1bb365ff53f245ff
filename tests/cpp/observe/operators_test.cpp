// Operators: what their schemas say, their element types, results that need no reading, and those of TorchScript alone.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/ir/irparser.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "observe/observed.h"
#include "observe/operators/leave_results.h"
#include "observe/operators/op_info.h"
#include "observe/script/script_calls.h"
#include "ops/registry.h"

namespace roofprof::observe {
namespace {

using namespace testing;

// What is read off the schemas of the ops that the body calls.
template <class Body>
std::map<std::string, const OpInfo*> infos(Body&& body) {
  static std::map<std::string, const OpInfo*> seen;
  seen.clear();
  const auto handle = at::addThreadLocalCallback(
      at::RecordFunctionCallback([](const at::RecordFunction& fn) -> std::unique_ptr<at::ObserverContext> {
        if (const auto* op = op_info(fn)) seen[op->name] = op;
        return nullptr;
      }));
  body();
  at::removeCallback(handle);
  return seen;
}

TEST(OpInfo, IsReadOffTheSchema) {
  const auto x = at::rand({2, 3});
  const auto image = at::rand({1, 2, 8, 8});
  const auto seen = infos([&] {
    RECORD_FUNCTION("a range", std::vector<c10::IValue>{});
    x.t().reshape({6}).add(1).add_(1);
    at::cat({x, x});
    at::max_pool2d(image, {2, 2});
  });
  EXPECT_FALSE(seen.contains("a range"));
  EXPECT_EQ(seen.at("aten::add")->kind, OpKind::counted);
  EXPECT_EQ(seen.at("aten::t")->kind, OpKind::view);
  EXPECT_EQ(seen.at("aten::reshape")->kind, OpKind::transparent);
  EXPECT_TRUE(seen.at("aten::add_")->slots.at(0).written);
  EXPECT_EQ(seen.at("aten::add_")->result_written.size(), 1U);
  EXPECT_EQ(seen.at("aten::cat")->slots.front().kind, OpInfo::Slot::Kind::tensor_list);
  const auto& pool = *seen.at("aten::max_pool2d");
  EXPECT_TRUE(std::ranges::any_of(pool.slots, [&](const auto& slot) {
    return slot.kind == OpInfo::Slot::Kind::scalar && pool.arguments[slot.position].name == "kernel_size";
  }));
}

// ---- every element type of torch's, through an operator that runs

// What torch's names of them say: the type of a component, by kind and bits; the rest are bits without a meaning.
DType expected(const std::string& name) {
  static const std::map<std::string, DType> by_name = {
      {"Byte", DType::uint8},      {"Char", DType::int8},           {"Short", DType::int16},
      {"Int", DType::int32},       {"Long", DType::int64},          {"Half", DType::fp16},
      {"Float", DType::fp32},      {"Double", DType::fp64},         {"ComplexHalf", DType::fp16},
      {"BComplex32", DType::bf16}, {"ComplexFloat", DType::fp32},   {"ComplexDouble", DType::fp64},
      {"Bool", DType::boolean},    {"BFloat16", DType::bf16},       {"UInt16", DType::int16},
      {"UInt32", DType::int32},    {"UInt64", DType::int64},        {"Int4", DType::int4},
      {"UInt4", DType::int4},      {"Float4_e2m1fn_x2", DType::fp4}};
  if (name.starts_with("Float8_")) return DType::fp8;
  const auto found = by_name.find(name);
  return found == by_name.end() ? DType::other : found->second;
}

// Types that torch makes no tensors of.
bool is_made(c10::ScalarType type) {
  try {
    at::empty({1}, at::TensorOptions().dtype(type).device(at::kMeta));
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

TEST(ElementTypes, AreObservedAsTheirNamesSay) {
  int made = 0;
  for (int number = 0; number < static_cast<int>(c10::ScalarType::NumOptions); ++number) {
    const auto type = static_cast<c10::ScalarType>(number);
    if (type == c10::ScalarType::Undefined || c10::isQIntType(type) || !is_made(type)) continue;
    SCOPED_TRACE(c10::toString(type));
    const auto tensor = at::empty({4, 6}, at::TensorOptions().dtype(type).device(at::kMeta));
    const auto pass = observe_in_model([&] { at::cat({tensor, tensor}); });
    ASSERT_FALSE(pass.ops.empty());
    const auto& op = pass.ops.front();
    EXPECT_EQ(op.op, "aten::cat");
    EXPECT_EQ(name_of(op.dtype), name_of(expected(c10::toString(type))));
    // Read once, as it is the same one twice, and written twice.
    const auto bytes = 4 * 6 * static_cast<std::int64_t>(tensor.itemsize());
    EXPECT_EQ(op.work.read_bytes, bytes);
    EXPECT_EQ(op.work.write_bytes, 2 * bytes);
    ++made;
  }
  EXPECT_GT(made, 20);
}

// ---- calls whose results are not read, because the inputs say all of them

std::set<std::string> with_results;  // that the record had when its op ended

std::unique_ptr<at::ObserverContext> leave(const at::RecordFunction& record) {
  if (std::string(record.name()) == "aten::mul") leave_results(record);
  return nullptr;
}
void look(const at::RecordFunction& record, at::ObserverContext* /*context*/) {
  if (!record.outputs().empty()) with_results.insert(record.name());
}
at::CallbackHandle listen() {
  with_results.clear();
  return at::addThreadLocalCallback(at::RecordFunctionCallback(leave, look).needsInputs(true).needsOutputs(true));
}

TEST(UnreadResults, AreLeftOutOfOneRecordWhereNobodyElseListens) {
  const auto x = at::ones({2});
  const auto first = listen();
  at::mul(x, x);
  at::add(x, x);
  EXPECT_EQ(with_results, std::set<std::string>{"aten::add"});
  const auto second = listen();
  at::mul(x, x);
  EXPECT_TRUE(with_results.contains("aten::mul"));
  at::removeCallback(first);
  at::removeCallback(second);
}

bool follow(const char* name, const char* overload = "") {
  return op_info(*c10::Dispatcher::singleton().findSchema({name, overload}))->results_follow;
}

TEST(UnreadResults, FollowFromTensorsAloneOrNotAtAll) {
  for (const auto& [name, overload] : {std::pair("aten::mm", ""),
                                       {"aten::addmm", ""},
                                       {"aten::relu", ""},
                                       {"aten::add", "Tensor"},
                                       {"aten::where", "self"}}) {
    EXPECT_TRUE(follow(name, overload)) << name << "." << overload;
  }
  // A scalar that may change the type; results of any size, for out= too; sizes by values; views; other lists.
  for (const auto& [name, overload] : {std::pair("aten::add", "Scalar"),
                                       {"aten::add", "out"},
                                       {"aten::mm", "dtype"},
                                       {"aten::nonzero", ""},
                                       {"aten::where", ""},
                                       {"aten::convolution", ""},
                                       {"aten::t", ""},
                                       {"aten::cat", ""},
                                       {"aten::item", ""}}) {
    EXPECT_FALSE(follow(name, overload)) << name << "." << overload;
  }
}

// The bytes that all ops of that name wrote.
std::int64_t written(const Pass& pass, const std::string& name) {
  std::int64_t bytes = 0;
  for (const auto& op : pass.ops) bytes += op.op == name ? op.work.write_bytes : 0;
  return bytes;
}

// Each call comes three times: the first one's bucket is new, and the others' results are not read.
template <class Call>
Pass thrice(const Call& call) {
  return observe_in_model([&] {
    for (int i = 0; i < 3; ++i) call();
  });
}

TEST(UnreadResults, OfBroadcastAndOtherTypesCount) {
  const auto row = at::ones({1, 5});
  const auto column = at::ones({4, 1});
  const auto ints = at::ones({4, 5}, at::kInt);
  const auto pass = thrice([&] {
    at::mul(row, column);                       // 20 elements of 4 bytes
    at::mul(row, row);                          // 5 of 4
    at::mul(ints, ints);                        // 20 of 4
    at::mul(ints, 0.5);                         // 20 of 4
    at::mul(ints, at::ones({}, at::kDouble));   // 20 of 8: the number has the higher kind of type
    at::mul(row, at::ones({}, at::kDouble));    // 5 of 4: it has not
    at::mul(ints, at::ones({5}, at::kDouble));  // 20 of 8
    at::eq(row, column);                        // 20 of 1
  });
  EXPECT_EQ(written(pass, "aten::mul"), 3 * (80 + 20 + 80 + 80 + 160 + 20 + 160));
  EXPECT_EQ(written(pass, "aten::eq"), 3 * 20);
}

TEST(UnreadResults, OfIntegersAreOfTheDefaultTypeThen) {
  const auto ints = at::ones({8}, at::kInt);
  const auto before = c10::get_default_dtype();
  const auto pass = observe_in_model([&] {
    for (const auto type : {at::kFloat, at::kDouble, at::kFloat}) {
      c10::set_default_dtype(c10::scalarTypeToTypeMeta(type));
      at::div(ints, ints);
      at::div(ints, ints);
    }
  });
  c10::set_default_dtype(before);
  EXPECT_EQ(written(pass, "aten::div"), 2 * 8 * (4 + 8 + 4));
}

// ---- operators that TorchScript has for itself

// No cost is known: they are named. What they run is on other machines (rpc), in a kernel that was fused, or in another
// runtime.
const std::set<std::string> kNamed = {"prim::FusionGroup",    "prim::StaticRuntimeCopyOuts",
                                      "prim::StaticSubgraph", "prim::rpc_async",
                                      "prim::rpc_remote",     "prim::rpc_sync"};

// A new torch that brings another one fails here: look at what it does, then give it a cost or a place in a list.
TEST(ScriptOperators, AreCostedOrKnownOrNamed) {
  for (const auto& op : torch::jit::getAllOperators()) {
    if (!works_unseen(*op)) continue;
    EXPECT_FALSE(op->isC10Op()) << "seen where it is dispatched: " << op->schema();
    const std::string name = op->schema().name();
    const bool costed = ops::find_cost(name, op->schema().overload_name()) != nullptr;
    EXPECT_NE(costed, kNamed.contains(name)) << op->schema();
  }
}

TEST(ScriptOperators, AreFoundInCode) {
  torch::jit::Graph graph;
  torch::jit::parseIR(R"(
    graph(%x : Tensor, %weight : Tensor, %bias : Tensor, %ones : int[], %groups : int):
      %y : Tensor = prim::mkldnn_convolution(%x, %weight, %bias, %ones, %ones, %ones, %groups)
      %z : Tensor = prim::MKLDNNHardSwish_(%y)
      %a : Tensor = aten::relu(%z)
      %sizes : int[] = aten::size(%a)
      return (%a, %sizes))",
                      &graph);
  std::vector<std::string> found;
  for (const auto* node : graph.nodes()) {
    if (const auto* op = unseen_operator(*node)) found.push_back(op->schema().name());
  }
  EXPECT_EQ(found, (std::vector<std::string>{"prim::mkldnn_convolution", "prim::MKLDNNHardSwish_"}));
}

}  // namespace
}  // namespace roofprof::observe
