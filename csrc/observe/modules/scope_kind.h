#pragma once

#include <cstdint>

namespace roofprof::observe {

enum class FrameKind : std::uint8_t {
  base,
  module,
  norm,    // a module whose call ends with the normalisation that it dispatches next
  method,  // a module's code around its calls, which does not count as a call
  region,  // opened by the user's code
  node,
  script,  // TorchScript runs: its module changes with the ops
  pause,   // nothing in here is the model's work (a compiler traces it): its time counts, its ops do not
};

constexpr bool is_call(FrameKind kind) { return kind == FrameKind::module || kind == FrameKind::norm; }

}  // namespace roofprof::observe
