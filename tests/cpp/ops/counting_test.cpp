#include "ops/counting.h"

#include <stdexcept>

#include "ops/call_builder.h"

namespace roofprof::ops::testing {
namespace {

TEST(TensorDesc, Sizes) {
  TensorDesc desc = tensor(fp16, {2, 3, 4});
  EXPECT_EQ(desc.numel(), 24);
  EXPECT_EQ(desc.held_bytes(), 48);
  EXPECT_EQ(desc.size(0), 2);
  EXPECT_EQ(desc.size(-1), 4);
  EXPECT_THROW(desc.size(3), std::out_of_range);
  EXPECT_THROW(desc.size(-4), std::out_of_range);
  EXPECT_EQ(tensor(fp32, {}).numel(), 1);
  EXPECT_EQ(tensor(fp32, {2, 0}).numel(), 0);
}

TEST(TensorDesc, ExpandedDimensionsAreHeldOnce) {
  TensorDesc desc = tensor(fp32, {2, 3, 4});
  desc.expanded = {true, false, true};
  EXPECT_EQ(desc.numel(), 24);
  EXPECT_EQ(desc.held_numel(), 3);
  desc.sizes[0] = 0;
  EXPECT_EQ(desc.held_numel(), 0);
}

TEST(TensorDesc, HugeSizesSaturate) {
  const std::int64_t huge = std::int64_t{1} << 40;
  EXPECT_EQ(tensor(fp32, {huge, huge}).numel(), kSaturated);
  EXPECT_EQ(tensor(fp32, {huge, huge}).held_bytes(), kSaturated);
  EXPECT_EQ(product({huge, huge, 2}), kSaturated);
  EXPECT_EQ(product({huge, huge, 0}), 0);
  EXPECT_EQ(product({}), 1);
}

TEST(OpCall, TensorsByPositionAndName) {
  const OpCall call = Call("aten::cat(tensors [fp32 2; fp32 3], self fp32 5, bias none) -> fp32 5");
  EXPECT_EQ(call.tensors("tensors").size(), 2U);
  EXPECT_EQ(call.tensor("self").numel(), 5);
  EXPECT_EQ(call.tensor(1).numel(), 5);
  EXPECT_EQ(call.find_tensor("bias"), nullptr);
  EXPECT_EQ(call.find_tensor("unheard of"), nullptr);
  EXPECT_TRUE(call.has_result(0));
  EXPECT_FALSE(call.has_result(1));
  try {
    call.tensor("bias");
    FAIL();
  } catch (const std::out_of_range& error) {
    EXPECT_NE(std::string(error.what()).find("aten::cat"), std::string::npos);
    EXPECT_NE(std::string(error.what()).find("bias"), std::string::npos);
  }
  EXPECT_THROW(call.tensor("tensors"), std::out_of_range);
  EXPECT_THROW(call.tensor(3), std::out_of_range);
  EXPECT_THROW(call.result(1), std::out_of_range);
}

TEST(OpCall, DeclaredScalars) {
  OpCall call = Call("x::y(kernel=[3,2], one=[7], dim=-1, keep=true, p=0.5, mode=tanh, absent none)");
  call.declared_scalars = "kernel, one,dim,keep,p,mode,absent,elsewhere";
  EXPECT_EQ(call.integers("kernel"), (Sizes{3, 2}));
  EXPECT_EQ(call.integer("one", 0), 7);
  EXPECT_EQ(call.integer("dim", 0), -1);
  EXPECT_EQ(call.integers("dim"), (Sizes{-1}));
  EXPECT_TRUE(call.boolean("keep", false));
  EXPECT_EQ(call.number("p", 0), 0.5);
  EXPECT_EQ(call.number("dim", 0), -1.0);
  EXPECT_EQ(call.text("mode"), "tanh");
  // None, and an argument that this overload lacks: the default.
  EXPECT_EQ(call.integer("absent", 4), 4);
  EXPECT_TRUE(call.boolean("elsewhere", true));
  EXPECT_TRUE(call.integers("absent").empty());
  EXPECT_THROW(call.integer("mode", 0), std::logic_error);
  EXPECT_THROW(call.integer("kernel", 0), std::logic_error);
}

// What is not declared is not in the key of the bucket: reading it would mix calls of different cost.
TEST(OpCall, UndeclaredScalarsThrow) {
  OpCall call = Call("x::y(dim=1, dims=1)");
  call.declared_scalars = "dims";
  EXPECT_NO_THROW(call.integer("dims", 0));
  EXPECT_THROW(call.integer("dim", 0), std::logic_error);
  EXPECT_THROW(call.boolean("dim", false), std::logic_error);
  EXPECT_THROW(call.number("dim", 0), std::logic_error);
  EXPECT_THROW(call.integers("dim"), std::logic_error);
  EXPECT_THROW(call.text("dim"), std::logic_error);
}

TEST(OpCall, ComputeDtype) {
  EXPECT_EQ(static_cast<OpCall>(Call("x::y(indices int64 2, self bf16 2) -> fp32 2")).compute_dtype(), bf16);
  EXPECT_EQ(static_cast<OpCall>(Call("x::y(a int8 2, b int32 2) -> fp32 2")).compute_dtype(), int8);
  EXPECT_EQ(static_cast<OpCall>(Call("aten::randn -> fp32 2")).compute_dtype(), fp32);
  EXPECT_EQ(static_cast<OpCall>(Call("x::y")).compute_dtype(), other);
}

TEST(CompulsoryBytes, EachInputAndResultOnce) {
  struct {
    const char* call;
    std::int64_t read;
    std::int64_t write;
    std::int64_t updated;
  } const cases[] = {
      {"aten::add(self fp32 4x8, other fp32 4x8 expanded 10) -> fp32 4x8", 128 + 32, 128, 0},
      {"aten::mul(self fp32 8, other fp32 8 repeated) -> fp32 8", 32, 32, 0},
      {"aten::add_.Tensor(self fp32 8 written, other fp32 8) -> fp32 8 written", 64, 32, 32},
      // In place lists return nothing.
      {"aten::_foreach_add_(self [fp32 8; fp32 4] written)", 48, 48, 48},
      // The overload's name tells an out= form, and where it does not (max.dim_max), the returned argument does: it is
      // written only, and as large as it comes back.
      {"aten::max.out(self fp32 8x4, out fp32 8 written) -> fp32 8 written", 128, 32, 0},
      {"aten::max.Tensor_out(self fp32 8x4, out fp32 8 written) -> fp32 8 written", 128, 32, 0},
      {"aten::max.dim_max(self fp32 8x4, out fp32 8 written) -> fp32 8 written", 128, 32, 0},
      {"aten::native_batch_norm.out(input fp32 8, running_mean fp32 2 written, out fp32 0 written, save_mean fp32 0 "
       "written) -> fp32 8 written, fp32 3 written",
       32, 8 + 32 + 12, 0},
      // A written argument beside results is read too.
      {"aten::_native_batch_norm_legit(input fp32 8, running_mean fp32 2 written) -> fp32 8", 40, 40, 8},
  };
  for (const auto& [call, read, write, updated] : cases) {
    SCOPED_TRACE(call);
    Work work;
    compulsory_bytes(Call(call), work);
    EXPECT_EQ(work.read_bytes, read);
    EXPECT_EQ(work.write_bytes, write);
    EXPECT_EQ(work.updated_bytes, updated);
  }
  Work copy;
  overwriting_bytes(Call("aten::copy_(self fp32 8 written, src fp16 8) -> fp32 8 written"), copy);
  EXPECT_EQ(copy.read_bytes, 16) << "the old value is not read";
  EXPECT_EQ(copy.write_bytes, 32);
}

TEST(PerElement, OutputsAndInputs) {
  const OpCall call = Call("aten::unbind(self fp32 6) -> [fp32 2; fp32 4], fp32 9");
  Work outputs;
  per_output(call, 3, outputs);
  EXPECT_EQ(outputs.flops(), 3 * 6);  // the second result is not the first
  Work inputs;
  per_input(call, 2, inputs);
  EXPECT_EQ(inputs.flops(), 2 * 6);
}

TEST(PerElement, ListsInPlaceCountWhatTheyWrite) {
  Work work;
  per_output(Call("aten::_foreach_mul_(self [fp32 2; fp32 3] written)"), 1, work);
  EXPECT_EQ(work.flops(), 5);
}

TEST(AddMacs, ComplexAndInteger) {
  Work work;
  add_macs(work, 10, tensor(int8, {1}));
  EXPECT_EQ(work.int_ops(), 20);
  EXPECT_EQ(work.flops(), 0);
  TensorDesc complex = tensor(fp64, {1});
  complex.is_complex = true;
  add_macs(work, 10, complex);
  EXPECT_EQ(work.macs, 50);
  EXPECT_EQ(work.operations_in(fp64), 80);
  add_causal_macs(work, 10, 6, tensor(bf16, {1}));
  EXPECT_EQ(work.macs, 60);
  EXPECT_EQ(work.causal_macs, 56);
  EXPECT_EQ(work.operations_in(bf16), 20);
}

}  // namespace
}  // namespace roofprof::ops::testing
