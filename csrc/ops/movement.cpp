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
    {"aten::unsafe_split aten::unsafe_split_with_sizes", no_operations, 0, no_bytes, "", "views"},
    {"aten::as_strided_ aten::detach_ aten::squeeze_ aten::unsqueeze_ aten::transpose_ aten::t_", no_operations, 0,
     no_bytes, "", "a view, in place"},
    {"aten::positive aten::lift", no_operations, 0, no_bytes, "", "the same tensor"},
    {"aten::set_", no_operations, 0, no_bytes, "", "storage exchanged"},
    {"aten::resize_ aten::resize_as_ aten::empty aten::empty_like aten::empty_strided aten::empty_permuted "
     "aten::new_empty aten::new_empty_strided aten::_resize_output_",
     no_operations, 0, no_bytes, "", "memory allocated"},
    {"aten::_efficientzerotensor", no_operations, 0, no_bytes, "", "zeros that are not stored"},
    {"aten::is_pinned aten::_has_same_storage_numel aten::is_same_size aten::is_set_to aten::_use_cudnn_ctc_loss",
     no_operations, 0, no_bytes, "", "a question"},
    {"aten::sym_constrain_range aten::sym_constrain_range_for_size", no_operations, 0, no_bytes, "",
     "a note to the compiler"},
    {"aten::_assert_scalar", no_operations, 0, no_bytes, "", "a check of a number"},
    {"aten::_assert_tensor_metadata", no_operations, 0, no_bytes, "", "a check of sizes and types"},
    {"aten::_assert_async aten::_local_scalar_dense", no_operations, 0, nullptr, "", "one element read"},
    {"aten::record_stream", no_operations, 0, no_bytes, "", "a note to the allocator"},
    {"aten::_linalg_check_errors", no_operations, 0, nullptr, "", "a solver's error codes read"},

    // Copies: read and written.
    {"aten::copy", no_operations, 0, copied_bytes, "", "src copied"},
    {"aten::clone aten::_reshape_copy aten::_mkldnn_reshape aten::_mkldnn_transpose aten::_pin_memory", no_operations,
     0, nullptr, "", "copied"},
    {"aten::_to_copy", no_operations, 0, nullptr, "", "copied to another dtype, device or layout"},
    {"aten::to_mkldnn", no_operations, 0, nullptr, "", "copied to another dtype or layout"},
    {"aten::complex", no_operations, 0, nullptr, "", "two parts copied into one tensor"},
    {"aten::narrow_copy", no_operations, 0, part_copied_bytes, "", "the narrow part copied"},
    // torch does not tag the out= forms of these as copies.
    {"aten::split_copy aten::split_with_sizes_copy aten::unbind_copy", no_operations, 0, part_copied_bytes, "",
     "the parts copied"},
    {"aten::_chunk_cat", no_operations, 0, nullptr, "", "all tensors copied, with padding"},
    {"aten::mkldnn_reorder_conv2d_weight aten::mkldnn_reorder_conv3d_weight", no_operations, 0, nullptr, "",
     "copied to another layout"},
    {"aten::lu_unpack", no_operations, 0, nullptr, "", "copied into separate factors"},
    {"aten::cat aten::stack", no_operations, 0, nullptr, "", "all tensors copied"},
    {"aten::repeat aten::repeat_interleave", no_operations, 0, nullptr, "", "read once, written repeated"},
    {"aten::roll aten::flip aten::pixel_shuffle aten::pixel_unshuffle aten::channel_shuffle", no_operations, 0, nullptr,
     "", "copied"},
    {"aten::tril aten::triu", no_operations, 0, nullptr, "", "copied, the other half zero"},
    {"aten::diag_embed", no_operations, 0, nullptr, "", "copied into zeros"},
    {"aten::im2col", no_operations, 0, nullptr, "", "read once, written by window"},
    {"aten::col2im", per_input, 1, nullptr, "", "windows overlap: one addition per column element"},
    {"aten::_pack_padded_sequence", no_operations, 0, nullptr, "", "copied without the padding"},

    // Padding. Going back, the gradients of the borders are added to those inside.
    {"aten::constant_pad_nd aten::reflection_pad1d aten::reflection_pad2d aten::reflection_pad3d "
     "aten::replication_pad1d aten::replication_pad2d aten::replication_pad3d",
     no_operations, 0, nullptr, "", "copied into a larger tensor"},
    {"aten::reflection_pad1d_backward aten::reflection_pad2d_backward aten::reflection_pad3d_backward "
     "aten::replication_pad1d_backward aten::replication_pad2d_backward aten::replication_pad3d_backward",
     per_input, 1, gradient_bytes, "", "one addition per gradient"},

    // Fills and factories: written only.
    {"aten::fill aten::zero aten::full aten::full_like aten::new_full aten::zeros aten::zeros_like aten::new_zeros "
     "aten::_new_zeros_with_same_feature_meta aten::ones aten::ones_like aten::new_ones aten::scalar_tensor aten::eye "
     "aten::arange aten::range aten::linspace aten::tril_indices aten::triu_indices",
     no_operations, 0, written_only, "", "written only"},
    {"aten::logspace", per_output, 1, written_only, "", "one power per element"},

    // Random numbers: one operation for each that is drawn, whatever the distribution.
    {"aten::rand aten::rand_like aten::randn aten::randn_like aten::randint aten::randint_like aten::randperm "
     "aten::random aten::uniform aten::normal_functional aten::log_normal aten::cauchy aten::exponential "
     "aten::geometric",
     per_output, 1, written_only, "", "one draw per element"},
    {"aten::normal", per_output, 1, overwriting_bytes, "", "one draw per element; mean and std are read"},
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
