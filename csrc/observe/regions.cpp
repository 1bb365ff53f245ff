#include "observe/regions.h"

#include <ATen/record_function.h>

#include <algorithm>
#include <array>

#include "observe/session.h"
#include "observe/thread_state.h"

namespace roofprof::observe {
namespace {

// How the names of ranges begin that torch opens itself.
constexpr std::array<std::string_view, 15> kPrefixesOfTorch = {
    "ProfilerStep",
    "Torch-Compiled Region",
    "TorchDynamo",
    "Pregraph bytecode",
    "AOTDispatcher",
    "CompiledFxGraph",
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
// What their names contain: Optimizer.step#SGD.step, enumerate(DataLoader)#..., ## Call CompiledFxGraph, rpc's.
constexpr std::array<std::string_view, 2> kPartsOfTorch = {"#", "(dynamo_timed)"};

bool is_torchs_own(std::string_view name) {
  return std::ranges::any_of(kPrefixesOfTorch, [&](auto prefix) { return name.starts_with(prefix); }) ||
         std::ranges::any_of(kPartsOfTorch, [&](auto part) { return name.find(part) != name.npos; });
}

}  // namespace

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

void open_region(std::string_view name, const void* token) {
  auto& state = thread_state();
  // What runs inside an op that counts as a whole has no place of its own.
  if (!state.is_observed() || state.in_owned_work()) return;
  const auto [parent, phase] = state.now();
  if (const auto id = state.session->regions().find_or_add(parent, name)) {
    state.open(*state.session, *id, phase, ScopeKind::region, token);
  }
}

void close_region(const void* token) {
  auto& state = thread_state();
  if (!state.scopes.empty()) state.close(token);
}

void open_region(const at::RecordFunction& range) {
  const std::string_view name = range.name();
  if (!name.empty() && !is_torchs_own(name)) open_region(name, &range);
}

}  // namespace roofprof::observe
