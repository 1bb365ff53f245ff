#pragma once
// From what launches are told to belong to (launches.h) to the modules and ops of a profile.

#include <unordered_map>
#include <vector>

#include "core/device/device_join.h"
#include "observe/session.h"

namespace roofprof::observe {

class LaunchPlaces {
 public:
  // The op's bucket is data.ops[index].
  void add(const Pass::Op& op, std::size_t index);
  // By LaunchId, for LaunchIds::keys().
  std::vector<LaunchPlace> find(const std::vector<BucketKey>& launches, const ProfileData& data) const;

 private:
  std::int64_t bucket_of(const BucketKey& launch) const;

  std::unordered_map<BucketKey, std::int64_t, BucketKeyHash> buckets_;  // by inputs; -1: there are several
};

}  // namespace roofprof::observe
