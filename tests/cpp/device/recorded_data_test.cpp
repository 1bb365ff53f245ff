#include "device/replay/replay.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <locale>
#include <string>
#include <utility>
#include <vector>

#include "device/recorded_samples.h"

namespace roofprof {
namespace {

std::string message_of_reading(const std::string& text) {
  try {
    recorded_from_json(text);
  } catch (const RecordedDataError& error) {
    return error.what();
  }
  return "(it was read)";
}

// Texts and numbers of all kinds are JSON's: core/json has their tests.
TEST(RecordedData, ReadsBackAsItWas) {
  const RecordedData data = sample_data();
  EXPECT_EQ(recorded_from_json(to_json(data)), data);
}

TEST(RecordedData, SoDoesNothing) {
  EXPECT_EQ(recorded_from_json(to_json({})), RecordedData{});
  RecordedData data;
  data.traces.resize(2);
  data.counters.resize(3);
  EXPECT_EQ(recorded_from_json(to_json(data)), data);
}

// A program may have set a locale that puts dots between thousands.
TEST(RecordedData, IsTheSameInEveryLocale) {
  struct Dots : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const RecordedData data = sample_data();
  const std::string expected = to_json(data);
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Dots));
  const std::string dotted = to_json(data);
  const RecordedData read = recorded_from_json(expected);
  std::locale::global(before);
  EXPECT_EQ(dotted, expected);
  EXPECT_EQ(read, data);
}

// Written by hand from the header's description of the format, not by the writer.
TEST(RecordedData, AHandMadeFileIsReadAsDescribed) {
  const RecordedData data = read_recorded_file(std::string(ROOFPROF_TEST_DATA) + "/data/device/hand_made.json");
  ASSERT_EQ(data.traces.size(), 1U);
  ASSERT_EQ(data.counters.size(), 1U);
  const DeviceTrace& trace = data.traces[0];
  EXPECT_EQ(trace.start_ns, 1000000);
  EXPECT_EQ(trace.end_ns, 1010000);
  EXPECT_EQ(trace.dropped, 1);
  EXPECT_EQ(trace.incomplete, 2);
  EXPECT_EQ(trace.foreign, 3);
  EXPECT_EQ(trace.notes,
            (std::vector<Note>{make_note("graph-launches", "made by hand"), make_note("replayed", "two\nlines")}));
  EXPECT_EQ(trace.names, (std::vector<std::string>{"void axpy<float>(float*, float*, int)",
                                                   "[CUDA memcpy Host-to-Device]", "[CUDA memset]"}));
  ASSERT_EQ(trace.records.size(), 3U);
  const KernelRecord kernel{.kind = KernelKind::kernel,
                            .from = Memory::unknown,
                            .to = Memory::unknown,
                            .name = 0,
                            .device = 0,
                            .to_device = 0,
                            .stream = 7,
                            .correlation = 12,
                            .graph_node = 99,
                            .launch = 3,
                            .start_ns = 1001000,
                            .end_ns = 1004500,
                            .grid = {1024, 1, 1},
                            .block = {256, 1, 1},
                            .bytes = 0};
  EXPECT_EQ(trace.records[0], kernel);
  const KernelRecord& copy = trace.records[1];
  EXPECT_EQ(copy.kind, KernelKind::copy);
  EXPECT_EQ(copy.from, Memory::pinned);
  EXPECT_EQ(copy.to, Memory::device);
  EXPECT_EQ(copy.bytes, 4194304);
  EXPECT_EQ(trace.records[2].kind, KernelKind::fill);
  EXPECT_EQ(trace.records[2].device, 1U);

  const CounterTrace& counters = data.counters[0];
  EXPECT_EQ(counters.chip, "GH100");
  EXPECT_EQ(counters.ranges, CounterRanges::modules);
  EXPECT_EQ(counters.dropped, 4);
  EXPECT_EQ(counters.passes, 2);
  ASSERT_EQ(counters.sources.size(), 2U);
  EXPECT_EQ(counters.sources[0], (CounterSource{Counter::dram_bytes,
                                                {"dram__bytes_read.sum", "dram__bytes_write.sum"},
                                                "dram__bytes_read.sum + dram__bytes_write.sum",
                                                ""}));
  EXPECT_EQ(counters.sources[1], (CounterSource{Counter::tensor_fp4_flops, {}, "", "this chip has no such unit"}));
  ASSERT_EQ(counters.records.size(), 2U);
  EXPECT_EQ(counters.records[0].range, 3U);
  EXPECT_EQ(counters.records[0].values[static_cast<std::size_t>(Counter::dram_bytes)], 8388608.0);
  EXPECT_EQ(counters.records[0].values[static_cast<std::size_t>(Counter::time_ns)], 3500.25);
  EXPECT_FALSE(counters.records[0].values[static_cast<std::size_t>(Counter::l2_bytes)].has_value());
  EXPECT_EQ(counters.records[1].values, CounterValues{});
}

