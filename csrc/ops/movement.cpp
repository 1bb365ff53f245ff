// Ops that move or make data without computing on them: copies, layouts, padding, fills, factories, random numbers.

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// Tensor arguments give only a shape or a dtype: ones_like, fill_, uniform_.
void written_only(const OpCall& call, Work& work) { write_results(call, work); }

// copy(self, src): self is the destination.
void copied_bytes(const OpCall& call, Work& work) {
  read(work, call.find_tensor("src"));
  write_results(call, work);
}

// Gradients of padding read the gradient; the input gives only its shape.
void gradient_bytes(const OpCall& call, Work& work) {
  read(work, &call.tensor("grad_output"));
  write_results(call, work);
}

constexpr OpCost kMovementCosts[] = {
    // No data moves, although the schema does not say that the result is a view, or no tensor comes out at all.
    {"aten::_unsafe_view", no_operations, 0, no_bytes, "", "a view"},
    {"aten::unsafe_split", no_operations, 0, no_bytes, "", "views"},
    {"aten::unsafe_split_with_sizes", no_operations, 0, no_bytes, "", "views"},
    {"aten::as_strided_", no_operations, 0, no_bytes, "", "a view, in place"},
    {"aten::detach_", no_operations, 0, no_bytes, "", "a view, in place"},
    {"aten::squeeze_", no_operations, 0, no_bytes, "", "a view, in place"},
    {"aten::unsqueeze_", no_operations, 0, no_bytes, "", "a view, in place"},
    {"aten::transpose_", no_operations, 0, no_bytes, "", "a view, in place"},
    {"aten::t_", no_operations, 0, no_bytes, "", "a view, in place"},
    {"aten::positive", no_operations, 0, no_bytes, "", "the same tensor"},
    {"aten::lift", no_operations, 0, no_bytes, "", "the same tensor"},
    {"aten::set_", no_operations, 0, no_bytes, "", "storage exchanged"},
    {"aten::resize_", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::resize_as_", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::empty", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::empty_like", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::empty_strided", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::empty_permuted", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::new_empty", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::new_empty_strided", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::_efficientzerotensor", no_operations, 0, no_bytes, "", "zeros that are not stored"},
    {"aten::is_pinned", no_operations, 0, no_bytes, "", "a question"},
    {"aten::_has_same_storage_numel", no_operations, 0, no_bytes, "", "a question"},
    {"aten::is_same_size", no_operations, 0, no_bytes, "", "a question"},
    {"aten::is_set_to", no_operations, 0, no_bytes, "", "a question"},
    {"aten::_use_cudnn_ctc_loss", no_operations, 0, no_bytes, "", "a question"},
    {"aten::_resize_output_", no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::sym_constrain_range", no_operations, 0, no_bytes, "", "a note to the compiler"},
    {"aten::sym_constrain_range_for_size", no_operations, 0, no_bytes, "", "a note to the compiler"},
    {"aten::_assert_scalar", no_operations, 0, no_bytes, "", "a check of a number"},
    {"aten::_assert_tensor_metadata", no_operations, 0, no_bytes, "", "a check of sizes and types"},
    {"aten::_assert_async", no_operations, 0, nullptr, "", "one element read"},
    {"aten::record_stream", no_operations, 0, no_bytes, "", "a note to the allocator"},
    {"aten::_linalg_check_errors", no_operations, 0, nullptr, "", "a solver's error codes read"},
    {"aten::_local_scalar_dense", no_operations, 0, nullptr, "", "one element read"},

    // Copies: read and written.
    {"aten::copy", no_operations, 0, copied_bytes, "", "src copied"},
    {"aten::clone", no_operations, 0, nullptr, "", "copied"},
    {"aten::_to_copy", no_operations, 0, nullptr, "", "copied to another dtype, device or layout"},
    {"aten::_reshape_copy", no_operations, 0, nullptr, "", "copied"},
    {"aten::to_mkldnn", no_operations, 0, nullptr, "", "copied to another dtype or layout"},
    {"aten::_mkldnn_reshape", no_operations, 0, nullptr, "", "copied"},
    {"aten::_mkldnn_transpose", no_operations, 0, nullptr, "", "copied"},
    {"aten::_pin_memory", no_operations, 0, nullptr, "", "copied"},
    {"aten::complex", no_operations, 0, nullptr, "", "two parts copied into one tensor"},
    {"aten::narrow_copy", no_operations, 0, part_copied_bytes, "", "the narrow part copied"},
    // torch does not tag the out= forms of these as copies.
    {"aten::split_copy", no_operations, 0, part_copied_bytes, "", "the parts copied"},
    {"aten::split_with_sizes_copy", no_operations, 0, part_copied_bytes, "", "the parts copied"},
    {"aten::unbind_copy", no_operations, 0, part_copied_bytes, "", "the parts copied"},
    {"aten::_chunk_cat", no_operations, 0, nullptr, "", "all tensors copied, with padding"},
    {"aten::mkldnn_reorder_conv2d_weight", no_operations, 0, nullptr, "", "copied to another layout"},
    {"aten::mkldnn_reorder_conv3d_weight", no_operations, 0, nullptr, "", "copied to another layout"},
    {"aten::lu_unpack", no_operations, 0, nullptr, "", "copied into separate factors"},
    {"aten::cat", no_operations, 0, nullptr, "", "all tensors copied"},
    {"aten::stack", no_operations, 0, nullptr, "", "all tensors copied"},
    {"aten::repeat", no_operations, 0, nullptr, "", "read once, written repeated"},
    {"aten::repeat_interleave", no_operations, 0, nullptr, "", "read once, written repeated"},
    {"aten::roll", no_operations, 0, nullptr, "", "copied"},
    {"aten::flip", no_operations, 0, nullptr, "", "copied"},
    {"aten::tril", no_operations, 0, nullptr, "", "copied, the other half zero"},
    {"aten::triu", no_operations, 0, nullptr, "", "copied, the other half zero"},
    {"aten::diag_embed", no_operations, 0, nullptr, "", "copied into zeros"},
    {"aten::pixel_shuffle", no_operations, 0, nullptr, "", "copied"},
    {"aten::pixel_unshuffle", no_operations, 0, nullptr, "", "copied"},
    {"aten::channel_shuffle", no_operations, 0, nullptr, "", "copied"},
    {"aten::im2col", no_operations, 0, nullptr, "", "read once, written by window"},
    {"aten::col2im", per_input, 1, nullptr, "", "windows overlap: one addition per column element"},
    {"aten::_pack_padded_sequence", no_operations, 0, nullptr, "", "copied without the padding"},

    // Padding. Going back, the gradients of the borders are added to those inside.
    {"aten::constant_pad_nd", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::reflection_pad1d", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::reflection_pad2d", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::reflection_pad3d", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::replication_pad1d", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::replication_pad2d", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::replication_pad3d", no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::reflection_pad1d_backward", per_input, 1, gradient_bytes, "", "one addition per gradient"},
    {"aten::reflection_pad2d_backward", per_input, 1, gradient_bytes, "", "one addition per gradient"},
    {"aten::reflection_pad3d_backward", per_input, 1, gradient_bytes, "", "one addition per gradient"},
    {"aten::replication_pad1d_backward", per_input, 1, gradient_bytes, "", "one addition per gradient"},
    {"aten::replication_pad2d_backward", per_input, 1, gradient_bytes, "", "one addition per gradient"},
    {"aten::replication_pad3d_backward", per_input, 1, gradient_bytes, "", "one addition per gradient"},

    // Fills and factories: written only.
    {"aten::fill", no_operations, 0, written_only, "", "written only"},
    {"aten::zero", no_operations, 0, written_only, "", "written only"},
    {"aten::full", no_operations, 0, written_only, "", "written only"},
    {"aten::full_like", no_operations, 0, written_only, "", "written only"},
    {"aten::new_full", no_operations, 0, written_only, "", "written only"},
    {"aten::zeros", no_operations, 0, written_only, "", "written only"},
    {"aten::zeros_like", no_operations, 0, written_only, "", "written only"},
    {"aten::new_zeros", no_operations, 0, written_only, "", "written only"},
    {"aten::_new_zeros_with_same_feature_meta", no_operations, 0, written_only, "", "written only"},
    {"aten::ones", no_operations, 0, written_only, "", "written only"},
    {"aten::ones_like", no_operations, 0, written_only, "", "written only"},
    {"aten::new_ones", no_operations, 0, written_only, "", "written only"},
    {"aten::scalar_tensor", no_operations, 0, written_only, "", "written only"},
    {"aten::eye", no_operations, 0, written_only, "", "written only"},
    {"aten::arange", no_operations, 0, written_only, "", "written only"},
    {"aten::range", no_operations, 0, written_only, "", "written only"},
    {"aten::linspace", no_operations, 0, written_only, "", "written only"},
    {"aten::logspace", per_output, 1, written_only, "", "one power per element"},
    {"aten::tril_indices", no_operations, 0, written_only, "", "written only"},
    {"aten::triu_indices", no_operations, 0, written_only, "", "written only"},

    // Random numbers: one operation for each that is drawn, whatever the distribution.
    {"aten::rand", per_output, 1, written_only, "", "one draw per element"},
    {"aten::rand_like", per_output, 1, written_only, "", "one draw per element"},
    {"aten::randn", per_output, 1, written_only, "", "one draw per element"},
    {"aten::randn_like", per_output, 1, written_only, "", "one draw per element"},
    {"aten::randint", per_output, 1, written_only, "", "one draw per element"},
    {"aten::randint_like", per_output, 1, written_only, "", "one draw per element"},
    {"aten::randperm", per_output, 1, written_only, "", "one draw per element"},
    {"aten::random", per_output, 1, written_only, "", "one draw per element"},
    {"aten::uniform", per_output, 1, written_only, "", "one draw per element"},
    {"aten::normal", per_output, 1, overwriting_bytes, "", "one draw per element; mean and std are read"},
    {"aten::normal_functional", per_output, 1, written_only, "", "one draw per element"},
    {"aten::log_normal", per_output, 1, written_only, "", "one draw per element"},
    {"aten::cauchy", per_output, 1, written_only, "", "one draw per element"},
    {"aten::exponential", per_output, 1, written_only, "", "one draw per element"},
    {"aten::geometric", per_output, 1, written_only, "", "one draw per element"},
    {"aten::bernoulli", per_output, 1, overwriting_bytes, "", "one draw per element; probabilities are read"},
    {"aten::poisson", per_output, 1, nullptr, "", "one draw per element; rates are read"},
    {"aten::binomial", per_output, 1, nullptr, "", "one draw per element; counts and probabilities are read"},
    {"aten::_standard_gamma", per_output, 1, nullptr, "", "one draw per element; shapes are read"},
    {"aten::_sample_dirichlet", per_output, 1, nullptr, "", "one draw per element; concentrations are read"},
    {"aten::multinomial", per_input, 3, nullptr, "", "per weight: a draw, a division, a comparison"},
};

}  // namespace

std::span<const OpCost> movement_costs() { return kMovementCosts; }

}  // namespace roofprof::ops
