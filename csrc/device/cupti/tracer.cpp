#include "device/cupti/tracer.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <ctime>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>

#include "device/cupti/activity_records.h"
#include "device/cupti/launch_ids.h"
#include "device/nvidia/driver.h"

#ifdef __x86_64__
#include <x86intrin.h>
#endif

namespace roofprof::cupti {
namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

std::uint64_t read_clock(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<std::uint64_t>(time.tv_sec) * kSecond + static_cast<std::uint64_t>(time.tv_nsec);
}

// CUPTI's callbacks carry no pointer.
std::atomic<std::uint64_t (*)()> real_time = nullptr;
std::uint64_t CUPTIAPI tell_real_time() { return real_time.load(std::memory_order_relaxed)(); }

#ifdef __x86_64__
constexpr bool kHasTicks = true;
std::uint64_t CUPTIAPI tell_ticks() { return __rdtsc(); }
#else
constexpr bool kHasTicks = false;
std::uint64_t CUPTIAPI tell_ticks() { return 0; }
#endif

bool is_in_nanoseconds(const Api& api) { return clock_unit(api) == ClockUnit::nanoseconds; }

}  // namespace

bool within_a_second(std::uint64_t a, std::uint64_t b) { return (a > b ? a - b : b - a) < kSecond; }

std::uint64_t machines_real_time() { return read_clock(CLOCK_REALTIME); }

ClockUnit clock_unit(const Api& api) {
  std::uint64_t timestamp = 0;
  ROOFPROF_CUPTI(api, cuptiGetTimestamp, &timestamp);
  if (within_a_second(timestamp, api.real_time())) return ClockUnit::nanoseconds;
  if (within_a_second(timestamp, read_clock(CLOCK_MONOTONIC_RAW))) return ClockUnit::nanoseconds;
  // A second and less, as ticks are shorter.
  if (kHasTicks && within_a_second(timestamp, tell_ticks())) return ClockUnit::cpu_ticks;
  return ClockUnit::unknown;
}

void TraceClock::start(const Api& api) {
  const ClockUnit found = clock_unit(api);
  if (found == ClockUnit::nanoseconds) return;
  // A clock that could not be put back is not replaced.
  if (found == ClockUnit::cpu_ticks && api.cuptiActivityRegisterTimestampCallback != nullptr) {
    real_time.store(api.real_time, std::memory_order_relaxed);
    replaced_ = api.cuptiActivityRegisterTimestampCallback(&tell_real_time) == CUPTI_SUCCESS;
    if (replaced_ && is_in_nanoseconds(api)) return;
    if (std::exchange(replaced_, false)) api.cuptiActivityRegisterTimestampCallback(&tell_ticks);
  }
  throw CollectorError("another profiler in this process has replaced CUPTI's clock, and kernel times would be wrong",
                       "profile before that profiler is used, or in a process without it");
}

bool TraceClock::holds(const Api& api) const {
  try {
    return is_in_nanoseconds(api);
  } catch (const CuptiError&) {  // nothing is known of it, and the trace says so
    return true;
  }
}

int TraceClock::end(const Api& api) {
  if (!std::exchange(replaced_, false) || !holds(api)) return CUPTI_SUCCESS;
  return api.cuptiActivityRegisterTimestampCallback(&tell_ticks);
}

}  // namespace roofprof::cupti

