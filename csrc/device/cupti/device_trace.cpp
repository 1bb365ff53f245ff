#include "device/cupti/device_trace.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace roofprof::cupti {

namespace {

// Names that no C++ compiler made (Triton's, cuBLAS's) stay: without the test "f" would become "float".
std::string demangled(const std::string& name) {
  if (!name.starts_with("_Z")) return name;
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text != nullptr ? std::string(text.get()) : name;
}

// Two mangled names may read the same: of unnamed namespaces, for one.
std::vector<std::uint32_t> add_names(const std::vector<std::string>& mangled, std::vector<std::string>& names) {
  std::unordered_map<std::string, std::uint32_t> indices;
  std::vector<std::uint32_t> renumbered;
  renumbered.reserve(mangled.size());
  for (const std::string& name : mangled) {
    const auto [known, is_new] = indices.try_emplace(demangled(name), static_cast<std::uint32_t>(names.size()));
    if (is_new) names.push_back(known->first);
    renumbered.push_back(known->second);
  }
  return renumbered;
}

class LaunchesByCorrelation {
 public:
  explicit LaunchesByCorrelation(std::vector<LaunchRecord>&& launches) : launches_(std::move(launches)) {
    std::ranges::sort(launches_, {}, &LaunchRecord::correlation);
  }

  LaunchId operator[](std::uint64_t correlation) const {
    const auto found = std::ranges::lower_bound(launches_, correlation, {}, &LaunchRecord::correlation);
    return found != launches_.end() && found->correlation == correlation ? found->launch : kNoLaunch;
  }

 private:
  std::vector<LaunchRecord> launches_;
};

// Counts what ran as part of graphs, by the way in which its module was found.
struct GraphCounts {
  std::unordered_set<std::uint64_t> launches;
  std::int64_t by_capture = 0;
  std::int64_t by_launch = 0;
};

std::string note_of(const GraphCounts& graphs, bool watched) {
  std::string note = "launches of CUDA graphs: " + std::to_string(graphs.launches.size()) + ", which ran " +
                     std::to_string(graphs.by_capture + graphs.by_launch) + " kernels and copies";
  if (graphs.by_capture > 0)
    note += "; " + std::to_string(graphs.by_capture) + " belong to the module that captured them";
  if (graphs.by_launch > 0) {
    note +=
        "; " + std::to_string(graphs.by_launch) + " belong to the module that launched the graph, as " +
        (watched ? "they were captured before the trace or outside of every module" : "CUPTI did not tell of captures");
  }
  return note;
}

// CUPTI works times out by a linear fit of two clocks, so that a little before and after is possible.
constexpr std::int64_t kSlack = 10'000'000;

// Records with times outside of the trace are wrong, whatever the reason. Throws CollectorError where most are.
void leave_out_what_lies_outside(DeviceTrace& trace) {
  const std::size_t all = trace.records.size();
  const auto outside = static_cast<std::int64_t>(std::erase_if(trace.records, [&](const KernelRecord& record) {
    return record.start_ns < trace.start_ns - kSlack || (trace.end_ns > 0 && record.end_ns > trace.end_ns + kSlack);
  }));
  if (outside == 0) return;
  const std::string found = "of " + std::to_string(all) + " kernels and copies " + std::to_string(outside) +
                            " have times outside of the trace, by a clock that is not CUPTI's own";
  if (trace.records.size() < all / 2 + 1) {
    throw CollectorError(found, "profile in a process in which no other profiler was used");
  }
  trace.dropped += outside;
  add_note(trace.notes, "kernels-missing", found + ": they are left out");
}

void place(const Captures& captures, const LaunchesByCorrelation& launches, DeviceTrace& trace) {
  GraphCounts graphs;
  for (KernelRecord& record : trace.records) {
    record.launch = launches[record.correlation];
    if (record.graph_node == 0) continue;
    graphs.launches.insert(record.correlation);
    const LaunchId captured = captures.nodes.captured_by(record.graph_node);
    if (captured != kNoLaunch) record.launch = captured;
    ++(captured != kNoLaunch ? graphs.by_capture : graphs.by_launch);
  }
  if (!graphs.launches.empty()) add_note(trace.notes, "graph-launches", note_of(graphs, captures.watched));
}

void add_losses(const Received& received, DeviceTrace& trace) {
  trace.dropped += received.dropped + received.no_room;
  trace.incomplete += received.incomplete;
  trace.foreign += received.foreign;
  const auto note = [&](NoteCode code, std::int64_t count, std::string_view what) {
    if (count > 0) add_note(trace.notes, code, std::to_string(count) + std::string(what));
  };
  note("kernels-missing", received.no_room,
       " kernels and copies are missing: a trace has no room for more; profile fewer runs or a smaller part");
  note("launches-misplaced", received.launches_no_room,
       " calls of CUDA had no room in the trace: kernels among them belong to no module here");
  note("kernels-missing", received.unreadable,
       " buffers of records could not be read to the end: kernels may be missing");
  note("kernels-missing", received.unread,
       " buffers of records could not be read for want of memory: kernels are missing");
  note("other-profiler", received.foreign,
       " buffers of another profiler's came to this one: both may miss kernels; run one at a time");
}

}  // namespace

void add_received(Received&& received, const Captures& captures, DeviceTrace& trace) {
  add_losses(received, trace);
  const std::vector<std::uint32_t> renumbered = add_names(received.names, trace.names);
  trace.records = std::move(received.records);
  for (KernelRecord& record : trace.records) record.name = renumbered[record.name];
  leave_out_what_lies_outside(trace);
  place(captures, LaunchesByCorrelation(std::move(received.launches)), trace);
}

}  // namespace roofprof::cupti
