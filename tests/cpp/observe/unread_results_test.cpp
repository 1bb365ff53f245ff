// Calls whose results are not read, because the inputs say all of them: they count as those whose results are.

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/DefaultDtype.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>

#include "observe/observed.h"
#include "observe/operators/leave_results.h"

namespace roofprof::observe {
namespace {

using namespace testing;

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
                                       {"aten::add_", "Scalar"},
                                       {"aten::eq", "Tensor"},
                                       {"aten::batch_norm", ""},
                                       {"aten::where", "self"}}) {
    EXPECT_TRUE(follow(name, overload)) << name << "." << overload;
  }
  // A scalar that may change the type; results of any size, for out= too; sizes by values; views; other lists.
  for (const auto& [name, overload] : {std::pair("aten::add", "Scalar"),
                                       {"aten::pow", "Tensor_Scalar"},
                                       {"aten::clamp", ""},
                                       {"aten::add", "out"},
                                       {"aten::mm", "out"},
                                       {"aten::mm", "dtype"},
                                       {"aten::nonzero", ""},
                                       {"aten::masked_select", ""},
                                       {"aten::where", ""},
                                       {"aten::sum", ""},
                                       {"aten::convolution", ""},
                                       {"aten::t", ""},
                                       {"aten::resize_", ""},
                                       {"aten::cat", ""},
                                       {"aten::_to_copy", ""},
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

TEST(UnreadResults, OfSparseTensorsAreRead) {
  const auto few = at::sparse_coo_tensor(at::arange(3).unsqueeze(0), at::ones({3}), {100}).coalesce();
  const auto same = at::sparse_coo_tensor(at::arange(3).unsqueeze(0), at::ones({3}), {100}).coalesce();
  const auto other = at::sparse_coo_tensor((at::arange(3) + 50).unsqueeze(0), at::ones({3}), {100}).coalesce();
  const auto pass = observe_in_model([&] {
    for (int i = 0; i < 2; ++i) {
      at::add(few, same);
      at::add(few, other);
    }
  });
  std::set<std::int64_t> bytes;  // of a sum of 3 and of 6 places
  for (const auto& op : pass.ops) {
    if (op.op == "aten::add") bytes.insert(op.work.write_bytes);
  }
  EXPECT_EQ(bytes.size(), 2U);
}

TEST(UnreadResults, OfOneInputInTwoModulesCountInBoth) {
  const auto x = at::ones({2, 3});
  const auto weight = at::ones({3, 4});
  auto session = std::make_shared<Session>();
  session->start(kOutside);
  for (int i = 0; i < 3; ++i) {
    for (const ModuleId module : {kModel, kLayer}) {
      session->frames.enter(module, &x);
      at::mm(x, weight);
      weight.t();
      session->frames.leave(&x);
    }
  }
  const auto pass = session->stop();
  for (const ModuleId module : {kModel, kLayer}) {
    const auto* product = find(pass, "aten::mm", module);
    const auto* view = find(pass, "aten::t", module);
    ASSERT_TRUE(product != nullptr && view != nullptr);
    EXPECT_EQ(product->calls, 3);
    EXPECT_EQ(product->work.macs, 3 * 2 * 3 * 4);
    EXPECT_EQ(product->work.write_bytes, 3 * 2 * 4 * 4);
    EXPECT_EQ(view->calls, 3);
    EXPECT_TRUE(view->costed);
    EXPECT_EQ(view->dtype, DType::fp32);
  }
}

}  // namespace
}  // namespace roofprof::observe
