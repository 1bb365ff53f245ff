#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// Tables have 100 rows of 8 floats: 32 bytes a row, 3200 in all.

CostCase indexing_lookup(const char* op, std::int64_t indices, std::int64_t rows_read) {
  return {Call(op, "(weight fp32 100x8)").in("indices", int64, {indices}).out(fp32, {indices, 8}),
          {.read = rows_read * 32 + indices * 8, .write = indices * 32}};
}

CostCase bag(const char* op, int mode, std::int64_t flops) {
  return {Call(op, "(weight fp32 100x8, indices int64 6, offsets int64 2)")
              .scalar("mode", mode)
              .with("(per_sample_weights none) -> fp32 2x8, int64 6, int64 2, int64 2"),
          {.flops = flops, .read = 6 * 32 + 48 + 16, .write = 64 + 48 + 16 + 16}};
}

// 5 rows put at 5 indices.
CostCase put_rows(const char* op, bool accumulate, std::int64_t flops, std::int64_t old_rows) {
  return {Call(op, "(self fp32 100x8 written, indices [int64 5], values fp32 5x8)")
              .scalar("accumulate", accumulate)
              .with("-> fp32 100x8 written"),
          {.flops = flops, .read = old_rows * 32 + 40 + 160, .write = 160}};
}

// x[indices] = values for x of 2 x 3 x 4 x 5 floats, which writes so many of them.
CostCase put(const std::vector<TensorDesc>& indices, const std::vector<std::size_t>& places, const Sizes& values,
             std::int64_t read_bytes, std::int64_t elements) {
  return {Call("aten::index_put_(self fp32 2x3x4x5 written)")
              .list("indices", indices)
              .at(places)
              .in("values", fp32, values)
              .with("(accumulate=false) -> fp32 2x3x4x5 written"),
          {.read = read_bytes, .write = elements * 4}};
}

// 5 rows at 5 indices along dimension 0, with the op's name for the rows.
Call rows_along_dim(const char* op, const char* rows) {
  return Call(op, "(self fp32 100x8 written, dim=0, index int64 5)").in(rows, fp32, {5, 8});
}

// An index for each of 5 x 8 elements.
Call elements_along_dim(const char* op) {
  return Call(op, "(self fp32 100x8 written, dim=0, index int64 5x8, src fp32 5x8)");
}

const std::vector<CostCase> kGathers = {
    indexing_lookup("aten::embedding", 5, 5),
    // More indices than rows: no row counts twice.
    indexing_lookup("aten::embedding", 1000, 100),
    // A mask with 9 true elements.
    {Call("aten::index(self fp32 100x8, indices [boolean 100x8]) -> fp32 9"), {.read = 36 + 800, .write = 36}},
    {Call("aten::_unsafe_index(self fp32 2x4x4, indices [int64 8x1; int64 8]) -> fp32 2x8x8"),
     {.read = 128 + 128, .write = 512}},
    {Call("aten::embedding_dense_backward(grad_output fp32 5x8, indices int64 5) -> fp32 100x8"), {.flops = 40}},
    {Call("aten::embedding_renorm_(self fp32 100x8 written, indices int64 5) -> fp32 100x8 written"),
     {.flops = 3 * 40, .read = 160 + 40, .write = 160}},
    bag("aten::_embedding_bag", 0, 48),
    bag("aten::_embedding_bag", 1, 48 + 16),
    bag("aten::_embedding_bag_forward_only", 2, 48),
    // A weight for each of the 6 rows: one multiplication more.
    {Call("aten::_embedding_bag(weight fp32 100x8, indices int64 6, offsets int64 2, mode=0, per_sample_weights fp32 "
          "6) -> fp32 2x8"),
     {.flops = 2 * 48, .read = 6 * 32 + 48 + 16 + 24, .write = 64}},
    {Call("aten::_embedding_bag_dense_backward(grad fp32 2x8, indices int64 6, offset2bag int64 6, per_sample_weights "
          "none) -> fp32 100x8"),
     {.flops = 48}},
    {Call("aten::_embedding_bag_per_sample_weights_backward(grad fp32 2x8, weight fp32 100x8, indices int64 6, offsets "
          "int64 2, offset2bag int64 6) -> fp32 6"),
     {.flops = 2 * 48, .read = 64 + 6 * 32 + 48 + 16 + 48, .write = 24}},
};

