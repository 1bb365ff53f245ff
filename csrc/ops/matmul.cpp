// Matrix products: one MAC per output element and contracted index.

#include <algorithm>
#include <array>
#include <stdexcept>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- parts of the formulas

// The length that a left operand is contracted over: its last dimension. fp4 elements are held two to an item.
std::int64_t contracted(const TensorDesc& left) {
  const std::int64_t length = left.dim() == 0 ? 1 : left.size(-1);
  return left.dtype == DType::fp4 ? saturating_multiply(2, length) : length;
}

// Every output element is a dot product over the left operand's last dimension, whatever is broadcast around it.
std::int64_t macs_of_product(const OpCall& call, const TensorDesc& left) {
  return saturating_multiply(call.result().numel(), contracted(left));
}

// The same where an operand may be sparse: each of its stored values meets one row (or column) of the other.
std::int64_t macs_of_product(const OpCall& call, const TensorDesc& left, const TensorDesc& right) {
  const std::int64_t dense = macs_of_product(call, left);
  if (!left.is_sparse() && !right.is_sparse()) return dense;
  if (left.is_sparse() && right.is_sparse()) {
    throw std::domain_error("the product of two sparse tensors depends on where their values lie");
  }
  const TensorDesc& sparse = left.is_sparse() ? left : right;
  return sparse.numel() == 0 ? 0 : saturating_multiply(dense / sparse.numel(), sparse.stored_numel());
}

// `times` additions, multiplications or the like for each of `elements`; on complex numbers an addition is two real
// ones.
void add_elementwise(Work& work, std::int64_t times, std::int64_t elements, const TensorDesc& operand) {
  add_operations(work, product({times, elements, operand.is_complex ? 2 : 1}), operand.dtype);
}

bool has_bias(const OpCall& call) { return call.find_tensor("bias") != nullptr || call.find_tensor("B") != nullptr; }

// ---- CountOperations

void matmul(const OpCall& call, std::int64_t extra_per_output, Work& work) {
  const TensorDesc& left = call.tensor(std::size_t{0});
  add_macs(work, macs_of_product(call, left, call.tensor(std::size_t{1})), left);
  add_elementwise(work, extra_per_output, call.result().numel(), left);
}

// Counts no additions where a factor is a number, which has no dimension.
void inner(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& left = call.tensor(std::size_t{0});
  if (left.dim() > 0 && call.tensor(std::size_t{1}).dim() > 0) return matmul(call, 0, work);
  add_operations(work, saturating_multiply(call.result().numel(), left.is_complex ? 6 : 1), call.compute_dtype());
}

// The weight is what is done for each output element besides product and bias.
void linear(const OpCall& call, std::int64_t extra_per_output, Work& work) {
  matmul(call, extra_per_output + (has_bias(call) ? 1 : 0), work);
}

void addmm(const OpCall& call, std::int64_t extra_per_output, Work& work) {
  const TensorDesc& left = call.tensor(std::size_t{1});
  add_macs(work, macs_of_product(call, left, call.tensor(std::size_t{2})), left);
  add_elementwise(work, extra_per_output + blend_operations(call), call.result().numel(), left);
}

void addmm_activation(const OpCall& call, std::int64_t gelu, Work& work) {
  addmm(call, call.boolean("use_gelu", false) ? gelu : 1, work);
}

void addbmm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& left = call.tensor("batch1");
  add_macs(work, saturating_multiply(left.size(0), macs_of_product(call, left)), left);
  add_elementwise(work, blend_operations(call), call.result().numel(), left);
}

void addr(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  add_elementwise(work, 1 + blend_operations(call), call.result().numel(), call.tensor("vec1"));
}

// The part of the split dimension that the groups cover: elements beyond the last offset are ignored. Where the offsets
// cannot be read, or all operands are batches, the groups cover all of it.
struct Covered {
  std::int64_t part = 1;
  std::int64_t whole = 1;

  // Returns how many elements are covered of a tensor that has the dimension.
  std::int64_t of(std::int64_t elements) const {
    return part == whole ? elements : saturating_multiply(elements, part) / whole;
  }
};

