#include "device/replay/replay.h"

#include <algorithm>
#include <stdexcept>
#include <utility>
#include <vector>

namespace roofprof {

namespace {

class Recording final : public DeviceCollector {
 public:
  Recording(std::unique_ptr<DeviceCollector> inner, std::string path)
      : inner_(std::move(inner)), path_(std::move(path)) {}

  bool simulated() const override { return inner_->simulated(); }
  void synchronize() override { inner_->synchronize(); }
  void start_tracing() override { inner_->start_tracing(); }
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

  void synchronize() override {}

  void start_tracing() override {
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
