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

// The factors by which reads and writes are multiplied.
struct Factors {
  double read = 1;
  double write = 1;
};

// Sets the traffic of `op` to that of `from`, scaled.
void set_traffic(Pass::Op& op, const OpBucket& from, Factors times) {
  const auto scale = [](std::int64_t& bytes, double factor) {
    if (factor != 1) bytes = std::llround(static_cast<double>(bytes) * factor);
  };
  op.reuse = from.reuse;
  for (auto& part : op.reuse) {
    scale(part.read_bytes, times.read);
    scale(part.write_bytes, times.write);
    scale(part.updated_bytes, std::min(times.read, times.write));
  }
  op.crossings = scaled(from.crossings, times.read, times.write);
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
    const double times = share(op.calls, found->second->calls);
    set_traffic(op, *found->second, {times, times});
  }
}

void scale_traffic(Pass& pass, const std::vector<BytesLeftOut>& left_out) {
  struct Logged {
    OpBucket traffic;
    BytesLeftOut bytes;  // that were not left out
  };
  const auto logged_of = [&](std::size_t i) -> BytesLeftOut {
    const auto& work = pass.ops[i].work;
    return {work.read_bytes - left_out[i].read_bytes, work.write_bytes - left_out[i].write_bytes};
  };
  const auto times = [](std::int64_t all, std::int64_t logged) { return logged > 0 ? share(all, logged) : 1; };
  std::map<OpKey, Logged> with_any_inputs;
  const auto any_inputs = [](const Pass::Op& op) { return OpKey{op.number, op.owner, kAnyInputs}; };
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    const auto bytes = logged_of(i);
    if (!bytes.any()) continue;
    auto& sum = with_any_inputs[any_inputs(pass.ops[i])];
    sum.bytes.read_bytes += bytes.read_bytes;
    sum.bytes.write_bytes += bytes.write_bytes;
    add_reuse(sum.traffic.reuse, pass.ops[i].reuse);
    add_crossings(sum.traffic.crossings, pass.ops[i].crossings);
  }
  for (std::size_t i = 0; i < pass.ops.size(); ++i) {
    if (!left_out[i].any()) continue;
    auto& op = pass.ops[i];
    const auto set = [&](const OpBucket& traffic, const BytesLeftOut& logged) {
      set_traffic(op, traffic,
                  {times(op.work.read_bytes, logged.read_bytes), times(op.work.write_bytes, logged.write_bytes)});
    };
    if (const auto logged = logged_of(i); logged.any()) {
      set(OpBucket(op), logged);
    } else if (const auto similar = with_any_inputs.find(any_inputs(op)); similar != with_any_inputs.end()) {
      set(similar->second.traffic, similar->second.bytes);
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