Covered covered_by_groups(const OpCall& call) {
  const TensorDesc& left = call.tensor("self");
  const TensorDesc& right = call.tensor("mat2");
  if (left.dim() != 2 && right.dim() != 2) return {};
  const std::int64_t whole = left.dim() != 2 ? right.size(1) : right.dim() != 2 ? left.size(0) : contracted(left);
  if (whole <= 0) return {};
  return {std::clamp(call.integer("offs[-1]", whole), std::int64_t{0}, whole), whole};
}

// Returns true if the groups split the contraction itself: only where both operands are 2-d.
bool splits_contraction(const OpCall& call) { return call.tensor("self").dim() == 2 && call.tensor("mat2").dim() == 2; }

void grouped_mm(const OpCall& call, std::int64_t extra_per_output, Work& work) {
  const TensorDesc& left = call.tensor("self");
  const TensorDesc& right = call.tensor("mat2");
  const auto covered = covered_by_groups(call);
  const std::int64_t outputs = splits_contraction(call) ? call.result().numel() : covered.of(call.result().numel());
  const std::int64_t macs = splits_contraction(call) ? product({left.size(0), covered.part, right.size(1)})
                                                     : saturating_multiply(outputs, contracted(left));
  add_macs(work, macs, left);
  add_elementwise(work, extra_per_output + (has_bias(call) ? 1 : 0), outputs, left);
}

void grouped_bytes(const OpCall& call, Work& work) {
  compulsory_bytes(call, work);
  const auto covered = covered_by_groups(call);
  const auto ignored = [&](const TensorDesc& split) {
    return split.repeated ? 0 : split.held_bytes() - covered.of(split.held_bytes());
  };
  const TensorDesc& left = call.tensor("self");
  const TensorDesc& right = call.tensor("mat2");
  if (left.dim() == 2) work.read_bytes -= ignored(left);
  if (right.dim() == 2) work.read_bytes -= ignored(right);
  if (left.dim() != right.dim()) work.write_bytes -= ignored(call.result());
}

// The weight is the number of operations that turn one stored integer into a factor.
void dequantized_linear(const OpCall& call, std::int64_t per_weight, Work& work) {
  const TensorDesc& left = call.tensor(std::size_t{0});
  linear(call, 0, work);
  add_operations(work, product({per_weight, call.result().size(-1), contracted(left)}), left.dtype);
}

void bilinear(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& left = call.tensor("input1");
  const std::int64_t outputs = call.result().numel();
  add_macs(work, product({outputs, left.size(-1), call.tensor("input2").size(-1)}), left);
  add_elementwise(work, has_bias(call) ? 1 : 0, outputs, left);
}

// sum(i1 * i2 * i3) over sumdim, each operand with dimensions of size 1 put in at expand1..3: as many MACs as the whole
// index space has points, which for nn.Bilinear is n*out*in1*in2.
void trilinear(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const std::array<std::vector<std::int64_t>, 3> expansions = {call.integers("expand1"), call.integers("expand2"),
                                                               call.integers("expand3")};
  const std::size_t dims = call.tensor("i1").sizes.size() + expansions[0].size();
  std::vector<std::int64_t> space(dims, 1);
  for (std::size_t operand = 0; operand < expansions.size(); ++operand) {
    auto size = call.tensor(operand).sizes.begin();
    for (std::size_t dim = 0; dim < dims; ++dim) {
      const bool is_inserted = std::ranges::count(expansions[operand], static_cast<std::int64_t>(dim)) > 0;
      if (!is_inserted) space[dim] = std::max(space[dim], *size++);
    }
  }
  add_macs(work, product(space), call.tensor("i1"));
}

// A product for each pair of the two lists.
void foreach_mm(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const std::vector<TensorDesc>& lefts = call.tensors("self");
  const std::vector<TensorDesc>& rights = call.tensors("mat2");
  for (std::size_t i = 0; i < lefts.size(); ++i) {
    add_macs(work, product({lefts[i].numel(), rights.at(i).size(-1)}), lefts[i]);
  }
}

// Sums of tensors, weighted by the rows of a matrix.
void linear_combination(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& coefficients = call.tensor("coefficients");
  add_macs(work, saturating_multiply(call.result().numel(), coefficients.size(1)), coefficients);
}

