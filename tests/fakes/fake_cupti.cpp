// A simulated libcupti.so.13: records of what is launched and callbacks, as libraries of several versions give them.
#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "fake_control.h"

namespace {

struct Subscriber {
  CUpti_CallbackFunc callback = nullptr;
  void* data = nullptr;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> enabled;
};

// Bytes, and of a kernel the name that they are to point to.
struct Record {
  std::vector<std::uint8_t> bytes;
  std::string name;
};
using Records = std::vector<Record>;
using Buffer = std::pair<std::uint8_t*, std::size_t>;

// Held while buffers are asked for, as the real library's: the thread sanitizer catches who locks in both orders.
std::recursive_mutex mutex;
std::optional<Subscriber> subscriber;
CUpti_TimestampCallbackFunc timestamp_callback = nullptr;
std::set<CUpti_ActivityKind> enabled;
std::set<std::pair<bool, CUpti_CallbackId>> skipped_calls;  // of the driver?, which
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
Records pending;
std::size_t dropped = 0;
long long made = 0;
thread_local std::map<CUpti_ExternalCorrelationKind, std::vector<std::uint64_t>> external_ids;

// The handle that callers hold.
CUpti_SubscriberHandle handle() { return reinterpret_cast<CUpti_SubscriberHandle>(&subscriber); }

void tell_subscriber(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  Subscriber current;
  {
    const std::lock_guard lock(mutex);
    if (!subscriber || !subscriber->enabled.contains({domain, id})) return;
    current = *subscriber;
  }
  fake::enter("callback");
  current.callback(current.data, domain, id, data);
}

// What the clock of records says when the simulated machine's says now_ns.
std::uint64_t by_clock_of_records(long long now_ns) {
  if (timestamp_callback == nullptr) return static_cast<std::uint64_t>(now_ns);
  return timestamp_callback() + static_cast<std::uint64_t>(now_ns - fake_now());
}

// ---- records

// As long as the library's version has it; what ours does not know of is noise.
template <class Struct>
Record record_of(const Struct& values, std::size_t bytes = sizeof(Struct)) {
  Record record{std::vector<std::uint8_t>(bytes, 0xab), {}};
  std::memcpy(record.bytes.data(), &values, std::min(sizeof(values), bytes));
  return record;
}

template <class Struct>
Struct begun(CUpti_ActivityKind kind, const fake::Event& ran) {
  Struct record{};
  record.kind = kind;
  record.deviceId = ran.launched.device;
  record.contextId = ran.launched.device + 1;
  record.streamId = ran.launched.stream;
  record.correlationId = ran.correlation;
  record.graphId = ran.launched.graph_node != 0 ? 1 : 0;
  record.graphNodeId = ran.launched.graph_node;
  record.start = ran.launched.incomplete != 0 ? 0 : by_clock_of_records(ran.start_ns);
  record.end = by_clock_of_records(ran.end_ns);
  return record;
}

template <class Struct>
Struct copy(CUpti_ActivityKind kind, const fake::Event& ran) {
  auto record = begun<Struct>(kind, ran);
  record.copyKind = static_cast<std::uint8_t>(ran.launched.copy_kind);
  record.srcKind = static_cast<std::uint8_t>(ran.launched.from_memory);
  record.dstKind = static_cast<std::uint8_t>(ran.launched.to_memory);
  record.bytes = ran.launched.bytes;
  return record;
}

Record work(const fake::Event& ran) {
  const FakeLaunch& launch = ran.launched;
  if (launch.kind == FAKE_KERNEL) {
    auto record = begun<CUpti_ActivityKernel9>(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, ran);
    record.gridX = launch.grid[0];
    record.gridY = launch.grid[1];
    record.gridZ = launch.grid[2];
    record.blockX = launch.block[0];
    record.blockY = launch.block[1];
    record.blockZ = launch.block[2];
    Record made = record_of(record, static_cast<std::size_t>(fake_get("kernel_record_bytes")));
    made.name = launch.name != nullptr ? launch.name : "";
    return made;
  }
  if (launch.kind == FAKE_FILL) {
    auto record = begun<CUpti_ActivityMemset4>(CUPTI_ACTIVITY_KIND_MEMSET, ran);
    record.bytes = launch.bytes;
    record.memoryKind = static_cast<std::uint16_t>(launch.to_memory);
    return record_of(record);
  }
  if (launch.copy_kind != CUPTI_ACTIVITY_MEMCPY_KIND_PTOP) {
    return record_of(copy<CUpti_ActivityMemcpy5>(CUPTI_ACTIVITY_KIND_MEMCPY, ran));
  }
  auto record = copy<CUpti_ActivityMemcpyPtoP4>(CUPTI_ACTIVITY_KIND_MEMCPY2, ran);
  record.srcDeviceId = launch.device;  // to device 0
  return record_of(record);
}

CUpti_ActivityKind kind_of(const std::uint8_t* record) {
  CUpti_ActivityKind kind = CUPTI_ACTIVITY_KIND_INVALID;
  std::memcpy(&kind, record, sizeof(kind));
  return kind;
}

// 0: no kind that is written here.
std::size_t bytes_of(CUpti_ActivityKind kind) {
  static const std::map<CUpti_ActivityKind, std::size_t> sizes = {
      {CUPTI_ACTIVITY_KIND_MEMCPY, sizeof(CUpti_ActivityMemcpy5)},
      {CUPTI_ACTIVITY_KIND_MEMCPY2, sizeof(CUpti_ActivityMemcpyPtoP4)},
      {CUPTI_ACTIVITY_KIND_MEMSET, sizeof(CUpti_ActivityMemset4)},
      {CUPTI_ACTIVITY_KIND_RUNTIME, sizeof(CUpti_ActivityAPI)},
      {CUPTI_ACTIVITY_KIND_DRIVER, sizeof(CUpti_ActivityAPI)},
      {CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION, sizeof(CUpti_ActivityExternalCorrelation)}};
  if (kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) return static_cast<std::size_t>(fake_get("kernel_record_bytes"));
  return sizes.contains(kind) ? sizes.at(kind) : 0;
}

// ---- buffers

Buffer requested_buffer() {
  Buffer buffer{nullptr, 0};
  std::size_t most = 1;
  if (request != nullptr) request(&buffer.first, &buffer.second, &most);
  if (buffer.first != nullptr) fake::live("activity_buffer", +1);
  return buffer;
}

// Writes records from `next` on into the buffer while there is room, and gives it back. Names live while it is read.
// Returns how many were written.
std::size_t fill(Buffer buffer, const Records& records, std::size_t next) {
  const auto room = static_cast<std::size_t>(fake_get("activity_room"));
  const std::size_t size = room != 0 ? std::min(room, buffer.second) : buffer.second;
  const std::size_t first = next;
  std::size_t used = 0;
  for (; next < records.size() && used + records[next].bytes.size() <= size; ++next) {
    std::uint8_t* at = std::copy(records[next].bytes.begin(), records[next].bytes.end(), buffer.first + used);
    at = buffer.first + std::exchange(used, static_cast<std::size_t>(at - buffer.first));
    if (kind_of(at) != CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) continue;
    const char* name = records[next].name.c_str();
    std::memcpy(at + offsetof(CUpti_ActivityKernel9, name), &name, sizeof(name));
  }
  complete(nullptr, 0, buffer.first, buffer.second, used);
  return next - first;
}

void deliver(const Records& records) {
  for (std::size_t next = 0; next < records.size();) {
    std::unique_lock lock(mutex);
    const Buffer buffer = requested_buffer();
    lock.unlock();
    std::size_t written = 0;
    if (buffer.first != nullptr) {
      fake::live("activity_buffer", -1);
      written = fill(buffer, records, next);
    }
    lock.lock();
    dropped += written == 0 ? 1 : 0;
    next += std::max<std::size_t>(written, 1);
  }
}

// ---- what happens on the device

void record_call(bool driver, CUpti_CallbackId id, unsigned correlation) {
  const std::lock_guard lock(mutex);
  const auto kind = driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  if (!enabled.contains(kind) || skipped_calls.contains({driver, id})) return;
  for (const auto& [of, ids] : external_ids) {  // one record before the call's for each kind of ids
    if (ids.empty() || !enabled.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) continue;
    CUpti_ActivityExternalCorrelation record{};
    record.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
    record.externalKind = of;
    record.externalId = ids.back();
    record.correlationId = correlation;
    pending.push_back(record_of(record));
  }
  CUpti_ActivityAPI call{};
  call.kind = kind;
  call.correlationId = correlation;
  pending.push_back(record_of(call));
}

// The subscriber is told at both ends.
template <class Body>
void make_call(bool driver, CUpti_CallbackId id, unsigned correlation, const Body& body) {
  CUpti_CallbackData data{};
  data.correlationId = correlation;
  const auto tell = [&](CUpti_ApiCallbackSite site) {
    data.callbackSite = site;
    tell_subscriber(driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, id, &data);
  };
  tell(CUPTI_API_ENTER);
  record_call(driver, id, correlation);
  body();
  tell(CUPTI_API_EXIT);
}

// The functions that simulated launches are made by; others have a name that says nothing.
const std::map<CUpti_CallbackId, const char*> kRuntimeNames = {
    {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, "cudaMemsetAsync_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, "cudaGraphLaunch_v10000"}};

CUpti_CallbackId function_of(const FakeLaunch& launch) {
  if (launch.graph_node != 0) return CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000;
  if (launch.kind == FAKE_COPY) return CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
  if (launch.kind == FAKE_FILL) return CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020;
  return static_cast<CUpti_CallbackId>(fake_get("kernel_call"));
}

void launched(const fake::Event& ran) {
  if (ran.launched.correlation == 0) make_call(false, function_of(ran.launched), ran.correlation, [] {});
  Records full;
  {
    const std::lock_guard lock(mutex);
    Record record = work(ran);
    if (enabled.contains(kind_of(record.bytes.data()))) {
      const long long every = fake_get("activity_drop_every");
      every != 0 && ++made % every == 0 ? void(++dropped) : pending.push_back(std::move(record));
    }
    const auto room = static_cast<std::size_t>(fake_get("activity_room"));
    if (room == 0) return;
    std::size_t bytes = 0;
    for (const Record& of : pending) bytes += of.bytes.size();
    if (bytes < room) return;
    full = std::exchange(pending, {});
  }
  deliver(full);
}

// The callbacks that the real library makes while a graph is captured or instantiated. A node's handle is its number.
void node_made(unsigned long long node, unsigned long long original) {
  const auto tell = [&](CUpti_CallbackIdResource callback) {
    CUpti_GraphData graph{};
    graph.node = reinterpret_cast<CUgraphNode>(node);
    graph.originalNode = reinterpret_cast<CUgraphNode>(original);
    CUpti_ResourceData data{};
    data.resourceDescriptor = &graph;
    tell_subscriber(CUPTI_CB_DOMAIN_RESOURCE, callback, &data);
  };
  tell(original == 0 ? CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED : CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
}

void reset() {
  const std::lock_guard lock(mutex);
  timestamp_callback = nullptr;
  subscriber.reset();
  enabled.clear();
  skipped_calls.clear();
  pending.clear();
  dropped = 0;
  made = 0;
}

void on_event(const fake::Event& event) {
  constexpr unsigned kNothingLaunched = 0xfffffff1U;  // the correlation id of all calls that launch nothing
  switch (event.kind) {
    case fake::Event::launch:
      return launched(event);
    case fake::Event::graph_node:
      return node_made(event.node, event.original);
    case fake::Event::reset:
      return reset();
    case fake::Event::call:
      if (event.correlation == 0) return record_call(true, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, kNothingLaunched);
      make_call(false, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, event.correlation,
                [&] { make_call(true, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, event.correlation, [] {}); });
  }
}
const bool listening = (fake::on_event(on_event), true);

CUptiResult skip(bool driver, CUpti_CallbackId call, std::uint8_t enable) {
  enable != 0 ? void(skipped_calls.erase({driver, call})) : void(skipped_calls.insert({driver, call}));
  return CUPTI_SUCCESS;
}

}  // namespace

// CUPTI(function, (parameters)) { body }
#define CUPTI(name, parameters, ...)   \
  CUptiResult name parameters {        \
    FAKE(CUptiResult, name);           \
    const std::lock_guard lock(mutex); \
    __VA_ARGS__                        \
    return CUPTI_SUCCESS;              \
  }

extern "C" {

CUPTI(cuptiGetVersion, (std::uint32_t* version), { *version = static_cast<std::uint32_t>(fake_get("cupti_version")); })
CUPTI(cuptiGetTimestamp, (std::uint64_t* timestamp), { *timestamp = by_clock_of_records(fake_now()); })
// As documented, it cannot be undone.
CUPTI(cuptiActivityRegisterTimestampCallback, (CUpti_TimestampCallbackFunc callback), {
  if (callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  timestamp_callback = callback;
})

CUPTI(cuptiSubscribe, (CUpti_SubscriberHandle * given, CUpti_CallbackFunc callback, void* data), {
  if (subscriber) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscriber = Subscriber{callback, data, {}};
  *given = handle();
  fake::live("subscriber", +1);
})
CUPTI(cuptiUnsubscribe, (CUpti_SubscriberHandle given), {
  if (!subscriber || given != handle()) return CUPTI_ERROR_INVALID_PARAMETER;
  subscriber.reset();
  fake::live("subscriber", -1);
})
CUPTI(cuptiEnableCallback,
      (std::uint32_t enable, CUpti_SubscriberHandle given, CUpti_CallbackDomain domain, CUpti_CallbackId id), {
        if (!subscriber || given != handle() || enable == 0) return CUPTI_ERROR_INVALID_PARAMETER;
        subscriber->enabled.insert({domain, id});
      })
CUPTI(cuptiGetCallbackName, (CUpti_CallbackDomain domain, std::uint32_t id, const char** name), {
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  if (id == 0 ||
      static_cast<int>(id) >= (driver ? int{CUPTI_DRIVER_TRACE_CBID_SIZE} : int{CUPTI_RUNTIME_TRACE_CBID_SIZE})) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  *name = driver ? (id == CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel ? "cuLaunchKernel" : "cuSomethingElse")
                 : (kRuntimeNames.contains(id) ? kRuntimeNames.at(id) : "cudaSomethingElse");
})
CUPTI(cuptiGetGraphNodeId, (CUgraphNode node, std::uint64_t* id), { *id = reinterpret_cast<std::uint64_t>(node); })

CUPTI(cuptiActivityRegisterCallbacks,
      (CUpti_BuffersCallbackRequestFunc requested, CUpti_BuffersCallbackCompleteFunc completed), {
        request = requested;
        complete = completed;
      })
CUPTI(cuptiActivityEnable, (CUpti_ActivityKind kind), {
  if (enabled.insert(kind).second) fake::live("activity_kind", +1);
  const bool driver = kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (!driver && kind != CUPTI_ACTIVITY_KIND_RUNTIME) return CUPTI_SUCCESS;
  std::erase_if(skipped_calls, [&](const auto& call) { return call.first == driver; });
})
CUPTI(cuptiActivityDisable, (CUpti_ActivityKind kind), {
  if (enabled.erase(kind) == 1) fake::live("activity_kind", -1);
})
CUPTI(cuptiActivityEnableRuntimeApi, (CUpti_CallbackId call, std::uint8_t enable),
      { return skip(false, call, enable); })
CUPTI(cuptiActivityEnableDriverApi, (CUpti_CallbackId call, std::uint8_t enable), { return skip(true, call, enable); })

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  FAKE(CUptiResult, cuptiActivityFlushAll);
  std::unique_lock lock(mutex);
  const Records all = std::exchange(pending, {});
  lock.unlock();
  deliver(all);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  FAKE(CUptiResult, cuptiActivityGetNextRecord);
  auto* next = reinterpret_cast<std::uint8_t*>(*record);
  next = next == nullptr ? buffer : next + bytes_of(kind_of(next));
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (bytes_of(kind_of(next)) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUPTI(cuptiActivityGetNumDroppedRecords, (CUcontext, std::uint32_t, std::size_t* number),
      { *number = std::exchange(dropped, 0); })
CUPTI(cuptiActivityPushExternalCorrelationId, (CUpti_ExternalCorrelationKind kind, std::uint64_t id),
      { external_ids[kind].push_back(id); })
CUPTI(cuptiActivityPopExternalCorrelationId, (CUpti_ExternalCorrelationKind kind, std::uint64_t* last), {
  std::vector<std::uint64_t>& ids = external_ids[kind];
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
})
}
