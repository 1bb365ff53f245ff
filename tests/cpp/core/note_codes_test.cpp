#include "core/note_codes.h"

#include <gtest/gtest.h>

#include <set>

namespace roofprof {
namespace {

TEST(Notes, ACodeHasItsLevel) {
  const Note note = make_note("simulated-device", "no GPU ran", {"cuda:0"});
  EXPECT_EQ(note, (Note{NoteLevel::attention, "simulated-device", {"cuda:0"}, "no GPU ran", 1}));
}

TEST(Notes, EachCodeStandsOnceInTheList) {
  std::set<std::string_view> codes;
  for (const auto& kind : kNoteKinds) {
    EXPECT_TRUE(codes.insert(kind.code).second) << kind.code;
    EXPECT_EQ(kind.code.find_first_not_of("abcdefghijklmnopqrstuvwxyz-"), std::string_view::npos) << kind.code;
    EXPECT_TRUE(kind.meaning.ends_with('.')) << kind.code;
    EXPECT_EQ(&kNoteKinds[index_of_note(kind.code)], &kind);
  }
  EXPECT_EQ(index_of_note("nonesuch"), kNoteKinds.size());
}

TEST(Notes, EqualOnesBecomeOneWithTheirNumberAndAllTheyName) {
  std::vector<Note> notes;
  add_note(notes, "cost-failed", "no idea", {"a"});
  add_note(notes, "cost-failed", "another idea", {"a"});
  add_note(notes, "cost-failed", "no idea", {"b", "a"});
  add_notes(notes, std::vector<Note>(notes));
  EXPECT_EQ(notes, (std::vector<Note>{{NoteLevel::warning, "cost-failed", {"a", "b"}, "no idea", 4},
                                      {NoteLevel::warning, "cost-failed", {"a"}, "another idea", 2}}));
}

TEST(Notes, TheSameTextUnderAnotherCodeIsAnotherNote) {
  std::vector<Note> notes;
  add_note(notes, "no-counters", "no permission");
  add_note(notes, "counter-not-measured", "no permission");
  EXPECT_EQ(notes.size(), 2U);
}

}  // namespace
}  // namespace roofprof