namespace roofprof::cupti {

namespace {

constexpr std::array kLaunches = {CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
                                  CUPTI_ACTIVITY_KIND_MEMCPY2, CUPTI_ACTIVITY_KIND_MEMSET};
// Calls of the runtime, which PyTorch makes, and of the driver, which Triton and cuBLAS make too; with the ids under
// which they are made.
constexpr std::array kCalls = {CUPTI_ACTIVITY_KIND_RUNTIME, CUPTI_ACTIVITY_KIND_DRIVER,
                               CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION};

constexpr std::array kGraphCallbacks = {CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED};

// State for CUPTI's callbacks: they carry no pointer to a trace, or may come after it. Never destroyed.
struct Shared {
  LaunchIds ids;
  GraphNodes graphs;
  std::atomic<const Api*> api = nullptr;
  std::atomic<bool> tracing = false;
};

Shared& shared() {
  static auto* const all = new Shared;
  return *all;
}

std::optional<std::uint64_t> id_of(const Api& api, CUgraphNode node) {
  std::uint64_t id = 0;
  if (node == nullptr || api.cuptiGetGraphNodeId(node, &id) != CUPTI_SUCCESS) return std::nullopt;
  return id;
}

void on_graph_node(CUpti_CallbackId callback, const CUpti_ResourceData& data) {
  const auto* graph = static_cast<const CUpti_GraphData*>(data.resourceDescriptor);
  if (graph == nullptr) return;
  Shared& all = shared();
  const Api& api = *all.api.load(std::memory_order_relaxed);
  const auto node = id_of(api, graph->node);
  if (!node) return;
  try {
    if (callback == CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED) {
      all.graphs.created(*node, all.ids.current());
    } else if (callback == CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED) {
      if (const auto original = id_of(api, graph->originalNode)) all.graphs.cloned(*node, *original);
    }
  } catch (const std::exception&) {  // no memory: the node is as if captured before the trace
  }
}

// Runs on the thread that launches, captures or instantiates. It must not call CUDA or throw.
void CUPTIAPI on_callback(void*, CUpti_CallbackDomain domain, CUpti_CallbackId callback, const void* data) {
  if (data == nullptr) return;
  if (domain == CUPTI_CB_DOMAIN_RESOURCE) return on_graph_node(callback, *static_cast<const CUpti_ResourceData*>(data));
  const auto& call = *static_cast<const CUpti_CallbackData*>(data);
  if (call.callbackSite != CUPTI_API_ENTER) return;
  ActivityInbox::instance().add_launch({call.correlationId, shared().ids.current()});
}

constexpr const char* kOneAtATime = "let one profiler end before the other begins";
constexpr const char* kOtherClock =
    "another profiler (torch.profiler, for one) began within this trace and replaced CUPTI's clock: the recorded times "
    "are wrong";
constexpr const char* kCallbacksTaken =
    "another client holds CUPTI's callbacks, as torch.profiler up to torch 2.14 does after its first use: kernels of "
    "CUDA graphs count where the graph is launched, and if it records just now, kernels may be missing";

std::string failed(std::string_view what, int code) {
  return "CUPTI could not " + std::string(what) + " (" + std::string(error_name(code)) + ")";
}

}  // namespace

Tracer::Tracer(const Api& api, std::function<void()> synchronize, TraceLimits limits)
    : api_(api), synchronize_(std::move(synchronize)), limits_(limits) {}

Tracer::~Tracer() {
  if (!tracing_) return;
  std::vector<Note> notes;
  ActivityInbox::instance().close();
  release(notes);
  shared().tracing = false;
}

LaunchMarker* Tracer::marker() { return tracing_ && recorded_ == Recorded::all ? &shared().ids : nullptr; }

void Tracer::start(Recorded recorded) {
  require_activity(api_);
  synchronize_();
  if (shared().tracing.exchange(true)) {
    throw CollectorError("kernel times are being recorded already", "end that trace first");
  }
  // No other trace of roofprof runs in the process from here on.
  recorded_ = recorded;
  try {
    begin();
    tracing_ = true;
  } catch (...) {
    std::vector<Note> notes;
    ActivityInbox::instance().close();
    release(notes);
    shared().tracing = false;
    throw;
  }
}

void Tracer::begin() {
  ActivityInbox& inbox = ActivityInbox::instance();
  Shared& all = shared();
  all.api = &api_;
  all.graphs.clear();
  subscribe();  // first, as it finds other profilers
  clock_.start(api_);
  inbox.register_callbacks(api_);
  all.ids.begin(api_, /*passed_on=*/!launches_watched_);
  inbox.open(api_, limits_);
  enable(kCalls);
  enable(kLaunches);
  synchronize_();  // a call that is recorded: CUPTI asks for this thread's buffer now, not in the model's first call
  if (launches_watched_ || recorded_ == Recorded::launches) {
    disable_calls();
  } else if (!calls_missed_) {
    skip_calls_that_launch_nothing();
  }
  std::size_t from_before = 0;  // asking resets the count
  api_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &from_before);
  start_ns_ = now();
  inbox.keep_of_others_from(start_ns_);
}

