#pragma once
// Defines what a list of members is (the lists are in core/members.h).
//
// A visitor is called as visit(name, member, Written), in the order in which members are written. std::invoke(member,
// object) is the member of that object. What is read must have the members that are always written; the others are left
// out where they are those of a Struct{}.

#include <array>
#include <cstdint>
#include <string_view>

#include "core/profile_data.h"

namespace roofprof {

template <class Struct>
struct Of {};
enum class Written : std::uint8_t { always, unless_default };

// A member of a member, as visitors take it: with std::invoke.
constexpr auto within(auto part, auto member) {
  return [=](auto& object) -> auto& { return object.*part.*member; };
}

// The members of an owner, which are written as if they were those of the struct that has it.
template <class Struct>
void visit_owner(Owner Struct::* owner, Written region, auto&& visit) {
  visit("module", within(owner, &Owner::module), Written::always);
  visit("phase", within(owner, &Owner::phase), Written::always);
  visit("region", within(owner, &Owner::region), region);
}

template <class Struct>
concept HasMembers = requires { for_each_member(Of<Struct>{}, [](std::string_view, auto, Written) {}); };

// The names of an enumeration's values.
template <class Enum>
inline constexpr std::array<std::string_view, 0> names_of_enum{};
template <>
inline constexpr auto names_of_enum<Phase> = kPhaseNames;
template <>
inline constexpr auto names_of_enum<DType> = kDTypeNames;
template <>
inline constexpr auto names_of_enum<KernelKind> = kKernelKindNames;
template <>
inline constexpr auto names_of_enum<Memory> = kMemoryNames;
template <>
inline constexpr auto names_of_enum<Counter> = kCounterNames;
template <>
inline constexpr auto names_of_enum<CounterRanges> = kCounterRangeNames;
template <>
inline constexpr auto names_of_enum<IdleBasis> = kIdleBasisNames;
template <>
inline constexpr auto names_of_enum<EventKind> = kEventKindNames;
template <>
inline constexpr auto names_of_enum<NoteLevel> = kNoteLevelNames;
template <>
inline constexpr auto names_of_enum<Confidence> = kConfidenceNames;
template <>
inline constexpr auto names_of_enum<MemoryCategory> = kMemoryCategoryNames;

// The names of the elements of an array that has a name for each, and the noun for one of them.
template <class Array>
struct ElementNames {
  static constexpr std::array<std::string_view, 0> names{};
  static constexpr std::string_view noun = "";
};
template <>
struct ElementNames<std::array<std::int64_t, kDTypeCount>> {
  static constexpr auto names = kDTypeNames;
  static constexpr std::string_view noun = "dtype";
};
template <>
struct ElementNames<CounterValues> {
  static constexpr auto names = kCounterNames;
  static constexpr std::string_view noun = "counter";
};

// True for a struct that may occur millions of times: a list of them is written as a table, {"columns": [names],
// "rows": [[...]]}.
template <class Struct>
inline constexpr bool is_table_row = false;
template <>
inline constexpr bool is_table_row<KernelRecord> = true;
template <>
inline constexpr bool is_table_row<Event> = true;
template <>
inline constexpr bool is_table_row<LaunchEvent> = true;
template <>
inline constexpr bool is_table_row<MemoryPoint> = true;

// True for a part of something that has its line already.
template <class Struct>
inline constexpr bool is_inside_line = false;
template <>
inline constexpr bool is_inside_line<ReusedBytes> = true;
template <>
inline constexpr bool is_inside_line<Crossing> = true;

}  // namespace roofprof
