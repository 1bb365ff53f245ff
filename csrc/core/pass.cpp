#include "core/pass.h"

#include <algorithm>
#include <cmath>

namespace roofprof {
namespace {

// Returns the calls of each op, without unobserved work: only the counting pass looks for that.
std::map<OpKey, std::int64_t> calls_of_ops(const Pass& pass) {
  std::map<OpKey, std::int64_t> calls;
  for (const auto& op : pass.ops) {
    if (!op.is_unobserved()) calls.emplace(op.key(), op.calls);
  }
  return calls;
}

}  // namespace

bool same_work(const Pass& a, const Pass& b) { return calls_of_ops(a) == calls_of_ops(b); }

void take_traffic(Pass& pass, const Pass& from) {
  std::map<OpKey, const Pass::Op*> known;
  for (const auto& op : from.ops) known.emplace(op.key(), &op);
  pass.crossings_known = from.crossings_known;
  for (auto& op : pass.ops) {
    const auto found = known.find(op.key());
    if (found == known.end() || found->second->calls <= 0) {
      // All of it may cross every boundary.
      if (pass.crossings_known) op.crossings = crossing_whole(op.work.read_bytes, op.work.write_bytes);
      continue;
    }
    const double times = static_cast<double>(op.calls) / static_cast<double>(found->second->calls);
    const auto scale = [&](std::int64_t& bytes) {
      if (times != 1) bytes = std::llround(static_cast<double>(bytes) * times);
    };
    op.reuse = found->second->reuse;
    for (auto& part : op.reuse) {
      for (auto* bytes : {&part.read_bytes, &part.write_bytes, &part.updated_bytes}) scale(*bytes);
    }
    op.crossings = scaled(found->second->crossings, times);
  }
}

bool ran_compiled_code(const Pass& pass) {
  return std::ranges::any_of(pass.ops, [](const auto& op) { return op.kind == Pass::Op::Kind::compiled_region; });
}

std::map<OpKey, std::int64_t> indices_by_key(const std::vector<Pass::Op>& ops) {
  std::map<OpKey, std::int64_t> indices;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].number != 0) indices.emplace(ops[i].key(), static_cast<std::int64_t>(i));
  }
  return indices;
}

}  // namespace roofprof