// Callbacks need a subscription, of which a process has one; records need none. Up to torch 2.14 torch's profiler takes
// it with its first use and never gives it back; and where it cannot have it then, it sees no GPU in this process any
// more. So others who hold it do not prevent a trace, and ours is held while there is something to watch.
void Tracer::subscribe() {
  callbacks_taken_ = graphs_watched_ = launches_watched_ = false;
  if (recorded_ == Recorded::launches || api_.cuptiEnableCallback == nullptr) return;
  if (const CUptiResult result = api_.cuptiSubscribe(&subscriber_, &on_callback, nullptr); result != CUPTI_SUCCESS) {
    subscriber_ = nullptr;
    callbacks_taken_ = result == CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    if (!callbacks_taken_ || !cuda::profilers_in_environment().empty()) throw CuptiError("cuptiSubscribe", result);
    return;
  }
  graphs_watched_ = watch_graphs();
  launches_watched_ = !calls_missed_ && watch_launches();
  if (!graphs_watched_ && !launches_watched_) api_.cuptiUnsubscribe(std::exchange(subscriber_, nullptr));
}

bool Tracer::watch_graphs() {
  return api_.cuptiGetGraphNodeId != nullptr && std::ranges::all_of(kGraphCallbacks, [&](const auto callback) {
           return api_.cuptiEnableCallback(1, subscriber_, CUPTI_CB_DOMAIN_RESOURCE, callback) == CUPTI_SUCCESS;
         });
}

// Has CUPTI call back as each launch begins, with its correlation; the thread's topmost id is the launch's owner. So
// frames that launch nothing make no calls to CUPTI, and CUPTI records no calls and ids. Returns false if it cannot.
bool Tracer::watch_launches() {
  if (calls_.empty()) calls_ = named_calls(api_);
  return std::ranges::count_if(calls_, [&](const Call& call) {
           return call.launches && api_.cuptiEnableCallback(1, subscriber_, call.domain, call.id) == CUPTI_SUCCESS;
         }) > 0;
}

// Enables kinds of records. A kind of calls covers all calls from here on.
void Tracer::enable(std::span<const CUpti_ActivityKind> kinds) {
  for (const CUpti_ActivityKind kind : kinds) {
    ROOFPROF_CUPTI(api_, cuptiActivityEnable, kind);
    if (std::ranges::find(enabled_, kind) == enabled_.end()) enabled_.push_back(kind);
  }
}

void Tracer::disable_calls() {
  for (const CUpti_ActivityKind kind : kCalls) {
    if (api_.cuptiActivityDisable(kind) == CUPTI_SUCCESS) std::erase(enabled_, kind);
  }
}

// Stops the records of calls that launch nothing. The others bring the ids where launches cannot be watched. Enabling
// the kinds again undoes this.
void Tracer::skip_calls_that_launch_nothing() {
  if (calls_.empty()) calls_ = named_calls(api_);
  for (const Call& call : calls_) {
    const auto enable_one = call.domain == CUPTI_CB_DOMAIN_DRIVER_API ? api_.cuptiActivityEnableDriverApi
                                                                      : api_.cuptiActivityEnableRuntimeApi;
    if (!call.launches && enable_one != nullptr) enable_one(call.id, 0);
  }
}

std::int64_t Tracer::now() const {
  std::uint64_t timestamp = 0;
  ROOFPROF_CUPTI(api_, cuptiGetTimestamp, &timestamp);
  return static_cast<std::int64_t>(timestamp);
}

