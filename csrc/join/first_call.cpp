#include "join/first_call.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/note_codes.h"
#include "join/module_paths.h"

namespace roofprof {
namespace {

struct Difference {
  std::string op;
  std::int64_t calls = 0;  // of the first call, less those of the later one
  bool works = false;
};

// Operators that one call ran more often than the other one.
class Surplus {
 public:
  void add(const Difference& difference) {
    ops_.push_back(difference);
    ops_.back().calls = std::abs(difference.calls);
    calls_ += ops_.back().calls;
  }
  bool empty() const { return ops_.empty(); }
  // "3 more operators", and which: first those that did something.
  std::string count(const std::string& comparison) const { return counted(calls_, comparison + " operator"); }
  std::string names() {
    std::ranges::stable_sort(
        ops_, [](const auto& a, const auto& b) { return std::tie(a.works, a.calls) > std::tie(b.works, b.calls); });
    std::vector<std::string> names;
    for (const auto& op : ops_) names.push_back(op.op + " (" + counted(op.calls, "call") + ")");
    return listed(names, kNamed);
  }

 private:
  std::vector<Difference> ops_;
  std::int64_t calls_ = 0;
};

}  // namespace

std::optional<Note> note_on_first_call(const Pass& first, const Pass& later, const std::vector<Module>& modules) {
  std::map<OpKey, std::int64_t> by_key;  // calls of the first, less those of the later one
  std::map<std::string, Difference> by_name;
  const auto add = [&](const Pass& pass, std::int64_t sign) {
    for (const auto& op : pass.ops) {
      if (op.is_unobserved() || op.kind == Pass::Op::Kind::tracing) continue;
      by_key[op.key()] += sign * op.calls;
      auto& difference = by_name[op.op];
      difference.op = op.op;
      difference.calls += sign * op.calls;
      difference.works = difference.works || op.has_work();
    }
  };
  add(first, 1);
  add(later, -1);
  if (std::ranges::all_of(by_key, [](const auto& op) { return op.second == 0; })) return std::nullopt;

  Surplus more;
  Surplus fewer;
  for (const auto& [op, difference] : by_name) {
    if (difference.calls > 0) more.add(difference);
    if (difference.calls < 0) fewer.add(difference);
  }
  std::string text = "the first call ran ";
  if (more.empty() && fewer.empty()) {
    text += "the same operators as those after it with other shapes or in other modules";
  } else if (more.empty()) {
    text += fewer.count("fewer") + " than those after it: " + fewer.names();
  } else {
    text += more.count("more") + " than those after it: " + more.names();
    if (!fewer.empty()) text += "; and " + fewer.count("fewer") + ": " + fewer.names();
  }

  std::set<ModuleId> where;
  for (const auto& [key, calls] : by_key) {
    if (calls != 0) where.insert(key.owner.module);
  }
  return make_note("first-call", text + "; counts and times are those of the later calls", paths_of(where, modules));
}

}  // namespace roofprof
