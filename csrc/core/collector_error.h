#pragma once
// Why a device's times or counters cannot be had, and what to do about it.

#include <string>
#include <utility>

#include "roofprof/error.h"

namespace roofprof {

// One sentence: what cannot be collected and why, then what to do, if anything can be done.
class CollectorError : public RuntimeError {
 public:
  explicit CollectorError(const std::string& found, std::string advice = {})
      : RuntimeError(advice.empty() ? found : found + ": " + advice), found_(found), advice_(std::move(advice)) {}
  const std::string& found() const { return found_; }
  const std::string& advice() const { return advice_; }

 private:
  std::string found_;
  std::string advice_;
};

}  // namespace roofprof
