#pragma once
// Notes: facts that a reader of a profile must know in addition to its figures.

#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

namespace roofprof {

enum class NoteLevel : std::uint8_t {
  info,      // how a figure came about
  warning,   // something is missing or doubtful
  attention  // to be read before any figure: the table has it above the rows
};

struct Note {
  NoteLevel level = NoteLevel::info;
  std::string code;                // its subject, the same in every version: "timing-stopped"; docs/notes.md
  std::vector<std::string> where;  // paths of rows, operators or devices; may be empty
  std::string text;                // one sentence for people
  std::int64_t count = 1;          // equal notes are kept as one
  bool operator==(const Note&) const = default;
};

// Prints its text.
std::ostream& operator<<(std::ostream& out, const Note& note);

}  // namespace roofprof
