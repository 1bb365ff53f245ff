#include "observe/script_times.h"

#include <set>
#include <unordered_set>

#include "observe/launch_places.h"

namespace roofprof::observe {
namespace {

std::string listed(const std::set<std::string>& names) {
  constexpr std::size_t kNamed = 3;
  std::string text;
  std::size_t named = 0;
  for (const auto& name : names) {
    if (named == kNamed) return text + ", ...";
    text += (named++ > 0 ? ", " : "") + name;
  }
  return text;
}

}  // namespace

void time_other_ops(const Pass& counting, const Pass& timed, ProfileData& data, LaunchPlaces& places) {
  std::unordered_set<BucketKey, BucketKeyHash> counted;
  for (const auto& op : counting.ops) counted.insert(op.key);
  std::set<std::string> modules;
  std::set<std::string> ops;
  for (const auto& op : timed.ops) {
    if (counted.contains(op.key) || op.key.op->unobserved != Unobserved::no) continue;
    OpBucket bucket;
    bucket.op = op.key.op->name;
    bucket.module = op.key.module;
    bucket.phase = op.key.phase;
    bucket.dtype = op.dtype;
    bucket.shapes = op.shapes;
    bucket.time_ns = op.time_ns;
    places.add(op, data.ops.size());
    data.ops.push_back(std::move(bucket));
    if (op.costed && op.work == Work{}) continue;
    const auto& path = data.modules[static_cast<std::size_t>(op.key.module)].path;
    modules.insert(path.empty() ? "the model" : path);
    ops.insert(op.key.op->name);
  }
  if (modules.empty()) return;
  data.notes.push_back("TorchScript's executor ran other operators than the code of its modules has (" + listed(ops) +
                       " in " + listed(modules) +
                       "): the work stands where the code has it, their time where they ran");
}

void note_differentiated(const Pass& counting, ProfileData& data) {
  std::set<std::string> modules;
  for (const auto module : counting.differentiated_whole) {
    const auto& path = data.modules[static_cast<std::size_t>(module)].path;
    modules.insert(path.empty() ? "the model" : path);
  }
  if (modules.empty()) return;
  data.notes.push_back("TorchScript differentiated parts of " + listed(modules) +
                       " as a whole: their backward, and what lost its module in them, stands there");
}

}  // namespace roofprof::observe
