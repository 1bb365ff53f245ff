#include "device/cupti/activity_inbox.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <exception>
#include <iterator>
#include <new>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "core/kernel_names.h"

namespace roofprof::cupti {

namespace {

constexpr std::size_t kAlignment = 64;  // CUPTI asks for 8
constexpr std::size_t kMostFree = 8;    // kept from trace to trace
constexpr std::size_t kLaunchesPerRecord =
    4;  // a call of the runtime's makes one of the driver's, with records of both
constexpr std::chrono::seconds kLongestRead{10};

constexpr std::size_t whole_lines(std::size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

ActivityInbox& ActivityInbox::instance() {
  static auto* const inbox = new ActivityInbox;
  return *inbox;
}

void ActivityInbox::register_callbacks(const Api& api) {
  ROOFPROF_CUPTI(api, cuptiActivityRegisterCallbacks, &on_request, &on_complete);
}

void ActivityInbox::open(const Api& api, const TraceLimits& limits) {
  const std::lock_guard lock(mutex_);
  api_ = &api;
  if (limits.buffer_bytes != limits_.buffer_bytes) free_all();
  limits_ = limits;
  received_ = Received{};
  name_indices_.clear();
  others_from_ns_ = 0;
  free_.reserve(kMostFree);
  open_ = true;
}

void ActivityInbox::keep_of_others_from(std::int64_t start_ns) {
  const std::lock_guard lock(mutex_);
  others_from_ns_ = start_ns;
}

void ActivityInbox::add_launch(LaunchRecord launch) noexcept {
  const std::lock_guard lock(mutex_);
  if (!open_) return;
  try {
    if (received_.launches.size() < limits_.records * kLaunchesPerRecord) return received_.launches.push_back(launch);
  } catch (const std::bad_alloc&) {
  }
  ++received_.launches_no_room;
}

Received ActivityInbox::close() {
  std::unique_lock lock(mutex_);
  // This ends unless CUPTI hangs while it reads a record.
  read_.wait_for(lock, kLongestRead, [this] { return reading_ == 0; });
  open_ = false;
  name_indices_ = {};
  return std::exchange(received_, Received{});
}

std::size_t ActivityInbox::buffers_out() const {
  const std::lock_guard lock(mutex_);
  return out_.size();
}

bool ActivityInbox::give_up_buffers() {
  const std::lock_guard lock(mutex_);
  return !std::exchange(out_, {}).empty();
}

// ---- from CUPTI's threads: nothing may leave these but by return

void ActivityInbox::on_request(std::uint8_t** buffer, std::size_t* size, std::size_t* most_records) {
  std::tie(*buffer, *size) = instance().hand_out();
  *most_records = 0;  // as many as fit
}

void ActivityInbox::on_complete(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t,
                                std::size_t valid_bytes) {
  instance().take_back(context, stream, buffer, valid_bytes);
}

std::pair<std::uint8_t*, std::size_t> ActivityInbox::hand_out() {
  const std::lock_guard lock(mutex_);
  const std::size_t bytes = whole_lines(limits_.buffer_bytes);
  std::uint8_t* buffer = nullptr;
  if (!free_.empty()) {
    buffer = free_.back();
    free_.pop_back();
  } else {
    buffer = static_cast<std::uint8_t*>(std::aligned_alloc(kAlignment, bytes));
  }
  if (buffer == nullptr) return {nullptr, 0};  // CUPTI drops records, and counts them
  try {
    out_.emplace(buffer, bytes);
  } catch (const std::bad_alloc&) {
    std::free(buffer);
    return {nullptr, 0};
  }
  return {buffer, bytes};
}

void ActivityInbox::take_back(CUcontext context, std::uint32_t stream, std::uint8_t* buffer, std::size_t valid_bytes) {
  const Api* api = nullptr;
  std::size_t own_bytes = 0;
  {
    const std::lock_guard lock(mutex_);
    if (const auto own = out_.find(buffer); own != out_.end()) {
      own_bytes = own->second;
      out_.erase(own);
    }
    if (open_) {
      api = api_;
      ++reading_;
      received_.foreign += own_bytes == 0 ? 1 : 0;
    }
  }
  if (api != nullptr) read(*api, context, stream, buffer, valid_bytes, own_bytes == 0);
  const std::lock_guard lock(mutex_);
  if (own_bytes != 0) recycle(buffer, own_bytes);
  if (api != nullptr && --reading_ == 0) read_.notify_all();
}

void ActivityInbox::read(const Api& api, CUcontext context, std::uint32_t stream, std::uint8_t* buffer,
                         std::size_t valid_bytes, bool foreign) {
  try {
    ParsedBuffer parsed;
    if (valid_bytes > 0) parsed = parse_records(api, buffer, valid_bytes);
    // Libraries of today have one queue, without a context, which is asked when a trace ends.
    std::size_t dropped = 0;
    if (context != nullptr) api.cuptiActivityGetNumDroppedRecords(context, stream, &dropped);
    const std::lock_guard lock(mutex_);
    if (!open_) return;
    received_.dropped += static_cast<std::int64_t>(dropped);
    add(std::move(parsed), foreign);
  } catch (const std::exception&) {  // no memory: nothing else is thrown here
    const std::lock_guard lock(mutex_);
    ++received_.unread;
  }
}

// ---- with the lock held

void ActivityInbox::add(ParsedBuffer&& parsed, bool foreign) {
  received_.incomplete += parsed.incomplete;
  received_.unreadable += parsed.readable ? 0 : 1;
  std::vector<std::uint32_t> indices;
  indices.reserve(parsed.names.size());
  for (const std::string& name : parsed.names) indices.push_back(index_of(name));
  for (KernelRecord& record : parsed.records) {
    if (foreign && record.start_ns < others_from_ns_) continue;
    if (received_.records.size() >= limits_.records) {
      ++received_.no_room;
      continue;
    }
    record.name = indices[record.name];
    received_.records.push_back(record);
  }
  const auto last = std::erase_if(parsed.launches, [](const LaunchRecord& of) { return of.launch == kLastLaunch; });
  received_.last_came = received_.last_came || last > 0;
  const std::size_t room = limits_.records * kLaunchesPerRecord - received_.launches.size();
  const std::size_t kept = std::min(room, parsed.launches.size());
  received_.launches.insert(received_.launches.end(), parsed.launches.begin(),
                            parsed.launches.begin() + static_cast<std::ptrdiff_t>(kept));
  received_.launches_no_room += static_cast<std::int64_t>(parsed.launches.size() - kept);
}

std::uint32_t ActivityInbox::index_of(const std::string& name) {
  const auto [known, is_new] = name_indices_.try_emplace(name, static_cast<std::uint32_t>(received_.names.size()));
  if (is_new) received_.names.push_back(name);
  return known->second;
}

void ActivityInbox::recycle(std::uint8_t* buffer, std::size_t bytes) {
  if (bytes == whole_lines(limits_.buffer_bytes) && free_.size() < std::min(kMostFree, free_.capacity())) {
    free_.push_back(buffer);  // has room for it: nothing is thrown
  } else {
    std::free(buffer);
  }
}

void ActivityInbox::free_all() {
  for (std::uint8_t* buffer : free_) std::free(buffer);
  free_.clear();
}

namespace {

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
    std::ranges::sort(launches_, {}, [](const LaunchRecord& of) { return std::pair(of.correlation, of.launch); });
  }

  // Empty where no call has that correlation.
  std::optional<LaunchId> operator[](std::uint64_t correlation) const {
    const auto after = std::ranges::upper_bound(launches_, correlation, {}, &LaunchRecord::correlation);
    if (after == launches_.begin() || std::prev(after)->correlation != correlation) return std::nullopt;
    return std::prev(after)->launch;  // the highest: kNoLaunch is the lowest
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

// Returns how many records no call has launched.
std::int64_t place(const Captures& captures, const LaunchesByCorrelation& launches, DeviceTrace& trace) {
  GraphCounts graphs;
  std::int64_t of_no_call = 0;
  for (KernelRecord& record : trace.records) {
    const std::optional<LaunchId> call = launches[record.correlation];
    of_no_call += call ? 0 : 1;
    record.launch = call.value_or(kNoLaunch);
    if (record.graph_node == 0) continue;
    graphs.launches.insert(record.correlation);
    const LaunchId captured = captures.nodes.captured_by(record.graph_node);
    if (captured != kNoLaunch) record.launch = captured;
    ++(captured != kNoLaunch ? graphs.by_capture : graphs.by_launch);
  }
  if (!graphs.launches.empty()) add_note(trace.notes, "graph-launches", note_of(graphs, captures.watched));
  return of_no_call;
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

std::int64_t add_received(Received&& received, const Captures& captures, DeviceTrace& trace) {
  add_losses(received, trace);
  const bool complete =
      trace.dropped + received.foreign + received.launches_no_room + received.unreadable + received.unread == 0;
  const std::vector<std::uint32_t> renumbered = add_names(received.names, trace.names);
  trace.records = std::move(received.records);
  for (KernelRecord& record : trace.records) record.name = renumbered[record.name];
  leave_out_what_lies_outside(trace);
  const std::int64_t of_no_call = place(captures, LaunchesByCorrelation(std::move(received.launches)), trace);
  return complete ? of_no_call : 0;
}

}  // namespace roofprof::cupti
