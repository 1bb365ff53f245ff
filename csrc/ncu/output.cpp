#include "ncu/output.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "core/counter_metrics.h"
#include "core/phrases.h"
#include "ncu/counters.h"

namespace roofprof::ncu {

namespace {

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLongestRecord = std::size_t{1} << 20;

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
  return text;
}

// Splits a record of a table; quotes are doubled inside of quotes. Empty: a quote is left open.
std::optional<std::vector<std::string>> fields_of(std::string_view record) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < record.size(); ++i) {
    const char c = record[i];
    if (c == '"' && quoted && i + 1 < record.size() && record[i + 1] == '"') {
      fields.back() += '"';
      ++i;
    } else if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

// Returns whether commas stand between groups of three digits alone: "1,234,567.89".
bool has_groups(std::string_view text) {
  const auto whole = text.substr(0, text.find('.'));
  std::size_t digits = 0;
  bool first = true;
  for (const char c : whole) {
    if (c != ',') {
      ++digits;
      continue;
    }
    if (first ? digits == 0 || digits > 3 : digits != 3) return false;
    first = false;
    digits = 0;
  }
  return (first || digits == 3) && text.substr(whole.size()).find(',') == std::string_view::npos;
}

// Returns whether the text is a number of a locale that writes "1.234,5" for 1234.5.
bool has_decimal_comma(std::string_view text) {
  if (text.empty() || text.find_first_not_of("-0123456789.,") != std::string_view::npos) return false;
  return !has_groups(text.front() == '-' ? text.substr(1) : text) || std::ranges::count(text, '.') > 1;
}

// "1,234.5" as a number; not a number for "n/a" and other texts.
double number_of(std::string_view text) {
  std::string plain;
  for (const char c : text) {
    if (c != ',') plain += c;
  }
  double value = kUnknown;
  const char* const end = plain.data() + plain.size();
  const auto [last, error] = std::from_chars(plain.data(), end, value);
  return error == std::errc() && last == end && std::isfinite(value) ? value : kUnknown;
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  const double value = number_of(trimmed(text));
  if (!(std::abs(value) < 9e15)) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

struct Scale {
  double factor = 1;
  bool prefixed = false;
};

// Returns what a prefix of a unit stands for. Those of ncu are powers of 1000.
std::optional<Scale> scale_of_prefix(std::string_view prefix) {
  constexpr std::array<std::pair<std::string_view, double>, 15> kPrefixes = {{{"K", 1e3},
                                                                              {"k", 1e3},
                                                                              {"M", 1e6},
                                                                              {"G", 1e9},
                                                                              {"T", 1e12},
                                                                              {"P", 1e15},
                                                                              {"m", 1e-3},
                                                                              {"u", 1e-6},
                                                                              {"\u00b5", 1e-6},
                                                                              {"\u03bc", 1e-6},
                                                                              {"n", 1e-9},
                                                                              {"Ki", 0x1p10},
                                                                              {"Mi", 0x1p20},
                                                                              {"Gi", 0x1p30},
                                                                              {"Ti", 0x1p40}}};
  if (prefix.empty()) return Scale{};
  const auto found = std::ranges::find(kPrefixes, prefix, &std::pair<std::string_view, double>::first);
  if (found == kPrefixes.end()) return std::nullopt;
  return Scale{found->second, true};
}

template <std::size_t Count>
std::optional<Scale> scale_of(std::string_view unit, const std::array<std::string_view, Count>& bases) {
  for (const auto base : bases) {
    if (unit.ends_with(base)) {
      if (const auto scale = scale_of_prefix(unit.substr(0, unit.size() - base.size()))) return scale;
    }
  }
  return std::nullopt;
}

constexpr std::array<std::string_view, 4> kSeconds = {"second", "seconds", "sec", "s"};
constexpr std::array<std::string_view, 3> kBytes = {"byte", "bytes", "B"};
constexpr std::array<std::string_view, 7> kCounts = {"inst", "instructions", "op", "ops", "math_op", "cycle", "cycles"};
constexpr std::array<std::string_view, 2> kHertz = {"hz", "Hz"};

// Returns what a value of the metric in that unit is multiplied with.
std::optional<Scale> scale_of(std::string_view metric, std::string_view unit) {
  constexpr double kNanoseconds = 1e9;
  if (metric == kDuration) {
    auto scale = scale_of(unit, kSeconds);
    if (!scale) return std::nullopt;
    // The base unit is the nanosecond.
    return Scale{scale->factor * kNanoseconds, unit != "nsecond" && unit != "ns"};
  }
  if (metric == kCyclesPerSecond) {
    if (const auto scale = scale_of(unit, kHertz)) return scale;
    const auto slash = unit.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto cycles = scale_of(unit.substr(0, slash), kCounts);
    const auto time = scale_of(unit.substr(slash + 1), kSeconds);
    if (!cycles || !time) return std::nullopt;
    return Scale{cycles->factor / time->factor, cycles->prefixed || time->prefixed};
  }
  if (metric.find("bytes") != std::string_view::npos) return scale_of(unit, kBytes);
  return unit.empty() ? Scale{} : scale_of(unit, kCounts);
}

// Returns the three sizes of "(256, 1, 1)"; zeros for other texts.
std::array<std::int32_t, 3> sizes_of(std::string_view text) {
  std::array<std::int32_t, 3> sizes{};
  if (!text.starts_with('(') || !text.ends_with(')')) return sizes;
  text = text.substr(1, text.size() - 2);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto comma = text.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == sizes.size())) return {};
    const auto size = whole_number(text.substr(0, comma));
    if (!size || *size <= 0 || *size > std::numeric_limits<std::int32_t>::max()) return {};
    sizes[i] = static_cast<std::int32_t>(*size);
    if (comma != std::string_view::npos) text.remove_prefix(comma + 1);
  }
  return sizes;
}