TEST(RecordedData, WhatIsNoDeviceDataIsRefusedInASentence) {
  const std::string columns =
      R"("columns": ["kind", "name", "device", "to_device", "stream", "correlation", "graph_node", "launch", )"
      R"("start_ns", "end_ns", "grid", "block", "from", "to", "bytes"])";
  const auto file_of = [](const std::string& traces, const std::string& counters) {
    return "{\"roofprof_device_data\": 2,\n\"traces\": [" + traces + "],\n\"counters\": [" + counters + "]}";
  };
  const auto trace_of = [&](const std::string& record, const std::string& more = "") {
    return file_of("{" + more + "\"names\": [\"k\"], \"records\": {" + columns + ", \"rows\": [" + record + "]}}", "");
  };
  const auto record_of = [](const std::string& kind, const std::string& name, const std::string& end,
                            const std::string& bytes) {
    return "[\"" + kind + "\", " + name + ", 0, 0, 7, 1, 0, 0, 10, " + end +
           ", [1, 1, 1], [1, 1, 1], \"unknown\", \"unknown\"" + bytes + "]";
  };
  EXPECT_EQ(message_of_reading(trace_of(record_of("kernel", "0", "20", ", 0"))), "(it was read)");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "it is not JSON (line 1, column 1: the text ends where a value is expected)"},
      {"roofprof-device-data 1\n", "it is not JSON (line 1, column 1: a value is expected here)"},
      {"[]", "its outermost value is not an object"},
      {"{}", "it lacks the key 'roofprof_device_data'"},
      {"{\"roofprof_device_data\": 3}",
       "it is of version 3, and this roofprof reads version 2: read it with the roofprof that wrote it, or record "
       "it again"},
      {"{\"roofprof_device_data\": 2, \"traces\": []}", "it lacks the key 'counters'"},
      {"{\"roofprof_device_data\": 2, \"traces\": [{\"names\": []}], \"counters\": []}",
       "it lacks the key 'traces[0].records'"},
      {"{\"roofprof_device_data\": 2,\n\"traces\": [",
       "it is not JSON (line 2, column 12: the text ends where a value is expected)"},
      {file_of("", "") + "{}", "it is not JSON (line 3, column 16: more text follows the outermost value)"},
      {trace_of(record_of("kernel", "1", "20", ", 0")),
       "traces[0].records[0] has a name that is not in the trace's list"},
      {trace_of(record_of("kernel", "0", "9", ", 0")), "traces[0].records[0] ends before it starts"},
      {trace_of(record_of("kernel", "0", "20", "")), "'traces[0].records.rows[0]' is shorter than 'columns'"},
      {trace_of(record_of("kernel", "0", "20", ", 0, 5")), "'traces[0].records.rows[0][15]' is longer than 'columns'"},
      {trace_of(record_of("kernel", "0", "99999999999999999999", ", 0")),
       "'traces[0].records.rows[0][9]' is 99999999999999999999, which is out of range"},
      {trace_of(record_of("kernel", "-1", "20", ", 0")),
       "'traces[0].records.rows[0][1]' has the wrong type: it should be an integer"},
      {trace_of(record_of("kernel", "0", "20", ", -4")), "traces[0].records[0] has a negative number of bytes"},
      {trace_of(record_of("shader", "0", "20", ", 0")), "'traces[0].records.rows[0][0]' cannot be 'shader'"},
      {trace_of("", "\"start_ns\": 20, \"end_ns\": 10, "), "traces[0] ends before it starts"},
      {trace_of("", "\"dropped\": -1, "), "traces[0] lost a negative number of records"},
      {trace_of("", "\"notes\": [3], "), "'traces[0].notes[0]' is not an object"},
      {trace_of("", R"("notes": [{"level": "info", "code": "nonesuch", "where": [], "text": "", "count": 1}], )"),
       "traces[0] has a note with the code 'nonesuch', which no note has"},
      {file_of("", R"({"ranges": "streams", "records": []})"), "'counters[0].ranges' cannot be 'streams'"},
      {file_of("", R"({"ranges": "kernels", "passes": -1, "records": []})"),
       "counters[0] has a negative number of dropped ranges or passes"},
      {file_of("", R"({"ranges": "kernels", "records": [{"range": 0, "values": {"dream_bytes": 1}}]})"),
       "'counters[0].records[0].values.dream_bytes' is unknown: there is no counter 'dream_bytes'"},
      {file_of("", R"({"ranges": "kernels", "records": [{"range": 0, "values": {"dram_bytes": nan}}]})"),
       "it is not JSON (line 3, column 86: a value is expected here)"},
  };
  for (const auto& [text, problem] : cases) {
    EXPECT_EQ(message_of_reading(text), "the text is no recorded device data: " + problem) << text;
  }
}

TEST(RecordedData, WhatTheReaderRefusesIsNotWritten) {
  const auto written_with = [](auto&& change) {
    RecordedData data = sample_data();
    change(data);
    return [data] { static_cast<void>(to_json(data)); };
  };
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].records[0].name = 999; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].records[0].end_ns = 1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].records[0].bytes = -1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].end_ns = 1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].dropped = -1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.counters[0].passes = -1; })(), std::invalid_argument);
}

TEST(RecordedData, FilesAreWrittenAndRead) {
  const std::string path = ::testing::TempDir() + "/recorded_data_test.json";
  write_recorded_file(sample_data(), path);
  EXPECT_EQ(read_recorded_file(path), sample_data());
  std::filesystem::remove(path);
  EXPECT_THROW(read_recorded_file(path), RecordedDataError);
  EXPECT_THROW(write_recorded_file(sample_data(), ::testing::TempDir() + "/no/such/folder/data.json"),
               RecordedDataError);
}

}  // namespace
}  // namespace roofprof
