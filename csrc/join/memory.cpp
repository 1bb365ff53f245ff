#include "join/memory.h"

#include <utility>

#include "values/note_codes.h"

namespace roofprof {

ProfileData with_memory(ProfileData data, const Pass& counting) {
  if (!counting.memory && counting.no_memory.empty()) return data;
  if (data.device != "cpu") return data;  // nobody listens to a GPU's allocator, and the meta device has no memory
  if (!counting.no_memory.empty()) {
    add_note(data.notes, "no-memory", "no peak memory: " + counting.no_memory);
    return data;
  }
  // Some of the call's tensors hold no memory (meta, fake): what was allocated is not what it needs.
  if (counting.meta_memory->peak_bytes > 0) return data;
  const auto& memory = *counting.memory;
  data.peak_memory = memory.peak_bytes;
  for (const auto& entry : memory.modules) {
    auto& module = data.modules[index_of(entry.module)];
    module.peak_memory = entry.peak_bytes;
    module.kept_memory = entry.kept_bytes;
  }
  return data;
}

}  // namespace roofprof
