#include <vector>

#include "ops/call_builder.h"

namespace roofprof::ops {
namespace {

using namespace testing;

// 2 x 3 floats, 24 bytes, in and out.
CostCase free_of_cost(const char* op) { return {Call(op).in("self", fp32, {2, 3}).out(fp32, {2, 3}), {}}; }

CostCase free_in_place(const char* op) {
  return {Call(op).in("self", fp32, {2, 3}).written().out(fp32, {2, 3}).written(), {}};
}

CostCase allocation(const char* op) { return {Call(op).scalar("size", {2, 3}).out(fp32, {2, 3}), {}}; }

CostCase question(const char* op) { return {Call(op).in("self", fp32, {2, 3}), {}}; }

CostCase copy(const char* op) {
  return {Call(op).in("self", fp32, {2, 3}).out(fp32, {2, 3}), {.read_bytes = 24, .write_bytes = 24}};
}

// 2 x 3 floats and two more on each side of the last dimension.
CostCase padding(const char* op) {
  return {Call(op).in("self", fp32, {2, 3}).out(fp32, {2, 7}), {.read_bytes = 24, .write_bytes = 56}};
}

CostCase padding_gradient(const char* op) {
  return {Call(op).in("grad_output", fp32, {2, 7}).in("self", fp32, {2, 3}).out(fp32, {2, 3}),
          {.flops = 14, .read_bytes = 56, .write_bytes = 24}};
}

CostCase factory(const char* op, std::int64_t flops = 0) {
  return {Call(op).scalar("size", {2, 3}).out(fp32, {2, 3}), {.flops = flops, .write_bytes = 24}};
}

CostCase factory_like(const char* op, std::int64_t flops = 0) {
  return {Call(op).in("self", fp32, {2, 3}).out(fp32, {2, 3}), {.flops = flops, .write_bytes = 24}};
}

CostCase of_integers(const char* op, std::int64_t int_ops) {
  return {Call(op).scalar("n", 6).out(int64, {6}), {.int_ops = int_ops, .write_bytes = 48}};
}

CostCase fill(const char* op, std::int64_t flops) {
  return {Call(op).in("self", fp32, {2, 3}).written().out(fp32, {2, 3}).written(), {.flops = flops, .write_bytes = 24}};
}

const std::vector<CostCase> kCases = {
    free_of_cost("aten::_unsafe_view"),
    {Call("aten::unsafe_split").in("self", fp32, {2, 3}).out_list({tensor(fp32, {1, 3}), tensor(fp32, {1, 3})}), {}},
    {Call("aten::unsafe_split_with_sizes").in("self", fp32, {2, 3}).out_list({tensor(fp32, {2, 3})}), {}},
    free_in_place("aten::as_strided_"),
    free_in_place("aten::detach_"),
    free_in_place("aten::squeeze_"),
    free_in_place("aten::unsqueeze_"),
    free_in_place("aten::transpose_"),
    free_in_place("aten::t_"),
    free_of_cost("aten::positive"),
    free_of_cost("aten::lift"),
    free_in_place("aten::set_"),
    free_in_place("aten::resize_"),
    free_in_place("aten::resize_as_"),
    allocation("aten::empty"),
    free_of_cost("aten::empty_like"),
    allocation("aten::empty_strided"),
    allocation("aten::empty_permuted"),
    free_of_cost("aten::new_empty"),
    free_of_cost("aten::new_empty_strided"),
    allocation("aten::_efficientzerotensor"),
    question("aten::is_pinned"),
    question("aten::_has_same_storage_numel"),
    question("aten::is_same_size"),
    question("aten::record_stream"),
    question("aten::is_set_to"),
    question("aten::_use_cudnn_ctc_loss"),
    question("aten::_assert_tensor_metadata"),
    free_in_place("aten::_resize_output_"),
    {Call("aten::sym_constrain_range").scalar("size", 3), {}},
    {Call("aten::sym_constrain_range_for_size").scalar("size", 3), {}},
    {Call("aten::_assert_scalar").scalar("self", true), {}},
    {Call("aten::_assert_async").in("self", boolean, {}), {.read_bytes = 1}},
    {Call("aten::_linalg_check_errors").in("info", int32, {5}), {.read_bytes = 20}},
    {Call("aten::_local_scalar_dense").in("self", fp32, {}), {.read_bytes = 4}},

    // The destination is written, not read; an expanded source is held once.
    {Call("aten::copy_").in("self", fp32, {2, 3}).written().in("src", fp16, {2, 3}).out(fp32, {2, 3}).written(),
     {.read_bytes = 12, .write_bytes = 24}},
    {Call("aten::copy_")
         .in("self", fp32, {2, 3})
         .written()
         .in("src", fp32, {2, 3})
         .expanded({true, false})
         .out(fp32, {2, 3})
         .written(),
     {.read_bytes = 12, .write_bytes = 24}},
    copy("aten::clone"),
    copy("aten::to_mkldnn"),
    copy("aten::_mkldnn_reshape"),
    copy("aten::_mkldnn_transpose"),
    {Call("aten::_to_copy").in("self", fp32, {2, 3}).out(bf16, {2, 3}), {.read_bytes = 24, .write_bytes = 12}},
    copy("aten::_reshape_copy"),
    copy("aten::_pin_memory"),
    {Call("aten::complex").in("real", fp32, {2, 3}).in("imag", fp32, {2, 3}).out(fp32, {2, 3}).complex(),
     {.read_bytes = 48, .write_bytes = 48}},
    {Call("aten::narrow_copy").in("self", fp32, {100, 3}).out(fp32, {2, 3}), {.read_bytes = 24, .write_bytes = 24}},
    // Two parts of three rows are left out; written where out= says.
    {Call("aten::split_with_sizes_copy")
         .in("all_gather_output", fp32, {6, 3})
         .list("out", {tensor(fp32, {2, 3}), tensor(fp32, {1, 3})})
         .written(),
     {.read_bytes = 36, .write_bytes = 36}},
    {Call("aten::split_copy").in("self", fp32, {2, 3}).out_list({tensor(fp32, {1, 3}), tensor(fp32, {1, 3})}),
     {.read_bytes = 24, .write_bytes = 24}},
    {Call("aten::unbind_copy").in("self", fp32, {2, 3}).out_list({tensor(fp32, {3}), tensor(fp32, {3})}),
     {.read_bytes = 24, .write_bytes = 24}},
    // An expanded input is held once.
    {Call("aten::unbind_copy")
         .in("self", fp32, {2, 3})
         .expanded({true, false})
         .out_list({tensor(fp32, {3}), tensor(fp32, {3})}),
     {.read_bytes = 12, .write_bytes = 24}},
    // 3 and 2 rows, each padded to two chunks of 2 and of 1.
    {Call("aten::_chunk_cat").list("tensors", {tensor(bf16, {3}), tensor(bf16, {2})}).out(fp32, {2, 3}),
     {.read_bytes = 10, .write_bytes = 24}},
    copy("aten::mkldnn_reorder_conv2d_weight"),
    copy("aten::mkldnn_reorder_conv3d_weight"),
    {Call("aten::lu_unpack")
         .in("LU_data", fp32, {3, 3})
         .in("LU_pivots", int32, {3})
         .out(fp32, {3, 3})
         .out(fp32, {3, 3})
         .out(fp32, {3, 3}),
     {.read_bytes = 36 + 12, .write_bytes = 108}},
    // A key cache of 7 positions takes one more.
    {Call("aten::cat").list("tensors", {tensor(bf16, {2, 7, 8}), tensor(bf16, {2, 1, 8})}).out(bf16, {2, 8, 8}),
     {.read_bytes = 224 + 32, .write_bytes = 256}},
    {Call("aten::stack").list("tensors", {tensor(fp32, {3}), tensor(fp32, {3})}).out(fp32, {2, 3}),
     {.read_bytes = 24, .write_bytes = 24}},
    {Call("aten::repeat").in("self", fp32, {2, 3}).out(fp32, {4, 9}), {.read_bytes = 24, .write_bytes = 144}},
    {Call("aten::repeat_interleave").in("self", fp32, {2, 3}).out(fp32, {4, 3}), {.read_bytes = 24, .write_bytes = 48}},
    copy("aten::roll"),
    copy("aten::flip"),
    copy("aten::tril"),
    copy("aten::triu"),
    {Call("aten::diag_embed").in("self", fp32, {3}).out(fp32, {3, 3}), {.read_bytes = 12, .write_bytes = 36}},
    copy("aten::pixel_shuffle"),
    copy("aten::pixel_unshuffle"),
    copy("aten::channel_shuffle"),
    // 2 x 2 windows of a 3 x 3 image: 4 columns of 4.
    {Call("aten::im2col").in("self", fp32, {1, 1, 3, 3}).out(fp32, {1, 4, 4}), {.read_bytes = 36, .write_bytes = 64}},
    {Call("aten::col2im").in("self", fp32, {1, 4, 4}).out(fp32, {1, 1, 3, 3}),
     {.flops = 16, .read_bytes = 64, .write_bytes = 36}},
    // 2 sequences of 5 and 3 steps.
    {Call("aten::_pack_padded_sequence")
         .in("input", fp32, {5, 2, 4})
         .in("lengths", int64, {2})
         .out(fp32, {8, 4})
         .out(int64, {5}),
     {.read_bytes = 160 + 16, .write_bytes = 128 + 40}},

    padding("aten::constant_pad_nd"),
    padding("aten::reflection_pad1d"),
    padding("aten::reflection_pad2d"),
    padding("aten::reflection_pad3d"),
    padding("aten::replication_pad1d"),
    padding("aten::replication_pad2d"),
    padding("aten::replication_pad3d"),
    padding_gradient("aten::reflection_pad1d_backward"),
    padding_gradient("aten::reflection_pad2d_backward"),
    padding_gradient("aten::reflection_pad3d_backward"),
    padding_gradient("aten::replication_pad1d_backward"),
    padding_gradient("aten::replication_pad2d_backward"),
    padding_gradient("aten::replication_pad3d_backward"),

    fill("aten::fill_", 0),
    fill("aten::zero_", 0),
    factory("aten::full"),
    factory_like("aten::full_like"),
    factory_like("aten::new_full"),
    factory("aten::zeros"),
    factory_like("aten::zeros_like"),
    factory_like("aten::new_zeros"),
    factory_like("aten::_new_zeros_with_same_feature_meta"),
    factory("aten::ones"),
    factory_like("aten::ones_like"),
    factory_like("aten::new_ones"),
    {Call("aten::scalar_tensor").scalar("s", 1.5).out(fp32, {}), {.write_bytes = 4}},
    factory("aten::eye"),
    of_integers("aten::arange", 0),
    factory("aten::range"),
    factory("aten::linspace"),
    factory("aten::logspace", 6),
    of_integers("aten::tril_indices", 0),
    of_integers("aten::triu_indices", 0),

    factory("aten::rand", 6),
    factory_like("aten::rand_like", 6),
    factory("aten::randn", 6),
    factory_like("aten::randn_like", 6),
    of_integers("aten::randint", 6),
    factory_like("aten::randint_like", 6),
    of_integers("aten::randperm", 6),
    fill("aten::random_", 6),
    fill("aten::uniform_", 6),
    fill("aten::normal_", 6),
    {Call("aten::normal").in("mean", fp32, {2, 3}).in("std", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 48, .write_bytes = 24}},
    factory_like("aten::normal_functional", 6),
    fill("aten::log_normal_", 6),
    fill("aten::cauchy_", 6),
    fill("aten::exponential_", 6),
    fill("aten::geometric_", 6),
    fill("aten::bernoulli_", 6),
    {Call("aten::bernoulli").in("self", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    {Call("aten::poisson").in("self", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    {Call("aten::binomial").in("count", fp32, {2, 3}).in("prob", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 48, .write_bytes = 24}},
    {Call("aten::_standard_gamma").in("self", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    {Call("aten::_sample_dirichlet").in("self", fp32, {2, 3}).out(fp32, {2, 3}),
     {.flops = 6, .read_bytes = 24, .write_bytes = 24}},
    {Call("aten::multinomial").in("self", fp32, {2, 50}).out(int64, {2, 1}),
     {.flops = 300, .read_bytes = 400, .write_bytes = 16}},
};

TEST(Movement, CostsAreAsWrittenOut) { check_family(movement_costs(), kCases); }

}  // namespace
}  // namespace roofprof::ops
