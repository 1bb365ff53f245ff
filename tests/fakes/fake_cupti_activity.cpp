// A simulated libcupti.so.13, second part: activity records.
#include <cuda.h>
#include <cupti.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "fake_activity_records.h"
#include "fake_cupti.h"
#include "fake_state.h"

namespace {

using fake::bytes_of;
using fake::kind_of;
using fake::Record;
using Records = std::vector<Record>;

// Held where the real library holds its own: while buffers are asked for, so that a client who holds a lock of his
// while he calls CUPTI, and takes it when he is asked, is caught by the thread sanitizer.
std::recursive_mutex mutex;
std::set<CUpti_ActivityKind> enabled;
std::set<std::pair<bool, CUpti_CallbackId>> skipped_calls;  // of the driver?, which
CUpti_BuffersCallbackRequestFunc request = nullptr;
CUpti_BuffersCallbackCompleteFunc complete = nullptr;
Records pending;
std::size_t pending_bytes = 0;
std::size_t dropped = 0;
long long made = 0;
std::pair<std::uint8_t*, std::size_t> kept{nullptr, 0};
constexpr unsigned kCallsOfTheDriver = 0xfffffff1U;  // the correlation id of all that launch nothing
thread_local std::map<CUpti_ExternalCorrelationKind, std::vector<std::uint64_t>> external_ids;

// A worker that goes on while the flush has returned.
std::mutex late_mutex;
std::condition_variable late_began;
bool late_reads = false;
std::thread late;

// ---- buffers

CUcontext context_of_buffers() { return reinterpret_cast<CUcontext>(fake_get("activity_context")); }

// Names live as long as their buffer is being read, and not longer.
class Buffer {
 public:
  Buffer() {
    const std::lock_guard lock(mutex);
    std::tie(data_, size_) = std::exchange(kept, {nullptr, 0});
    if (data_ == nullptr) std::tie(data_, size_) = asked();
    if (fake_get("activity_keeps") != 0) kept = asked();
    const auto room = static_cast<std::size_t>(fake_get("activity_room"));
    if (room != 0) size_ = std::min(size_, room);
  }
  explicit Buffer(std::vector<std::uint8_t>& foreign) : data_(foreign.data()), size_(foreign.size()), ours_(false) {}

  bool add(const Record& record) {
    if (data_ == nullptr || used_ + record.bytes.size() > size_) return false;
    std::memcpy(data_ + used_, record.bytes.data(), record.bytes.size());
    if (kind_of(data_ + used_) == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL) {
      names_.push_back(std::make_unique<std::string>(record.name));
      const char* name = names_.back()->c_str();
      std::memcpy(data_ + used_ + offsetof(CUpti_ActivityKernel9, name), &name, sizeof(name));
    }
    used_ += record.bytes.size();
    return true;
  }
  bool empty() const { return used_ == 0; }
  bool lent() const { return data_ != nullptr; }

  void give_back() {
    if (data_ == nullptr) return;
    if (fake_get("activity_broken") != 0) add({std::vector<std::uint8_t>(8, 0xff), {}});
    if (ours_) fake::live("activity_buffer", -1);
    complete(context_of_buffers(), 0, data_, size_, used_);
  }

