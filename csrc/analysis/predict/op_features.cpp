#include "analysis/predict/op_features.h"

#include <algorithm>
#include <array>
#include <limits>
#include <unordered_set>
#include <utility>

#include "analysis/predict/fusion.h"
#include "analysis/predict/scaling.h"

namespace roofprof {

namespace {

constexpr double kHalf = 2;  // bytes of an element
constexpr double kWide = 4;

template <class Names>
bool names(const Names& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// torch's list of what autocast computes in fp32 (aten/src/ATen/autocast_mode.h), of what models call.
constexpr std::array<std::string_view, 11> kInFp32 = {"pow",
                                                      "exp",
                                                      "log",
                                                      "rsqrt",
                                                      "reciprocal",
                                                      "softplus",
                                                      "norm",
                                                      "cdist",
                                                      "upsample_nearest2d",
                                                      "upsample_bilinear2d",
                                                      "upsample_bicubic2d"};
// These are computed in fp32, too, but read the narrow type themselves.
constexpr std::array<std::string_view, 6> kInFp32ByThemselves = {"softmax", "log_softmax", "sum",
                                                                 "prod",    "cumsum",      "linalg_vector_norm"};
constexpr std::array<std::string_view, 6> kOfSeveral = {"add", "sub", "mul", "div", "addcmul", "maximum"};

}  // namespace

std::optional<bool> AutocastFlow::is_wide(std::int64_t elements) const {
  const auto found = latest_.find(elements);
  return found == latest_.end() ? std::nullopt : std::optional(found->second);
}

bool AutocastFlow::first_was_wide(std::int64_t elements) const {
  const auto found = first_.find(elements);
  return found != first_.end() && found->second;
}

// Returns a product's bytes under autocast. A product with weights casts its first operand alone. The operands of other
// products are views of a product's result, or come straight from the last op.
AutocastBytes AutocastFlow::product(OpClass op, const std::vector<std::int64_t>& sizes, double read, double write) {
  AutocastBytes bytes{read, write, 0};
  output_is_wide_ = false;
  const bool with_weights = op == OpClass::linear || is_convolution(op);
  for (const auto elements : sizes) {
    const bool wide = with_weights ? is_wide(elements).value_or(false) : last_.elements == elements && last_.wide;
    if (wide) bytes.casts += (kWide + kHalf) * static_cast<double>(elements);
    if (wide || with_weights) break;
  }
  return bytes;
}

AutocastBytes AutocastFlow::in_fp32(std::string_view name, const std::vector<std::int64_t>& sizes, double read,
                                    double write) {
  output_is_wide_ = true;
  const auto input = sizes.empty() ? 0 : sizes.front();
  AutocastBytes bytes{2 * read, 2 * write, 0};
  if (is_wide(input).value_or(false)) return bytes;
  if (names(kInFp32ByThemselves, name)) {
    bytes.read = read;
  } else {
    bytes.casts = (kHalf + kWide) * static_cast<double>(input);
  }
  return bytes;
}

// If two tensors have the output's size, the sum continues from the second. A tensor of a size that no op made is a
// parameter.
AutocastBytes AutocastFlow::promoted(const std::vector<std::int64_t>& sizes, bool in_place, bool is_sum, double read,
                                     double write) {
  const auto largest = *std::ranges::max_element(sizes);
  bool any_wide = false;
  bool first = true;
  double seen = 0;
  std::vector<bool> wide;
  for (const auto elements : sizes) {
    bool is = false;
    if (elements != largest) {
      is = is_wide(elements).value_or(true);
    } else if (std::exchange(first, false)) {
      is = is_wide(elements).value_or(first_was_wide(elements));
    } else {
      const auto sum = residual_.find(elements);
      is = sum == residual_.end() ? first_was_wide(elements) : sum->second;
    }
    wide.push_back(is);
    any_wide = any_wide || is;
    seen += static_cast<double>(elements) * (is ? kWide : kHalf);
  }
  output_is_wide_ = in_place ? wide.front() : any_wide;
  if (is_sum) residual_[output_] = output_is_wide_;
  double counted = 0;
  for (const auto elements : sizes) counted += static_cast<double>(elements) * kHalf;
  // The counted bytes may be fewer than those of the operands (x + x), so only the ratio is used.
  return {counted > 0 ? read * seen / counted : read, write * (output_is_wide_ ? 2 : 1), 0};
}

AutocastBytes AutocastFlow::concatenated(const std::vector<std::int64_t>& sizes, double read, double write) {
  const auto wide = [&](std::int64_t elements) { return is_wide(elements).value_or(false); };
  output_is_wide_ = std::ranges::any_of(sizes, wide);
  double seen = 0;
  double counted = 0;
  for (const auto elements : sizes) {
    seen += static_cast<double>(elements) * (wide(elements) ? kWide : kHalf);
    counted += static_cast<double>(elements) * kHalf;
  }
  return {counted > 0 ? read * seen / counted : read, write * (output_is_wide_ ? 2 : 1), 0};
}

AutocastBytes AutocastFlow::next(const OpBucket& bucket, OpClass op, const std::vector<Shape>& shapes, double read,
                                 double write) {
  const std::int64_t calls = std::max<std::int64_t>(bucket.calls, 1);
  output_ = bucket.work.output_elements / calls;
  AutocastBytes bytes{read, write, 0};
  if (bucket.dtype == DType::fp16 || bucket.dtype == DType::bf16) {
    std::vector<std::int64_t> sizes;
    for (const auto& shape : shapes) sizes.push_back(elements_of(shape));
    const auto name = plain_name(bucket.op);
    const bool first_is_wide = !sizes.empty() && is_wide(sizes.front()).value_or(false);
    if (is_contraction(op) || op == OpClass::conv_depthwise || op == OpClass::unfused_attention) {
      bytes = product(op, sizes, read, write);
    } else if (op == OpClass::row_norm) {
      output_is_wide_ = false;
      if (first_is_wide) bytes.casts = (kWide + kHalf) * static_cast<double>(sizes.front());
    } else if (names(kInFp32, name) || names(kInFp32ByThemselves, name)) {
      bytes = in_fp32(name, sizes, read, write);
    } else if (op == OpClass::concatenation && sizes.size() > 1) {
      bytes = concatenated(sizes, read, write);
    } else if (names(kOfSeveral, name) && sizes.size() > 1) {
      bytes = promoted(sizes, bucket.op.ends_with('_'), name == "add", read, write);
    } else {
      output_is_wide_ = first_is_wide;
      if (first_is_wide) bytes = {2 * read, 2 * write, 0};
    }
    latest_[output_] = output_is_wide_;
    first_.emplace(output_, output_is_wide_);
  }
  last_ = {output_, output_is_wide_};
  return bytes;
}

namespace {

double as_double(std::int64_t count) { return static_cast<double>(count); }

void add_convolution_sizes(const OpBucket& bucket, const std::vector<Shape>& shapes, OpFeatures& features) {
  if (shapes.size() < 2 || shapes[1].size() < 3 || shapes[0].size() != shapes[1].size()) return;
  const Shape& weight = shapes[1];
  features.kernel_area = as_double(elements_of(Shape(weight.begin() + 2, weight.end())));
  const bool transposed = is_transposed(bucket.op);
  const double groups = weight[1] > 0 && !transposed ? as_double(shapes[0][1] / weight[1]) : 1;
  if (groups < 1 || weight[0] <= 0) return;
  features.batch = groups;
  features.width = transposed ? as_double(weight[1]) * features.kernel_area : as_double(weight[0]) / groups;
  features.depth = transposed ? as_double(weight[0]) : as_double(weight[1]) * features.kernel_area;
}

void add_product_sizes(OpClass op, DType dtype, const std::vector<Shape>& shapes, OpFeatures& features) {
  if (shapes.size() < 2 || shapes[0].empty() || shapes[1].empty()) return;
  features.depth = as_double(shapes[0].back());
  if (op == OpClass::linear) {
    features.rows = as_double(elements_of(shapes[0])) / std::max(features.depth, 1.0);
    if (dtype == DType::fp4) features.depth *= 2;  // two of them are one element of the tensor
    if (features.rows > 0 && features.depth > 0) features.width = features.macs / (features.rows * features.depth);
  } else if (shapes[0].size() > 1 && shapes[1].size() > 1) {
    features.width = as_double(op == OpClass::batched_matmul ? shapes[1].back() : shapes[1][shapes[1].size() - 2]);
    features.rows = as_double(shapes[0][shapes[0].size() - 2]);
    features.batch = as_double(elements_of(shapes[0])) / std::max(features.rows * features.depth, 1.0);
  }
}

// Norms over groups of channels and backwards have other kernels.
void add_row_sizes(const OpBucket& bucket, const std::vector<Shape>& shapes, OpFeatures& features) {
  const auto name = plain_name(bucket.op);
  if (shapes.empty() || shapes[0].empty() || bucket.op.ends_with("_backward")) return;
  double width = 0;
  if (name == "layer_norm" || name == "rms_norm") {
    width = as_double(shapes.size() > 1 ? elements_of(shapes[1]) : shapes[0].back());
  } else if (features.op == OpClass::softmax) {
    width = as_double(shapes[0].back());
  }
  if (width <= 0) return;
  features.width = width;
  features.rows = as_double(elements_of(shapes[0])) / width;
}

// Sequences of a ragged batch, whose tokens lie one after another, are taken to be equally long: the pairs that were
// counted say how many keys a query sees, and the bytes how many keys there are.
void add_ragged_sizes(const Shape& query, const Shape& key, double depths, OpFeatures& features) {
  features.heads = as_double(query[1]);
  features.key_heads = as_double(key[1]);
  const double tokens = as_double(query[0]);
  const double element = std::max(features.element_bytes, 1.0);
  const double keys =
      (features.read_bytes - element * as_double(elements_of(query))) / (element * features.key_heads * depths);
  features.width = features.macs / (tokens * features.heads * depths);
  const double sequences = std::clamp(keys / features.width, 1.0, tokens);
  features.rows = tokens / sequences;
  features.batch = sequences * features.heads;
}

void add_attention_sizes(const OpBucket& bucket, const std::vector<Shape>& shapes, OpFeatures& features) {
  if (shapes.size() < 3 || shapes[0].size() != shapes[1].size() || features.macs <= 0) return;
  const Shape& query = shapes[0];
  const Shape& key = shapes[1];
  features.depth = as_double(query.back());
  features.visible = as_double(bucket.work.causal_macs) / as_double(bucket.work.macs);
  if (query.size() == 3) {
    add_ragged_sizes(query, key, features.depth + as_double(shapes[2].back()), features);
    return;
  }
  const std::size_t tokens = has_tokens_first(plain_name(bucket.op)) ? 1 : 2;
  features.heads = as_double(query[3 - tokens]);
  features.key_heads = as_double(key[3 - tokens]);
  features.rows = as_double(query[tokens]);
  features.width = as_double(key[tokens]);
  features.batch = as_double(query[0]) * features.heads;
}

void add_sizes(const OpBucket& bucket, const std::vector<Shape>& shapes, OpFeatures& features) {
  if (is_convolution(features.op)) {
    add_convolution_sizes(bucket, shapes, features);
    const double per_row = features.batch * features.width * features.depth;
    if (per_row > 0) features.rows = features.macs / per_row;
  } else if (features.op == OpClass::attention) {
    add_attention_sizes(bucket, shapes, features);
  } else if (features.op <= OpClass::unfused_attention) {
    add_product_sizes(features.op, bucket.dtype, shapes, features);
  } else if (features.op == OpClass::row_norm || features.op == OpClass::softmax) {
    add_row_sizes(bucket, shapes, features);
  } else if (features.op == OpClass::interpolation && !shapes.empty() && shapes[0].size() > 1) {
    features.planes = as_double(shapes[0][0]) * as_double(shapes[0][1]);
  }
}

bool permutes(std::string_view name) {
  return name == "permute" || name == "transpose" || name == "movedim" || name == "swapaxes";
}

// Returns whether the host needs what the op finds before it can go on.
bool waits_for_device(std::string_view name) {
  static const std::unordered_set<std::string_view> kNames = {
      "local_scalar_dense", "nonzero", "masked_select", "unique2", "unique_dim", "equal"};
  return kNames.contains(name);
}

bool is_view(const OpBucket& bucket) { return bucket.costed && bucket.work.bytes() == 0 && bucket.work.macs == 0; }

// Finds the casts of parameters to a narrower type: casts of tensors that no op before has made, and that the model was
// not given.
class ParameterCasts {
 public:
  explicit ParameterCasts(const Profile& data) {
    for (const auto& shape : data.tree.modules.at(index_of(kModel)).input_shapes) made_.insert(elements_of(shape));
  }

