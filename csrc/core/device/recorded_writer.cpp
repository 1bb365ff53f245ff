#include <array>
#include <charconv>
#include <cmath>
#include <fstream>
#include <locale>
#include <stdexcept>
#include <string_view>

#include "core/device/recorded_data.h"

namespace roofprof {

namespace {

std::string escaped(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  for (const char c : text) {
    if (c == '\\') {
      line += "\\\\";
    } else if (c == '\n') {
      line += "\\n";
    } else if (c == '\r') {
      line += "\\r";
    } else {
      line += c;
    }
  }
  return line;
}

// The shortest form that reads back as the same double, whatever the locale.
std::string decimal(double value) {
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) throw std::invalid_argument("a counter's value has no decimal form");
  return {text.data(), end};
}

void texts(std::ostream& to, std::string_view keyword, const std::vector<std::string>& lines) {
  for (const std::string& text : lines) to << keyword << ' ' << escaped(text) << '\n';
}

void text_if_any(std::ostream& to, std::string_view keyword, const std::string& text) {
  if (!text.empty()) to << keyword << ' ' << escaped(text) << '\n';
}

void require(bool fine, const char* what) {
  if (!fine) throw std::invalid_argument(std::string("this device data cannot be written: ") + what);
}

void write(std::ostream& to, const KernelRecord& record, std::size_t names) {
  require(record.name < names, "a record's name is not in its list");
  require(record.start_ns <= record.end_ns, "a record ends before it starts");
  require(record.bytes >= 0, "a record has less than no bytes");
  to << "record " << kKernelKindNames.at(static_cast<std::size_t>(record.kind));
  to << ' ' << record.name << ' ' << record.device << ' ' << record.to_device << ' ' << record.stream;
  to << ' ' << record.correlation << ' ' << record.graph_node << ' ' << record.launch;
  to << ' ' << record.start_ns << ' ' << record.end_ns;
  for (const auto size : record.grid) to << ' ' << size;
  for (const auto size : record.block) to << ' ' << size;
  to << ' ' << kMemoryNames.at(static_cast<std::size_t>(record.from));
  to << ' ' << kMemoryNames.at(static_cast<std::size_t>(record.to)) << ' ' << record.bytes << '\n';
}

void write(std::ostream& to, const DeviceTrace& trace) {
  require(trace.end_ns == 0 || trace.start_ns <= trace.end_ns, "a trace ends before it starts");
  require(trace.dropped >= 0 && trace.incomplete >= 0 && trace.foreign >= 0, "a trace lost less than nothing");
  to << "trace\n";
  to << "time " << trace.start_ns << ' ' << trace.end_ns << '\n';
  to << "lost " << trace.dropped << ' ' << trace.incomplete << ' ' << trace.foreign << '\n';
  texts(to, "note", trace.notes);
  texts(to, "name", trace.names);
  for (const KernelRecord& record : trace.records) write(to, record, trace.names.size());
  to << "end " << trace.records.size() << '\n';
}

void write(std::ostream& to, const CounterSource& source) {
  to << "source " << kCounterNames.at(static_cast<std::size_t>(source.counter)) << '\n';
  texts(to, "metric", source.metrics);
  text_if_any(to, "formula", source.formula);
  text_if_any(to, "missing", source.missing);
}

void write(std::ostream& to, const CounterRecord& record) {
  to << "range " << record.range;
  for (std::size_t i = 0; i < kCounterCount; ++i) {
    const std::optional<double>& value = record.values.at(i);
    if (value && std::isfinite(*value)) to << ' ' << kCounterNames.at(i) << '=' << decimal(*value);
  }
  to << '\n';
}

void write(std::ostream& to, const CounterTrace& trace) {
  require(trace.dropped >= 0 && trace.passes >= 0, "counters were dropped or passed less than no times");
  to << "counters\n";
  text_if_any(to, "chip", trace.chip);
  to << "ranges " << kCounterRangesNames.at(static_cast<std::size_t>(trace.ranges)) << '\n';
  to << "lost " << trace.dropped << '\n';
  to << "passes " << trace.passes << '\n';
  texts(to, "note", trace.notes);
  for (const CounterSource& source : trace.sources) write(to, source);
  for (const CounterRecord& record : trace.records) write(to, record);
  to << "end " << trace.records.size() << '\n';
}

}  // namespace

void write_recorded(const RecordedData& data, std::ostream& to) {
  const std::locale before = to.imbue(std::locale::classic());  // no separators between thousands
  to << kRecordedDataHeading << ' ' << kRecordedDataVersion << '\n';
  for (const DeviceTrace& trace : data.traces) write(to, trace);
  for (const CounterTrace& trace : data.counters) write(to, trace);
  to << "complete " << data.traces.size() + data.counters.size() << '\n';
  to.imbue(before);
}

void write_recorded_file(const RecordedData& data, const std::string& path) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  if (file) write_recorded(data, file);
  file.flush();
  if (!file) throw RecordedDataError(0, "device data could not be written to " + path);
}

}  // namespace roofprof
