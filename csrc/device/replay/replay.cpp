#include "device/replay/replay.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

#include "core/json/file.h"
#include "core/json/members.h"

namespace roofprof {

// Found by the type that it is called for. NOLINTBEGIN(misc-use-internal-linkage)
ROOFPROF_MEMBERS(RecordedData, ALWAYS(traces, counters))
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
    throw InvalidArgument("this device data cannot be written: " + problem);
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

namespace {

class Recording final : public DeviceCollector {
 public:
  Recording(std::unique_ptr<DeviceCollector> inner, std::string path)
      : inner_(std::move(inner)), path_(std::move(path)) {}

  bool simulated() const override { return inner_->simulated(); }
  bool by_host_clock() const override { return inner_->by_host_clock(); }
  void synchronize() override { inner_->synchronize(); }
  void start_tracing(Recorded recorded) override { inner_->start_tracing(recorded); }
  LaunchMarker* marker() override { return inner_->marker(); }

  DeviceTrace stop_tracing() override { return kept(inner_->stop_tracing(), data_.traces); }

  CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) override {
    return kept(inner_->count(request, body), data_.counters);
  }

 private:
  template <class Trace>
  Trace kept(Trace trace, std::vector<Trace>& all) {
    all.push_back(trace);
    try {
      write_recorded_file(data_, path_);
    } catch (const std::exception& error) {
      add_note(trace.notes, "not-recorded", std::string("what the device did was not recorded: ") + error.what());
    }
    return trace;
  }

  std::unique_ptr<DeviceCollector> inner_;
  std::string path_;
  RecordedData data_;
};

// Ids are ignored: recorded launches have their own.
class NoMarker final : public LaunchMarker {
 public:
  void push(LaunchId, LaunchLevel) noexcept override {}
  void pop(LaunchLevel) noexcept override {}
};

class Replaying final : public DeviceCollector {
 public:
  explicit Replaying(std::string path) : path_(std::move(path)) {
    try {
      data_ = read_recorded_file(path_);
    } catch (const RecordedDataError& error) {
      throw CollectorError(error.what());
    }
  }

  bool by_host_clock() const override { return false; }
  void synchronize() override {}

  void start_tracing(Recorded) override {
    if (tracing_) throw CollectorError("a recorded trace is being replayed already", "end it first");
    require(!data_.traces.empty(), "kernel times");
    tracing_ = true;
  }

  LaunchMarker* marker() override { return tracing_ ? &marker_ : nullptr; }

  DeviceTrace stop_tracing() override {
    if (!std::exchange(tracing_, false)) throw CollectorError("no recorded trace is being replayed", "start one first");
    return next(data_.traces, traces_);
  }

  CounterTrace count(const CounterRequest& request, const std::function<void(LaunchMarker*)>& body) override {
    require(!data_.counters.empty(), "counters");
    CounterTrace trace = next(data_.counters, counters_);
    const bool modules = trace.ranges == CounterRanges::modules;
    require(trace.ranges == request.ranges, modules ? "counters of kernels" : "counters of modules");
    for (std::int64_t pass = 0; pass < std::max<std::int64_t>(trace.passes, 1); ++pass) {
      body(modules ? &marker_ : nullptr);
    }
    return trace;
  }

 private:
  void require(bool there, const char* what) const {
    if (!there) throw CollectorError("no " + std::string(what) + " were recorded in " + path_);
  }

  template <class Trace>
  Trace next(const std::vector<Trace>& all, std::size_t& index) const {
    Trace trace = all[index++ % all.size()];
    add_note(trace.notes, "replayed", "recorded data of " + path_ + ", replayed: no device ran");
    return trace;
  }

  std::string path_;
  RecordedData data_;
  bool tracing_ = false;
  NoMarker marker_;
  std::size_t traces_ = 0;
  std::size_t counters_ = 0;
};

}  // namespace

std::unique_ptr<DeviceCollector> recording_collector(std::unique_ptr<DeviceCollector> inner, std::string path) {
  return std::make_unique<Recording>(std::move(inner), std::move(path));
}

std::unique_ptr<DeviceCollector> replaying_collector(const std::string& path) {
  return std::make_unique<Replaying>(path);
}

}  // namespace roofprof