// Sections name some metrics in words.
std::string_view metric_of(std::string_view name) { return name == "Duration" ? kDuration : name; }

}  // namespace

std::int64_t Output::column_of(std::string_view metric) const {
  const auto found = std::ranges::find(metrics, metric);
  if (found == metrics.end()) return -1;
  const auto column = static_cast<std::size_t>(found - metrics.begin());
  const auto has_value = [&](const CountedKernel& kernel) {
    return column < kernel.values.size() && std::isfinite(kernel.values[column]);
  };
  return std::ranges::any_of(kernels, has_value) ? static_cast<std::int64_t>(column) : -1;
}

void OutputReader::feed(std::string_view piece) {
  if (!begun_ && !piece.empty()) {
    begun_ = true;
    if (piece.starts_with("NVR")) {
      throw NcuError(
          "it is a report of Nsight Compute and not its text: write that with `ncu --import FILE --csv --page raw "
          "--print-units base --log-file metrics.csv`");
    }
    if (piece.starts_with("\xff\xfe") || piece.starts_with("\xfe\xff")) {
      throw NcuError("it is text in UTF-16, as PowerShell's > writes it: let ncu write the file itself (--log-file)");
    }
    if (piece.starts_with("\xef\xbb\xbf")) piece.remove_prefix(3);
  }
  rest_ += piece;
  std::size_t begin = 0;
  for (; looked_ < rest_.size(); ++looked_) {
    const char c = rest_[looked_];
    // Only a table has quotes around line ends.
    if (c == '"' && layout_ != Layout::none) quoted_ = !quoted_;
    if (c != '\n') continue;
    if (quoted_ && looked_ - begin < kLongestRecord) continue;
    quoted_ = false;
    take(std::string_view(rest_).substr(begin, looked_ - begin));
    begin = looked_ + 1;
  }
  rest_.erase(0, begin);
  looked_ -= begin;
  if (rest_.size() > kLongestRecord && layout_ == Layout::none) refuse();
  // A quote that is never closed ends with the first line after so much.
  if (rest_.size() > 2 * kLongestRecord) throw NcuError("one of its lines is longer than 1 MB, which no table has");
}

Output OutputReader::finish() {
  if (!trimmed(rest_).empty()) {
    const auto damaged = output_.damaged_rows;
    take(rest_);
    if (output_.damaged_rows > damaged) throw NcuError("it is cut off: its last row is not whole");
  }
  if (layout_ == Layout::none) refuse();
  if (layout_ == Layout::kernel_a_row && units_.empty()) {
    throw NcuError("its table has no row of units below the names of the columns, as ncu writes it");
  }
  if (output_.kernels.empty()) throw NcuError("its table has no kernels" + message_);
  const auto counts = [](std::string_view metric) {
    return metric != kDuration && metric != kCycles && metric != kCyclesPerSecond;
  };
  if (std::ranges::none_of(output_.metrics, counts)) {
    throw NcuError(
        "its table has none of the metrics of bytes and operations: `roofprof import --help` shows the command");
  }
  return std::move(output_);
}

void OutputReader::take(std::string_view record) {
  record = trimmed(record);
  if (record.empty()) return;
  if (record.starts_with("==")) {
    messages_ = true;
    for (const std::string_view kind : {"==ERROR== ", "==WARNING== "}) {
      if (record.starts_with(kind)) message_ = ": ncu says '" + shown(record.substr(kind.size())) + "'";
    }
    return;
  }
  if (layout_ == Layout::none) return take_before(record);
  auto fields = fields_of(record);
  // Rows of metrics end before the columns of rules.
  const auto least = layout_ == Layout::metric_a_row ? columns_.at("Metric Value") + 1 : header_.size();
  if (!fields || fields->size() < least || fields->size() > header_.size()) {
    ++output_.damaged_rows;
    return;
  }
  fields->resize(header_.size());
  if (*fields != header_) take_row(*fields);
}

void OutputReader::take_before(std::string_view line) {
  const auto fields = fields_of(line);
  if (fields && take_header(*fields)) return;
  if (begins_.empty()) begins_ = line;
}

bool OutputReader::take_header(const Fields& fields) {
  const auto has = [&](std::string_view column) { return std::ranges::find(fields, column) != fields.end(); };
  if (!has("Kernel Name")) return false;
  if (has("Metric Name") && !has("Metric Value")) {
    throw NcuError("it sums several kernels up (--print-summary): let ncu print each of them, without that option");
  }
  layout_ = has("Metric Name") ? Layout::metric_a_row : Layout::kernel_a_row;
  header_ = fields;
  for (std::size_t i = 0; i < fields.size(); ++i) columns_.try_emplace(fields[i], i);
  return true;
}

