#include "analysis/predict/scaling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "analysis/predict/op_class.h"

namespace roofprof {

namespace {

std::int64_t times(std::int64_t count, double factor) {
  const double scaled = static_cast<double>(count) * factor;
  return scaled < static_cast<double>(kSaturated) ? std::llround(scaled) : kSaturated;
}

// The numbers of elements of tensors that earlier ops made, or that the model was given.
using Made = std::unordered_set<std::int64_t>;

// Returns whether an operand is a weight, which is the same with any batch. If its position does not say so, it is a
// weight if no op made it.
bool is_weight(const OpBucket& bucket, OpClass op, std::size_t operand, const std::vector<Shape>& shapes,
               std::int64_t largest, const Made& made) {
  if (is_convolution(op) || op == OpClass::row_norm) return operand > 0;
  if (op == OpClass::linear) return operand != (shapes.size() - operands_of(bucket, shapes).size());
  const bool of_activations = op == OpClass::batched_matmul || op == OpClass::attention ||
                              op == OpClass::unfused_attention || op == OpClass::concatenation;
  if (of_activations) return false;
  const auto elements = elements_of(shapes[operand]);
  if (made.contains(elements)) return false;
  const auto name = plain_name(bucket.op);
  if (name.starts_with("embedding")) return operand == 0;  // the table
  if (name == "lstm" || name == "gru") return operand > 0;
  return elements < largest;
}

void scale_leading(Shape& shape, std::int64_t from, std::int64_t to) {
  if (!shape.empty() && shape.front() >= 0 && shape.front() % from == 0) shape.front() = shape.front() / from * to;
}

void scale(OpBucket& bucket, std::int64_t from, std::int64_t to, const Made& made) {
  const auto original = sized_shapes(bucket);
  const OpClass op = class_of(bucket, original);
  const double factor = static_cast<double>(to) / static_cast<double>(from);
  const double element = bytes_of(bucket.dtype).value_or(0);
  std::int64_t largest = 0;
  for (const auto& shape : original) largest = std::max(largest, elements_of(shape));
  double weights = 0;  // bytes
  std::size_t operand = 0;
  for (auto& shape : bucket.shapes.tensors) {
    if (has_sizes(shape) && is_weight(bucket, op, operand++, original, largest, made)) {
      weights += element * static_cast<double>(elements_of(shape));
    } else {
      scale_leading(shape, from, to);
    }
  }
  Work& work = bucket.work;
  const std::int64_t calls = std::max<std::int64_t>(bucket.calls, 1);
  const std::int64_t fixed = std::min(times(calls, weights), work.read_bytes);
  std::int64_t read_bytes = fixed + times(work.read_bytes - fixed, factor);
  if (plain_name(bucket.op) == "embedding" && original.size() == 2 && original[0].size() == 2) {
    // No row of a table is read twice; the indices are integers of 8 bytes.
    const std::int64_t indices = elements_of(sized_shapes(bucket)[1]);
    const double row = element * static_cast<double>(original[0][1]);
    read_bytes = calls * (times(std::min(indices, original[0][0]), row) + 8 * indices);
  }
  scale_work(work, factor);
  work.read_bytes = read_bytes;
  bucket.link_bytes = times(bucket.link_bytes, factor);
}

void scale_sizes(std::vector<Shape>& shapes, std::int64_t from, std::int64_t to) {
  for (auto& shape : shapes) scale_leading(shape, from, to);
}

void recast(OpBucket& bucket, DType precision) {
  const auto from = bytes_of(bucket.dtype);
  if (!from || bucket.dtype == DType::fp8 || bucket.dtype == DType::fp4) return;
  const double factor = *bytes_of(precision) / *from;
  Work& work = bucket.work;
  // Indices of a table are integers.
  const auto shapes = sized_shapes(bucket);
  const bool is_table = plain_name(bucket.op).starts_with("embedding") && shapes.size() > 1;
  constexpr std::int64_t kIndex = 8;
  const std::int64_t indices =
      is_table ? std::min(saturating_multiply(kIndex * bucket.calls, elements_of(shapes[1])), work.read_bytes) : 0;
  const auto read_bytes = static_cast<double>(work.read_bytes);
  work.read_bytes -= indices;
  for (auto* bytes : {&work.read_bytes, &work.write_bytes, &work.updated_bytes}) *bytes = times(*bytes, factor);
  work.read_bytes += indices;
  for (auto& crossing : bucket.crossings) {
    if (read_bytes > 0)
      crossing.read_bytes = times(crossing.read_bytes, static_cast<double>(work.read_bytes) / read_bytes);
    for (auto* bytes : {&crossing.write_bytes, &crossing.unread_bytes}) *bytes = times(*bytes, factor);
  }
  std::int64_t operations = 0;
  for (const DType of : {DType::fp64, DType::fp32, DType::tf32, DType::fp16, DType::bf16}) {
    operations = saturating_add(operations, std::exchange(work.operations_in(of), 0));
  }
  work.operations_in(precision) = saturating_add(work.operations_in(precision), operations);
  bucket.dtype = precision;
}

}  // namespace

void scale_work(Work& work, double factor) {
  for (auto* count : {&work.macs, &work.causal_macs, &work.read_bytes, &work.write_bytes, &work.updated_bytes,
                      &work.input_elements, &work.output_elements}) {
    *count = times(*count, factor);
  }
  for (auto& count : work.operations) count = times(count, factor);
}

std::optional<double> bytes_of(DType dtype) {
  switch (dtype) {
    case DType::fp64:
      return 8;
    case DType::fp32:
    case DType::tf32:
      return 4;
    case DType::fp16:
    case DType::bf16:
      return 2;
    case DType::fp8:
      return 1;
    case DType::fp4:
      return 0.5;
    default:
      return std::nullopt;
  }
}

void set_precision(Profile& data, DType precision) {
  if (!bytes_of(precision)) {
    throw InvalidArgument("precision must be fp64, fp32, tf32, fp16, bf16, fp8 or fp4, not '" +
                          std::string(name_of(precision)) + "'");
  }
  double before = 0;
  double after = 0;
  for (auto& bucket : data.counts.ops) {
    const bool is_float = bytes_of(bucket.dtype).has_value();
    before += is_float ? static_cast<double>(bucket.work.bytes()) : 0;
    recast(bucket, precision);
    after += is_float ? static_cast<double>(bucket.work.bytes()) : 0;
  }
  // Parameters and activations are of the types that the ops have.
  const double factor = before > 0 ? after / before : 1;
  for (auto& module : data.tree.modules) {
    module.param_bytes = times(module.param_bytes, factor);
    for (auto* bytes : {&module.output_bytes, &module.peak_memory, &module.kept_memory}) {
      if (*bytes) *bytes = times(**bytes, factor);
    }
  }
  if (data.counts.memory.peak_bytes) data.counts.memory.peak_bytes = times(*data.counts.memory.peak_bytes, factor);
  data.counts.memory.alive.clear();  // its tensors may differ in precision
}

std::int64_t batch_of(const Profile& data) {
  std::int64_t batch = 0;
  for (const auto& shape : data.tree.modules.at(index_of(kModel)).input_shapes) {
    if (shape.empty()) continue;
    if (batch > 0 && shape.front() != batch) return 0;
    batch = shape.front();
  }
  // The first op of a trace may be anything.
  if (batch > 0 || data.run.bypass_sought || data.origin.imported) return batch;
  // C++'s profiler does not see the inputs of a model: those of its first op are taken.
  for (const auto& bucket : data.counts.ops) {
    const auto operands = operands_of(bucket, sized_shapes(bucket));
    if (!operands.empty() && !operands.front().empty()) return operands.front().front();
  }
  return 0;
}

void set_batch(Profile& data, std::int64_t batch) {
  if (batch <= 0) throw InvalidArgument("batch must be 1 or more, not " + std::to_string(batch));
  const std::int64_t counted = batch_of(data);
  if (counted <= 0) {
    throw InvalidArgument(
        "the batch that was counted is not known, because the model's inputs are not tensors or do not agree in their "
        "leading "
        "dimension: count it with the batch that is wanted");
  }
  if (batch == counted) return;
  if (std::ranges::any_of(data.counts.ops,
                          [](const OpBucket& bucket) { return bucket.owner.phase != Phase::forward; })) {
    throw InvalidArgument(
        "a training step cannot be given another batch, as gradients of weights have none: count it with the batch "
        "that "
        "is wanted");
  }
  data.counts.crossings_known = false;  // which of the bytes are those of weights is not known
  for (auto& bucket : data.counts.ops) bucket.crossings.clear();
  Made made;
  for (const auto& shape : data.tree.modules.at(index_of(kModel)).input_shapes) made.insert(elements_of(shape));
  for (auto& bucket : data.counts.ops) {
    const std::int64_t output = bucket.work.output_elements / std::max<std::int64_t>(bucket.calls, 1);
    scale(bucket, counted, batch, made);
    made.insert(output);
  }
  const double factor = static_cast<double>(batch) / static_cast<double>(counted);
  for (auto& module : data.tree.modules) {
    scale_sizes(module.input_shapes, counted, batch);
    scale_sizes(module.output_shapes, counted, batch);
    for (auto* bytes : {&module.output_bytes, &module.peak_memory, &module.kept_memory}) {
      if (*bytes) *bytes = times(**bytes, factor);
    }
  }
  if (data.counts.memory.peak_bytes) data.counts.memory.peak_bytes = times(*data.counts.memory.peak_bytes, factor);
  data.counts.memory.alive.clear();  // which of it grows with the batch is not known
}

}  // namespace roofprof