  // Must be asked for every op in turn.
  bool casts_one(const OpBucket& bucket, const std::vector<Shape>& shapes) {
    const bool cast = plain_name(bucket.op) == "to_copy" && bucket.dtype == DType::fp32 &&
                      bucket.work.write_bytes < bucket.work.read_bytes;
    const bool parameter = cast && !shapes.empty() && !made_.contains(elements_of(shapes.front()));
    const std::int64_t output = bucket.work.output_elements / std::max<std::int64_t>(bucket.calls, 1);
    if (output > 0 && !cast) made_.insert(output);
    return parameter;
  }

 private:
  std::unordered_set<std::int64_t> made_;  // by elements
};

constexpr std::array<std::string_view, 4> kByIndex = {"embedding", "index_select", "index", "gather"};

// Returns whether torch's kernel computes where each element lies: in a copy of what is permuted, in a concatenation,
// and where an operand is broadcast.
bool finds_elements(const OpBucket& bucket, const OpFeatures& features, const std::vector<Shape>& shapes) {
  if (features.op == OpClass::concatenation) return true;
  // torch makes a clone where a tensor must be in order and is not.
  const auto name = plain_name(bucket.op);
  if (features.op == OpClass::copy) return features.after_permutation || name == "clone" || names(kByIndex, name);
  if (features.op != OpClass::elementwise || !names(kOfSeveral, name)) return false;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  std::int64_t most = 0;
  for (const auto& shape : shapes) {
    const auto elements = elements_of(shape);
    if (elements <= 1) continue;  // a number
    least = std::min(least, elements);
    most = std::max(most, elements);
  }
  return least < most;
}

// Follows the ops of a profile one by one.
class FeatureReader {
 public:
  FeatureReader(const Profile& data, bool autocast) : autocast_(autocast), parameters_(data) {}

