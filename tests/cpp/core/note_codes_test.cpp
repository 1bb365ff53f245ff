#include "core/note_codes.h"

#include <gtest/gtest.h>

namespace roofprof {
namespace {

TEST(Notes, EqualOnesBecomeOneWithTheirNumberAndAllTheyName) {
  std::vector<Note> notes;
  add_note(notes, "cost-failed", "no idea", {"a"});
  add_note(notes, "cost-failed", "another idea", {"a"});
  add_note(notes, "cost-failed", "no idea", {"b", "a"});
  add_notes(notes, std::vector<Note>(notes));
  add_note(notes, "simulated-device", "no idea");
  EXPECT_EQ(notes, (std::vector<Note>{{NoteLevel::warning, "cost-failed", {"a", "b"}, "no idea", 4},
                                      {NoteLevel::warning, "cost-failed", {"a"}, "another idea", 2},
                                      {NoteLevel::attention, "simulated-device", {}, "no idea", 1}}));
}

}  // namespace
}  // namespace roofprof