std::string_view OutputReader::field(const Fields& fields, std::string_view column) const {
  const auto found = columns_.find(std::string(column));
  return found == columns_.end() ? std::string_view() : std::string_view(fields[found->second]);
}

void OutputReader::take_row(const Fields& fields) {
  if (layout_ == Layout::kernel_a_row && units_.empty()) {
    if (!field(fields, "ID").empty() || !field(fields, "Kernel Name").empty()) {
      throw NcuError("its table has no row of units below the names of the columns, as ncu writes it");
    }
    units_ = fields;
    return;
  }
  auto& kernels = output_.kernels;
  if (layout_ == Layout::kernel_a_row) {
    describe(kernels.emplace_back(), fields);
    for (std::size_t i = 0; i < fields.size(); ++i) take_value(kernels.back(), header_[i], units_[i], fields[i]);
    return;
  }
  const auto id = std::string(field(fields, "Process ID")) + " " + std::string(field(fields, "ID"));
  if (kernels.empty() || id != last_id_) describe(kernels.emplace_back(), fields);
  last_id_ = id;
  take_value(kernels.back(), metric_of(field(fields, "Metric Name")), field(fields, "Metric Unit"),
             field(fields, "Metric Value"));
}

void OutputReader::describe(CountedKernel& kernel, const Fields& fields) {
  const auto [name, fresh] =
      names_.try_emplace(std::string(field(fields, "Kernel Name")), static_cast<std::uint32_t>(output_.names.size()));
  if (fresh) output_.names.push_back(name->first);
  kernel.name = name->second;
  kernel.process = whole_number(field(fields, "Process ID")).value_or(0);
  kernel.stream = whole_number(field(fields, "Stream")).value_or(0);
  const auto device = trimmed(field(fields, "Device"));
  if (const auto number = whole_number(device)) {
    kernel.device = *number;
  } else if (!device.empty()) {
    output_.device_name = device;
  }
  if (const auto capability = trimmed(field(fields, "CC")); !capability.empty())
    output_.compute_capability = capability;
  const auto set = [](const std::array<std::int32_t, 3>& sizes, std::array<std::int32_t, 3>& to,
                      std::int64_t& product) {
    to = sizes;
    if (sizes[0] > 0) product = std::int64_t{sizes[0]} * sizes[1] * sizes[2];
  };
  set(sizes_of(trimmed(field(fields, "Grid Size"))), kernel.grid, kernel.blocks);
  set(sizes_of(trimmed(field(fields, "Block Size"))), kernel.block, kernel.block_threads);
}

void OutputReader::take_value(CountedKernel& kernel, std::string_view metric, std::string_view unit,
                              std::string_view value) {
  unit = trimmed(unit);
  value = trimmed(value);
  if (metric == "Grid Size" || metric == "launch__grid_size") {
    if (kernel.blocks == 0) kernel.blocks = whole_number(value).value_or(0);
    return;
  }
  if (metric == "Block Size" || metric == "launch__block_size") {
    if (kernel.block_threads == 0) kernel.block_threads = whole_number(value).value_or(0);
    return;
  }
  if (metric == "device__attribute_display_name") {
    output_.device_name = value;
    return;
  }
  if (!is_read(metric)) return;
  const auto [column, fresh] = metrics_.try_emplace(std::string(metric), output_.metrics.size());
  if (fresh) output_.metrics.emplace_back(metric);
  if (has_decimal_comma(value)) {
    throw NcuError("its numbers are those of a locale with another decimal point, such as '" + shown(value) +
                   "': run ncu with LC_ALL=C");
  }
  const double number = number_of(value);
  const auto scale = scale_of(metric, unit);
  const bool said_unknown = value.empty() || value == "n/a" || value == "N/A" || value == "nan";
  if (!std::isfinite(number) || !scale || number < 0) {
    if (!said_unknown && output_.unread_values++ == 0) {
      output_.unread_value =
          std::string(metric) + " = " + shown(value) + (unit.empty() ? " without a unit" : " " + shown(unit));
    }
    return;
  }
  output_.rounded = output_.rounded || (scale->prefixed && number != 0);
  kernel.values.resize(std::max(kernel.values.size(), column->second + 1), kUnknown);
  kernel.values[column->second] = number * scale->factor;
}

void OutputReader::refuse() const {
  if (!message_.empty()) throw NcuError("it has no table of kernels" + message_);
  if (!begun_ || (begins_.empty() && !messages_)) throw NcuError("it is empty");
  if (begins_.starts_with('{') || begins_.starts_with('[') || rest_.starts_with('{')) {
    throw NcuError("it is JSON and not what `ncu --csv` prints");
  }
  throw NcuError(
      "it has no table of kernels as `ncu --csv` prints it with a column \"Kernel Name\": `roofprof import --help` "
      "shows "
      "the command");
}

}  // namespace roofprof::ncu
