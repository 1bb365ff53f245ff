#include "join/memory.h"

#include <string>
#include <utility>

#include "core/note_codes.h"

namespace roofprof {

namespace {

// Empty: it is known.
std::string why_unknown(const MemorySeen& seen, bool holds_data, bool watched) {
  if (!seen.why_not.empty()) return seen.why_not;
  if (!holds_data) return seen.meta_unsized ? "the sizes of some tensors are symbolic, without a value" : "";
  // Such tensors allocate nothing here, so the measured memory is not what the call needs.
  if (seen.meta.peak_bytes > 0) {
    return "some tensors of the call hold no memory themselves: fake or meta ones, or subclasses such as DTensor";
  }
  if (watched && seen.watched_devices.size() > 1) return "its tensors are on several devices";
  return watched && seen.watched_unknown ? "the memory of some tensors is not known" : "";
}

}  // namespace

ProfileData with_memory(ProfileData data, const Pass& counting, bool holds_data) {
  if (!counting.memory) return data;
  const auto& seen = *counting.memory;
  const bool watched = holds_data && (data.device != "cpu" || seen.watches_cpu);
  if (watched && seen.watched_devices.empty()) return data;  // what ran made nothing there, such as a recording
  if (const auto why_not = why_unknown(seen, holds_data, watched); !why_not.empty()) {
    add_note(data.notes, "no-memory", "no peak memory: " + why_not);
    return data;
  }
  if (watched) {
    add_note(data.notes, "memory-by-sizes",
             "peak and kept memory on " + seen.watched_devices.front() +
                 " are by the sizes of tensors between ops: what kernels allocate for themselves is not in it");
  }
  const auto& memory = watched ? seen.watched : holds_data ? seen.cpu : seen.meta;
  data.peak_memory = memory.peak_bytes;
  for (const auto& entry : memory.modules) {
    auto& module = data.modules[index_of(entry.module)];
    module.peak_memory = entry.peak_bytes;
    module.kept_memory = entry.kept_bytes;
  }
  return data;
}

}  // namespace roofprof
