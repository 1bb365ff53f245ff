#pragma once
// The collector's trace of a recorded program against what the trace itself says, and the reports of both.

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "device/traces/collected.h"
#include "join/join.h"
#include "roofprof/report.h"

namespace roofprof::testing {

// A record with its name in place of a number.
using NamedRecord = std::pair<std::string, KernelRecord>;

inline std::vector<NamedRecord> named_records(const DeviceTrace& trace) {
  std::vector<NamedRecord> records;
  for (const auto& record : trace.records) {
    records.emplace_back(record.kind == KernelKind::kernel ? trace.names.at(record.name) : "", record);
    records.back().second.name = 0;
  }
  std::ranges::sort(records, {}, [](const NamedRecord& named) {
    const auto& [name, of] = named;
    return std::tuple(of.correlation, of.graph_node, of.start_ns, of.end_ns, of.kind, name, of.bytes, of.stream);
  });
  return records;
}

inline std::string text_of(const NamedRecord& named) {
  const auto& [name, record] = named;
  std::string text = name;
  for (const auto number : {static_cast<std::int64_t>(record.kind), static_cast<std::int64_t>(record.from),
                            static_cast<std::int64_t>(record.to), static_cast<std::int64_t>(record.device),
                            static_cast<std::int64_t>(record.to_device), static_cast<std::int64_t>(record.stream),
                            static_cast<std::int64_t>(record.correlation), static_cast<std::int64_t>(record.graph_node),
                            static_cast<std::int64_t>(record.launch), record.start_ns, record.end_ns, record.bytes}) {
    text += " " + std::to_string(number);
  }
  return text;
}

inline void expect_same_records(const DeviceTrace& expected, const DeviceTrace& found) {
  const auto here = named_records(expected);
  const auto there = named_records(found);
  ASSERT_EQ(here.size(), there.size());
  int shown = 0;
  for (std::size_t i = 0; i < here.size(); ++i) {
    if (here[i] == there[i]) continue;
    ADD_FAILURE() << "the trace:     " << text_of(here[i]) << "\nthe collector: " << text_of(there[i]);
    if (++shown == 3) break;
  }
}

// The report of the record with that device's part.
inline Report report_of(RunRecord observed, DeviceTrace device) {
  observed.timed.at(0).device = std::make_shared<const DeviceTrace>(std::move(device));
  return make_report(std::make_shared<const ProfileData>(join(std::move(observed))), {});
}

// The notes of the collector's that an import has no reason for.
inline std::string take_notes(DeviceTrace& trace) {
  std::string text;
  for (const auto& note : std::exchange(trace.notes, {})) text += note.text + "\n";
  return text;
}

// The collector's trace of what was recorded is the import's, and gives the same report, however CUPTI delivers it.
inline void expect_same_by(const std::vector<Delivery>& deliveries, const kineto::Trace& trace,
                           const RunRecord& observed) {
  ASSERT_TRUE(observed.timed.at(0).device);
  const DeviceTrace& imported = *observed.timed.at(0).device;
  const auto expected = report_of(observed, imported).to_json();
  for (const auto& delivery : deliveries) {
    auto device = collected(trace.host, imported, delivery);
    take_notes(device);
    expect_same_records(imported, device);
    EXPECT_EQ(device.start_ns, imported.start_ns);
    EXPECT_EQ(device.end_ns, imported.end_ns);
    EXPECT_EQ(device.dropped + device.incomplete + device.foreign, 0);
    device.others = imported.others;  // a trace has begun when the collector hears of a launch
    EXPECT_EQ(report_of(observed, std::move(device)).to_json(), expected);
  }
}

}  // namespace roofprof::testing