  OpFeatures next(const OpBucket& bucket) {
    OpFeatures features;
    const double calls = as_double(std::max<std::int64_t>(bucket.calls, 1));
    features.calls = calls;
    features.is_known = bucket.costed;
    features.waits_for_device = waits_for_device(plain_name(bucket.op));
    features.is_free = is_view(bucket);
    if (features.is_free || !features.is_known) {
      permuted_ = permuted_ || permutes(plain_name(bucket.op));
      return features;
    }
    const auto shapes = sized_shapes(bucket);
    features.op = class_of(bucket, shapes);
    for (std::size_t i = 0; i < kDTypeCount; ++i) features.operations[i] = as_double(bucket.work.operations[i]) / calls;
    features.macs = as_double(bucket.work.macs) / calls;
    features.read_bytes = as_double(bucket.work.read_bytes) / calls;
    features.write_bytes = as_double(bucket.work.write_bytes) / calls;
    features.updated_bytes = as_double(bucket.work.updated_bytes) / calls;
    features.link_bytes = as_double(bucket.link_bytes) / calls;
    features.input_elements = as_double(bucket.work.input_elements) / calls;
    features.element_bytes = bytes_of(bucket.dtype).value_or(0);
    const double output_elements = as_double(bucket.work.output_elements) / calls;
    features.after_permutation = reads_permuted(features, output_elements);
    if (finds_elements(bucket, features, shapes)) features.indexed_elements = output_elements;
    // Autocast casts a parameter once a call, before the op that takes it: its launch is in that op's floor.
    features.fused = parameters_.casts_one(bucket, shapes);
    features.is_free = saved_by_attention(bucket, features, shapes);
    if (features.is_free) return features;
    add_sizes(bucket, operands_of(bucket, shapes), features);
    if (autocast_) {
      const auto bytes = flow_.next(bucket, features.op, shapes, features.read_bytes, features.write_bytes);
      features.read_bytes = bytes.read;
      features.write_bytes = bytes.write;
      features.cast_bytes = bytes.casts;
    }
    return features;
  }

