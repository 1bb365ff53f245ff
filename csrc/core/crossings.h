#pragma once
// Holds which part of an op's bytes crosses the boundaries of modules.

#include <cstddef>
#include <cstdint>
#include <vector>

namespace roofprof {

// The part of an op's bytes that crosses the boundary of a module. Memory that a call of the module reads and did not
// write before comes in, once in each call; memory that it wrote goes out if something else reads it, or if it is still
// there when the call ends. The rest stays inside.
struct Crossing {
  std::int64_t levels =
      0;  // modules that it holds for, going up from where the entry before ended; 0: all further ones
  std::int64_t read_bytes = 0;
  std::int64_t write_bytes = 0;
  std::int64_t unread_bytes = 0;  // of write_bytes: nothing read them once the call had ended, nor are they the model's

  bool operator==(const Crossing&) const = default;
};

// One entry after the other holds for modules from the op's own upwards. Nothing crosses the boundaries after the last.
using Crossings = std::vector<Crossing>;

// Returns the crossings of an op whose bytes all cross every boundary.
Crossings crossing_whole(std::int64_t read_bytes, std::int64_t write_bytes);
// Returns each entry with what is read, and what is written, times a factor.
Crossings scaled(Crossings crossings, double reads, double writes);
// Returns an entry for each of the first `levels` modules.
Crossings by_level(const Crossings& crossings, std::size_t levels);
// Adds both, level by level.
void add_crossings(Crossings& sum, const Crossings& more);

}  // namespace roofprof
