#include "kineto/importer/counted_crossings.h"

#include <cstdint>
#include <map>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/phrases.h"

namespace roofprof {

namespace {

struct CountedOp {
  std::int64_t calls = 0;
  Crossings crossings;
};

// The path of the module, the op's name, type and shapes.
using CountedOps = std::map<std::tuple<std::string_view, std::string_view, DType, OpShapes>, CountedOp>;

CountedOps::key_type key_of(const OpBucket& op, const Profile& data) {
  return {data.tree.modules[index_of(op.owner.module)].path, op.op, op.dtype, op.shapes};
}

CountedOps ops_of_model(const Profile& counted) {
  CountedOps ops;
  for (const auto& op : counted.counts.ops) {
    auto& known = ops[key_of(op, counted)];
    known.calls += op.calls;
    add_crossings(known.crossings, op.crossings);
  }
  return ops;
}

// The key of an op without its shapes: it is the same in both calls, whatever their sizes.
using Alike = std::tuple<std::string_view, std::string_view, DType>;

Alike alike(const CountedOps::key_type& key) { return {std::get<0>(key), std::get<1>(key), std::get<2>(key)}; }

// Returns the shapes of those ops of the counted call that the trace lacks.
std::map<Alike, OpShapes> missing_in(const Profile& data, CountedOps ops) {
  for (const auto& op : data.counts.ops) ops.erase(key_of(op, data));
  std::map<Alike, OpShapes> missing;
  for (const auto& [key, op] : ops) missing.emplace(alike(key), std::get<3>(key));
  return missing;
}

// Ops that the counted call lacks may have this share of the recorded bytes.
constexpr double kMostLacking = 0.05;

// The trace's ops in the model that the counted call lacks.
struct Lacking {
  std::int64_t bytes = 0;
  std::int64_t of_bytes = 0;  // of all ops in the model
  const OpBucket* largest = nullptr;

  void add(const OpBucket& op) {
    bytes = saturating_add(bytes, op.work.bytes());
    if (largest == nullptr || op.work.bytes() > largest->work.bytes()) largest = &op;
  }
  double share() const { return of_bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(of_bytes) : 0; }
  std::string sentence(const Profile& data) const {
    return "the counted call of the model lacks ops with " + percent(share()) +
           " of the recorded bytes, most of these of " + largest->op + " of " + shown(shapes_text(largest->shapes)) +
           " (" + std::string(name_of(largest->dtype)) + ") in " +
           display_path(data.tree.modules[index_of(largest->owner.module)].path);
  }
};

}  // namespace

std::string take_crossings(Profile& data, const Profile& counted) {
  constexpr std::string_view kNotKnown = "fused bytes and the fused bound are not known: ";
  if (!counted.counts.crossings_known) return std::string(kNotKnown) + "the model was not counted op by op";
  const auto ops = ops_of_model(counted);
  std::vector<Crossings> crossings;
  crossings.reserve(data.counts.ops.size());
  Lacking lacking;
  const auto missing = missing_in(data, ops);
  std::string contradiction;
  for (const auto& op : data.counts.ops) {
    auto& of_op = crossings.emplace_back(crossing_whole(op.work.read_bytes, op.work.write_bytes));
    if (!op.costed || op.work.bytes() == 0 || !is_within(op.owner.module, kModel, data.tree.modules)) continue;
    if (op.owner.phase != Phase::forward)
      return std::string(kNotKnown) + "the trace has a backward, which the counted call of the model has not";
    lacking.of_bytes = saturating_add(lacking.of_bytes, op.work.bytes());
    const auto known = ops.find(key_of(op, data));
    if (known == ops.end() || known->second.calls <= 0) {
      const auto other = missing.find(alike(key_of(op, data)));
      if (other != missing.end() && contradiction.empty()) {
        contradiction = display_path(data.tree.modules[index_of(op.owner.module)].path) + " calls " + op.op + " of " +
                        shown(shapes_text(op.shapes)) + " in the trace, and of " + shown(shapes_text(other->second)) +
                        " in the counted call of the model";
      }
      lacking.add(op);
      continue;
    }
    const double times = static_cast<double>(op.calls) / static_cast<double>(known->second.calls);
    of_op = scaled(known->second.crossings, times, times);
  }
  const std::string_view advice = "; give inputs of the recorded shapes and types";
  if (lacking.share() > kMostLacking) return std::string(kNotKnown).append(lacking.sentence(data)).append(advice);
  if (!contradiction.empty()) return std::string(kNotKnown).append(contradiction).append(advice);
  for (std::size_t i = 0; i < crossings.size(); ++i) data.counts.ops[i].crossings = std::move(crossings[i]);
  data.counts.crossings_known = true;
  if (lacking.largest == nullptr) return {};
  return lacking.sentence(data) + "; in fused bytes these cross every boundary whole";
}

}  // namespace roofprof