 private:
  // Returns whether the op reads permuted memory. An elementwise op keeps the order of its input, so the ops that
  // follow read it permuted as well. An op that copies, multiplies or normalises puts it in order.
  bool reads_permuted(const OpFeatures& features, double output_elements) {
    const double elements = features.input_elements;
    if (std::exchange(permuted_, false)) permuted_elements_ = elements;
    const bool permuted = elements > 0 && elements == permuted_elements_;
    const bool keeps_order = features.op == OpClass::elementwise || features.op == OpClass::reduction;
    if (!keeps_order && (permuted || output_elements == permuted_elements_)) permuted_elements_ = 0;
    return permuted;
  }

  // Returns whether the op would put an attention's heads side by side. A fused attention writes them that way, so no
  // copy is made.
  bool saved_by_attention(const OpBucket& bucket, const OpFeatures& features, const std::vector<Shape>& shapes) {
    const std::int64_t size = shapes.empty() ? 0 : elements_of(shapes.front());
    const auto attended = std::exchange(attended_, features.op == OpClass::attention ? size : 0);
    return attended > 0 && plain_name(bucket.op) == "clone" && size == attended;
  }

  bool autocast_;
  AutocastFlow flow_;
  ParameterCasts parameters_;
  bool permuted_ = false;
  double permuted_elements_ = 0;  // of the tensor that a view has permuted; 0: none
  std::int64_t attended_ = 0;     // elements that the last op, an attention, put out
};

// On a GPU torch's dropout is one kernel, which also writes a mask of a byte for each element. Without a GPU it is
// counted as three ops: random numbers, their scale, and the product with them.
void fuse_dropout(const Profile& data, std::vector<OpFeatures>& features) {
  std::array<std::size_t, 3> last{};  // the ops that take time
  std::size_t seen = 0;
  const auto is = [&](std::size_t place, std::string_view name) {
    return plain_name(data.counts.ops[place].op) == name &&
           data.counts.ops[place].owner == data.counts.ops[last[2]].owner &&
           features[place].calls == features[last[2]].calls;
  };
  for (std::size_t i = 0; i < features.size(); ++i) {
    if (features[i].is_free || !features[i].is_known) continue;
    last = {last[1], last[2], i};
    if (++seen < last.size() || !is(last[0], "bernoulli") || !is(last[1], "div") || !is(i, "mul")) continue;
    const auto shapes = sized_shapes(data.counts.ops[i]);
    if (shapes.size() != 2 || shapes[0] != shapes[1] ||
        sized_shapes(data.counts.ops[last[0]]) != std::vector<Shape>{shapes[0]})
      continue;
    features[last[0]].is_free = features[last[1]].is_free = true;
    features[i].read_bytes /= 2;
    features[i].write_bytes += as_double(elements_of(shapes[0]));
  }
}

}  // namespace

bool counted_under_autocast(const Profile& data) {
  ParameterCasts parameters(data);
  bool casts = false;
  bool narrow_products = false;
  for (const auto& bucket : data.counts.ops) {
    casts = parameters.casts_one(bucket, sized_shapes(bucket)) || casts;
    narrow_products =
        narrow_products || (bucket.work.macs > 0 && (bucket.dtype == DType::fp16 || bucket.dtype == DType::bf16));
  }
  return casts && narrow_products;
}

FeatureOptions feature_options(const Profile& data, const PredictionOptions& options, bool on_gpu) {
  return {.autocast = options.autocast && on_gpu && !counted_under_autocast(data),
          .fusion = options.mode == LaunchMode::compiled ? Fusion::chains : Fusion::none,
          .channels_last = on_gpu && (options.channels_last || options.mode == LaunchMode::compiled),
          .on_gpu = on_gpu};
}

std::vector<OpFeatures> features_of(const Profile& data, const FeatureOptions& options) {
  FeatureReader reader(data, options.autocast);
  std::vector<OpFeatures> features;
  features.reserve(data.counts.ops.size());
  for (const auto& bucket : data.counts.ops) {
    features.push_back(reader.next(bucket));
    features.back().channels_last = options.channels_last;
    features.back().pads = options.on_gpu && options.fusion == Fusion::chains;
  }
  if (options.on_gpu) fuse_dropout(data, features);
  if (options.fusion == Fusion::chains) fuse_chains(data, features);
  return features;
}

}  // namespace roofprof
