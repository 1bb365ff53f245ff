#include "join/launch_owners.h"

#include <map>
#include <utility>

namespace roofprof {
namespace {

using BucketsByInputs = std::map<OpKey, std::int64_t>;  // -1: the same inputs had several results

BucketsByInputs buckets_by_inputs(const std::vector<Pass::Op>& ops) {
  BucketsByInputs buckets;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].number == 0) continue;
    const auto [bucket, fresh] = buckets.try_emplace(ops[i].inputs_key(), static_cast<std::int64_t>(i));
    if (!fresh) bucket->second = -1;
  }
  return buckets;
}

std::int64_t bucket_by_inputs(OpKey launch, const BucketsByInputs& buckets) {
  auto found = buckets.find(launch);
  if (found == buckets.end()) {
    launch.signature = kAnyInputs;
    found = buckets.find(launch);
  }
  return found == buckets.end() ? -1 : found->second;
}

}  // namespace

std::vector<LaunchOwner> launch_owners(const std::vector<LaunchKey>& launches, const std::vector<Pass::Op>& ops) {
  const auto buckets = buckets_by_inputs(ops);
  // One bucket of the module that runs compiled code has all that this code does.
  std::map<Owner, std::int64_t> compiled;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (ops[i].op != kCompiledRegion || !ops[i].costed) continue;
    compiled.try_emplace(ops[i].owner, static_cast<std::int64_t>(i));
  }
  std::vector<LaunchOwner> owners;
  for (const auto& [key, op] : launches) {
    LaunchOwner owner{key.owner, op, -1};
    if (key.op != 0) {
      const auto region = compiled.find(key.owner);
      owner.bucket = region == compiled.end() ? bucket_by_inputs(key, buckets) : region->second;
    }
    owners.push_back(std::move(owner));
  }
  return owners;
}

}  // namespace roofprof
