#include "observe/costed_call.h"

#include <ATen/record_function.h>

#include <exception>
#include <optional>

#include "observe/operators/op_signature.h"
#include "ops/registry.h"

namespace roofprof::observe {
namespace {

std::int64_t first_elements(const std::vector<ops::Argument>& arguments) {
  for (const auto& argument : arguments) {
    if (argument.tensors.empty()) continue;
    return argument.tensors.front().is_known() ? argument.tensors.front().numel() : 0;
  }
  return 0;
}

// One tensor that is channels_last is enough for torch to compute so.
bool gets_channels_first(const ops::OpCall& call) {
  constexpr int kImage = 4;  // dimensions: batch, channels, height, width
  if (call.name.find("conv") == std::string::npos && call.name.find("pool") == std::string::npos) return false;
  bool any = false;
  for (const auto& argument : call.arguments) {
    for (const auto& tensor : argument.tensors) {
      if (tensor.dim() < kImage) continue;
      if (tensor.channels_last) return false;
      any = true;
    }
  }
  return any;
}

}  // namespace

Costed cost_of(const OpInfo& op, const ops::OpCall& call) {
  Costed result;
  result.costed = op.kind == OpKind::view;
  result.dtype = call.compute_dtype();
  if (op.kind != OpKind::counted) return result;
  result.shapes = shapes_of(call);
  result.channels_first = gets_channels_first(call);
  std::optional<at::RecordFunctionGuard> unobserved;
  if (op.cost != nullptr && op.cost->own != nullptr) unobserved.emplace(false);
  try {
    const auto work = ops::cost_of(call, op.cost);
    result.costed = work.has_value();
    if (work) result.work = *work;
    result.work.input_elements = first_elements(call.arguments);
    result.work.output_elements = first_elements(call.results);
  } catch (const std::exception& error) {
    result.failure = error.what();
  } catch (...) {
    result.failure = "its cost function threw an exception that does not derive from std::exception";
  }
  return result;
}

}  // namespace roofprof::observe