void Tracer::forget() {
  synchronize_();
  ActivityInbox& inbox = ActivityInbox::instance();
  ROOFPROF_CUPTI(api_, cuptiActivityFlushAll, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  inbox.close();
  inbox.open(api_, limits_);
  start_ns_ = now();
  inbox.keep_of_others_from(start_ns_);
}

DeviceTrace Tracer::stop() {
  if (!tracing_) throw CollectorError("no kernel times are being recorded", "start a trace first");
  tracing_ = false;
  Shared& all = shared();
  ActivityInbox& inbox = ActivityInbox::instance();
  DeviceTrace trace;
  trace.start_ns = start_ns_;
  const bool requested = wait_at_the_end(trace);
  const bool clock_held = clock_.holds(api_);
  flush(trace);
  Received received = inbox.close();
  if (requested && !received.last_came && inbox.give_up_buffers()) {
    add_note(trace.notes, "other-profiler",
             "another profiler (torch.profiler, for one) began within this trace and took its records: kernels from "
             "then on are missing");
  }
  release(trace.notes);
  all.tracing = false;
  if (!clock_held) throw CollectorError(kOtherClock, kOneAtATime);
  const std::int64_t of_no_call = add_received(std::move(received), {all.graphs, graphs_watched_}, trace);
  if (recorded_ == Recorded::all && of_no_call > 0) {
    calls_missed_ = true;
    add_note(trace.notes, "launches-misplaced",
             "CUPTI did not tell of the calls that launched " + std::to_string(of_no_call) +
                 " kernels and copies: they belong to no module here; further runs in this process record all calls");
  }
  if (callbacks_taken_) add_note(trace.notes, "cupti-shared", kCallbacksTaken);
  if (const std::int64_t refused = all.ids.refused(); refused > 0) {
    add_note(
        trace.notes, "launches-misplaced",
        std::to_string(refused) + " launch ids were refused by CUPTI: kernels may be counted outside of their module");
  }
  all.graphs.clear();
  return trace;
}

// Records the last call, under an id that no other call has: if its record does not come back, another client has the
// records. Returns whether the record can be expected.
bool Tracer::wait_at_the_end(DeviceTrace& trace) {
  shared().ids.clear_this_thread();
  bool requested = false;
  try {
    if (recorded_ == Recorded::all) {
      enable(kCalls);
      requested = api_.cuptiActivityPushExternalCorrelationId(kOurIds, kLastLaunch) == CUPTI_SUCCESS;
    }
  } catch (const CuptiError&) {  // it is not known then
  }
  bool waited = true;
  try {
    synchronize_();
  } catch (const CollectorError& error) {
    add_note(trace.notes, "device-lost", std::string(error.what()) + "; kernel times are those recorded until then");
    waited = false;
  }
  std::uint64_t last = 0;
  if (requested) api_.cuptiActivityPopExternalCorrelationId(kOurIds, &last);
  return requested && waited;
}

void Tracer::flush(DeviceTrace& trace) {
  std::uint64_t end = 0;
  if (const CUptiResult result = api_.cuptiGetTimestamp(&end); result == CUPTI_SUCCESS) {
    trace.end_ns = static_cast<std::int64_t>(end);
  } else {
    add_note(trace.notes, "cupti-failed", failed("tell when the trace ended", result));
  }
  // All buffers, those with records that have no end yet among them.
  if (const CUptiResult result = api_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
      result != CUPTI_SUCCESS) {
    add_note(trace.notes, "kernels-missing", failed("hand over all of its records", result));
  }
  std::size_t dropped = 0;
  if (api_.cuptiActivityGetNumDroppedRecords(nullptr, 0, &dropped) == CUPTI_SUCCESS) {
    trace.dropped += static_cast<std::int64_t>(dropped);
  }
}

// Undoes what start() did, as far as it came. Never cuptiFinalize: that would end other clients' sessions too.
void Tracer::release(std::vector<Note>& notes) {
  const auto check = [&](std::string_view what, CUptiResult result) {
    if (result != CUPTI_SUCCESS) add_note(notes, "cupti-failed", failed(what, result));
  };
  const auto enabled = std::exchange(enabled_, {});
  for (const auto kind : enabled) check("end recording", api_.cuptiActivityDisable(kind));
  // The inbox is closed: what was recorded between the last flush and now is thrown away, not kept for the next trace.
  if (!enabled.empty()) api_.cuptiActivityFlushAll(CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  if (subscriber_ != nullptr) check("end our session", api_.cuptiUnsubscribe(std::exchange(subscriber_, nullptr)));
  check("give its clock back", static_cast<CUptiResult>(clock_.end(api_)));
}

}  // namespace roofprof::cupti
