// CUPTI as roofprof's own classes drive it, for questions that the profiler never asks: ranges under a trace, names of
// one's own, images evaluated later. A C interface for ctypes; every answer is JSON: {"refused": "..."} where CUPTI or
// the driver does not do it, {"error": "..."} where something else failed. One thread at a time, and texts are valid
// until the next call.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "device/cupti/api.h"
#include "device/cupti/host_profiler.h"
#include "device/cupti/range_counting.h"
#include "device/cupti/range_session.h"
#include "device/cupti/tracer.h"
#include "device/nvidia/driver.h"
#include "device/replay/replay.h"

namespace {

using namespace roofprof;

std::string quoted(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') result += '\\';
    result += static_cast<unsigned char>(letter) < 0x20 ? ' ' : letter;
  }
  return result + '"';
}

std::string list(const auto& items, const auto& write) {
  std::string result = "[";
  for (const auto& item : items) result.append(result.size() == 1 ? "" : ", ").append(write(item));
  return result + "]";
}

std::string number(double value) {
  if (!std::isfinite(value)) return "null";
  std::ostringstream text;
  text.precision(17);
  text << value;
  return text.str();
}

std::string ranges_json(std::size_t ranges, const std::function<std::string(std::size_t)>& name,
                        const std::function<CUptiResult(std::size_t, std::span<double>)>& evaluate,
                        std::size_t metrics) {
  std::vector<std::string> rows;
  for (std::size_t range = 0; range < ranges; ++range) {
    std::vector<double> values(metrics, std::numeric_limits<double>::quiet_NaN());
    const int code = evaluate(range, values);
    rows.push_back("{\"name\": " + quoted(name(range)) + ", \"code\": " + std::to_string(code) +
                   ", \"values\": " + list(values, number) + "}");
  }
  return list(rows, [](const std::string& row) { return row; });
}

// Counting under way. Its parts use each other in this order.
struct Counting {
  cuda::PrimaryContext context{cuda::driver(), 0};
  cupti::ProfilerLibrary library{cupti::api()};
  std::vector<std::uint8_t> availability;
  std::unique_ptr<cupti::HostProfiler> host;
  std::unique_ptr<cupti::Configuration> configuration;
  std::unique_ptr<cupti::RangeSession> session;
};

std::unique_ptr<Counting> counting;
std::unique_ptr<cupti::Tracer> tracer;
std::string answer;

// The answer of a call: what `work` returns, or the error that it throws.
const char* answered(const std::function<std::string()>& work) noexcept {
  try {
    answer = work();
  } catch (const CollectorError& error) {
    answer = "{\"refused\": " + quoted(error.what()) + "}";
  } catch (const std::exception& error) {
    answer = "{\"error\": " + quoted(error.what()) + "}";
  }
  return answer.c_str();
}

Counting& under_way() {
  if (!counting) throw std::logic_error("nothing is being counted");
  return *counting;
}

std::vector<std::string> words(std::istream& from, char separator) {
  std::vector<std::string> result;
  for (std::string word; std::getline(from, word, separator);) result.push_back(word);
  return result;
}

void write_bytes(const std::string& path, std::span<const std::uint8_t> bytes) {
  std::ofstream file(path, std::ios::binary);
  for (const std::uint8_t byte : bytes) file.put(static_cast<char>(byte));
  if (!file.flush()) throw std::runtime_error("cannot write " + path);
}

std::vector<std::uint8_t> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot read " + path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string trace_json(const DeviceTrace& trace) {
  const auto record = [&](const KernelRecord& of) {
    return "{\"name\": " + quoted(of.kind == KernelKind::kernel ? trace.names.at(of.name) : "") +
           ", \"kind\": " + quoted(kKernelKindNames.at(static_cast<std::size_t>(of.kind))) +
           ", \"launch\": " + std::to_string(of.launch) + ", \"stream\": " + std::to_string(of.stream) +
           ", \"correlation\": " + std::to_string(of.correlation) +
           ", \"graph_node\": " + std::to_string(of.graph_node) +
           ", \"ns\": " + std::to_string(of.end_ns - of.start_ns) + "}";
  };
  return "{\"records\": " + list(trace.records, record) + ", \"dropped\": " + std::to_string(trace.dropped) +
         ", \"incomplete\": " + std::to_string(trace.incomplete) +
         ", \"notes\": " + list(trace.notes, [](const Note& note) { return quoted(note.text); }) + "}";
}

void wait() { cuda::synchronize_all(cuda::driver()); }

}  // namespace

