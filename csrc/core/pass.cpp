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

// Sets the traffic of `op` to that of `from`, scaled.
void set_traffic(Pass::Op& op, const OpBucket& from, double times) {
  op.reuse = from.reuse;
  for (auto& part : op.reuse) {
    for (auto* bytes : {&part.read_bytes, &part.write_bytes, &part.updated_bytes}) {
      if (times != 1) *bytes = std::llround(static_cast<double>(*bytes) * times);
    }
  }
  op.crossings = scaled(from.crossings, times);
}

double share(std::int64_t part, std::int64_t whole) { return static_cast<double>(part) / static_cast<double>(whole); }

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
    set_traffic(op, *found->second, share(op.calls, found->second->calls));
  }
}

void scale_traffic(Pass& pass, const std::vector<std::int64_t>& left_out) {
  struct Logged {
    OpBucket traffic;
    std::int64_t bytes = 0;
  };
  std::map<OpKey, Logged> with_any_inputs;
  const auto any_inputs = [](const Pass::Op& op) { return OpKey{op.number, op.owner, kAnyInputs}; };
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    const auto& op = pass.ops[i];
    const auto bytes = op.work.bytes() - left_out[i];
    if (bytes <= 0) continue;
    auto& sum = with_any_inputs[any_inputs(op)];
    sum.bytes += bytes;
    add_reuse(sum.traffic.reuse, op.reuse);
    add_crossings(sum.traffic.crossings, op.crossings);
  }
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    auto& op = pass.ops[i];
    const auto all = op.work.bytes();
    if (left_out[i] <= 0) continue;
    if (left_out[i] < all) {
      const OpBucket logged = op;
      set_traffic(op, logged, share(all, all - left_out[i]));
    } else if (const auto similar = with_any_inputs.find(any_inputs(op)); similar != with_any_inputs.end()) {
      set_traffic(op, similar->second.traffic, share(all, similar->second.bytes));
    } else if (pass.crossings_known) {
      op.crossings = crossing_whole(op.work.read_bytes, op.work.write_bytes);
    }
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
