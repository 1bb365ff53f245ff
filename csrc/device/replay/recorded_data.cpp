#include "device/replay/recorded_data.h"

#include <algorithm>

#include "core/json/file.h"
#include "core/json/members.h"

namespace roofprof {

// Found by the type that it is called for. NOLINTBEGIN(misc-use-internal-linkage)
template <class Visitor>
void for_each_member(Of<RecordedData>, Visitor&& visit) {
  visit("traces", &RecordedData::traces, Written::always);
  visit("counters", &RecordedData::counters, Written::always);
}
// NOLINTEND(misc-use-internal-linkage)

namespace {

constexpr std::string_view kVersionKey = "roofprof_device_data";

std::string item(const char* list, std::size_t index) { return list + ('[' + std::to_string(index) + ']'); }

// Returns a problem, to be put after the name of the record: " ends before it starts"; empty where all is right.
std::string problem_of(const KernelRecord& record, std::size_t names) {
  if (record.name >= names) return " has a name that is not in the trace's list";
  if (record.end_ns < record.start_ns) return " ends before it starts";
  if (record.bytes < 0) return " has a negative number of bytes";
  return {};
}

std::string problem_of(const std::vector<Note>& notes) {
  for (const Note& note : notes) {
    if (index_of_note(note.code) == kNoteKinds.size()) {
      return " has a note with the code '" + shown(note.code) + "', which no note has";
    }
    if (note.count < 1) return " has a note with a count below 1";
  }
  return {};
}

std::string problem_of(const DeviceTrace& trace) {
  if (trace.end_ns != 0 && trace.end_ns < trace.start_ns) return " ends before it starts";
  if (std::min({trace.dropped, trace.incomplete, trace.foreign}) < 0) return " lost a negative number of records";
  for (std::size_t i = 0; i < trace.records.size(); ++i) {
    const std::string problem = problem_of(trace.records[i], trace.names.size());
    if (!problem.empty()) return item(".records", i) + problem;
  }
  return problem_of(trace.notes);
}

std::string problem_of(const CounterTrace& trace) {
  if (std::min(trace.dropped, trace.passes) < 0) return " has a negative number of dropped ranges or passes";
  return problem_of(trace.notes);
}

std::string problem_of(const RecordedData& data) {
  for (std::size_t i = 0; i < data.traces.size(); ++i) {
    if (const auto problem = problem_of(data.traces[i]); !problem.empty()) return item("traces", i) + problem;
  }
  for (std::size_t i = 0; i < data.counters.size(); ++i) {
    if (const auto problem = problem_of(data.counters[i]); !problem.empty()) return item("counters", i) + problem;
  }
  return {};
}

// Looked for first: another version may differ in anything.
void require_version(std::string_view text) {
  JsonReader json(text);
  json.begin_object();
  while (const auto key = json.next_key()) {
    if (*key != kVersionKey) {
      json.skip();
      continue;
    }
    const std::string version(json.raw());
    if (version == std::to_string(kRecordedDataVersion)) return;
    throw JsonError("it is of version " + shown(version) + ", and this roofprof reads version " +
                    std::to_string(kRecordedDataVersion) +
                    ": read it with the roofprof that wrote it, or record it again");
  }
  json.lacks_key(kVersionKey);
}

RecordedData read_recorded(std::string_view text, const std::string& source) {
  RecordedData data;
  std::string problem;
  try {
    require_version(text);
    JsonReader json(text);
    read_value(json, data);
    json.finish();
    problem = problem_of(data);
  } catch (const JsonError& error) {
    problem = error.what();
  }
  if (problem.empty()) return data;
  throw RecordedDataError(source + " is no recorded device data: " + problem);
}

}  // namespace

std::string to_json(const RecordedData& data) {
  if (const std::string problem = problem_of(data); !problem.empty()) {
    throw std::invalid_argument("this device data cannot be written: " + problem);
  }
  JsonWriter json;
  json.begin_object();
  json.member(kVersionKey, kRecordedDataVersion);
  write_members(json, data);
  json.end_object();
  return json.take();
}

RecordedData recorded_from_json(std::string_view text) { return read_recorded(text, "the text"); }

void write_recorded_file(const RecordedData& data, const std::string& path) {
  const std::string text = to_json(data);
  try {
    write_whole_file(path, text);
  } catch (const std::runtime_error& error) {
    throw RecordedDataError(error.what());
  }
}

RecordedData read_recorded_file(const std::string& path) {
  std::string text;
  try {
    text = read_whole_file(path);
  } catch (const std::runtime_error& error) {
    throw RecordedDataError(std::string("there is no device data to read: ") + error.what());
  }
  return read_recorded(text, path);
}

}  // namespace roofprof
