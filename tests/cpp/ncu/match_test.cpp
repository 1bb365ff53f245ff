// Kernels of ncu's found among those of a trace: by name, sizes and order.
#include "ncu/match.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

namespace roofprof::ncu {
namespace {

constexpr auto kDram = static_cast<std::size_t>(Counter::dram_bytes);

// Kernels by letter: each launch takes as many nanoseconds as its place.
DeviceTrace traced(const std::string& letters, std::uint32_t device = 0) {
  DeviceTrace trace;
  for (const char letter : std::string("abcdefghijklmnopqrstuvwxyz")) trace.names.push_back({letter});
  std::int64_t at = 1;
  for (const char letter : letters) {
    KernelRecord record;
    record.name = static_cast<std::uint32_t>(letter - 'a');
    record.correlation = trace.records.size() + 1;
    record.device = device;
    record.grid = {letter, 1, 1};
    record.block = {32, 1, 1};
    record.start_ns = at;
    record.end_ns = at += 10;
    trace.records.push_back(record);
  }
  return trace;
}

// The same, as ncu has them: the bytes of a launch are its place, from 1 on.
Output counted_by_ncu(const std::string& letters) {
  Output output;
  output.metrics = {"dram__bytes.sum"};
  for (const char letter : letters) {
    const auto known = std::ranges::find(output.names, std::string{letter});
    CountedKernel kernel;
    kernel.name = static_cast<std::uint32_t>(known - output.names.begin());
    if (known == output.names.end()) output.names.push_back({letter});
    kernel.grid = {letter, 1, 1};
    kernel.block = {32, 1, 1};
    kernel.blocks = letter;
    kernel.block_threads = 32;
    kernel.values = {static_cast<double>(output.kernels.size() + 1)};
    output.kernels.push_back(kernel);
  }
  return output;
}

// The place among ncu's launches, from 1 on, of each launch of the trace; 0: none.
std::vector<int> places(const Output& output, const DeviceTrace& trace, std::int64_t steps = 0) {
  const auto counters = counters_for(output, trace, "cuda:0", "8.0", steps);
  std::vector<int> found;
  for (std::size_t i = 0; i < counters.records.size(); ++i) {
    EXPECT_EQ(counters.records[i].range, i);
    found.push_back(static_cast<int>(counters.records[i].values[kDram].value_or(0)));
  }
  return found;
}
std::vector<int> places(const std::string& ncu, const std::string& trace, std::int64_t steps = 0) {
  return places(counted_by_ncu(ncu), traced(trace), steps);
}

TEST(NcuMatch, TheSameSequence) { EXPECT_EQ(places("abcab", "abcab"), (std::vector<int>{1, 2, 3, 4, 5})); }

TEST(NcuMatch, TheLongestStretchComesFirst) {
  // The first kernels of ncu's run look like the trace's, and the whole of it comes later.
  EXPECT_EQ(places("abxabcd", "abcd"), (std::vector<int>{4, 5, 6, 7}));
  EXPECT_EQ(places("abcd", "xabcdy"), (std::vector<int>{0, 1, 2, 3, 4, 0}));
  // Between two stretches another kernel ran.
  EXPECT_EQ(places("abcxdef", "abcydef"), (std::vector<int>{1, 2, 3, 0, 5, 6, 7}));
  // ncu counted some kernels alone.
  EXPECT_EQ(places("bdb", "abcdab"), (std::vector<int>{0, 1, 0, 2, 0, 3}));
}

TEST(NcuMatch, OrderIsKept) {
  EXPECT_EQ(places("abc", "cab"), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(places("", "ab").size(), 2U);
}

TEST(NcuMatch, FurtherStepsTakeTheCountersOfOne) {
  EXPECT_EQ(places("abc", "abcabcabc"), (std::vector<int>{1, 2, 3, 1, 2, 3, 1, 2, 3}));
  // A short stretch elsewhere may be other code.
  EXPECT_EQ(places("abcdefghij", "abcdefghijxab"), (std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 0, 0}));
}

TEST(NcuMatch, LayersOfOneStepAreNoFurtherSteps) {
  // Two layers with the same ten kernels, of which ncu counted the first one's.
  const std::string layer = "abcdefghij";
  EXPECT_EQ(std::ranges::count(places(layer, layer + layer, 1), 0), 10);
  EXPECT_EQ(std::ranges::count(places(layer, layer + layer, 2), 0), 0);
  // Without marks a stretch must be nearly all that ncu counted.
  EXPECT_EQ(std::ranges::count(places(layer + "xyz" + layer, layer + "xyz" + layer + layer), 0), 10);
}

TEST(NcuMatch, AnyTwoSequences) {
  std::mt19937 random(11);
  for (int i = 0; i < 500; ++i) {
    std::string ncu(random() % 40, 'a');
    std::string trace(random() % 40, 'a');
    for (auto* text : {&ncu, &trace}) {
      for (auto& letter : *text) letter = static_cast<char>('a' + random() % 4);
    }
    if (ncu.empty()) continue;
    const auto found = places(ncu, trace);
    ASSERT_EQ(found.size(), trace.size());
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (found[k] > 0) {
        EXPECT_EQ(ncu[static_cast<std::size_t>(found[k]) - 1], trace[k]);
      }
    }
    if (ncu == trace) {
      EXPECT_EQ(std::ranges::count(found, 0), 0);
    }
  }
}

TEST(NcuMatch, SizesCount) {
  auto output = counted_by_ncu("aba");
  output.kernels[0].grid[0] = 1;
  output.kernels[0].blocks = 1;
  EXPECT_EQ(places(output, traced("ba")), (std::vector<int>{2, 3}));
  EXPECT_EQ(places(output, traced("a")), (std::vector<int>{3}));
  // Where only their products are known, these are compared; where nothing is, names and order alone.
  for (auto& kernel : output.kernels) kernel.grid = kernel.block = {};
  EXPECT_EQ(places(output, traced("a")), (std::vector<int>{3}));
  for (auto& kernel : output.kernels) kernel.blocks = 0;
  EXPECT_EQ(places(output, traced("a")), (std::vector<int>{1}));
}

TEST(NcuMatch, DevicesAndProcesses) {
  auto output = counted_by_ncu("abab");
  for (std::size_t i = 0; i < 2; ++i) output.kernels[i].device = 1;
  EXPECT_EQ(places(output, traced("ab")), (std::vector<int>{3, 4}));
  EXPECT_EQ(places(output, traced("ab", 1)), (std::vector<int>{1, 2}));
  output = counted_by_ncu("axabc");
  for (std::size_t i = 2; i < 5; ++i) output.kernels[i].process = 1;
  EXPECT_EQ(places(output, traced("abc")), (std::vector<int>{3, 4, 5}));
}

TEST(NcuMatch, ManyKernelsInShortTime) {
  std::string ncu;
  std::string trace;
  std::mt19937 random(5);
  for (int i = 0; i < 100'000; ++i) ncu += static_cast<char>('a' + random() % 20);
  trace = ncu;
  for (std::size_t i = 0; i < trace.size(); i += 50) trace[i] = 'z';
  const auto found = places(ncu, trace);
  EXPECT_EQ(std::ranges::count(found, 0), 2000);
}

TEST(NcuMatch, LongSequencesWithoutAnyLongStretchEnd) {
  std::string ncu;
  std::string trace;
  for (int i = 0; i < 30'000; ++i) {
    ncu += i % 2 == 0 ? 'a' : 'b';
    trace += i % 3 == 0 ? 'a' : 'b';
  }
  EXPECT_EQ(places(ncu, trace).size(), trace.size());
}

std::string notes_of(const Output& output, const DeviceTrace& trace) {
  std::string text;
  for (const auto& note : counters_for(output, trace, "cuda:0", "", 0).notes)
    text += note.code + ": " + note.text + "\n";
  return text;
}

TEST(NcuMatch, NotesSayWhatWasFoundAndWhatWasNot) {
  const auto all = notes_of(counted_by_ncu("xab"), traced("ab"));
  EXPECT_NE(all.find("ncu-matched: 2 launches of the trace have the counters of 2 of the 3 launches"),
            std::string::npos);
  EXPECT_EQ(all.find("ncu-not-matched"), std::string::npos);
  const auto some = notes_of(counted_by_ncu("a"), traced("abb"));
  EXPECT_NE(some.find("ncu-not-matched: ncu counted no launch that is 2 of the trace's 3 launches of kernels, 67% of "
                      "their time: they have no counters: b"),
            std::string::npos)
      << some;
  EXPECT_EQ(notes_of(counted_by_ncu("x"), traced("a")).find("ncu-matched"), std::string::npos);
}

}  // namespace
}  // namespace roofprof::ncu
