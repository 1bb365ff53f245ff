#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <concepts>
#include <fstream>
#include <optional>
#include <string_view>
#include <utility>

#include "core/device/recorded_data.h"

namespace roofprof {

namespace {

// "line 3 of run.txt", as a sentence begins.
std::string place(std::int64_t line, const std::string& source) {
  return line > 0 ? "line " + std::to_string(line) + " of " + source : source;
}

// A word as it stands in an error: short, and nothing in it that a terminal would act on.
std::string quoted(std::string_view word) {
  constexpr std::size_t kLongest = 40;
  std::string text(word.substr(0, kLongest));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c > 0x7e; }, '?');
  return "'" + text + (word.size() > kLongest ? "...'" : "'");
}

constexpr bool is_finite(std::integral auto) { return true; }
bool is_finite(double value) { return std::isfinite(value); }

// The lines of a file, and the words of the one at hand.
class Lines {
 public:
  Lines(std::istream& from, std::string source) : from_(from), source_(std::move(source)) {}

  // To the next line that says something, at its first word. False at the end of the file.
  bool next() {
    while (std::getline(from_, line_)) {
      ++number_;
      rest_ = line_;
      if (!rest_.empty() && rest_.front() != '#') return true;
    }
    ++number_;
    rest_ = {};
    return false;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw RecordedDataError(number_, place(number_, source_) + ' ' + what);
  }

  std::string_view word(const char* meaning) {
    if (rest_.empty()) fail(std::string("ends where ") + meaning + " should stand");
    const std::size_t space = std::min(rest_.find(' '), rest_.size());
    const std::string_view found = rest_.substr(0, space);
    rest_.remove_prefix(std::min(space + 1, rest_.size()));
    return found;
  }

  bool has_words() const { return !rest_.empty(); }

  void done() const {
    if (has_words()) fail("goes on with " + quoted(rest_) + " where it should end");
  }

  template <class Number>
  Number number(std::string_view word, const char* meaning) const {
    Number value{};
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    const bool whole = error == std::errc{} && end == word.data() + word.size();
    if (!whole || !is_finite(value)) fail("has " + quoted(word) + " where " + meaning + " should stand");
    return value;
  }

  template <class Number>
  Number number(const char* meaning) {
    return number<Number>(word(meaning), meaning);
  }

  // A number of things.
  std::int64_t count(const char* meaning) {
    const auto value = number<std::int64_t>(meaning);
    if (value < 0) fail(std::string("has less than none where ") + meaning + " should stand");
    return value;
  }

  template <class Enum, std::size_t N>
  Enum choice(const std::array<std::string_view, N>& names, std::string_view word, const char* meaning) const {
    const auto found = std::ranges::find(names, word);
    if (found == names.end()) fail("has " + quoted(word) + " where " + meaning + " should stand");
    return static_cast<Enum>(found - names.begin());
  }

  // The rest of the line.
  std::string text() {
    std::string text;
    for (std::size_t i = 0; i < rest_.size(); ++i) {
      if (rest_[i] != '\\') {
        text += rest_[i];
        continue;
      }
      const char code = ++i < rest_.size() ? rest_[i] : '\0';
      if (code != '\\' && code != 'n' && code != 'r') fail("has a backslash that is followed by none of \\, n and r");
      text += code == 'n' ? '\n' : code == 'r' ? '\r' : '\\';
    }
    rest_ = {};
    return text;
  }

  void end_of_part(std::size_t records) {
    if (number<std::uint64_t>("the number of records") != records) {
      fail("counts other records than the " + std::to_string(records) + " that stand before it");
    }
    done();
  }

 private:
  std::istream& from_;
  std::string source_;
  std::string line_;
  std::string_view rest_;
  std::int64_t number_ = 0;
};

KernelRecord read_record(Lines& lines, std::size_t names) {
  KernelRecord record;
  record.kind = lines.choice<KernelKind>(kKernelKindNames, lines.word("a kind"), "a kind");
  record.name = lines.number<std::uint32_t>("a name's number");
  record.device = lines.number<std::uint32_t>("a device");
  record.to_device = lines.number<std::uint32_t>("a device");
  record.stream = lines.number<std::uint32_t>("a stream");
  record.correlation = lines.number<std::uint64_t>("a correlation id");
  record.graph_node = lines.number<std::uint64_t>("a graph's node");
  record.launch = lines.number<LaunchId>("a launch id");
  record.start_ns = lines.number<std::int64_t>("a start");
  record.end_ns = lines.number<std::int64_t>("an end");
  for (auto& size : record.grid) size = lines.number<std::int32_t>("a grid's size");
  for (auto& size : record.block) size = lines.number<std::int32_t>("a block's size");
  record.from = lines.choice<Memory>(kMemoryNames, lines.word("a kind of memory"), "a kind of memory");
  record.to = lines.choice<Memory>(kMemoryNames, lines.word("a kind of memory"), "a kind of memory");
  record.bytes = lines.count("bytes");
  if (record.name >= names) lines.fail("names a name that does not stand before it");
  if (record.end_ns < record.start_ns) lines.fail("ends before it starts");
  lines.done();
  return record;
}

