// A simulated libcupti.so.13, first part: version, clock, subscribers, callbacks.
#include <cuda.h>
#include <cupti.h>

#include <map>
#include <mutex>
#include <set>
#include <utility>

#include "fake_cupti.h"
#include "fake_state.h"

namespace {

// Who subscribed to callbacks, and to which.
struct Subscriber {
  bool subscribed = false;
  CUpti_CallbackFunc callback = nullptr;
  void* data = nullptr;
  std::set<std::pair<CUpti_CallbackDomain, CUpti_CallbackId>> enabled;
};

std::mutex mutex;
Subscriber subscriber;
// The handle that callers hold; its address is all there is to it.
char handle;
CUpti_TimestampCallbackFunc timestamp_callback = nullptr;

const bool listening = (fake::on_reset([] {
                          const std::lock_guard lock(mutex);
                          timestamp_callback = nullptr;
                          subscriber = {};
                        }),
                        true);

CUpti_TimestampCallbackFunc clock_of_records() {
  const std::lock_guard lock(mutex);
  return timestamp_callback;
}

// The functions that simulated launches are made by; others have a name that says nothing.
const std::map<CUpti_CallbackId, const char*> kRuntimeNames = {
    {CUPTI_RUNTIME_TRACE_CBID_cudaLaunchKernel_v7000, "cudaLaunchKernel_v7000"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemcpyAsync_v3020, "cudaMemcpyAsync_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaMemsetAsync_v3020, "cudaMemsetAsync_v3020"},
    {CUPTI_RUNTIME_TRACE_CBID_cudaGraphLaunch_v10000, "cudaGraphLaunch_v10000"},
};
const std::map<CUpti_CallbackId, const char*> kDriverNames = {
    {CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, "cuLaunchKernel"},
};

}  // namespace

namespace fake {

void tell_subscriber(CUpti_CallbackDomain domain, CUpti_CallbackId id, const void* data) {
  std::pair<CUpti_CallbackFunc, void*> told;
  {
    const std::lock_guard lock(mutex);
    if (!subscriber.enabled.contains({domain, id})) return;
    told = {subscriber.callback, subscriber.data};
  }
  enter("callback");
  told.first(told.second, domain, id, data);
}

long long by_clock_of_records(long long now_ns) {
  const CUpti_TimestampCallbackFunc callback = clock_of_records();
  if (callback == nullptr) return now_ns;
  return static_cast<long long>(callback()) + now_ns - fake_now();
}

}  // namespace fake

extern "C" {

CUptiResult cuptiGetVersion(std::uint32_t* version) {
  FAKE(CUptiResult, cuptiGetVersion);
  *version = static_cast<std::uint32_t>(fake_get("cupti_version"));
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetTimestamp(std::uint64_t* timestamp) {
  FAKE(CUptiResult, cuptiGetTimestamp);
  *timestamp = static_cast<std::uint64_t>(fake::by_clock_of_records(fake_now()));
  return CUPTI_SUCCESS;
}

// As documented, it cannot be undone.
CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc callback) {
  FAKE(CUptiResult, cuptiActivityRegisterTimestampCallback);
  if (callback == nullptr) return CUPTI_ERROR_INVALID_PARAMETER;
  const std::lock_guard lock(mutex);
  timestamp_callback = callback;
  return CUPTI_SUCCESS;
}

CUptiResult cuptiSubscribe(CUpti_SubscriberHandle* given, CUpti_CallbackFunc callback, void* data) {
  FAKE(CUptiResult, cuptiSubscribe);
  const std::lock_guard lock(mutex);
  if (subscriber.subscribed) return CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  subscriber = {true, callback, data, {}};
  *given = reinterpret_cast<CUpti_SubscriberHandle>(&handle);
  fake::live("subscriber", +1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiUnsubscribe(CUpti_SubscriberHandle given) {
  FAKE(CUptiResult, cuptiUnsubscribe);
  const std::lock_guard lock(mutex);
  if (!subscriber.subscribed || given != reinterpret_cast<CUpti_SubscriberHandle>(&handle)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  subscriber = {};
  fake::live("subscriber", -1);
  return CUPTI_SUCCESS;
}

CUptiResult cuptiEnableCallback(std::uint32_t enable, CUpti_SubscriberHandle given, CUpti_CallbackDomain domain,
                                CUpti_CallbackId id) {
  FAKE(CUptiResult, cuptiEnableCallback);
  const std::lock_guard lock(mutex);
  if (!subscriber.subscribed || given != reinterpret_cast<CUpti_SubscriberHandle>(&handle)) {
    return CUPTI_ERROR_INVALID_PARAMETER;
  }
  if (enable != 0) {
    subscriber.enabled.insert({domain, id});
  } else {
    subscriber.enabled.erase({domain, id});
  }
  return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, std::uint32_t id, const char** name) {
  FAKE(CUptiResult, cuptiGetCallbackName);
  const bool driver = domain == CUPTI_CB_DOMAIN_DRIVER_API;
  const auto last = driver ? std::uint32_t{CUPTI_DRIVER_TRACE_CBID_SIZE} : std::uint32_t{CUPTI_RUNTIME_TRACE_CBID_SIZE};
  if (id == 0 || id >= last) return CUPTI_ERROR_INVALID_PARAMETER;
  const auto& names = driver ? kDriverNames : kRuntimeNames;
  const auto known = names.find(id);
  *name = known != names.end() ? known->second : "cuSomethingElse";
  return CUPTI_SUCCESS;
}
}
