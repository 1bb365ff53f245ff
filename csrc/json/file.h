#pragma once

#include <string>
#include <string_view>

namespace roofprof {

// Writes the whole text or leaves what was there: a reader never sees half a file. What is not a regular file (a pipe,
// /dev/stdout) is written in place. Throws std::runtime_error naming the path and the reason.
void write_whole_file(const std::string& path, std::string_view text);

// Throws std::runtime_error naming the path and the reason.
std::string read_whole_file(const std::string& path);

}  // namespace roofprof
