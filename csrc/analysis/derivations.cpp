#include "analysis/derivations.h"

namespace roofprof {

namespace {

thread_local DerivationLog* current_log = nullptr;

}  // namespace

void record_derivation(std::string_view part, const ProfileData& data) {
  if (current_log != nullptr) ++current_log->counts_[{std::string(part), &data}];
}

DerivationLog::DerivationLog() { current_log = this; }

DerivationLog::~DerivationLog() { current_log = nullptr; }

}  // namespace roofprof
