#pragma once
// What rows are about, as enumerators with the names that tables, JSON and CSV have for them.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "roofprof/version.h"

namespace roofprof {

enum class Phase : std::uint8_t { forward, backward, recompute, optimizer };
inline constexpr std::size_t kPhaseCount = 4;
inline constexpr std::array<std::string_view, kPhaseCount> kPhaseNames = {"forward", "backward", "recompute",
                                                                          "optimizer"};
[[nodiscard]] constexpr std::string_view name_of(Phase phase) { return kPhaseNames[static_cast<std::size_t>(phase)]; }

// What a device ran; a fill is a memset.
enum class KernelKind : std::uint8_t { kernel, copy, fill };
inline constexpr std::array<std::string_view, 3> kKernelKindNames = {"kernel", "copy", "fill"};
[[nodiscard]] constexpr std::string_view name_of(KernelKind kind) {
  return kKernelKindNames[static_cast<std::size_t>(kind)];
}

// compute or memory: the larger share of the lower bound; overhead: most of the time is spent outside ops; network:
// most of the time is communication that no computing hides, or the row is a collective; latency: the roofs explain
// less than 3% of the time, so that it is the latency of calls or the ops' own code; unknown: no time, or no roof for
// the dtype.
enum class BoundKind : std::uint8_t { unknown, compute, memory, overhead, network, latency };
inline constexpr std::array<std::string_view, 6> kBoundKindNames = {"unknown",  "compute", "memory",
                                                                    "overhead", "network", "latency/code"};
[[nodiscard]] constexpr std::string_view name_of(BoundKind kind) {
  return kBoundKindNames[static_cast<std::size_t>(kind)];
}

// What a table has a line for, or a key of Report::group. scope: a region.
enum class By : std::uint8_t { module, scope, kernel, rank, collective, memory, op, phase, dtype, shapes };
inline constexpr std::array<std::string_view, 10> kByNames = {"module", "scope", "kernel", "rank",  "collective",
                                                              "memory", "op",    "phase",  "dtype", "shapes"};
[[nodiscard]] constexpr std::string_view name_of(By by) { return kByNames[static_cast<std::size_t>(by)]; }

// The same as text: By::op, "op", or several keys of groups, "op, phase".
struct ByText : std::string {
  // NOLINTBEGIN(google-explicit-constructor): options are written as one or the other
  ByText(By by) : std::string(name_of(by)) {}
  ByText(const char* text) : std::string(text) {}
  ByText(std::string text) : std::string(std::move(text)) {}
  ByText(std::string_view text) : std::string(text) {}
  // NOLINTEND(google-explicit-constructor)
};

}  // namespace roofprof