// Every point of the grid (n, height, width, 2), in homogeneous coordinates, is multiplied by a 2 x 3 matrix; going
// back the grid is the gradient that comes in.
void affine_grid(const OpCall& call, std::int64_t coordinates, Work& work) {
  const TensorDesc& first = call.tensor(std::size_t{0});
  const TensorDesc& grid = first.dim() == 4 ? first : call.result();
  add_macs(work, saturating_multiply(grid.numel(), coordinates), grid);
}

// Each wanted gradient of an operand repeats the forward's MACs; the bias gradient adds the output gradients up.
void linear_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& grad = call.tensor("grad_output");
  const std::int64_t forward_macs = saturating_multiply(grad.numel(), call.tensor("self").size(-1));
  for (const std::size_t input_or_weight : {0, 1}) {
    if (wants_gradient(call, input_or_weight)) add_macs(work, forward_macs, grad);
  }
  if (wants_gradient(call, 2)) add_elementwise(work, 1, grad.numel(), grad);
}

void matmul_backward(const OpCall& call, std::int64_t /*weight*/, Work& work) {
  const TensorDesc& grad = call.tensor("grad");
  const std::int64_t forward_macs = saturating_multiply(grad.numel(), contracted(call.tensor("self")));
  for (const std::int64_t wanted : call.integers("mask")) add_macs(work, wanted != 0 ? forward_macs : 0, grad);
}

// The weight is counted for each pair of points and coordinate, and one root for each pair.
void distances(const OpCall& call, std::int64_t per_coordinate, Work& work) {
  const TensorDesc& points = call.tensor(std::size_t{0});
  add_operations(work, product({call.result().numel(), per_coordinate * points.size(-1) + 1}), points.dtype);
}

void distances_backward(const OpCall& call, std::int64_t per_coordinate, Work& work) {
  const TensorDesc& points = call.tensor(std::size_t{1});
  const std::int64_t pairs = call.tensor(std::size_t{0}).numel();
  add_operations(work, product({pairs, per_coordinate, points.size(-1)}), points.dtype);
}

// ---- CountBytes

// beta 0 means that self is not read.
void blend_bytes(const OpCall& call, Work& work) {
  if (call.number("beta", 1) != 0) return compulsory_bytes(call, work);
  for (const auto& argument : call.arguments) {
    if (argument.name != "self" && !argument.written) read(work, argument.tensors);
  }
  write_results(call, work);
}

// Leaves out the original weight, which is passed for its shape only, together with the packed one.
void prepacked_bytes(const OpCall& call, Work& work) {
  for (const auto& argument : call.arguments) {
    if (argument.name != "ORI_W") read(work, argument.tensors);
  }
  write_results(call, work);
}

void linear_backward_bytes(const OpCall& call, Work& work) {
  read(work, call.find_tensor("grad_output"));
  if (wants_gradient(call, 0)) read(work, call.find_tensor("weight"));
  if (wants_gradient(call, 1)) read(work, call.find_tensor("self"));
  write_results(call, work);
}

void matmul_backward_bytes(const OpCall& call, Work& work) {
  const std::vector<std::int64_t> wanted = call.integers("mask");
  read(work, call.find_tensor("grad"));
  if (wanted.at(0) != 0) read(work, call.find_tensor("other"));
  if (wanted.at(1) != 0) read(work, call.find_tensor("self"));
  write_results(call, work);
}

constexpr const char* kProduct = "MACs = outputs x contracted length";
constexpr const char* kLinear = "MACs = outputs x input features; bias 1 per output";
constexpr const char* kBlend =
    "MACs = outputs x contracted length; + self 1 per output, factors beta and alpha if not 1";
constexpr const char* kGrouped =
    "sum over groups, without what lies beyond offs[-1] (all of it where offs is not on the CPU); bias 1 per output";
constexpr const char* kScaledGrouped =
    "sum over groups, without what lies beyond offs[-1] (all of it where offs is not on the CPU); scale 1, bias 1";
constexpr const char* kScaled = "MACs = outputs x contracted length; scale 1 per output, bias 1";
constexpr const char* kLinearFused = "linear + one fused operation per output";

