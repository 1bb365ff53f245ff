#pragma once
// Sums of figures that some ranks may not know.

#include <cstdint>
#include <optional>
#include <vector>

#include "roofprof/work.h"

namespace roofprof {

// Known where each of its parts is.
class KnownSum {
 public:
  void add(const std::optional<std::int64_t>& part) {
    known_ = known_ && part.has_value();
    sum_ = saturating_add(sum_, part.value_or(0));
    has_parts_ = true;
  }
  std::optional<std::int64_t> value() const { return known_ && has_parts_ ? std::optional(sum_) : std::nullopt; }

 private:
  std::int64_t sum_ = 0;
  bool known_ = true;
  bool has_parts_ = false;
};

inline std::optional<std::int64_t> value_of_run(const std::vector<std::int64_t>& by_run, std::int64_t run) {
  if (run < 0 || static_cast<std::size_t>(run) >= by_run.size()) return std::nullopt;
  return by_run[static_cast<std::size_t>(run)];
}

}  // namespace roofprof