extern "C" {

// Device 0. metrics: names with commas between; modules: ranges are those of raw_push, else each kernel is one.
const char* raw_begin(const char* metrics, int modules, int rooms) {
  return answered([&] {
    counting.reset();
    const cupti::Api& api = cupti::api();
    cupti::require_counters(api);               // loads what CUPTI opens by name
    auto fresh = std::make_unique<Counting>();  // initialises the profiler, which comes before all else
    cupti::check_supported(api, 0);
    auto* context = static_cast<CUcontext>(fresh->context.get());
    fresh->availability = cupti::counter_availability(api, context);
    fresh->host = std::make_unique<cupti::HostProfiler>(api, cupti::chip_name(api, 0), fresh->availability);
    std::istringstream names(metrics);
    fresh->configuration = std::make_unique<cupti::Configuration>(*fresh->host, words(names, ','));
    fresh->session = std::make_unique<cupti::RangeSession>(
        *fresh->configuration, context, modules != 0 ? cupti::RangeMode::modules : cupti::RangeMode::kernels,
        cupti::RangeRooms{static_cast<std::size_t>(rooms), static_cast<std::size_t>(rooms)});
    counting = std::move(fresh);
    return "{\"chip\": " + quoted(counting->host->chip()) +
           ", \"passes\": " + std::to_string(counting->configuration->passes()) + "}";
  });
}

const char* raw_start() {
  return answered([] {
    under_way().session->start();
    return std::string("{}");
  });
}

const char* raw_stop() {
  return answered([] {
    wait();
    return std::string(under_way().session->stop() ? R"({"last": true})" : R"({"last": false})");
  });
}

int raw_push(const char* name) { return counting ? counting->session->push(name) : -1; }
int raw_pop() { return counting ? counting->session->pop() : -1; }

const char* raw_ranges() {
  return answered([] {
    auto& session = *under_way().session;
    const std::size_t dropped = session.decode();
    const auto name = [&](std::size_t range) { return session.range_name(range); };
    const auto evaluate = [&](std::size_t range, std::span<double> values) { return session.evaluate(range, values); };
    return "{\"dropped\": " + std::to_string(dropped) + ", \"ranges\": " +
           ranges_json(session.range_count(), name, evaluate, counting->configuration->metrics().size()) + "}";
  });
}

// After raw_ranges: what it takes to evaluate the same image in another process.
const char* raw_save(const char* folder) {
  return answered([&] {
    auto& saved = under_way();
    const std::string path(folder);
    write_bytes(path + "/counter_data.bin", saved.session->counter_data());
    write_bytes(path + "/availability.bin", saved.availability);
    std::ofstream about(path + "/about.txt");
    about << saved.host->chip() << '\n' << saved.session->range_count() << '\n';
    for (const auto& metric : saved.configuration->metrics()) about << metric << '\n';
    if (!about.flush()) throw std::runtime_error("cannot write to " + path);
    return std::string("{}");
  });
}

// What raw_save left, evaluated; needs no context.
const char* raw_evaluate(const char* folder) {
  return answered([&] {
    const std::string path(folder);
    std::ifstream file(path + "/about.txt");
    auto about = words(file, '\n');
    if (about.size() < 3) throw std::runtime_error(path + " holds no image");
    cupti::require_counters(cupti::api());
    const cupti::ProfilerLibrary library(cupti::api());
    const cupti::HostProfiler host(cupti::api(), about.at(0), read_bytes(path + "/availability.bin"));
    const cupti::Configuration configuration(host, {about.begin() + 2, about.end()});
    const auto image = read_bytes(path + "/counter_data.bin");
    const auto name = [](std::size_t range) { return std::to_string(range); };
    const auto evaluate = [&](std::size_t range, std::span<double> values) {
      return configuration.evaluate(image, range, values);
    };
    return "{\"ranges\": " + ranges_json(std::stoul(about.at(1)), name, evaluate, configuration.metrics().size()) + "}";
  });
}

const char* raw_end() {
  return answered([] {
    counting.reset();
    return std::string("{}");
  });
}

const char* raw_trace_start() {
  return answered([] {
    cupti::require_activity(cupti::api());
    tracer = std::make_unique<cupti::Tracer>(cupti::api(), wait);
    tracer->start();
    return std::string("{}");
  });
}

// What is launched from here on by this thread belongs to that id, until raw_trace_pop. Ids are the caller's.
void raw_trace_push(std::uint64_t id) {
  if (tracer && tracer->marker() != nullptr) tracer->marker()->push(id, LaunchLevel::op);
}
void raw_trace_pop() {
  if (tracer && tracer->marker() != nullptr) tracer->marker()->pop(LaunchLevel::op);
}

const char* raw_trace_stop() {
  return answered([] {
    if (!tracer) throw std::logic_error("nothing is being traced");
    const DeviceTrace trace = tracer->stop();
    tracer.reset();
    return trace_json(trace);
  });
}

// A trace of one run of the body and the counters of its kernels, as recorded data (device/replay/replay.h).
// The trace is written before counters are tried.
const char* raw_record(const char* path, void (*body)()) {
  return answered([&] {
    const cuda::PrimaryContext context(cuda::driver(), 0);
    tracer = std::make_unique<cupti::Tracer>(cupti::api(), wait);
    tracer->start();
    body();
    RecordedData data;
    data.traces.push_back(tracer->stop());
    tracer.reset();
    write_recorded_file(data, path);
    CounterRequest request;
    request.expected_launches = static_cast<std::int64_t>(data.traces.front().records.size());
    data.counters.push_back(cupti::count_ranges(request, [&](LaunchMarker*) { body(); }));
    write_recorded_file(data, path);
    return "{\"records\": " + std::to_string(data.traces.front().records.size()) +
           ", \"ranges\": " + std::to_string(data.counters.front().records.size()) + "}";
  });
}

}  // extern "C"
