#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace roofprof {

// Writes the whole text or leaves what was there: a reader never sees half a file. A file that is replaced keeps its
// permissions. What is not a regular file (a pipe, /dev/stdout) is written in place. Throws std::runtime_error naming
// the path and the reason.
void write_whole_file(const std::string& path, std::string_view text);

// More than any file of roofprof has; a report with a million events has a fifth of it.
inline constexpr std::int64_t kLargestFile = std::int64_t{1} << 30;

// Returns the text of a regular file. Refuses pipes and devices: their text may never come, or never end. Throws
// std::runtime_error naming the path and the reason, also where the file has more bytes than `largest`.
// roofprof.render.files reads in the same way.
std::string read_whole_file(const std::string& path, std::int64_t largest = kLargestFile);

}  // namespace roofprof
