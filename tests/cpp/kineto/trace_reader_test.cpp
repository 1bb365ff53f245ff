// The reader of traces: the same trace whatever the pieces, the order and the form of its text, and one sentence where
// it is none.

#include "kineto/trace_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kineto/trace_builder.h"

namespace roofprof::kineto {
namespace {

using testing::TraceText;

Trace read_in(std::string_view text, std::size_t piece) {
  TraceReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece) reader.feed(text.substr(at, piece));
  return reader.finish();
}
Trace read(std::string_view text) { return read_in(text, std::max<std::size_t>(text.size(), 1)); }

std::string refusal(std::string_view text, std::size_t piece = std::string::npos) {
  try {
    read_in(text, std::min(piece, std::max<std::size_t>(text.size(), 1)));
  } catch (const TraceError& problem) {
    return problem.what();
  }
  return "";
}

// All that is in a trace, as text.
std::string shown(const Trace& trace) {
  std::ostringstream out;
  for (const auto& name : trace.names) out << name << '\n';
  for (const auto& e : trace.host) {
    out << e.begin_ns << ' ' << e.end_ns << ' ' << e.sequence << ' ' << e.correlation << ' ' << trace.names[e.name]
        << ' ' << e.thread << ' ' << e.call << ' ' << static_cast<int>(e.kind) << e.of_backward << '\n';
  }
  for (const auto& c : trace.calls) {
    out << c.op << c.described << c.sizes << c.types << c.strides << c.scalars << c.list_type << '\n';
  }
  for (const auto& name : trace.device.names) out << name << '\n';
  for (std::size_t i = 0; i < trace.device.records.size(); ++i) {
    const auto& r = trace.device.records[i];
    out << static_cast<int>(r.kind) << static_cast<int>(r.from) << static_cast<int>(r.to) << ' ' << r.name << ' '
        << r.device << ' ' << r.stream << ' ' << r.correlation << ' ' << r.start_ns << ' ' << r.end_ns << ' '
        << r.grid[0] << ' ' << r.block[0] << ' ' << r.bytes << ' ' << trace.external_ids[i] << '\n';
  }
  for (const auto& d : trace.devices) out << d.name << d.compute_capability << '\n';
  out << trace.recorded_by << trace.rocm << trace.rank << trace.events << ' ' << trace.damaged << ' '
      << trace.python_frames << trace.counter_ranges;
  return out.str();
}

TraceText everything() {
  TraceText text;
  text.module("Net_0", 0, 100).op("aten::mm", 10, 20, R"("External id": 5, "Sequence number": 3)").launch(9, 12);
  text.range("data \\\"{[\\\\", 50, 5).copy("Memcpy HtoD (Pinned -> Device)", 10, 60, 3, 4096);
  text.copy("Memset (Device)", 11, 64, 2, 64).kernel("void gemm<float, 4>(float*)", 9, 40, 30);
  text.node("AddmmBackward0", 3, 110, 20).event("python_function", "torch/utils/checkpoint.py(1): recompute_fn", 1, 2);
  return text;
}

// As Kineto's CuptiActivity.cpp and CuptiStrings.cpp write them.
TEST(TraceReader, EndsOfCopiesAndFills) {
  const std::vector<std::pair<std::string, std::pair<Memory, Memory>>> copies = {
      {"Memcpy HtoD (Pageable -> Device)", {Memory::pageable, Memory::device}},
      {"Memcpy DtoA (Device Static -> Array)", {Memory::device, Memory::device}},
      {"Memcpy DtoH (Managed Static -> Unknown)", {Memory::managed, Memory::unknown}},
      {"Memcpy HtoD (Host -> Device)", {Memory::unknown, Memory::device}},  // ROCm's
      {"Memset (Device)", {Memory::unknown, Memory::device}},
      {"Memset", {Memory::unknown, Memory::unknown}},
      {"Memcpy )( -> ", {Memory::unknown, Memory::unknown}},
      {"Memcpy (to -> )", {Memory::unknown, Memory::unknown}}};
  for (const auto& [name, ends] : copies) {
    const auto record = TraceText().copy(name, 1, 10, 1, 8).trace().device.records.at(0);
    EXPECT_EQ(std::pair(record.from, record.to), ends) << name;
  }
}

TEST(TraceReader, CopiesBetweenDevicesAreWhereTheyComeFrom) {
  const auto trace = TraceText()
                         .event("gpu_memcpy", "Memcpy PtoP (Device -> Device)", 0, 5,
                                R"("fromDevice": 2, "inDevice": 2, "toDevice": 5, "stream": 7, "bytes": 100)")
                         .trace();
  EXPECT_EQ(trace.device.records.at(0).device, 2U);
  EXPECT_EQ(trace.device.records.at(0).to_device, 5U);
}

TEST(TraceReader, PiecesOfAnySizeGiveTheSameTrace) {
  const std::string texts[] = {everything().text(), "\xEF\xBB\xBF \n" + everything().text() + "\n "};
  const auto whole = shown(read(texts[0]));
  for (const auto& text : texts) {
    for (const std::size_t piece : {1, 2, 3, 7, 64, 1000}) EXPECT_EQ(shown(read_in(text, piece)), whole) << piece;
  }
}

TEST(TraceReader, KeepsWhatItReads) {
  const auto trace = everything().trace();
  ASSERT_EQ(trace.host.size(), 6);
  ASSERT_EQ(trace.device.records.size(), 3);
  EXPECT_EQ(std::pair(trace.events, trace.damaged), std::pair(std::int64_t{9}, std::int64_t{0}));
  const auto& op = trace.host[1];
  EXPECT_EQ(op.begin_ns, (testing::kTraceBeginUs + 10) * 1000);
  EXPECT_EQ(op.end_ns, (testing::kTraceBeginUs + 30) * 1000);
  EXPECT_EQ(op.correlation, 5);
  EXPECT_EQ(op.sequence, 3);
  EXPECT_EQ(trace.names[trace.host[0].name], "Net_0");
  EXPECT_EQ(trace.names[trace.host[3].name], "data \"{[\\");
  EXPECT_TRUE(trace.host[4].of_backward);
  EXPECT_EQ(trace.host[5].kind, HostKind::recompute);
  const auto& copy = trace.device.records[0];
  EXPECT_EQ(copy.kind, KernelKind::copy);
  EXPECT_EQ(copy.bytes, 4096);
  EXPECT_EQ(trace.device.records[1].kind, KernelKind::fill);
  EXPECT_EQ(trace.devices.at(0).compute_capability, "9.0");
}

TEST(TraceReader, ReadsTheFormatOf2021) {
  const auto trace = read(R"json({"traceEvents":[
    {"ph":"X","cat":"Operator","name":"aten::mm","pid":1,"tid":"101","ts":10,"dur":5,
     "args":{"Device":1,"External id":4,"Input dims":[[2,2],[2,2]],"Input type":["float","float"]}},
    {"ph":"X","cat":"Operator","name":"MulBackward0","pid":1,"tid":"101","ts":20,"dur":5,"args":{}},
    {"ph":"X","cat":"Operator","name":"ProfilerStep#3","pid":1,"tid":"101","ts":1,"dur":50,"args":{}},
    {"ph":"X","cat":"Operator","name":"Optimizer.step#SGD.step","pid":1,"tid":"101","ts":40,"dur":5},
    {"ph":"X","cat":"Runtime","name":"cudaLaunchKernel","pid":1,"tid":"101","ts":11,"dur":1,
     "args":{"correlation":77,"external id":"4"}},
    {"ph":"X","cat":"Kernel","name":"gemm","pid":0,"tid":"stream 7","ts":12,"dur":9,
     "args":{"device":0,"stream":7,"correlation":77,"external id":"4","grid":[1,2,3],"block":[4,5,6]}},
    {"ph":"X","cat":"Memcpy","name":"Memcpy DtoH (Device -> Pageable)","ts":30,"dur":2,"args":{"bytes":8}},
    {"ph":"X","cat":"Memset","name":"Memset (Device)","ts":31,"dur":2,"args":{"bytes":16}},
    {"ph":"M","name":"process_name","args":{"name":"python"}},
    {"ph":"s","cat":"ac2g","id":77,"ts":11,"name":"ac2g"}]})json");
  ASSERT_EQ(trace.host.size(), 5);
  EXPECT_EQ(trace.calls[at(trace.host[0].call)].sizes, "[[2,2],[2,2]]");
  EXPECT_EQ(trace.host[1].kind, HostKind::op);
  EXPECT_EQ(trace.host[3].kind, HostKind::range);
  EXPECT_EQ(trace.host[4].correlation, 77);
  ASSERT_EQ(trace.device.records.size(), 3);
  EXPECT_EQ(trace.external_ids[0], 4);
  EXPECT_EQ(trace.device.records[0].grid, (std::array<std::int32_t, 3>{1, 2, 3}));
  EXPECT_EQ(trace.device.records[2].bytes, 16);
}

