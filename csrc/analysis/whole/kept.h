#pragma once
// A value that is derived when it is first asked for, and kept.

#include <mutex>
#include <optional>

namespace roofprof {

// Safe for threads that read at once: one derives, the others wait for it. Where deriving throws, the next one tries
// again.
template <class Value>
class Kept {
 public:
  template <class Derive>
  const Value& get(Derive derive) const {
    std::call_once(once_, [&] { value_.emplace(derive()); });
    return *value_;
  }

 private:
  mutable std::once_flag once_;
  mutable std::optional<Value> value_;
};

}  // namespace roofprof
