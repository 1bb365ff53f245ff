#include "values/pass.h"

#include <algorithm>

namespace roofprof {
namespace {

// What bypassed the dispatcher is looked for in the counting pass alone.
std::map<OpKey, std::int64_t> calls_of_ops(const Pass& pass) {
  std::map<OpKey, std::int64_t> calls;
  for (const auto& op : pass.ops) {
    if (!op.is_unobserved()) calls.emplace(op.key, op.calls);
  }
  return calls;
}

}  // namespace

bool same_work(const Pass& a, const Pass& b) { return calls_of_ops(a) == calls_of_ops(b); }

bool ran_compiled_code(const Pass& pass) {
  return std::ranges::any_of(pass.ops, [](const auto& op) { return op.kind == Pass::Op::Kind::compiled_region; });
}

}  // namespace roofprof
