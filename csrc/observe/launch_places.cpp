#include "observe/launch_places.h"

#include <map>

namespace roofprof::observe {

void LaunchPlaces::add(const Pass::Op& op, std::size_t index) {
  auto key = op.key;
  key.signature = op.inputs;
  const auto [place, fresh] = buckets_.try_emplace(key, static_cast<std::int64_t>(index));
  if (!fresh) place->second = -1;  // the same inputs, other results
}

std::int64_t LaunchPlaces::bucket_of(const BucketKey& launch) const {
  auto found = buckets_.find(launch);
  if (found == buckets_.end()) {
    auto any = launch;
    any.signature = kAnyInputs;
    found = buckets_.find(any);
  }
  return found == buckets_.end() ? -1 : found->second;
}

std::vector<LaunchPlace> LaunchPlaces::find(const std::vector<BucketKey>& launches, const ProfileData& data) const {
  // What compiled code does stands in one bucket of the module that runs it.
  std::map<std::pair<ModuleId, Phase>, std::int64_t> compiled;
  for (std::size_t i = 0; i < data.ops.size(); ++i) {
    const auto& bucket = data.ops[i];
    if (bucket.op == kCompiledRegion && bucket.costed) {
      compiled.try_emplace({bucket.module, bucket.phase}, static_cast<std::int64_t>(i));
    }
  }
  std::vector<LaunchPlace> places;
  for (const auto& launch : launches) {
    LaunchPlace place{launch.module, launch.phase, launch.op == nullptr ? "" : launch.op->name, -1};
    if (launch.op != nullptr) {
      const auto region = compiled.find({launch.module, launch.phase});
      place.bucket = region == compiled.end() ? bucket_of(launch) : region->second;
    }
    places.push_back(std::move(place));
  }
  return places;
}

}  // namespace roofprof::observe
