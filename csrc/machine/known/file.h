#pragma once
// Roofs in a file: {"schema_version": 2, "ceilings": {device, compute, memory, curve}, "notes": [...]}. In the cache
// the file also holds the key of the machine that was measured.

#include <optional>
#include <string>

#include "machine/common/measurement.h"

namespace roofprof {

// The version of the file. It is raised when a reader of the older form would miss a key or misread one.
inline constexpr std::int64_t kCeilingsSchemaVersion = 2;  // 1 had no curve, and is read

struct CeilingsFile {
  Environment measured_on;  // empty: the file does not say
  MeasuredCeilings roofs;
};

// Reads the file. Throws std::runtime_error: one sentence that names the file and says what is wrong with it.
CeilingsFile read_ceilings_file(const std::string& path);

// Writes the file whole or not at all. Throws std::runtime_error naming the path.
void write_ceilings_file(const CeilingsFile& file, const std::string& path);

// Roofs that the user gives to a program in place of measured ones.

// Returns the roofs that the environment variable ROOFPROF_CEILINGS names: those of a file, or none for "off". Empty
// where it is not set. Throws std::runtime_error, naming the variable and what is wrong with the file.
std::optional<MeasuredCeilings> given_ceilings();

}  // namespace roofprof
