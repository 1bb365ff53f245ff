#pragma once
// What a program asks of callgrind, which counts the instructions of the program that it runs.

#include <valgrind/callgrind.h>

#include <cstdint>

namespace instructions {

// From here on instructions are counted.
inline void begin() {
  CALLGRIND_START_INSTRUMENTATION;
  CALLGRIND_ZERO_STATS;
}

// What was counted becomes a file of callgrind's, which says `name`.
inline void end(const char* name) {
  CALLGRIND_DUMP_STATS_AT(name);
  CALLGRIND_STOP_INSTRUMENTATION;
}

}  // namespace instructions
