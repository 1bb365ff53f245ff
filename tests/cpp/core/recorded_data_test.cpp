#include "core/device/recorded_data.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <locale>
#include <sstream>

#include "core/recorded_samples.h"

namespace roofprof {
namespace {

std::string message_of_reading(const std::string& text) {
  try {
    parsed(text);
  } catch (const RecordedDataError& error) {
    return error.what();
  }
  return "(it was read)";
}

// The file's heading, what is given, and the end for that many parts.
std::string file_of(const std::string& body, int parts) {
  return "roofprof-device-data 1\n" + body + "complete " + std::to_string(parts) + "\n";
}

TEST(RecordedData, ReadsBackAsItWas) {
  const RecordedData data = sample_data();
  EXPECT_EQ(parsed(written(data)), data);
}

TEST(RecordedData, SoDoesNothing) {
  EXPECT_EQ(parsed(written({})), RecordedData{});
  RecordedData data;
  data.traces.resize(2);
  data.counters.resize(3);
  EXPECT_EQ(parsed(written(data)), data);
}

TEST(RecordedData, AnyTextComesBack) {
  std::string every;
  for (int c = 0; c < 256; ++c) every += static_cast<char>(c);
  RecordedData data;
  DeviceTrace& trace = data.traces.emplace_back();
  trace.names = {"", " ", "  leading", "trailing ", "two\nlines\r\n", "back\\slash\\n", "# no comment", every};
  trace.notes = trace.names;
  CounterTrace& counters = data.counters.emplace_back();
  counters.chip = every;
  counters.sources.push_back({Counter::l2_bytes, {"", every}, "a * b\n", "# "});
  EXPECT_EQ(parsed(written(data)), data);
}

TEST(RecordedData, TheLargestNumbersComeBack) {
  constexpr auto kSmall = std::numeric_limits<std::int64_t>::min();
  constexpr auto kLarge = std::numeric_limits<std::int64_t>::max();
  constexpr auto kIds = std::numeric_limits<std::uint64_t>::max();
  constexpr auto kInts = std::numeric_limits<std::uint32_t>::max();
  constexpr auto kSizes = std::numeric_limits<std::int32_t>::max();
  RecordedData data;
  DeviceTrace& trace = data.traces.emplace_back();
  trace.names = {"k"};
  trace.start_ns = kSmall;
  trace.end_ns = kLarge;
  trace.dropped = trace.incomplete = trace.foreign = kLarge;
  trace.records.push_back({KernelKind::copy,
                           Memory::managed,
                           Memory::pageable,
                           0,
                           kInts,
                           kInts,
                           kInts,
                           kIds,
                           kIds,
                           kIds,
                           kSmall,
                           kLarge,
                           {kSizes, kSizes, kSizes},
                           {kSizes, kSizes, kSizes},
                           kLarge});
  CounterTrace& counters = data.counters.emplace_back();
  counters.dropped = counters.passes = kLarge;
  CounterRecord& record = counters.records.emplace_back();
  record.range = kIds;
  using Double = std::numeric_limits<double>;
  const std::array values = {Double::max(), Double::lowest(), Double::min(), Double::denorm_min(), 0.1, 1.0 / 3, 0.0};
  for (std::size_t i = 0; i < values.size(); ++i) record.values.at(i) = values.at(i);
  EXPECT_EQ(parsed(written(data)), data);
}

TEST(RecordedData, WhatIsNotFiniteIsUnknown) {
  RecordedData data;
  CounterRecord& record = data.counters.emplace_back().records.emplace_back();
  record.values[0] = std::numeric_limits<double>::quiet_NaN();
  record.values[1] = std::numeric_limits<double>::infinity();
  record.values[2] = 5.0;
  const CounterValues read = parsed(written(data)).counters.at(0).records.at(0).values;
  EXPECT_FALSE(read[0].has_value());
  EXPECT_FALSE(read[1].has_value());
  EXPECT_EQ(read[2], 5.0);
}

// A program may have set a locale that puts dots between thousands.
TEST(RecordedData, IsTheSameInEveryLocale) {
  struct Dots : std::numpunct<char> {
    char do_thousands_sep() const override { return '.'; }
    char do_decimal_point() const override { return ','; }
    std::string do_grouping() const override { return "\3"; }
  };
  const RecordedData data = sample_data();
  const std::string expected = written(data);
  const std::locale dotted(std::locale::classic(), new Dots);
  std::ostringstream to;
  to.imbue(dotted);
  write_recorded(data, to);
  EXPECT_EQ(to.str(), expected);
  EXPECT_EQ(to.getloc(), dotted);
}

// Written by hand from the header's description of the format, not by the writer.
TEST(RecordedData, AHandMadeFileIsReadAsDescribed) {
  const RecordedData data = read_recorded_file(std::string(ROOFPROF_TEST_DATA) + "/data/device/hand_made.txt");
  ASSERT_EQ(data.traces.size(), 1U);
  ASSERT_EQ(data.counters.size(), 1U);
  const DeviceTrace& trace = data.traces[0];
  EXPECT_EQ(trace.start_ns, 1000000);
  EXPECT_EQ(trace.end_ns, 1010000);
  EXPECT_EQ(trace.dropped, 1);
  EXPECT_EQ(trace.incomplete, 2);
  EXPECT_EQ(trace.foreign, 3);
  EXPECT_EQ(trace.notes, (std::vector<std::string>{"made by hand", "two\nlines"}));
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

TEST(RecordedData, SaysWhichLineIsWrongAndWhy) {
  const std::string names = "trace\nname k\n";
  const std::string good = "record kernel 0 0 0 7 1 0 0 10 20 1 1 1 1 1 1 unknown unknown 0\n";
  EXPECT_EQ(message_of_reading(file_of(names + good + "end 1\n", 1)), "(it was read)");
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "line 1 of the device data does not begin with roofprof-device-data: this is no recorded device data"},
      {"{\"a\": 1}\n",
       "line 1 of the device data does not begin with roofprof-device-data: this is no recorded device data"},
      {"roofprof-device-data 2\ncomplete 0\n",
       "line 1 of the device data is of version 2, and this roofprof reads version 1: read it with the roofprof that "
       "wrote it, or record anew"},
      {"roofprof-device-data 1\n",
       "line 2 of the device data is missing: the file was cut off, or whoever wrote it did not end"},
      {"roofprof-device-data 1\ntrace\n",
       "line 3 of the device data is missing: the file was cut off inside of a trace"},
      {file_of("trace\nend 0\n", 2), "line 4 of the device data counts other records than the 1 that stand before it"},
      {file_of("trace\nend 1\n", 1), "line 3 of the device data counts other records than the 0 that stand before it"},
      {file_of("", 0) + "trace\n", "line 3 of the device data stands behind the line that says `complete`"},
      {file_of("tracks\n", 0),
       "line 2 of the device data begins with 'tracks' where trace, counters or complete should stand"},
      {file_of("trace\nname k\nkernel 0\nend 0\n", 1),
       "line 4 of the device data begins with 'kernel', which is no line of a trace"},
      {file_of("trace\n" + good + "end 1\n", 1),
       "line 3 of the device data names a name that does not stand before it"},
      {file_of(names + "record kernel 0 0 0 7 1 0 0 20 10 1 1 1 1 1 1 unknown unknown 0\nend 1\n", 1),
       "line 4 of the device data ends before it starts"},
      {file_of(names + "record kernel 0 0 0 7 1 0 0 10 20 1 1 1 1 1 1 unknown unknown\nend 1\n", 1),
       "line 4 of the device data ends where bytes should stand"},
      {file_of(names + "record kernel 0 0 0 7 1 0 0 10 20 1 1 1 1 1 1 unknown unknown 0 5\nend 1\n", 1),
       "line 4 of the device data goes on with '5' where it should end"},
      {file_of(names + "record kernel 0 0 0 7 1 0 0 10 99999999999999999999 1 1 1 1 1 1 unknown unknown 0\nend 1\n", 1),
       "line 4 of the device data has '99999999999999999999' where an end should stand"},
      {file_of(names + "record kernel -1 0 0 7 1 0 0 10 20 1 1 1 1 1 1 unknown unknown 0\nend 1\n", 1),
       "line 4 of the device data has '-1' where a name's number should stand"},
      {file_of(names + "record kernel 0 0 0 7 1 0 0 10 20 1 1 1 1 1 1 unknown unknown -4\nend 1\n", 1),
       "line 4 of the device data has less than none where bytes should stand"},
      {file_of(names + "record shader 0 0 0 7 1 0 0 10 20 1 1 1 1 1 1 unknown unknown 0\nend 1\n", 1),
       "line 4 of the device data has 'shader' where a kind should stand"},
      {file_of("trace\nnote a\\tb\nend 0\n", 1),
       "line 3 of the device data has a backslash that is followed by none of \\, n and r"},
      {file_of("trace\ntime 20 10\nend 0\n", 1), "line 3 of the device data ends before it starts"},
      {file_of("counters\nrange 0 dram_bytes=nan\nend 1\n", 1),
       "line 3 of the device data has 'nan' where a counter's value should stand"},
      {file_of("counters\nrange 0 dram_bytes\nend 1\n", 1),
       "line 3 of the device data has '' where a counter's value should stand"},
      {file_of("counters\nrange 0 dream_bytes=1\nend 1\n", 1),
       "line 3 of the device data has 'dream_bytes' where a counter should stand"},
      {file_of("counters\nformula x\nend 0\n", 1), "line 3 of the device data stands before any source"},
      {file_of("counters\nranges streams\nend 0\n", 1),
       "line 3 of the device data has 'streams' where kernels or modules should stand"},
  };
  for (const auto& [text, message] : cases) EXPECT_EQ(message_of_reading(text), message) << text;
}

TEST(RecordedData, WhatTheReaderRefusesIsNotWritten) {
  const auto written_with = [](auto&& change) {
    RecordedData data = sample_data();
    change(data);
    return [data] { written(data); };
  };
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].records[0].name = 999; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].records[0].end_ns = 1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].records[0].bytes = -1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].end_ns = 1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.traces[0].dropped = -1; })(), std::invalid_argument);
  EXPECT_THROW(written_with([](RecordedData& d) { d.counters[0].passes = -1; })(), std::invalid_argument);
}

TEST(RecordedData, FilesAreWrittenAndRead) {
  const std::string path = ::testing::TempDir() + "/recorded_data_test.txt";
  write_recorded_file(sample_data(), path);
  EXPECT_EQ(read_recorded_file(path), sample_data());
  std::filesystem::remove(path);
  EXPECT_THROW(read_recorded_file(path), RecordedDataError);
  EXPECT_THROW(write_recorded_file(sample_data(), ::testing::TempDir() + "/no/such/folder/data.txt"),
               RecordedDataError);
}

}  // namespace
}  // namespace roofprof
