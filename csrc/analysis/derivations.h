#pragma once
// A record of what is derived, so that a test can show that nothing is derived twice.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "core/profile_data.h"

namespace roofprof {

// Every function that derives a part of a report calls this. It does nothing unless a DerivationLog lives.
void record_derivation(std::string_view part, const ProfileData& data);

// Counts what this thread derives while the log lives. Logs do not nest.
class DerivationLog {
 public:
  DerivationLog();
  ~DerivationLog();
  DerivationLog(const DerivationLog&) = delete;
  DerivationLog& operator=(const DerivationLog&) = delete;

  // How often each part was derived from each profile.
  using Counts = std::map<std::pair<std::string, const ProfileData*>, std::int64_t>;
  const Counts& counts() const { return counts_; }

 private:
  friend void record_derivation(std::string_view part, const ProfileData& data);
  Counts counts_;
};

}  // namespace roofprof