 private:
  static std::pair<std::uint8_t*, std::size_t> asked() {
    std::uint8_t* data = nullptr;
    std::size_t size = 0;
    std::size_t most = 1;
    if (request != nullptr) request(&data, &size, &most);
    if (data != nullptr) fake::live("activity_buffer", +1);
    return {data, size};
  }

  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t used_ = 0;
  bool ours_ = true;
  std::vector<std::unique_ptr<std::string>> names_;
};

void fill_buffers(Records records) {
  if (fake_get("activity_reversed") != 0) std::ranges::reverse(records);
  auto buffer = std::make_unique<Buffer>();
  for (const Record& record : records) {
    if (buffer->add(record)) continue;
    if (!buffer->empty()) {
      buffer->give_back();
      buffer = std::make_unique<Buffer>();
      if (buffer->add(record)) continue;
    }
    const std::lock_guard lock(mutex);
    ++dropped;
  }
  buffer->give_back();
}

// On a thread of its own, as the real library does, or on this one.
void deliver(Records records, bool may_be_late) {
  const long long how = fake_get("activity_thread");
  if (how == 0) return fill_buffers(std::move(records));
  std::thread worker(fill_buffers, std::move(records));
  if (how == 1 || !may_be_late) return worker.join();
  std::unique_lock lock(late_mutex);
  late_began.wait(lock, [] { return late_reads; });
  late = std::move(worker);
}

void deliver_foreign() {
  for (long long i = fake_get("foreign_buffers"); i > 0; --i) {
    std::vector<std::uint8_t> memory(4096);
    Buffer buffer(memory);
    fake::Ran ran{.launch = {}, .correlation = 0xfffffff0U, .start_ns = fake_now(), .end_ns = fake_now()};
    ran.launch.name = "of_another_client";
    buffer.add(fake::work(ran));
    ran.start_ns = ran.end_ns = 5;  // long ago
    buffer.add(fake::work(ran));
    buffer.give_back();
  }
}

// The flush may return now, and has time to.
void begin_late() {
  {
    const std::lock_guard lock(late_mutex);
    if (std::exchange(late_reads, true)) return;
  }
  late_began.notify_all();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void end_late() {
  if (late.joinable()) late.join();
  const std::lock_guard lock(late_mutex);
  late_reads = false;
}

Records take_pending() {
  pending_bytes = 0;
  return std::exchange(pending, {});
}

// ---- what is recorded

void add(Record&& record) {
  pending_bytes += record.bytes.size();
  pending.push_back(std::move(record));
}

// Before a call's record: one of external ids for each kind that has any on this thread.
void add_ids(unsigned correlation) {
  if (!enabled.contains(CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION)) return;
  for (const auto& [kind, ids] : external_ids) {
    if (!ids.empty()) add(fake::external_id(kind, ids.back(), correlation));
  }
}

// A call of the runtime's or the driver's: the subscriber is told at both ends.
struct Call {
  bool driver = false;
  CUpti_CallbackId id = 0;
  unsigned correlation = 0;
};

void tell(const Call& call, CUpti_ApiCallbackSite site) {
  CUpti_CallbackData data{};
  data.callbackSite = site;
  data.correlationId = call.correlation;
  fake::tell_subscriber(call.driver ? CUPTI_CB_DOMAIN_DRIVER_API : CUPTI_CB_DOMAIN_RUNTIME_API, call.id, &data);
}

void record(const Call& call) {
  const std::lock_guard lock(mutex);
  const auto kind = call.driver ? CUPTI_ACTIVITY_KIND_DRIVER : CUPTI_ACTIVITY_KIND_RUNTIME;
  if (!enabled.contains(kind) || skipped_calls.contains({call.driver, call.id})) return;
  add_ids(call.correlation);
  add(fake::call(kind, call.correlation));
}

template <class Body>
void make(const Call& call, const Body& body) {
  tell(call, CUPTI_API_ENTER);
  record(call);
  body();
  tell(call, CUPTI_API_EXIT);
}

void called(unsigned correlation) {
  if (correlation == 0) return record({true, CUPTI_DRIVER_TRACE_CBID_cuCtxSynchronize, kCallsOfTheDriver});
  make({false, CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, correlation},
       [&] { make({true, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, correlation}, [] {}); });
}

CUpti_CallbackId function_of(const FakeLaunch& launch) {
  if (launch.graph != 0) return CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000;
  if (launch.kind == FAKE_COPY) return CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020;
  if (launch.kind == FAKE_FILL) return CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020;
  return static_cast<CUpti_CallbackId>(fake_get("kernel_call"));
}

void launched(const fake::Ran& ran) {
  if (ran.launch.correlation == 0) make({false, function_of(ran.launch), ran.correlation}, [] {});
  Records full;
  {
    const std::lock_guard lock(mutex);
    Record record = fake::work(ran);
    if (enabled.contains(kind_of(record.bytes.data()))) {
      const long long every = fake_get("activity_drop_every");
      if (every != 0 && ++made % every == 0) {
        ++dropped;
      } else {
        add(std::move(record));
      }
    }
    const auto room = static_cast<std::size_t>(fake_get("activity_room"));
    if (room == 0 || pending_bytes < room || fake_get("activity_reversed") != 0) return;
    full = take_pending();
  }
  deliver(std::move(full), false);
}

void reset() {
  end_late();
  const std::lock_guard lock(mutex);
  enabled.clear();
  skipped_calls.clear();
  take_pending();
  if (kept.first != nullptr) complete(nullptr, 0, kept.first, kept.second, 0);
  kept = {nullptr, 0};
  dropped = 0;
  made = 0;
}

const bool listening = (fake::on_launch(launched), fake::on_call(called), fake::on_reset(reset), true);

CUptiResult skip(bool driver, CUpti_CallbackId call, std::uint8_t enable) {
  const std::lock_guard lock(mutex);
  const bool changed =
      enable != 0 ? skipped_calls.erase({driver, call}) == 1 : skipped_calls.insert({driver, call}).second;
  if (changed) fake::live("skipped_call", enable != 0 ? -1 : +1);
  return CUPTI_SUCCESS;
}

}  // namespace

extern "C" {

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc requested,
                                           CUpti_BuffersCallbackCompleteFunc completed) {
  FAKE(CUptiResult, cuptiActivityRegisterCallbacks);
  if (requested == nullptr || completed == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(mutex);
  request = requested;
  complete = completed;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind) {
  FAKE(CUptiResult, cuptiActivityEnable);
  const std::lock_guard lock(mutex);
  if (enabled.insert(kind).second) fake::live("activity_kind", +1);
  const bool driver = kind == CUPTI_ACTIVITY_KIND_DRIVER;
  if (driver || kind == CUPTI_ACTIVITY_KIND_RUNTIME) {
    const auto undone = std::erase_if(skipped_calls, [&](const auto& call) { return call.first == driver; });
    fake::live("skipped_call", -static_cast<int>(undone));
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind) {
  FAKE(CUptiResult, cuptiActivityDisable);
  const std::lock_guard lock(mutex);
  if (enabled.erase(kind) == 1) fake::live("activity_kind", -1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushAll(std::uint32_t) {
  FAKE(CUptiResult, cuptiActivityFlushAll);
  Records all;
  {
    const std::lock_guard lock(mutex);
    if (request == nullptr) return CUPTI_ERROR_INVALID_OPERATION;
    all = take_pending();
  }
  end_late();
  if (!all.empty()) deliver(std::move(all), true);
  deliver_foreign();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(std::uint8_t* buffer, std::size_t valid_bytes, CUpti_Activity** record) {
  FAKE(CUptiResult, cuptiActivityGetNextRecord);
  if (fake_get("activity_thread") == 2) begin_late();
  auto* next = reinterpret_cast<std::uint8_t*>(*record);
  next = next == nullptr ? buffer : next + bytes_of(kind_of(next));
  if (next >= buffer + valid_bytes) return CUPTI_ERROR_MAX_LIMIT_REACHED;
  if (bytes_of(kind_of(next)) == 0) return CUPTI_ERROR_INVALID_KIND;
  *record = reinterpret_cast<CUpti_Activity*>(next);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, std::uint32_t, std::size_t* number) {
  FAKE(CUptiResult, cuptiActivityGetNumDroppedRecords);
  const std::lock_guard lock(mutex);
  *number = context == context_of_buffers() ? std::exchange(dropped, 0) : 0;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPushExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t id) {
  FAKE(CUptiResult, cuptiActivityPushExternalCorrelationId);
  if (kind <= CUPTI_EXTERNAL_CORRELATION_KIND_INVALID || kind >= CUPTI_EXTERNAL_CORRELATION_KIND_SIZE) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  external_ids[kind].push_back(id);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityPopExternalCorrelationId(CUpti_ExternalCorrelationKind kind, std::uint64_t* last) {
  FAKE(CUptiResult, cuptiActivityPopExternalCorrelationId);
  std::vector<std::uint64_t>& ids = external_ids[kind];
  if (ids.empty()) return CUPTI_ERROR_QUEUE_EMPTY;
  if (last != nullptr) *last = ids.back();
  ids.pop_back();
  return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnableRuntimeApi(CUpti_CallbackId call, std::uint8_t enable) {
  FAKE(CUptiResult, cuptiActivityEnableRuntimeApi);
  return skip(false, call, enable);
}

CUptiResult cuptiActivityEnableDriverApi(CUpti_CallbackId call, std::uint8_t enable) {
  FAKE(CUptiResult, cuptiActivityEnableDriverApi);
  return skip(true, call, enable);
}
}
