#pragma once
// Made-up device data, with something in every field.

#include <string>

#include "device/replay/replay.h"

namespace roofprof {

inline RecordedData sample_data() {
  RecordedData data;
  DeviceTrace& trace = data.traces.emplace_back();
  trace.names = {"void axpy<float>(float*, float*, int)", "[CUDA memcpy Host-to-Device]", "[CUDA memset]"};
  trace.notes = {make_note("graph-launches", "made up")};
  trace.start_ns = 1'000;
  trace.end_ns = 90'000;
  trace.dropped = 5;
  trace.incomplete = 6;
  trace.foreign = 7;
  for (std::uint32_t i = 0; i < 12; ++i) {
    KernelRecord record;
    record.kind = static_cast<KernelKind>(i % 3);
    record.from = static_cast<Memory>(i % kMemoryNames.size());
    record.to = static_cast<Memory>((i + 2) % kMemoryNames.size());
    record.name = i % 3;
    record.device = i % 2;
    record.to_device = (i + 1) % 2;
    record.stream = 7 + i % 4;
    record.correlation = 100 + i;
    record.graph_node = i > 8 ? 1ULL << 40U | i : 0;
    record.launch = i * 3;
    record.start_ns = 2'000 + i * 5'000;
    record.end_ns = record.start_ns + 1'500 + i;
    record.grid = {static_cast<int>(i) + 1, 2, 3};
    record.block = {128, static_cast<int>(i) + 1, 1};
    record.bytes = i % 3 == 0 ? 0 : 1LL << i;
    trace.records.push_back(record);
  }
  data.traces.push_back(trace);
  data.traces.back().records.resize(3);

  CounterTrace& counters = data.counters.emplace_back();
  counters.chip = "GH100";
  counters.ranges = CounterRanges::modules;
  counters.dropped = 1;
  counters.passes = 3;
  counters.notes = {make_note("counters-not-evaluated", "made up, too")};
  counters.sources = {
      {Counter::dram_bytes, {"dram__bytes.sum"}, "dram__bytes.sum", ""},
      {Counter::tensor_fp4_flops, {}, "", "this chip has no such unit"},
  };
  for (std::uint64_t range = 0; range < 8; ++range) {
    CounterRecord& record = counters.records.emplace_back();
    record.range = range;
    for (std::size_t i = 0; i < kCounterCount; i += 1 + range) {
      record.values.at(i) = static_cast<double>(range) * 1.25e9 + 0.1 * static_cast<double>(i);
    }
  }
  data.counters.push_back(counters);
  data.counters.back().ranges = CounterRanges::kernels;
  return data;
}

}  // namespace roofprof
