#include "observe/regions.h"

#include <ATen/record_function.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <stdexcept>
#include <string>
#include <utility>

#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {

struct RegionInfo : c10::DebugInfoBase {
  std::weak_ptr<Session> session;
  std::uint64_t pass = 0;
  std::uint16_t region = kNoRegion;
  std::shared_ptr<RegionInfo> around;
  std::atomic<bool> left_behind{false};  // it ended, but torch still tells of it
};

namespace {

// torch passes debug infos on to the threads that it starts work on. This kind is the one of torch's own tests.
const auto kRegionsInfo = c10::DebugInfoKind::TEST_INFO;

// How the names of ranges begin that torch opens itself.
constexpr std::array<std::string_view, 16> kPrefixesOfTorch = {
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
};
// A DataLoader's range around the wait for its next batch,
// "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", and the name of the region that it opens.
constexpr std::string_view kRangeOfDataLoading = "enumerate(DataLoader)#";
constexpr std::string_view kDataLoading = "(data loading)";
// What their names contain: Optimizer.step#SGD.step, ## Call CompiledFxGraph, rpc's.
constexpr std::array<std::string_view, 2> kPartsOfTorch = {"#", "(dynamo_timed)"};

bool is_torchs_own(std::string_view name) {
  return std::ranges::any_of(kPrefixesOfTorch, [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::ranges::any_of(kPartsOfTorch, [&](auto part) { return name.find(part) != name.npos; });
}

}  // namespace

void check_name(std::string_view name) {
  if (name.size() <= kLongestName) return;
  throw std::invalid_argument("roofprof: the name '" + std::string(name.substr(0, 20)) + "...' has " +
                              std::to_string(name.size()) + " bytes, and a region's or work's has at most " +
                              std::to_string(kLongestName) + ": shorten it");
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
  const auto path_of = [&](RegionId id) -> const RegionInside& { return paths_[static_cast<std::size_t>(id - 1)]; };
  for (auto outer = around; outer != kNoRegion; outer = path_of(outer).parent) {
    if (path_of(outer).name == name) return around;
  }
  if (paths_.size() >= kMost) {
    refused_ = true;
    return around;
  }
  paths_.push_back({around, key.second});
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

std::vector<RegionInside> Regions::all_paths() const {
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

void RegionHandover::begin(const std::shared_ptr<Session>& session, std::uint64_t pass, std::uint16_t region) {
  auto info = std::make_shared<RegionInfo>();
  info->session = session;
  info->pass = pass;
  info->region = region;
  if (!open_.empty()) info->around = open_.back();
  open_.push_back(info);
  c10::ThreadLocalDebugInfo::_push(kRegionsInfo, std::move(info));
}

void RegionHandover::end() {
  const auto info = std::move(open_.back());
  open_.pop_back();
  try {
    c10::ThreadLocalDebugInfo::_pop(kRegionsInfo);
  } catch (const c10::Error&) {
    // The region left a newer debug info open (that of torch's profiler), and ours is below it.
    info->left_behind = true;
  }
}

std::uint16_t region_handed_over(const Session& session) {
  const auto* info = dynamic_cast<const RegionInfo*>(c10::ThreadLocalDebugInfo::get(kRegionsInfo));
  while (info != nullptr && info->left_behind) info = info->around.get();
  const bool known = info != nullptr && info->pass == session.pass() && info->session.lock().get() == &session;
  return known ? info->region : kNoRegion;
}

void open_region(std::string_view name, const void* token) {
  auto& state = thread_state();
  // What runs inside an op that counts as a whole has no place of its own.
  if (!state.is_observed() || state.in_owned_work()) return;
  auto& regions = state.session->regions();
  const auto row = regions.find_or_add(state.now().module, name);
  const auto path = regions.find_or_add_path(state.region, name);
  if (row || std::cmp_not_equal(path, state.region)) state.open_region(row, static_cast<std::uint16_t>(path), token);
}

bool name_call(const Session& session, const void* module, std::string_view name) {
  auto& state = thread_state();
  if (!state.is_observed() || state.session.get() != &session || state.in_owned_work()) return false;
  const auto& call = state.scopes.back();
  if (call.kind != ScopeKind::module || call.token != module || call.opens_region) return false;
  const auto path = state.session->regions().find_or_add_path(state.region, name);
  if (std::cmp_not_equal(path, state.region)) state.name_call(static_cast<std::uint16_t>(path));
  return true;
}

bool is_region_open(std::string_view name) {
  const auto& state = thread_state();
  return state.is_observed() && state.session->regions().is_open(state.region, name);
}

void close_region(const void* token) {
  auto& state = thread_state();
  if (!state.scopes.empty()) state.close(token);
}

namespace {

// A range of torch's is not ours to refuse: its name is cut, between two characters of UTF-8.
std::string_view shortened(std::string_view name) {
  if (name.size() <= kLongestName) return name;
  std::size_t end = kLongestName;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0U) == 0x80U) --end;
  return name.substr(0, end);
}

}  // namespace

void open_region(const at::RecordFunction& range) {
  const std::string_view name = range.name();
  if (name.starts_with(kRangeOfDataLoading)) {
    open_region(kDataLoading, &range);
  } else if (!name.empty() && !is_torchs_own(name)) {
    open_region(shortened(name), &range);
  }
}

}  // namespace roofprof::observe
