#include "core/note_codes.h"

#include <algorithm>
#include <ostream>

namespace roofprof {

const Note* find_note(const std::vector<Note>& notes, NoteCode code) {
  const auto found = std::ranges::find(notes, code.kind().code, &Note::code);
  return found == notes.end() ? nullptr : &*found;
}

std::ostream& operator<<(std::ostream& out, const Note& note) { return out << note.text; }

void add_note(std::vector<Note>& notes, Note note) {
  const auto known = std::ranges::find_if(
      notes, [&](const Note& other) { return other.code == note.code && other.text == note.text; });
  if (known == notes.end()) {
    notes.push_back(std::move(note));
    return;
  }
  known->count += note.count;
  for (auto& name : note.where) {
    if (std::ranges::find(known->where, name) == known->where.end()) known->where.push_back(std::move(name));
  }
}

void add_notes(std::vector<Note>& notes, const std::vector<Note>& more) {
  for (const auto& note : more) add_note(notes, note);
}

}  // namespace roofprof
