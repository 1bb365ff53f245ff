#include "analysis/group.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "analysis/device_sums.h"
#include "analysis/exposed.h"
#include "analysis/roofline.h"
#include "analysis/within.h"
#include "core/phrases.h"

namespace roofprof {

namespace {

struct Key {
  std::string_view name;
  std::optional<std::string> GroupRow::* named;  // null: the phase, which is no text
  bool of_signature;                             // tells calls of one op in one module and phase apart
  std::string (*value)(const Profile&, const OpBucket&);
};

constexpr std::array<Key, 6> kKeys = {{
    {"phase", nullptr, false, [](const Profile&, const OpBucket& b) { return std::string(name_of(b.owner.phase)); }},
    {"op", &GroupRow::op, false, [](const Profile&, const OpBucket& b) { return b.op; }},
    {"module", &GroupRow::module, false,
     [](const Profile& d, const OpBucket& b) { return d.tree.modules[static_cast<std::size_t>(b.owner.module)].path; }},
    {"scope", &GroupRow::scope, false,
     [](const Profile& d, const OpBucket& b) { return path_of_region(d, b.owner.region); }},
    {"dtype", &GroupRow::dtype, true, [](const Profile&, const OpBucket& b) { return std::string(name_of(b.dtype)); }},
    {"shapes", &GroupRow::shapes, true, [](const Profile&, const OpBucket& b) { return shapes_text(b.shapes); }},
}};

const Key& key_named(const std::string& name) {
  for (const auto& key : kKeys) {
    if (key.name == name) return key;
  }
  std::string known;
  for (const auto& key : kKeys) add_item(known, key.name);
  throw InvalidArgument("cannot group by '" + name + "'; the keys are " + known +
                        "; tables by kernel, rank, collective and memory stand alone");
}

struct Group {
  std::vector<std::string> keys;
  std::int64_t calls = 0;
  Tally tally;
  Tally compared;  // what took the group's time: of compiled code the ops that it ran, which are in other groups too
  DeviceSums device;
  bool apart = true;          // false: a launch may belong to these ops or to those of another group
  bool only_compiled = true;  // all of it is the time of compiled code

  bool work_elsewhere() const { return only_compiled && calls > 0 && tally.work == Work{}; }
};

// Groups in order of appearance.
class Groups {
 public:
  Groups(const Profile& data, std::span<const std::string> keys) : data_(data), reader_(data.device->counters.sources) {
    for (const auto& key : keys) keys_.push_back(&key_named(key));
    if (keys_.empty()) find({});  // everything is one group, also where nothing ran
  }

  void add_ops() {
    for (const auto& bucket : data_.counts.ops) {
      Group& group = groups_[find(bucket)];
      group.calls = saturating_add(group.calls, bucket.calls);
      group.tally.add(bucket, data_.roofs);
      group.only_compiled &= is_time_of_region(bucket.op) || is_compiled_code(bucket.op);
    }
  }

  // Ops that ran in compiled code have no time, and launched nothing on a device. What they needed is compared with the
  // time of that code. On a device other ops may launch nothing, too: outside of compiled code they stand for
  // themselves.
  void add_compiled() {
    Regions regions;
    for (const auto& bucket : data_.counts.ops) {
      if (bucket.op == kCompiledRegion && bucket.time_ns) {
        regions.try_emplace({bucket.owner.module, bucket.owner.phase}, &bucket);
      }
    }
    if (regions.empty()) return;
    for (const auto& bucket : data_.counts.ops) {
      const auto* region =
          ran_itself(bucket) || is_time_of_region(bucket.op) ? nullptr : region_of(bucket.owner, regions);
      groups_[find(region == nullptr ? bucket : *region)].compared.add(bucket, data_.roofs);
    }
  }

  void add_kernels() {
    const auto only_copy = ops_that_only_copy(data_);
    for (std::size_t i = 0; i < only_copy.size(); ++i) {
      const auto& bucket = data_.counts.ops[i];
      groups_of_op_[{bucket.owner, bucket.op}].insert(find(bucket));
      if (only_copy[i]) groups_[find(bucket)].device.add_uncounted(bucket.work);
    }
    for (const auto& kernel : data_.device->kernels) {
      if (kernel.op.empty()) continue;
      const auto candidates = groups_of(kernel);
      if (candidates.size() == 1) {
        groups_[*candidates.begin()].device += sums_of(kernel, reader_);
      } else {
        for (const std::size_t group : candidates) groups_[group].apart = false;
      }
    }
  }

  // An op of collectives has the time of its kernels that was exposed. No group has what other work hid.
  void add_communication() {
    for (const auto& part : exposed_parts(data_).value_or(std::vector<ExposedPart>{})) {
      Group& group = groups_[find(data_.counts.ops[static_cast<std::size_t>(part.bucket)])];
      group.tally.exposed += part.exposed;
      group.compared.exposed += part.exposed;
    }
    for (const auto& hidden : hidden_in_kernels(data_)) {
      auto& time_ns = groups_[find(data_.counts.ops[static_cast<std::size_t>(hidden.bucket)])].device.op_time_ns;
      time_ns = std::max<std::int64_t>(time_ns - hidden.ns, 0);
    }
  }

  std::vector<Group> take() { return std::move(groups_); }

 private:
  using Regions = std::map<std::pair<ModuleId, Phase>, const OpBucket*>;

  // Returns whether the op ran outside of compiled code. On a device its time is that of what it launched, and not
  // known where some of that may be another's (csrc/join/device_join.h).
  bool ran_itself(const OpBucket& bucket) const {
    return data_.device ? bucket.time_ns != 0 : bucket.time_ns.has_value();
  }

  // Returns the compiled code that ran an op of that owner: that of the nearest module around it, of the same phase if
  // there is one; else on a host any, so that all groups together have all work, and on a device none (null).
  const OpBucket* region_of(const Owner& owner, const Regions& regions) const {
    for (const bool in_phase : {true, false}) {
      for (auto module = owner.module; module >= 0; module = data_.tree.modules[index_of(module)].parent) {
        const auto found =
            in_phase ? regions.find({module, owner.phase}) : regions.lower_bound({module, Phase::forward});
        if (found != regions.end() && found->first.first == module) return found->second;
      }
    }
    return data_.device ? nullptr : regions.begin()->second;
  }

  std::size_t find(const OpBucket& bucket) {
    std::vector<std::string> values;
    values.reserve(keys_.size());
    for (const Key* key : keys_) values.push_back(key->value(data_, bucket));
    const auto [position, is_new] = index_.try_emplace(std::move(values), groups_.size());
    if (is_new) {
      groups_.emplace_back().keys = position->first;
      groups_.back().device.measured = reader_.nothing();
    }
    return position->second;
  }

  // Returns the groups that launches may belong to: one, unless groups differ by shapes or dtype, and the op's are not
  // known.
  std::set<std::size_t> groups_of(const KernelBucket& kernel) {
    if (kernel.bucket >= 0) return {find(data_.counts.ops[static_cast<std::size_t>(kernel.bucket)])};
    const auto known = groups_of_op_.find({kernel.owner, kernel.op});
    if (known != groups_of_op_.end()) return known->second;
    OpBucket alone;  // what only the traced run did
    alone.op = kernel.op;
    alone.owner = kernel.owner;
    return {find(alone)};
  }

  const Profile& data_;
  CounterReader reader_;
  std::vector<const Key*> keys_;
  std::map<std::vector<std::string>, std::size_t> index_;
  std::map<std::pair<Owner, std::string_view>, std::set<std::size_t>> groups_of_op_;  // of all its signatures
  std::vector<Group> groups_;
};

Timing timing_of(const Group& group, bool on_device) {
  Timing timing;
  timing.of_device = on_device;
  if (!on_device) {
    timing.time_ns = group.tally.op_time_ns;
  } else if (group.apart) {
    timing.time_ns = group.device.op_time_ns;
  }
  return timing;
}

void compare(const Group& group, const Timing& timing, const Ceilings& ceilings, Figures& row) {
  const auto compared = derive_figures(group.compared, timing, ceilings);
  row.compute_time_ns = compared.compute_time_ns;
  row.memory_time_ns = compared.memory_time_ns;
  row.lower_bound_time_ns = compared.lower_bound_time_ns;
  row.wasted_time_ns = compared.wasted_time_ns;
  row.percent_of_roof = compared.percent_of_roof;
  row.percent_of_roof_counted = compared.percent_of_roof_counted;
  row.bound = compared.bound;
  if (row.bytes == 0 && row.flops == 0) return;  // compiled code, whose work stands with its ops
  row.achieved_flops = compared.achieved_flops;
  row.achieved_bandwidth = compared.achieved_bandwidth;
}

}  // namespace

std::vector<GroupRow> group_rows(const Profile& data, const Figures& total, std::span<const std::string> keys) {
  const bool on_device = data.device.has_value();
  Groups groups(data, keys);
  groups.add_ops();
  if (on_device) groups.add_kernels();
  if (on_device) groups.add_communication();
  groups.add_compiled();

  std::vector<GroupRow> rows;
  for (Group& group : groups.take()) {
    GroupRow& row = rows.emplace_back();
    const Timing timing = timing_of(group, on_device);
    if (on_device) group.tally.op_time_ns = timing.time_ns;
    static_cast<Figures&>(row) = derive_figures(group.tally, timing, data.roofs, data.times->common_error);
    if (on_device && group.apart) add_device_figures(group.device, group.tally.off_device, row);
    if (group.compared.buckets > 0) compare(group, timing, data.roofs, row);
    row.keys = std::move(group.keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (const auto named = key_named(keys[i]).named; named != nullptr) {
        row.*named = row.keys[i];
      } else {
        row.phase = static_cast<Phase>(std::ranges::find(kPhaseNames, row.keys[i]) - kPhaseNames.begin());
      }
    }
    row.calls = group.calls;
    if (group.work_elsewhere()) {
      row.work_elsewhere = true;
      row.achieved_flops.reset();
      row.achieved_bandwidth.reset();
    }
    row.input_elements = group.tally.work.input_elements;
    row.output_elements = group.tally.work.output_elements;
    const auto all_ops_ns = total.op_time_ns.value_or(0);
    if (row.time_ns && all_ops_ns > 0) {
      row.percent_of_time = 100.0 * static_cast<double>(*row.time_ns) / static_cast<double>(all_ops_ns);
    }
  }
  return rows;
}

}  // namespace roofprof
