#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// 2 x 3 floats, 24 bytes, in and out.
CostCase free_of_cost(const char* op) { return {Call(op, "(self fp32 2x3) -> fp32 2x3"), {}}; }

CostCase free_in_place(const char* op) { return {Call(op, "(self fp32 2x3 written) -> fp32 2x3 written"), {}}; }

CostCase allocation(const char* op) { return {Call(op, "(size=[2,3]) -> fp32 2x3"), {}}; }

CostCase question(const char* op) { return {Call(op, "(self fp32 2x3)"), {}}; }

CostCase copy(const char* op) { return {Call(op, "(self fp32 2x3) -> fp32 2x3"), {.read = 24, .write = 24}}; }

// 2 x 3 floats and two more on each side of the last dimension.
CostCase padding(const char* op) { return {Call(op, "(self fp32 2x3) -> fp32 2x7"), {.read = 24, .write = 56}}; }

CostCase padding_gradient(const char* op) {
  return {Call(op, "(grad_output fp32 2x7, self fp32 2x3) -> fp32 2x3"), {.flops = 14, .read = 56, .write = 24}};
}

CostCase factory(const char* op, std::int64_t flops = 0) {
  return {Call(op, "(size=[2,3]) -> fp32 2x3"), {.flops = flops, .write = 24}};
}

CostCase factory_like(const char* op, std::int64_t flops = 0) {
  return {Call(op, "(self fp32 2x3) -> fp32 2x3"), {.flops = flops, .write = 24}};
}

CostCase of_integers(const char* op, std::int64_t int_ops) {
  return {Call(op, "(n=6) -> int64 6"), {.int_ops = int_ops, .write = 48}};
}

CostCase fill(const char* op, std::int64_t flops) {
  return {Call(op, "(self fp32 2x3 written) -> fp32 2x3 written"), {.flops = flops, .write = 24}};
}