DeviceTrace read_trace(Lines& lines) {
  DeviceTrace trace;
  while (lines.next()) {
    const std::string_view what = lines.word("a word");
    if (what == "record") {
      trace.records.push_back(read_record(lines, trace.names.size()));
    } else if (what == "name") {
      trace.names.push_back(lines.text());
    } else if (what == "note") {
      trace.notes.push_back(lines.text());
    } else if (what == "time") {
      trace.start_ns = lines.number<std::int64_t>("a start");
      trace.end_ns = lines.number<std::int64_t>("an end");
      if (trace.end_ns != 0 && trace.end_ns < trace.start_ns) lines.fail("ends before it starts");
      lines.done();
    } else if (what == "lost") {
      trace.dropped = lines.count("dropped records");
      trace.incomplete = lines.count("incomplete records");
      trace.foreign = lines.count("foreign buffers");
      lines.done();
    } else if (what == "end") {
      lines.end_of_part(trace.records.size());
      return trace;
    } else {
      lines.fail("begins with " + quoted(what) + ", which is no line of a trace");
    }
  }
  lines.fail("is missing: the file was cut off inside of a trace");
}

CounterRecord read_range(Lines& lines) {
  CounterRecord record;
  record.range = lines.number<std::uint64_t>("a range");
  while (lines.has_words()) {
    const std::string_view word = lines.word("a counter");
    const std::size_t equals = std::min(word.find('='), word.size());
    const auto counter = lines.choice<std::size_t>(kCounterNames, word.substr(0, equals), "a counter");
    const std::string_view value = word.substr(std::min(equals + 1, word.size()));
    record.values.at(counter) = lines.number<double>(value, "a counter's value");
  }
  return record;
}

// What stands below a source's line.
bool read_source_line(std::string_view what, Lines& lines, std::vector<CounterSource>& sources) {
  if (what != "metric" && what != "formula" && what != "missing") return false;
  if (sources.empty()) lines.fail("stands before any source");
  CounterSource& source = sources.back();
  if (what == "metric") {
    source.metrics.push_back(lines.text());
  } else {
    (what == "formula" ? source.formula : source.missing) = lines.text();
  }
  return true;
}

CounterTrace read_counters(Lines& lines) {
  CounterTrace trace;
  while (lines.next()) {
    const std::string_view what = lines.word("a word");
    if (what == "range") {
      trace.records.push_back(read_range(lines));
    } else if (what == "source") {
      const auto counter = lines.choice<Counter>(kCounterNames, lines.word("a counter"), "a counter");
      lines.done();
      trace.sources.push_back({counter, {}, {}, {}});
    } else if (what == "chip") {
      trace.chip = lines.text();
    } else if (what == "ranges") {
      trace.ranges =
          lines.choice<CounterRanges>(kCounterRangesNames, lines.word("kernels or modules"), "kernels or modules");
      lines.done();
    } else if (what == "lost") {
      trace.dropped = lines.count("dropped ranges");
      lines.done();
    } else if (what == "passes") {
      trace.passes = lines.count("passes");
      lines.done();
    } else if (what == "note") {
      trace.notes.push_back(lines.text());
    } else if (what == "end") {
      lines.end_of_part(trace.records.size());
      return trace;
    } else if (!read_source_line(what, lines, trace.sources)) {
      lines.fail("begins with " + quoted(what) + ", which is no line of counters");
    }
  }
  lines.fail("is missing: the file was cut off inside of counters");
}

void read_heading(Lines& lines) {
  if (!lines.next() || lines.word("a heading") != kRecordedDataHeading) {
    lines.fail("does not begin with " + std::string(kRecordedDataHeading) + ": this is no recorded device data");
  }
  if (const auto version = lines.number<std::int64_t>("a version"); version != kRecordedDataVersion) {
    lines.fail("is of version " + std::to_string(version) + ", and this roofprof reads version " +
               std::to_string(kRecordedDataVersion) + ": read it with the roofprof that wrote it, or record anew");
  }
  lines.done();
}

RecordedData read_all(std::istream& from, const std::string& source) {
  Lines lines(from, source);
  read_heading(lines);
  RecordedData data;
  while (lines.next()) {
    const std::string_view what = lines.word("a word");
    if (what == "trace") {
      lines.done();
      data.traces.push_back(read_trace(lines));
    } else if (what == "counters") {
      lines.done();
      data.counters.push_back(read_counters(lines));
    } else if (what == "complete") {
      lines.end_of_part(data.traces.size() + data.counters.size());
      if (lines.next()) lines.fail("stands behind the line that says `complete`");
      return data;
    } else {
      lines.fail("begins with " + quoted(what) + " where trace, counters or complete should stand");
    }
  }
  lines.fail("is missing: the file was cut off, or whoever wrote it did not end");
}

}  // namespace

RecordedDataError::RecordedDataError(std::int64_t line, const std::string& what)
    : std::runtime_error(what), line_(line) {}

RecordedData read_recorded(std::istream& from) { return read_all(from, "the device data"); }

RecordedData read_recorded_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RecordedDataError(0, "there is no device data to read at " + path);
  return read_all(file, path);
}

}  // namespace roofprof
