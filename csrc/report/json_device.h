#pragma once
// What a device did, as JSON.

#include "core/profile_data.h"
#include "report/json_writer.h"

namespace roofprof {

void write_kernel_row(JsonWriter& json, const KernelRow& row);
void write_kernel_bucket(JsonWriter& json, const KernelBucket& kernel);
void write_device_time(JsonWriter& json, const DeviceTime& time);
void write_module_counters(JsonWriter& json, const ModuleCounters& counters);
void write_counter_source(JsonWriter& json, const CounterSource& source);

}  // namespace roofprof
