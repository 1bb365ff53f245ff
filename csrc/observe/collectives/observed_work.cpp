#include "observe/collectives/observed_work.h"

#include <ATen/core/ivalue.h>
#include <torch/custom_class.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "observe/operators/record_values.h"

namespace roofprof::observe {

namespace {

template <class Class, class Values>
c10::intrusive_ptr<Class> object_in(const Values& values) {
  for (const auto& value : values) {
    if (!value.isObject()) continue;
    if (*value.type() == *c10::getCustomClassType<c10::intrusive_ptr<Class>>())
      return value.template toCustomClass<Class>();
  }
  return {};
}

// A group may have a backend for each kind of device.
std::string backend_of(c10d::ProcessGroup& group, c10::ArrayRef<const c10::IValue> inputs) {
  std::optional<c10::DeviceType> device;
  for (const auto& value : inputs) {
    for_each_tensor(value, [&](const at::TensorImpl& tensor, std::size_t) { device = tensor.device_type(); });
    if (device) break;
  }
  try {
    return device ? group.getBackend(*device)->getBackendName() : group.getBackendName();
  } catch (const std::exception&) {
    return group.getBackendName();
  }
}

c10::intrusive_ptr<c10::ivalue::Future> future_of(c10d::Work& work) {
  try {
    return work.getFuture();
  } catch (const std::exception&) {
    return {};
  }
}

bool is_between_two(std::string_view op) { return op.starts_with("c10d::send") || op.starts_with("c10d::recv"); }

}  // namespace

void begin_collective(CollectiveLog& log, const at::RecordFunction& fn, RunningCollective& running, Ticks now) {
  const auto group = object_in<c10d::ProcessGroup>(fn.inputs());
  if (!group) return;
  const auto backend = backend_of(*group, fn.inputs());
  running.group = log.group(group->getGroupName(), backend, group->getSize());
  running.record = &fn;
  // torch's fake backend stands for ranks that do not exist: nothing is sent.
  if (backend != "fake") running.call = log.begin(running.group, now, !is_between_two(fn.name()));
}

void follow_collective(const std::shared_ptr<CollectiveLog>& log, const at::RecordFunction& fn,
                       const RunningCollective& running) {
  if (running.call == CollectiveLog::kNone) return;
  const auto call = running.call;
  const auto work = object_in<c10d::Work>(fn.outputs());
  // Inside a coalescing block there is one Work for all of its calls, at its end; an op that raised has none.
  if (!work) {
    log->never_ends(call);
    return;
  }
  const auto future = future_of(*work);
  if (!future) {
    log->end_when_released(call, work);
  } else if (!future->devices().empty()) {
    log->never_ends(call);  // it is complete when it is enqueued on a stream: kernels tell its time
  } else {
    future->addCallback([log, call](c10::ivalue::Future& done) { log->end(call, now_ticks(), done.hasError()); });
  }
}

}  // namespace roofprof::observe
