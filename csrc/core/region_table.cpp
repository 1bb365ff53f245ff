#include "core/region_table.h"

#include <algorithm>
#include <array>

namespace roofprof {
namespace {

// The prefixes of the ranges that torch opens itself.
constexpr std::array<std::string_view, 20> kPrefixesOfTorch = {
    "ProfilerStep",
    "Torch-Compiled Region",
    "TorchDynamo",
    "Pregraph bytecode",
    "AOTDispatcher",
    "CompiledFxGraph",
    "AOTIModelContainerRunner::",
    "DistributedDataParallel.",
    "DataParallel.",
    "FullyShardedDataParallel.",
    "FSDP",
    "gloo:",
    "nccl:",
    "ucc:",
    "mpi:",
    "torch.distributed",
    "Optimizer.",  // Optimizer.step#SGD.step
    "## Call CompiledFxGraph",
    "enumerate(DataPipe)#",
    "rpc_",
};
// A DataLoader's range around the wait for its next batch,
// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", and the name of the region that it opens.
constexpr std::string_view kRangeOfDataLoading = "enumerate(DataLoader)#";
constexpr std::string_view kDataLoading = "(data loading)";
constexpr std::string_view kDynamoTimed = "(dynamo_timed)";

bool is_torchs_own(std::string_view name) {
  return std::ranges::any_of(kPrefixesOfTorch, [&](auto prefix) { return name.starts_with(prefix); }) ||
         name.find(kDynamoTimed) != name.npos;
}

// Returns the name, cut between two characters of UTF-8 if it is too long.
std::string_view shortened(std::string_view name) {
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end);
}

}  // namespace

std::string_view region_of_range(std::string_view range) {
  if (range.starts_with(kRangeOfDataLoading)) return kDataLoading;
  return is_torchs_own(range) ? std::string_view{} : shortened(range);
}

std::optional<ModuleId> Regions::find_or_add(ModuleId parent, std::string_view name) {
  Key key{parent, name};
  const std::lock_guard lock(mutex_);
  if (const auto found = ids_.find(key); found != ids_.end()) return found->second;
  if (regions_.size() >= kMost) {
    refused_ = true;
    return std::nullopt;
  }
  const ModuleId id = first_ + static_cast<ModuleId>(regions_.size());
  regions_.push_back(&ids_.emplace(std::move(key), id).first->first);
  return id;
}

RegionId Regions::find_or_add_path(RegionId around, std::string_view name) {
  std::pair key{around, std::string(name)};
  const std::lock_guard lock(mutex_);
  if (const auto found = path_ids_.find(key); found != path_ids_.end()) return found->second;
  const auto path_of = [&](RegionId id) -> const RegionPath& { return paths_[static_cast<std::size_t>(id - 1)]; };
  for (auto outer = around; outer != kNoRegion; outer = path_of(outer).parent) {
    if (path_of(outer).name == name) return around;
  }
  if (paths_.size() >= kMost) {
    refused_ = true;
    return around;
  }
  paths_.push_back({around, key.second, 0, {}});
  const auto id = static_cast<RegionId>(paths_.size());
  path_ids_.emplace(std::move(key), id);
  return id;
}

bool Regions::is_open(RegionId path, std::string_view name) const {
  const std::lock_guard lock(mutex_);
  for (; path != kNoRegion; path = paths_[static_cast<std::size_t>(path - 1)].parent) {
    if (paths_[static_cast<std::size_t>(path - 1)].name == name) return true;
  }
  return false;
}

std::vector<RegionPath> Regions::all_paths() const {
  const std::lock_guard lock(mutex_);
  return paths_;
}

std::vector<Region> Regions::all() const {
  const std::lock_guard lock(mutex_);
  std::vector<Region> all;
  for (const auto* region : regions_) all.push_back({region->first, region->second});
  return all;
}

bool Regions::refused() const {
  const std::lock_guard lock(mutex_);
  return refused_;
}

}  // namespace roofprof
