#include "join/memory.h"

#include <string>
#include <utility>

#include "values/note_codes.h"

namespace roofprof {

namespace {

// Empty: it is known.
std::string why_unknown(const MemorySeen& seen, bool holds_data) {
  if (!seen.why_not.empty()) return seen.why_not;
  if (!holds_data) return seen.meta_unsized ? "the sizes of some tensors are symbolic, without a value" : "";
  // What was allocated is not what the call needs.
  if (seen.meta.peak_bytes > 0) {
    return "some tensors of the call hold no memory themselves: fake or meta ones, or subclasses such as DTensor";
  }
  return "";
}

}  // namespace

ProfileData with_memory(ProfileData data, const Pass& counting, bool holds_data) {
  if (!counting.memory || (holds_data && data.device != "cpu")) return data;  // nobody listens to a GPU's allocator
  if (const auto why_not = why_unknown(*counting.memory, holds_data); !why_not.empty()) {
    add_note(data.notes, "no-memory", "no peak memory: " + why_not);
    return data;
  }
  const auto& memory = holds_data ? counting.memory->cpu : counting.memory->meta;
  data.peak_memory = memory.peak_bytes;
  for (const auto& entry : memory.modules) {
    auto& module = data.modules[index_of(entry.module)];
    module.peak_memory = entry.peak_bytes;
    module.kept_memory = entry.kept_bytes;
  }
  return data;
}

}  // namespace roofprof