constexpr OpCost kMatmulCosts[] = {
    {"aten::mm aten::bmm aten::matmul aten::mv aten::dot aten::vdot", matmul, 0, nullptr, "", kProduct},
    {"aten::_sparse_sparse_matmul", matmul, 0, nullptr, "", "not known: it depends on where the values lie"},
    {"aten::inner", inner, 0, nullptr, "", "as matmul; with a number one multiplication per output"},
    {"aten::_int_mm", matmul, 0, nullptr, "", "MACs = outputs x contracted length, integer operations"},

    {"aten::linear aten::mkldnn_linear", linear, 0, nullptr, "", kLinear},
    {"mkl::_mkl_linear", linear, 0, prepacked_bytes, "", kLinear},
    {"mkldnn::_linear_pointwise", linear, 1, nullptr, "", kLinearFused},

    {"aten::addmm aten::addmv aten::baddbmm", addmm, 0, blend_bytes, "beta,alpha", kBlend},
    {"aten::addbmm", addbmm, 0, blend_bytes, "beta,alpha", "as baddbmm, the batch summed as well"},
    {"aten::_addmm_activation", addmm_activation, 5, blend_bytes, "beta,alpha,use_gelu", "addmm + relu 1 or gelu 5"},
    {"aten::addr", addr, 0, blend_bytes, "beta,alpha", "product 1 per output, + self 1, factors if not 1; no MACs"},
    {"aten::outer aten::ger", per_output, 1, nullptr, "", "1 per output; no MACs"},

    {"aten::_scaled_mm aten::_scaled_mm_v2", linear, 1, nullptr, "", kScaled},
    {"aten::_grouped_mm", grouped_mm, 0, grouped_bytes, "offs[-1]", kGrouped},
    {"aten::_scaled_grouped_mm aten::_scaled_grouped_mm_v2", grouped_mm, 1, grouped_bytes, "offs[-1]", kScaledGrouped},

    {"aten::_weight_int8pack_mm aten::_dyn_quant_matmul_4bit", linear, 1, nullptr, "",
     "MACs in the input's dtype; scale 1 per output"},
    {"aten::_weight_int4pack_mm", dequantized_linear, 2, nullptr, "", "linear + scale and zero point: 2 per weight"},
    {"aten::_weight_int4pack_mm_for_cpu aten::_weight_int4pack_mm_with_scales_and_zeros", dequantized_linear, 2,
     nullptr, "", "linear + 2 per weight"},
    {"aten::_mixed_dtypes_linear", dequantized_linear, 1, nullptr, "", "linear + scale: 1 per weight"},

    {"aten::bilinear", bilinear, 0, nullptr, "", "MACs = n x out x in1 x in2; bias 1 per output"},
    {"aten::_trilinear", trilinear, 0, nullptr, "expand1,expand2,expand3", "MACs = points of the common index space"},

    {"aten::_foreach_mm", foreach_mm, 0, nullptr, "", "mm for each pair of the lists"},
    {"aten::_compute_linear_combination", linear_combination, 0, nullptr, "", "MACs = outputs x combined tensors"},
    {"aten::cudnn_affine_grid_generator", affine_grid, 3, nullptr, "", "MACs = 3 per coordinate of the grid"},
    {"aten::cudnn_affine_grid_generator_backward", affine_grid, 3, nullptr, "", "MACs = 3 per gradient of the grid"},

    {"aten::linear_backward", linear_backward, 0, linear_backward_bytes, "output_mask",
     "the forward's MACs per wanted operand gradient; bias gradient 1 per output"},
    {"aten::mkldnn_linear_backward", linear_backward, 0, linear_backward_bytes, "output_mask", "as linear_backward"},
    {"aten::matmul_backward", matmul_backward, 0, matmul_backward_bytes, "mask",
     "the forward's MACs per wanted gradient"},

    {"aten::_cdist_forward", distances, 3, nullptr, "",
     "subtract, power, add per pair and coordinate; 1 root per pair"},
    {"aten::_cdist_backward", distances_backward, 4, nullptr, "", "subtract, power, multiply, add per coordinate"},
    {"aten::_pdist_forward", distances, 3, nullptr, "", "as _cdist_forward, each pair once"},
    {"aten::_pdist_backward", distances_backward, 4, nullptr, "", "as _cdist_backward, each pair once"},
};

}  // namespace

std::span<const OpCost> matmul_costs() { return kMatmulCosts; }

}  // namespace roofprof::ops