const std::vector<CostCase> kCases = together({
    {
        {Call("aten::unsafe_split(self fp32 2x3) -> [fp32 1x3; fp32 1x3]"), {}},
        {Call("aten::unsafe_split_with_sizes(self fp32 2x3) -> [fp32 2x3]"), {}},
        {Call("aten::sym_constrain_range(size=3)"), {}},
        {Call("aten::sym_constrain_range_for_size(size=3)"), {}},
        {Call("aten::_assert_scalar(self=true)"), {}},
        {Call("aten::_assert_async(self boolean)"), {.read = 1}},
        {Call("aten::_linalg_check_errors(info int32 5)"), {.read = 20}},
        {Call("aten::_local_scalar_dense(self fp32)"), {.read = 4}},

        // The destination is written, not read; an expanded source is held once.
        {Call("aten::copy_(self fp32 2x3 written, src fp16 2x3) -> fp32 2x3 written"), {.read = 12, .write = 24}},
        {Call("aten::copy_(self fp32 2x3 written, src fp32 2x3 expanded 10) -> fp32 2x3 written"),
         {.read = 12, .write = 24}},
        {Call("aten::_to_copy(self fp32 2x3) -> bf16 2x3"), {.read = 24, .write = 12}},
        {Call("aten::complex(real fp32 2x3, imag fp32 2x3) -> fp32 2x3 complex"), {.read = 48, .write = 48}},
        {Call("aten::narrow_copy(self fp32 100x3) -> fp32 2x3"), {.read = 24, .write = 24}},
        // Two parts of three rows are left out; written where out= says.
        {Call("aten::split_with_sizes_copy(all_gather_output fp32 6x3, out [fp32 2x3; fp32 1x3] written)"),
         {.read = 36, .write = 36}},
        {Call("aten::split_copy(self fp32 2x3) -> [fp32 1x3; fp32 1x3]"), {.read = 24, .write = 24}},
        {Call("aten::unbind_copy(self fp32 2x3) -> [fp32 3; fp32 3]"), {.read = 24, .write = 24}},
        // An expanded input is held once.
        {Call("aten::unbind_copy(self fp32 2x3 expanded 10) -> [fp32 3; fp32 3]"), {.read = 12, .write = 24}},
        // 3 and 2 rows, each padded to two chunks of 2 and of 1.
        {Call("aten::_chunk_cat(tensors [bf16 3; bf16 2]) -> fp32 2x3"), {.read = 10, .write = 24}},
        {Call("aten::lu_unpack(LU_data fp32 3x3, LU_pivots int32 3) -> fp32 3x3, fp32 3x3, fp32 3x3"),
         {.read = 36 + 12, .write = 108}},
        // A key cache of 7 positions takes one more.
        {Call("aten::cat(tensors [bf16 2x7x8; bf16 2x1x8]) -> bf16 2x8x8"), {.read = 224 + 32, .write = 256}},
        {Call("aten::stack(tensors [fp32 3; fp32 3]) -> fp32 2x3"), {.read = 24, .write = 24}},
        {Call("aten::repeat(self fp32 2x3) -> fp32 4x9"), {.read = 24, .write = 144}},
        {Call("aten::repeat_interleave(self fp32 2x3) -> fp32 4x3"), {.read = 24, .write = 48}},
        {Call("aten::diag_embed(self fp32 3) -> fp32 3x3"), {.read = 12, .write = 36}},
        // 2 x 2 windows of a 3 x 3 image: 4 columns of 4.
        {Call("aten::im2col(self fp32 1x1x3x3) -> fp32 1x4x4"), {.read = 36, .write = 64}},
        {Call("aten::col2im(self fp32 1x4x4) -> fp32 1x1x3x3"), {.flops = 16, .read = 64, .write = 36}},
        // 2 sequences of 5 and 3 steps.
        {Call("aten::_pack_padded_sequence(input fp32 5x2x4, lengths int64 2) -> fp32 8x4, int64 5"),
         {.read = 160 + 16, .write = 128 + 40}},

        {Call("aten::scalar_tensor(s=1.5) -> fp32"), {.write = 4}},

        {Call("aten::normal(mean fp32 2x3, std fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 48, .write = 24}},
        {Call("aten::bernoulli(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
        {Call("aten::poisson(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
        {Call("aten::binomial(count fp32 2x3, prob fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 48, .write = 24}},
        {Call("aten::_standard_gamma(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
        {Call("aten::_sample_dirichlet(self fp32 2x3) -> fp32 2x3"), {.flops = 6, .read = 24, .write = 24}},
        {Call("aten::multinomial(self fp32 2x50) -> int64 2x1"), {.flops = 300, .read = 400, .write = 16}},
        fill("aten::fill_", 0),
        fill("aten::zero_", 0),
        of_integers("aten::randint", 6),
        of_integers("aten::randperm", 6),
    },
    each(free_of_cost, {"aten::_unsafe_view", "aten::positive", "aten::lift", "aten::empty_like", "aten::new_empty",
                        "aten::new_empty_strided"}),
    each(free_in_place, {"aten::as_strided_", "aten::detach_", "aten::squeeze_", "aten::unsqueeze_", "aten::transpose_",
                         "aten::t_", "aten::set_", "aten::resize_", "aten::resize_as_", "aten::_resize_output_"}),
    each(allocation, {"aten::empty", "aten::empty_strided", "aten::empty_permuted", "aten::_efficientzerotensor"}),
    each(question, {"aten::is_pinned", "aten::_has_same_storage_numel", "aten::is_same_size", "aten::record_stream",
                    "aten::is_set_to", "aten::_use_cudnn_ctc_loss", "aten::_assert_tensor_metadata"}),
    each(copy, {"aten::clone", "aten::to_mkldnn", "aten::_mkldnn_reshape", "aten::_mkldnn_transpose",
                "aten::_reshape_copy", "aten::_pin_memory", "aten::mkldnn_reorder_conv2d_weight",
                "aten::mkldnn_reorder_conv3d_weight", "aten::roll", "aten::flip", "aten::tril", "aten::triu",
                "aten::pixel_shuffle", "aten::pixel_unshuffle", "aten::channel_shuffle"}),
    each(padding,
         {"aten::constant_pad_nd", "aten::reflection_pad1d", "aten::reflection_pad2d", "aten::reflection_pad3d",
          "aten::replication_pad1d", "aten::replication_pad2d", "aten::replication_pad3d"}),
    each(padding_gradient,
         {"aten::reflection_pad1d_backward", "aten::reflection_pad2d_backward", "aten::reflection_pad3d_backward",
          "aten::replication_pad1d_backward", "aten::replication_pad2d_backward", "aten::replication_pad3d_backward"}),
    each([](const char* op) { return factory(op); },
         {"aten::full", "aten::zeros", "aten::ones", "aten::eye", "aten::range", "aten::linspace"}),
    each([](const char* op) { return factory_like(op); },
         {"aten::full_like", "aten::new_full", "aten::zeros_like", "aten::new_zeros",
          "aten::_new_zeros_with_same_feature_meta", "aten::ones_like", "aten::new_ones"}),
    each([](const char* op) { return of_integers(op, 0); },
         {"aten::arange", "aten::tril_indices", "aten::triu_indices"}),
    each([](const char* op) { return factory(op, 6); }, {"aten::logspace", "aten::rand", "aten::randn"}),
    each([](const char* op) { return factory_like(op, 6); },
         {"aten::rand_like", "aten::randn_like", "aten::randint_like", "aten::normal_functional"}),
    each([](const char* op) { return fill(op, 6); },
         {"aten::random_", "aten::uniform_", "aten::normal_", "aten::log_normal_", "aten::cauchy_",
          "aten::exponential_", "aten::geometric_", "aten::bernoulli_"}),
});

TEST(Movement, CostsAreAsWrittenOut) { check_family(movement_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops
