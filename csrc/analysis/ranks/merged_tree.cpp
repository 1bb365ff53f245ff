#include "analysis/ranks/merged_tree.h"

#include <algorithm>

namespace roofprof {

namespace {

void keep_most(std::optional<std::int64_t>& most, const std::optional<std::int64_t>& value) {
  if (value && (!most || *value > *most)) most = value;
}

// A region is a row of its own beside a module of the same path.
std::string key_of(const Module& module) { return module.path + (module.type == kRegionType ? "\n" : ""); }

}  // namespace

MergedIndices MergedTree::add(const ProfileData& data) {
  std::vector<Own> own(data.modules.size());
  for (std::size_t id = 0; id < own.size(); ++id) {
    const auto& module = data.modules[id];
    for (const auto& [of_module, of_own] : kSizes) own[id].*of_own += module.*of_module;
    if (module.parent < 0) continue;
    for (const auto& [of_module, of_own] : kSizes) own[index_of(module.parent)].*of_own -= module.*of_module;
  }
  MergedIndices indices;
  for (std::size_t id = 0; id < own.size(); ++id) add_module(data.modules[id], own[id], indices);
  for (std::size_t id = 0; id < own.size(); ++id) {  // a region may stand behind the modules that run in it
    const ModuleId region = data.modules[id].compiled_region;
    if (region >= 0) modules_[index_of(indices.modules[id])].compiled_region = indices.module(region);
  }
  indices.regions.push_back(kNoRegion);
  for (const auto& region : data.regions) add_region(region, data.runs.chosen, indices);
  return indices;
}

void MergedTree::add_module(const Module& module, const Own& own, MergedIndices& indices) {
  const auto [found, is_new] = by_path_.try_emplace(key_of(module), static_cast<ModuleId>(modules_.size()));
  indices.modules.push_back(found->second);
  const auto merged_id = [&](ModuleId id) { return id < 0 ? id : indices.modules[index_of(id)]; };
  if (is_new) {
    Module& added = modules_.emplace_back(module);
    added.parent = merged_id(module.parent);
    added.same_as = merged_id(module.same_as);
    added.compiled_region = -1;
    own_.push_back(own);
    return;
  }
  Module& merged = modules_[index_of(found->second)];
  for (const auto& [of_module, of_own] : kSizes) {
    own_[index_of(found->second)].*of_own = std::max(own_[index_of(found->second)].*of_own, own.*of_own);
  }
  keep_most(merged.peak_memory, module.peak_memory);
  keep_most(merged.kept_memory, module.kept_memory);
  keep_most(merged.output_bytes, module.output_bytes);
  merged.calls_visible = merged.calls_visible && module.calls_visible;
  merged.parameters_read = merged.parameters_read || module.parameters_read;
  merged.inferred = merged.inferred || module.inferred;
  if (merged.input_shapes.empty()) merged.input_shapes = module.input_shapes;
  if (merged.output_shapes.empty()) merged.output_shapes = module.output_shapes;
}

void MergedTree::add_region(const RegionPath& region, std::int64_t chosen_run, MergedIndices& indices) {
  const RegionId parent = indices.regions[static_cast<std::size_t>(region.parent)];
  std::string path =
      (parent == kNoRegion ? "" : region_paths_[static_cast<std::size_t>(parent - 1)] + "\n") + region.name;
  const auto [found, is_new] = region_by_path_.try_emplace(path, static_cast<RegionId>(regions_.size() + 1));
  indices.regions.push_back(found->second);
  if (is_new) {
    regions_.push_back({parent, region.name, 0, {}});
    region_paths_.push_back(std::move(path));
    region_walls_.emplace_back();
  }
  const auto at = static_cast<std::size_t>(found->second - 1);
  regions_[at].calls = saturating_add(regions_[at].calls, region.calls);
  region_walls_[at].add(value_of_run(region.wall_ns, chosen_run));
}

std::vector<RegionPath> MergedTree::regions() const {
  std::vector<RegionPath> regions = regions_;
  for (std::size_t at = 0; at < regions.size(); ++at) {
    if (const auto wall = region_walls_[at].value()) regions[at].wall_ns = {*wall};
  }
  return regions;
}

std::vector<Module> MergedTree::modules() const {
  std::vector<Module> modules = modules_;
  for (std::size_t id = modules.size(); id-- > 0;) {
    for (const auto& [of_module, of_own] : kSizes) modules[id].*of_module = own_[id].*of_own;
  }
  // Children stand behind their parents.
  for (std::size_t id = modules.size(); id-- > 0;) {
    if (modules[id].parent < 0) continue;
    for (const auto& [of_module, of_own] : kSizes)
      modules[index_of(modules[id].parent)].*of_module += modules[id].*of_module;
  }
  return modules;
}

}  // namespace roofprof
