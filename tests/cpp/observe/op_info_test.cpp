// What is read off the operators' schemas.

#include "observe/operators/op_info.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <map>

namespace roofprof::observe {
namespace {

std::map<std::string, const OpInfo*>& seen() {
  static std::map<std::string, const OpInfo*> ops;
  return ops;
}

std::unique_ptr<at::ObserverContext> note(const at::RecordFunction& fn) {
  if (const auto* op = op_info(fn)) {
    seen()[op->name] = op;
    EXPECT_EQ(op_info(fn), op);
  }
  return nullptr;
}

class OpInfoTest : public ::testing::Test {
 protected:
  void SetUp() override {
    seen().clear();
    handle = at::addThreadLocalCallback(at::RecordFunctionCallback(note));
  }
  void TearDown() override { at::removeCallback(handle); }
  at::CallbackHandle handle = at::INVALID_CALLBACK_HANDLE;
};

TEST_F(OpInfoTest, TellsCostsViewsAndComposites) {
  const auto x = at::rand({2, 3});
  x.t().reshape({6}).add(1);
  EXPECT_EQ(seen().at("aten::add")->kind, OpKind::counted);
  EXPECT_EQ(seen().at("aten::t")->kind, OpKind::view);
  EXPECT_EQ(seen().at("aten::reshape")->kind, OpKind::transparent);
}

TEST_F(OpInfoTest, KnowsWhatIsWritten) {
  auto x = at::rand({2, 3});
  x.add_(1);
  const auto* op = seen().at("aten::add_");
  ASSERT_FALSE(op->slots.empty());
  EXPECT_TRUE(op->slots.front().written);
  ASSERT_EQ(op->result_written.size(), 1U);
  EXPECT_TRUE(op->result_written.front());
}

TEST_F(OpInfoTest, TakesTensorListsAndDeclaredScalars) {
  const auto x = at::rand({1, 2, 8, 8});
  at::cat({x, x});
  at::max_pool2d(x, {2, 2});
  EXPECT_EQ(seen().at("aten::cat")->slots.front().kind, OpInfo::Slot::Kind::tensor_list);
  const auto& pool = *seen().at("aten::max_pool2d");
  std::vector<std::string> scalars;
  for (const auto& slot : pool.slots) {
    if (slot.kind == OpInfo::Slot::Kind::scalar) scalars.push_back(pool.arguments[slot.position].name);
  }
  EXPECT_NE(std::find(scalars.begin(), scalars.end(), "kernel_size"), scalars.end());
}

TEST_F(OpInfoTest, ARangeOfTheUsersIsNoOp) {
  RECORD_FUNCTION("a range", std::vector<c10::IValue>{});
  EXPECT_TRUE(seen().empty());
}

}  // namespace
}  // namespace roofprof::observe
