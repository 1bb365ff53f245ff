#pragma once
// Defines what a list of members is (the lists are in core/members.h):
//
//   ROOFPROF_MEMBERS(KernelPart, ALWAYS(module), UNLESS_DEFAULT(share))
//
// names the members of a struct once, in the order in which they are written, under their own names. What is read must
// have those of ALWAYS; those of UNLESS_DEFAULT are left out where they are those of a KernelPart{}. OWNER stands for
// the members of `owner`, and visit("key", member, when) for one that is written under another name. OF(part, ...) are
// the members of a part of the struct (the parts of a profile below), which are written as if they were its own.
//
// for_each_member(Of<KernelPart>{}, visit) then calls visit(name, member, Written) for each; std::invoke(member,
// object) is the member of that object.

#include <array>
#include <cstdint>
#include <functional>
#include <string_view>

#include "core/collective_data.h"
#include "core/profile.h"

#define ROOFPROF_MEMBERS(Struct, ...)                 \
  template <class Visitor>                            \
  void for_each_member(Of<Struct>, Visitor&& visit) { \
    using Self = Struct;                              \
    (__VA_ARGS__);                                    \
  }
#define ALWAYS(...) ROOFPROF_RESCAN(ROOFPROF_VISIT(Written::always, __VA_ARGS__))
#define UNLESS_DEFAULT(...) ROOFPROF_RESCAN(ROOFPROF_VISIT(Written::unless_default, __VA_ARGS__))
#define OF(part, when, ...) ROOFPROF_RESCAN(ROOFPROF_VISIT_OF(Written::when, part, __VA_ARGS__))
#define OWNER visit_owner(&Self::owner, visit)

// A macro does not expand in itself: the rest of a list waits for the next scan, of which there are more than members.
#define ROOFPROF_VISIT(when, name, ...) \
  visit(#name, &Self::name, when) __VA_OPT__(, ROOFPROF_VISIT_REST ROOFPROF_PARENTHESES(when, __VA_ARGS__))
#define ROOFPROF_VISIT_REST() ROOFPROF_VISIT
#define ROOFPROF_VISIT_OF(when, part, name, ...)           \
  visit(#name, part(&decltype(part)::Members::name), when) \
      __VA_OPT__(, ROOFPROF_VISIT_OF_REST ROOFPROF_PARENTHESES(when, part, __VA_ARGS__))
#define ROOFPROF_VISIT_OF_REST() ROOFPROF_VISIT_OF
#define ROOFPROF_PARENTHESES ()
#define ROOFPROF_RESCAN(...) ROOFPROF_RESCAN_4(ROOFPROF_RESCAN_4(ROOFPROF_RESCAN_4(ROOFPROF_RESCAN_4(__VA_ARGS__))))
#define ROOFPROF_RESCAN_4(...) ROOFPROF_RESCAN_1(ROOFPROF_RESCAN_1(ROOFPROF_RESCAN_1(ROOFPROF_RESCAN_1(__VA_ARGS__))))
#define ROOFPROF_RESCAN_1(...) ROOFPROF_SCAN(ROOFPROF_SCAN(ROOFPROF_SCAN(ROOFPROF_SCAN(__VA_ARGS__))))
#define ROOFPROF_SCAN(...) __VA_ARGS__

namespace roofprof {

template <class Struct>
struct Of {};
enum class Written : std::uint8_t { always, unless_default };

// A member of a member, as visitors take it: with std::invoke.
constexpr auto within(auto part, auto member) {
  return [=](auto& object) -> auto& { return std::invoke(member, object.*part); };
}

// The members of an owner, which are written as if they were those of the struct that has it.
template <class Struct>
void visit_owner(Owner Struct::* owner, auto&& visit) {
  visit("module", within(owner, &Owner::module), Written::always);
  visit("phase", within(owner, &Owner::phase), Written::always);
  visit("region", within(owner, &Owner::region), Written::unless_default);
}

template <class Struct>
concept HasMembers = requires { for_each_member(Of<Struct>{}, [](std::string_view, auto, Written) {}); };

// The names of an enumeration's values.
template <class Enum>
inline constexpr std::array<std::string_view, 0> names_of_enum{};
template <>
inline constexpr auto names_of_enum<Mode> = kModeNames;
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
inline constexpr auto names_of_enum<LaunchMode> = kLaunchModeNames;
template <>
inline constexpr auto names_of_enum<Parallel> = kParallelNames;
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
template <>
inline constexpr bool is_table_row<CollectiveCall> = true;

// True for a part of something that has its line already.
template <class Struct>
inline constexpr bool is_inside_line = false;
template <>
inline constexpr bool is_inside_line<ReusedBytes> = true;
template <>
inline constexpr bool is_inside_line<Crossing> = true;

}  // namespace roofprof
