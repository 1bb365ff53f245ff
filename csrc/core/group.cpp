#include <algorithm>
#include <array>
#include <functional>
#include <stdexcept>

#include "core/roofline.h"

namespace roofprof {

namespace {

struct Key {
  std::string_view name;
  std::string (*value)(const ProfileData&, const OpBucket&);
};

constexpr std::array<Key, 5> kKeys = {{
    {"phase",
     [](const ProfileData&, const OpBucket& b) { return std::string(kPhaseNames[static_cast<std::size_t>(b.phase)]); }},
    {"op", [](const ProfileData&, const OpBucket& b) { return b.op; }},
    {"module",
     [](const ProfileData& d, const OpBucket& b) { return d.modules[static_cast<std::size_t>(b.module)].path; }},
    {"dtype", [](const ProfileData&, const OpBucket& b) { return std::string(name_of(b.dtype)); }},
    {"shapes", [](const ProfileData&, const OpBucket& b) { return b.shapes; }},
}};

const Key& key_named(const std::string& name) {
  for (const auto& key : kKeys) {
    if (key.name == name) return key;
  }
  std::string known;
  for (const auto& key : kKeys) known += (known.empty() ? "" : ", ") + std::string(key.name);
  throw std::invalid_argument("cannot group by '" + name + "'; the keys are " + known);
}

struct Group {
  std::int64_t calls = 0;
  Tally tally;
};

}  // namespace

// The time of a group is the time of its ops: module code around them belongs to no op.
std::vector<GroupRow> Report::group(std::span<const std::string> keys) const {
  std::vector<std::reference_wrapper<const Key>> chosen;
  chosen.reserve(keys.size());
  for (const auto& key : keys) chosen.push_back(std::cref(key_named(key)));

  std::map<std::vector<std::string>, std::size_t> index;  // keys -> position: groups stay in order of appearance
  std::vector<GroupRow> rows;
  std::vector<Tally> tallies;
  if (keys.empty()) {  // everything is one group, also where nothing ran
    index.try_emplace({}, 0);
    rows.emplace_back();
    tallies.emplace_back();
  }
  for (const auto& bucket : data_->ops) {
    std::vector<std::string> values;
    values.reserve(chosen.size());
    for (const Key& key : chosen) values.push_back(key.value(*data_, bucket));
    const auto [position, is_new] = index.try_emplace(values, rows.size());
    if (is_new) {
      rows.emplace_back().keys = values;
      tallies.emplace_back();
    }
    rows[position->second].calls = saturating_add(rows[position->second].calls, bucket.calls);
    tallies[position->second].add(bucket, data_->ceilings);
  }

  for (std::size_t i = 0; i < rows.size(); ++i) {
    static_cast<Figures&>(rows[i]) =
        derive_figures(tallies[i], Timing{tallies[i].op_time_ns, std::nullopt}, data_->ceilings);
    rows[i].input_elements = tallies[i].work.input_elements;
    rows[i].output_elements = tallies[i].work.output_elements;
    const auto all_ops_ns = total_.op_time_ns.value_or(0);
    if (const auto time_ns = rows[i].time_ns; time_ns && all_ops_ns > 0) {
      rows[i].percent_of_time = 100.0 * static_cast<double>(*time_ns) / static_cast<double>(all_ops_ns);
    }
  }
  return rows;
}

}  // namespace roofprof
