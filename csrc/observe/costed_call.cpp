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

}  // namespace

Costed cost_of(const OpInfo& op, const ops::OpCall& call) {
  Costed result;
  result.costed = op.kind == OpKind::view;
  result.dtype = call.compute_dtype();
  if (op.kind != OpKind::counted) return result;
  result.shapes = shapes_of(call);
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
    result.failure = "its cost function threw something that is no std::exception";
  }
  return result;
}

}  // namespace roofprof::observe
