// Gather, scatter, embeddings and masks. Values of indices are not looked at: what they can touch at most is counted,
// every element once.

#include <algorithm>
#include <limits>
#include <vector>

#include "ops/counting.h"
#include "ops/registry.h"

namespace roofprof::ops {

namespace {

// ---- gathering

// `elements` of the tensor, never more than it holds.
std::int64_t bytes_of_some(const TensorDesc& tensor, std::int64_t elements) {
  return saturating_multiply(std::min(elements, tensor.held_numel()), tensor.item_bytes);
}

// All inputs but the first argument.
void read_others(const OpCall& call, Work& work) {
  for (std::size_t i = 1; i < call.arguments.size(); ++i) {
    if (!call.arguments[i].written) read(work, call.arguments[i].tensors);
  }
}

// Every result element is one element of the source. For whole rows that is min(indices, rows) x row bytes.
void gather_bytes(const OpCall& call, Work& work) {
  work.read_bytes = bytes_of_some(call.tensor(0), call.result().numel());
  read_others(call, work);
  write_results(call, work);
}

// Indices times the length of a row of the table.
std::int64_t gathered(const TensorDesc& table, const TensorDesc& indices) {
  return saturating_multiply(indices.numel(), table.size(-1));
}

// Bags of rows are summed (mode 0), averaged (1) or searched for their maximum (2).
void embedding_bag(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t scaled = call.find_tensor("per_sample_weights") != nullptr ? 1 : 0;
  const std::int64_t rows = gathered(call.tensor("weight"), call.tensor("indices"));
  add_operations(work, saturating_multiply(weight + scaled, rows), call.compute_dtype());
  if (call.integer("mode", 0) == 1) per_output(call, 1, work);
}

void embedding_bag_bytes(const OpCall& call, Work& work) {
  work.read_bytes = bytes_of_some(call.tensor("weight"), gathered(call.tensor("weight"), call.tensor("indices")));
  read_others(call, work);
  write_results(call, work);
}

void embedding_bag_backward(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t scaled = call.find_tensor("per_sample_weights") != nullptr ? 1 : 0;
  const std::int64_t rows = gathered(call.tensor("grad"), call.tensor("indices"));
  add_operations(work, saturating_multiply(weight + scaled, rows), call.compute_dtype());
}

// Each weight's gradient is the product of its row with its bag's gradient.
void bag_weights(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t rows = gathered(call.tensor("grad"), call.tensor("indices"));
  add_operations(work, saturating_multiply(weight, rows), call.compute_dtype());
}

void bag_row_bytes(const OpCall& call, Work& work) {
  work.read_bytes = bytes_of_some(call.tensor("weight"), gathered(call.tensor("grad"), call.tensor("indices")));
  for (const char* name : {"grad", "indices", "offsets", "offset2bag"}) read(work, call.find_tensor(name));
  write_results(call, work);
}

// The norm of every row that is looked up, and the row scaled where it is too long.
void embedding_renorm(const OpCall& call, std::int64_t weight, Work& work) {
  const std::int64_t rows = gathered(call.tensor("self"), call.tensor("indices"));
  add_operations(work, saturating_multiply(weight, rows), call.compute_dtype());
}

void embedding_renorm_bytes(const OpCall& call, Work& work) {
  const TensorDesc& table = call.tensor("self");
  work.read_bytes = work.write_bytes = bytes_of_some(table, gathered(table, call.tensor("indices")));
  read_others(call, work);
}

// ---- scattering

// Returns the elements of self that are touched: one for every update or, where one value is used for all, for every
// index. The src of a scatter may hold more than is used: there the indices count.
std::int64_t updates(const OpCall& call) {
  if (call.find_tensor("src") != nullptr) return call.tensor("index").numel();
  std::int64_t count = 0;
  for (std::size_t i = 1; i < call.arguments.size(); ++i) {
    if (call.arguments[i].written) continue;
    for (const auto& tensor : call.arguments[i].tensors) count = std::max(count, tensor.numel());
  }
  return count;
}

void per_update(const OpCall& call, std::int64_t weight, Work& work) {
  add_operations(work, saturating_multiply(weight, updates(call)), call.compute_dtype());
}

void per_put(const OpCall& call, std::int64_t weight, Work& work) {
  if (call.boolean("accumulate", false)) per_update(call, weight, work);
}

void per_reduced(const OpCall& call, std::int64_t weight, Work& work) {
  if (!call.text("reduce").empty()) per_update(call, weight, work);
}

// An op in place moves only the elements that it touches, and reads their old values only where it combines them with
// new ones. The forms that return a new tensor copy all of self.
void scatter_into(const OpCall& call, std::int64_t touched, bool combined, Work& work) {
  if (!call.arguments.at(0).written) return compulsory_bytes(call, work);
  work.write_bytes = bytes_of_some(call.tensor(0), touched);
  if (combined) work.read_bytes = work.updated_bytes = work.write_bytes;
  read_others(call, work);
}

void overwrite_some(const OpCall& call, Work& work) { scatter_into(call, updates(call), false, work); }

void combine_some(const OpCall& call, Work& work) { scatter_into(call, updates(call), true, work); }

void put_bytes(const OpCall& call, Work& work) {
  scatter_into(call, updates(call), call.boolean("accumulate", false), work);
}

void scatter_bytes(const OpCall& call, Work& work) {
  scatter_into(call, updates(call), !call.text("reduce").empty(), work);
}

// Whole slices along dim, one for every index.
void index_fill_bytes(const OpCall& call, Work& work) {
  const TensorDesc& self = call.tensor("self");
  const std::int64_t length = self.dim() == 0 ? 1 : self.size(static_cast<int>(call.integer("dim", 0)));
  const std::int64_t slice = length == 0 ? 0 : self.numel() / length;
  scatter_into(call, saturating_multiply(call.tensor("index").numel(), slice), false, work);
}

// A copy of self with src in one part: together as much is read as is written.
void patched_bytes(const OpCall& call, Work& work) {
  write_results(call, work);
  work.read_bytes = work.write_bytes;
}

// ---- advanced indexing: x[indices] = values

// A mask indexes as many dimensions as it has; any other index, like None, one.
bool is_mask(const TensorDesc& index) { return index.dtype == DType::boolean || index.dtype == DType::uint8; }

// The dimensions of self that no index is given for.
std::vector<int> whole_dims(const TensorDesc& self, const std::vector<TensorDesc>& indices) {
  std::vector<int> dims;
  int dim = 0;
  std::size_t position = 0;
  for (const auto& index : indices) {
    for (; position < index.place; ++position) dims.push_back(dim++);
    dim += is_mask(index) ? index.dim() : 1;
    ++position;
  }
  while (dim < self.dim()) dims.push_back(dim++);
  return dims;
}

// The sizes that the indices, masks left out, have together.
std::vector<std::int64_t> broadcast_sizes(const std::vector<TensorDesc>& indices) {
  std::vector<std::int64_t> sizes;
  for (const auto& index : indices) {
    if (is_mask(index)) continue;
    const auto& own = index.sizes;
    if (own.size() > sizes.size()) sizes.insert(sizes.begin(), own.size() - sizes.size(), 1);
    const std::size_t shift = sizes.size() - own.size();
    for (std::size_t i = 0; i < own.size(); ++i) {
      if (own[i] != 1) sizes[shift + i] = own[i];
    }
  }
  return sizes;
}

// Returns how many elements masks let through at most: the number of values or, where one value is used for all, the
// number of the smallest mask's elements.
std::int64_t let_through(const std::vector<TensorDesc>& indices, const TensorDesc& values, std::size_t dims_behind) {
  const auto last = static_cast<int>(dims_behind) + 1;
  if (values.dim() >= last && values.size(-last) != 1) return values.size(-last);
  std::int64_t elements = std::numeric_limits<std::int64_t>::max();
  for (const auto& index : indices) {
    if (is_mask(index)) elements = std::min(elements, index.numel());
  }
  return elements;
}

// Elements of self that are put: those of the indices together, in each of the dimensions that are taken whole.
std::int64_t put_elements(const OpCall& call) {
  const TensorDesc& self = call.tensor(0);
  const auto& indices = call.tensors("indices");
  const std::vector<int> whole = whole_dims(self, indices);
  std::vector<std::int64_t> sizes = broadcast_sizes(indices);
  const bool masked = std::ranges::any_of(indices, is_mask);
  // The indices of a mask's elements go along with the last dimension of other indices.
  if (masked && (sizes.empty() || sizes.back() == 1)) {
    // Adjacent indices keep their place in the values; others come first there.
    const bool together = indices.back().place - indices.front().place + 1 == indices.size();
    const std::size_t in_front = together ? indices.front().place : 0;
    sizes.push_back(let_through(indices, call.tensor("values"), whole.size() - in_front));
  }
  for (const int dim : whole) sizes.push_back(self.size(dim));
  return product(sizes);
}

void per_accumulated(const OpCall& call, std::int64_t weight, Work& work) {
  if (!call.boolean("accumulate", false)) return;
  add_operations(work, saturating_multiply(weight, put_elements(call)), call.compute_dtype());
}

void index_put_bytes(const OpCall& call, Work& work) {
  scatter_into(call, put_elements(call), call.boolean("accumulate", false), work);
}

// ---- masks

// The mask, and what it lets through.
void masked_select_bytes(const OpCall& call, Work& work) {
  work.read_bytes = bytes_of_some(call.tensor("self"), call.result().numel());
  read(work, call.find_tensor("mask"));
  write_results(call, work);
}

void per_mask(const OpCall& call, std::int64_t weight, Work& work) {
  add_operations(work, saturating_multiply(weight, call.tensor("mask").numel()), call.compute_dtype());
}

constexpr OpCost kIndexingCosts[] = {
    // Gathering: no arithmetic; indices, what they select, and the result.
    {"aten::gather aten::take", no_operations, 0, gather_bytes, "", "one element per index"},
    {"aten::index aten::_unsafe_index", no_operations, 0, gather_bytes, "", "one element per result"},
    {"aten::index_select aten::embedding", no_operations, 0, gather_bytes, "", "min(indices, rows) rows"},
    {"aten::embedding_dense_backward", per_input, 1, nullptr, "", "one addition per gradient"},
    {"aten::embedding_renorm_", embedding_renorm, 3, embedding_renorm_bytes, "", "3 per element of a row"},
    {"aten::_embedding_bag", embedding_bag, 1, embedding_bag_bytes, "mode", "1 per element read, mean divides"},
    {"aten::_embedding_bag_forward_only", embedding_bag, 1, embedding_bag_bytes, "mode", "as _embedding_bag"},
    {"aten::_embedding_bag_dense_backward", embedding_bag_backward, 1, nullptr, "", "1 per element read"},
    {"aten::_embedding_bag_per_sample_weights_backward", bag_weights, 2, bag_row_bytes, "", "2 per element"},

    // Scattering: in place only what is touched moves.
    {"aten::index_put", per_accumulated, 1, index_put_bytes, "accumulate", "1 per element put if it accumulates"},
    {"aten::_index_put_impl_ aten::_unsafe_index_put", per_accumulated, 1, index_put_bytes, "accumulate",
     "as index_put"},
    {"aten::put", per_put, 1, put_bytes, "accumulate", "1 per index if it accumulates"},
    {"aten::scatter", per_reduced, 1, scatter_bytes, "reduce", "one operation per index with reduce, else none"},
    {"aten::scatter_add", per_update, 1, combine_some, "", "one addition per index"},
    {"aten::scatter_reduce", per_update, 1, combine_some, "", "one operation per index"},
    {"aten::index_add", per_update, 1, combine_some, "", "one addition per source element"},
    {"aten::index_reduce", per_update, 1, combine_some, "", "one operation per source element"},
    {"aten::index_copy", no_operations, 0, overwrite_some, "", "source copied into rows of self"},
    {"aten::index_fill", no_operations, 0, index_fill_bytes, "dim", "rows of self written"},
    {"aten::slice_scatter aten::select_scatter", no_operations, 0, patched_bytes, "", "copied with a slice replaced"},
    {"aten::diagonal_scatter", no_operations, 0, patched_bytes, "", "copied with the diagonal replaced"},
    {"aten::as_strided_scatter", no_operations, 0, patched_bytes, "", "copied with a view replaced"},

    // Gradients of views: zeros with the gradient in one part.
    {"aten::slice_backward aten::select_backward aten::diagonal_backward", no_operations, 0, nullptr, "",
     "gradient into zeros"},
    {"aten::unfold_backward", per_input, 1, nullptr, "", "windows overlap: one addition per gradient"},

    // Masks.
    {"aten::masked_fill", per_output, 1, nullptr, "", "mask ? value : x"},
    {"aten::masked_scatter aten::masked_scatter_backward", per_mask, 1, nullptr, "", "one test per mask element"},
    {"aten::masked_select", per_mask, 1, masked_select_bytes, "", "one test per mask element"},
};

}  // namespace

std::span<const OpCost> indexing_costs() { return kIndexingCosts; }

}  // namespace roofprof::ops
