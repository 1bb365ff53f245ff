#pragma once
// Describes a figure as the table of figures (core/fields.h) lists it: its names, unit, needs and legend.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace roofprof {

enum class Unit : std::uint8_t {
  text,        // std::string
  flag,        // bool
  count,       // things: calls, parameters, kernels
  macs,        // multiply-accumulates
  operations,  // FLOPs or integer operations
  by_dtype,    // operations for each dtype
  bytes,
  nanoseconds,
  fraction,  // 0-1
  ratio,     // of two figures of one unit
  percent,   // 0-100
  flops_per_byte,
  flops_per_second,
  bytes_per_second,
  shapes,  // sizes of tensors
  blocks,  // of a launch: in x, y and z
  bound    // what bounds, as to_string(Bound) says it
};

constexpr std::string_view unit_name(Unit unit) {
  switch (unit) {
    case Unit::text:
      return "text";
    case Unit::flag:
      return "true or false";
    case Unit::count:
      return "count";
    case Unit::macs:
      return "multiply-accumulates";
    case Unit::operations:
      return "operations";
    case Unit::by_dtype:
      return "operations by dtype";
    case Unit::bytes:
      return "bytes";
    case Unit::nanoseconds:
      return "nanoseconds";
    case Unit::fraction:
      return "fraction (1 = 100%)";
    case Unit::ratio:
      return "ratio";
    case Unit::percent:
      return "percent";
    case Unit::flops_per_byte:
      return "FLOPs per byte (int_ops per byte where those are more)";
    case Unit::flops_per_second:
      return "FLOP/s (int_ops per second where those are more)";
    case Unit::bytes_per_second:
      return "bytes per second";
    case Unit::shapes:
      return "tensor sizes";
    case Unit::blocks:
      return "count in x, y and z";
    case Unit::bound:
      return "compute <dtype>, memory <level>, network <backend>, overhead, latency/code or unknown";
  }
  return "";
}

// Text, or numbers where larger is more.
constexpr bool is_textual(Unit unit) {
  return unit == Unit::text || unit == Unit::bound || unit == Unit::by_dtype || unit == Unit::shapes ||
         unit == Unit::blocks || unit == Unit::flag;
}

constexpr std::string_view suffix_of(Unit unit) { return unit == Unit::nanoseconds ? "_ns" : ""; }

// Returns the key under which JSON and CSV have a figure: times are integer nanoseconds there.
inline std::string key_of(std::string_view name, Unit unit) { return std::string(name) + std::string(suffix_of(unit)); }

// Facts about a report. A figure needs some of them, and so does a sentence of the legend. The legend explains things
// in this order.
using Facts = std::uint32_t;
namespace facts {
inline constexpr Facts integers = 1U << 0U;   // most operations are integer ones
inline constexpr Facts time = 1U << 1U;       // a run was timed
inline constexpr Facts device = 1U << 2U;     // by what a device ran
inline constexpr Facts intervals = 1U << 3U;  // when the device worked and waited is known for each row
inline constexpr Facts counters = 1U << 4U;   // hardware counters were read
inline constexpr Facts roofs = 1U << 5U;
inline constexpr Facts regions = 1U << 6U;  // modules ran inside compiled regions
inline constexpr Facts incomplete = 1U << 7U;
inline constexpr Facts inferred = 1U << 8U;
inline constexpr Facts ranks = 1U << 9U;         // the report is merged of several ranks', with times
inline constexpr Facts collectives = 1U << 10U;  // some were called, with times
inline constexpr Facts predicted = 1U << 11U;    // times are predicted
inline constexpr Facts latency = 1U << 12U;      // no roof is near what some rows reach

inline constexpr std::array<std::string_view, 13> kNames = {
    "integers",   "time",     "device", "intervals",   "counters",  "roofs",  "regions",
    "incomplete", "inferred", "ranks",  "collectives", "predicted", "latency"};
}  // namespace facts

// The limit that a figure is where it includes an op without a known cost.
enum class Limit : std::uint8_t { none, lower, upper };

constexpr std::string_view to_string(Limit limit) {
  return limit == Limit::none ? "" : limit == Limit::lower ? ">=" : "<=";
}

// Stands in the legend where the figure's needs and `when` hold and nothing of `unless` does.
struct Sentence {
  std::string_view text = {};  // empty: none
  Facts when = 0;
  Facts unless = 0;
  int order = 0;  // among the sentences of the same needs; equal ones follow the table
};

inline constexpr std::string_view kSelf = "self_";  // how the names of a row's self figures begin

struct FigureInfo {
  std::string_view name;     // Python's attribute, the column's name and the stem of the key
  std::string_view heading;  // of its column
  Unit unit = Unit::text;
  std::array<std::string_view, 2> aliases = {};  // further names that people type, in lower case
  Facts needs = 0;
  Limit limit = Limit::none;
  Sentence legend = {};                // explains the figure: below every table of a report that can fill it
  std::array<Sentence, 3> hints = {};  // explain what else its column may hold

  // These return the name and the key of a row's figure, or of its self figure.
  std::string name_in(bool of_self) const { return std::string(of_self ? kSelf : "").append(name); }
  std::string key_in(bool of_self) const { return name_in(of_self).append(suffix_of(unit)); }
  // Returns whether `wanted` is one of the names that people write: the name, or the key in JSON and CSV.
  bool is_called(std::string_view wanted, bool of_self) const {
    return wanted == name_in(of_self) || wanted == key_in(of_self);
  }
  std::string heading_in(bool of_self) const { return std::string(of_self ? "self " : "").append(heading); }
};

}  // namespace roofprof