TEST(TraceReader, CopiesOfOneTraceAreNotAdded) {
  const std::string op = R"({"ph":"X","cat":"cpu_op","name":"aten::mm","tid":1,"ts":1,"dur":2})";
  const std::string again = R"({"ph":"X","cat":"cpu_op","name":"aten::mm","tid":1,"ts":4,"dur":2})";
  const std::string kernel = R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":{"stream":7}})";
  const std::string empty = R"({"ph":"X","cat":"cpu_op","name":"aten::view","tid":1,"ts":5,"dur":0})";
  const auto of = [](std::initializer_list<std::string> events) {
    std::string text;
    for (const auto& event : events) text += (text.empty() ? "[" : ",") + event;
    return text + "]";
  };
  for (const auto& text : {of({op, op}), of({op, again, op, again}), of({op, op, again, again, again}),
                           of({kernel, op, kernel, op}), of({kernel, kernel})}) {
    EXPECT_NE(refusal(text).find("twice"), std::string::npos) << text;
  }
  for (const auto& text : {of({op}), of({op, again}), of({op, op, again}), of({op, again, op}), of({kernel}),
                           of({op, kernel, kernel, again}), of({empty, empty})}) {
    EXPECT_EQ(refusal(text), "") << text;
  }
}

std::string name_read(const std::string& quoted) {
  return read(R"([{"ph":"X","cat":"user_annotation","name":)" + quoted + R"(,"ts":1,"dur":2}])").names.at(0);
}