const std::vector<CostCase> kScatters = {
    put_rows("aten::index_put_", false, 0, 0),
    put_rows("aten::index_put_", true, 40, 5),
    // The form that returns a new tensor copies the table.
    {Call("aten::index_put(self fp32 100x8, indices [int64 5], values fp32 5x8, accumulate=false) -> fp32 100x8"),
     {.read = 3200 + 40 + 160, .write = 3200}},
    // x[mask] = 0: as many elements as the mask has, at most.
    {Call("aten::index_put_(self fp32 100x8 written, indices [boolean 100x8], values fp32, accumulate=false) -> fp32 "
          "100x8 written"),
     {.read = 800 + 4, .write = 3200}},
    // x[idx] = 0: each index puts 3 x 4 x 5.
    put({tensor(int64, {2})}, {0}, {}, 16 + 4, 2 * 60),
    // x[:, idx] = v puts 2 x 4 x 5 for each, x[:, :, :, idx] 2 x 3 x 4.
    put({tensor(int64, {3})}, {1}, {2, 3, 4, 5}, 24 + 480, 120),
    put({tensor(int64, {1})}, {1}, {4, 5}, 8 + 80, 40),
    put({tensor(int64, {2})}, {3}, {}, 16 + 4, 2 * 24),
    // x[i, :, j] = v: 2 x 1 and 3 make 6 pairs, each puts 3 x 5.
    put({tensor(int64, {2, 1}), tensor(int64, {3})}, {0, 2}, {}, 16 + 24 + 4, 6 * 15),
    put({tensor(int64, {2}), tensor(int64, {2})}, {1, 2}, {2, 2, 5}, 32 + 80, 2 * 10),
    // More indices than there are places: no element counts twice.
    put({tensor(int64, {50})}, {0}, {}, 400 + 4, 120),
    // x[:, mask] = v: how many of 3 x 4 the mask lets through is as many as there are values; all, where one stands for
    // all.
    put({tensor(boolean, {3, 4})}, {1}, {2, 7, 5}, 12 + 280, 70),
    put({tensor(boolean, {3, 4})}, {1}, {7, 5}, 12 + 140, 70),
    put({tensor(boolean, {3, 4})}, {1}, {2, 1, 5}, 12 + 40, 120),
    put({tensor(boolean, {3, 4})}, {1}, {5}, 12 + 20, 120),
    put({tensor(uint8, {2})}, {0}, {1, 3, 4, 5}, 2 + 240, 120),
    // x[mask, :, idx] = v: one index for each element of the mask that is let through; these dimensions come first.
    put({tensor(boolean, {2}), tensor(int64, {2})}, {0, 2}, {2, 3, 5}, 2 + 16 + 120, 2 * 15),
    put({tensor(boolean, {3}), tensor(int64, {1})}, {1, 3}, {3, 2, 4}, 3 + 8 + 96, 3 * 8),
    {Call("aten::put_(self fp32 100x8 written, index int64 5, source fp32 5, accumulate=false) -> fp32 100x8 written"),
     {.read = 40 + 20, .write = 20}},
    {elements_along_dim("aten::scatter_").with("(reduce none) -> fp32 100x8 written"),
     {.read = 320 + 160, .write = 160}},
    {elements_along_dim("aten::scatter_").with("(reduce=add) -> fp32 100x8 written"),
     {.flops = 40, .read = 160 + 320 + 160, .write = 160}},
    // scatter(dim, index, value)
    {Call("aten::scatter(self fp32 100x8, dim=0, index int64 5x8) -> fp32 100x8"), {.read = 3200 + 320, .write = 3200}},
    {elements_along_dim("aten::scatter_add_").with("-> fp32 100x8 written"),
     {.flops = 40, .read = 160 + 320 + 160, .write = 160}},
    // Of a larger src as much is added as there are indices.
    {Call("aten::scatter_add_(self fp32 6x16 written, dim=1, index int64 6x1, src fp32 6x16) -> fp32 6x16 written"),
     {.flops = 6, .read = 6 * 4 + 6 * 8 + 96 * 4, .write = 6 * 4}},
    {elements_along_dim("aten::scatter_reduce_").with("(reduce=amax) -> fp32 100x8 written"),
     {.flops = 40, .read = 160 + 320 + 160, .write = 160}},
    {rows_along_dim("aten::index_add_", "source").with("-> fp32 100x8 written"),
     {.flops = 40, .read = 160 + 40 + 160, .write = 160}},
    {rows_along_dim("aten::index_reduce_", "source").with("-> fp32 100x8 written"),
     {.flops = 40, .read = 160 + 40 + 160, .write = 160}},
    // A key/value cache of 2 x 4 x 512 x 64 takes one more position.
    {Call("aten::index_copy_(self bf16 2x4x512x64 written, dim=2, index int64 1, source bf16 2x4x1x64) -> bf16 "
          "2x4x512x64 written"),
     {.read = 8 + 1024, .write = 1024}},
    {Call("aten::index_fill_(self fp32 100x8 written, dim=0, index int64 5) -> fp32 100x8 written"),
     {.read = 40, .write = 160}},
    {Call("aten::slice_scatter(self fp32 100x8, src fp32 5x8) -> fp32 100x8"), {.read = 3200, .write = 3200}},
    {Call("aten::slice_backward(grad_output fp32 5x8) -> fp32 100x8"), {.read = 160, .write = 3200}},
    {Call("aten::unfold_backward(grad_in fp32 4x3) -> fp32 6"), {.flops = 12}},
};

const std::vector<CostCase> kMasks = {
    // A causal mask over 2 x 4 heads: one mask for all.
    {Call("aten::masked_fill(self fp32 2x4x16x16, mask boolean 2x4x16x16 expanded 1100) -> fp32 2x4x16x16"),
     {.flops = 2048}},
    {Call("aten::masked_select(self fp32 100x8, mask boolean 100x8) -> fp32 9"),
     {.flops = 800, .read = 36 + 800, .write = 36}},
    {Call("aten::masked_scatter(self fp32 100x8, mask boolean 100x8, source fp32 9) -> fp32 100x8"), {.flops = 800}},
};

TEST(Indexing, CostsAreAsWrittenOut) { check_family(indexing_costs(), together({kGathers, kScatters, kMasks})); }

}  // namespace
}  // namespace roofprof::ops