TEST(TraceReader, NamesBecomePrintableText) {
  EXPECT_EQ(name_read(R"("a\"b\\c\/d")"), "a\"b\\c/d");
  EXPECT_EQ(name_read(R"("\u00e9\ud83d\ude00")"), "\u00e9\U0001F600");
  EXPECT_EQ(name_read(R"("\ud83d!")"), "\uFFFD!");
  EXPECT_EQ(name_read(R"("\u001b[31m\n\u0000")"), " [31m  ");
  EXPECT_EQ(name_read("\"\x1b[2J\x01\t\xff\xc3(\""), " [2J  \uFFFD\uFFFD(");
  EXPECT_EQ(name_read(R"("C:\users\x")"), "C:\\users\\x");
}

// An event without a time or a name that can be used is counted, and left out.
TEST(TraceReader, LeavesDamagedEventsOut) {
  const std::string good = R"([{"ph":"X","cat":"cpu_op","name":"aten::mm","ts":1,"dur":2},)";
  const auto read_with = [&](const std::string& rest) {
    return read(good + R"({"ph":"X","cat":"cpu_op",)" + rest + "}]");
  };
  for (const auto* times : {R"("dur":2)", R"("ts":"soon","dur":2)", R"("ts":NaN,"dur":2)", R"("ts":null,"dur":2)",
                            R"("ts":1,"dur":-0.001)", R"("ts":1e300,"dur":2)", R"("ts":1,"dur":9999999999999999)"}) {
    const auto trace = read_with(R"("name":"a::b",)" + std::string(times));
    EXPECT_EQ(std::pair(trace.host.size(), trace.damaged), std::pair(std::size_t{1}, std::int64_t{1})) << times;
  }
  EXPECT_EQ(read_with(R"("name":17,"ts":1,"dur":2)").damaged, 1);
  for (const auto* times : {R"("ts":-5,"dur":2)", R"("ts":"1.5","dur":"2")", R"("ts":1.5e0,"dur":2E1)", R"("ts":1)"}) {
    const auto trace = read_with(R"("name":"a::b",)" + std::string(times));
    EXPECT_EQ(std::pair(trace.host.size(), trace.damaged), std::pair(std::size_t{2}, std::int64_t{0})) << times;
  }
}

TEST(TraceReader, ArgumentsOfOtherTypesAreNotBelieved) {
  const auto trace =
      read(R"([{"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":{"device":-3,"stream":"x","correlation":1e99,)"
           R"("grid":{"a":1},"block":[99999999999999999999,-1,"7"],"bytes":-4,"External id":[]}},)"
           R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":[1,2]},)"
           R"({"ph":"X","cat":"kernel","name":"k","ts":1,"dur":2,"args":"correlation"}])");
  ASSERT_EQ(trace.device.records.size(), 3);
  EXPECT_EQ(trace.device.records[0].device, 0);
  EXPECT_EQ(trace.device.records[0].correlation, 0);
  EXPECT_EQ(trace.device.records[0].block, (std::array<std::int32_t, 3>{0, 0, 7}));
  EXPECT_EQ(trace.device.records[0].bytes, 0);
}

// Cut off anywhere, it is no trace, and the sentence says so.
TEST(TraceReader, CutOffAnywhereIsOneSentence) {
  const auto text = everything().text();
  EXPECT_EQ(refusal(text), "");
  for (std::size_t length = 0; length < text.size(); ++length) {
    const auto problem = refusal(std::string_view(text).substr(0, length));
    ASSERT_TRUE(problem.starts_with(length == 0 ? "it is empty" : "it is cut off")) << length << ": " << problem;
  }
}

TEST(TraceReader, SaysWhatElseAFileIs) {
  using std::literals::operator""sv;
  const std::string archive = "trace.json" + std::string(247, '\0') + "ustar and so on";
  const std::string twice = everything().text() + everything().text();
  const std::pair<std::string_view, std::string_view> files[] = {
      {" \n\t ", "empty"},
      {"\xEF\xBB\xBF", "empty"},
      {"\x1f\x8b\x08\x00\x00\x00"sv, "gzip"},
      {"SQLite format 3\0 and so on"sv, "Nsight Systems"},
      {"NSYS-QDREP and so on", "Nsight Systems"},
      {"PK\x03\x04 and so on", "zip archive"},
      {"7z\xBC\xAF\x27\x1C and so on", "7z archive"},
      {"\x28\xB5\x2F\xFD and so on", "zstd"},
      {"\xFD\x37zXZ\0 and so on"sv, "xz"},
      {"BZh9 and so on", "bzip2"},
      {archive, "tar archive"},
      {"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "Git LFS"},
      {"<!DOCTYPE html><html></html>", "web page"},
      {"\xFF\xFE{\0\"\0a\0"sv, "UTF-16"},
      {"\xFE\xFF\0{\0\""sv, "UTF-16"},
      {"{\0\"\0a\0\"\0"sv, "UTF-16"},
      {"\0{\0\"\0a\0\""sv, "UTF-16"},
      {"{\0\0\0\"\0\0\0"sv, "UTF-32"},
      {"\0\0\xFE\xFF\0\0\0{"sv, "UTF-32"},
      {"{\"a\": 1}\n{\"a\": 2}\n", "several JSON documents"},
      {"hello", "not the JSON of a trace"},
      {R"({"traceEvents": null})", "no \"traceEvents\""},
      {R"({"a": {"traceEvents": []}})", "no \"traceEvents\""},
      {R"({"model": "Net", "schema_version": 5})", "report of roofprof"},
      {"[1, \"x\", null, [{}]]", "no event of torch.profiler's"},
      {R"({"traceEvents": [{"ph":"X","cat":"blink","name":"Paint","ts":1,"dur":1}]})", "no event of torch.profiler's"},
      {R"({"traceEvents": [], "traceEvents": []})", "two lists"},
      {twice, "more text"},
      {"[}", "not valid JSON"},
      {"{7: 1}", "not valid JSON"}};
  for (const auto& [text, words] : files) {
    for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, text.size() + 1}) {
      const auto problem = refusal(text, piece);
      EXPECT_NE(problem.find(words), std::string::npos) << text << ": " << problem;
      EXPECT_EQ(problem.find('\n'), std::string::npos);
    }
  }
}

// A value of 100,000 lists in each other is skipped.
TEST(TraceReader, DeepNestingTakesNoStack) {
  constexpr std::size_t kDepth = 100'000;
  const auto deep = std::string(kDepth, '[') + std::string(kDepth, ']');
  const auto trace = read(R"({"x":)" + deep + R"(,"traceEvents":[{"ph":"X","cat":"cpu_op","name":"a::b","ts":1,)" +
                          R"("dur":1,"args":{"Input Dims":)" + deep + R"(,"Input type":)" + deep + "}}]}");
  EXPECT_EQ(trace.host.size(), 1);
}

}  // namespace
}  // namespace roofprof::kineto
