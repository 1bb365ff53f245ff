// Device data that was damaged: each file is refused by a sentence, or is data that is fit for use. The same files at
// every run, so that what is found can be found again.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "device/recorded_samples.h"

namespace roofprof {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream from(text);
  for (std::string line; std::getline(from, line);) lines.push_back(line);
  return lines;
}

std::string joined(const std::vector<std::string>& parts, char between) {
  std::string text;
  for (const std::string& part : parts) text += part + between;
  return text;
}

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  std::string once(std::string text) {
    if (text.empty()) return "x";
    switch (below(9)) {
      case 0:
        return text.substr(0, below(text.size()));
      case 1:
        text[below(text.size())] ^= static_cast<char>(1U << below(8));
        return text;
      case 2:
        text[below(text.size())] = static_cast<char>(below(256));
        return text;
      case 3:
        text.erase(below(text.size()), 1 + below(20));
        return text;
      case 4:
        text.insert(below(text.size()), text.substr(below(text.size()), below(200)));
        return text;
      case 5:
        return of_lines(text, [&](auto& lines) { std::swap(lines[below(lines.size())], lines[below(lines.size())]); });
      case 6:
        return of_lines(text, [&](auto& lines) { lines.erase(lines.begin() + offset(lines.size())); });
      case 7:
        return of_lines(text, [&](auto& lines) {
          const std::string line = lines[below(lines.size())];
          lines.insert(lines.begin() + offset(lines.size()), line);
        });
      default:
        return of_lines(text, [&](auto& lines) { change_word(lines[below(lines.size())]); });
    }
  }

  std::size_t below(std::size_t limit) { return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random_); }

 private:
  std::ptrdiff_t offset(std::size_t limit) { return static_cast<std::ptrdiff_t>(below(limit)); }

  template <class Change>
  std::string of_lines(const std::string& text, Change&& change) {
    std::vector<std::string> lines = lines_of(text);
    if (lines.empty()) return "\n";
    change(lines);
    return joined(lines, '\n');
  }

  void change_word(std::string& line) {
    static const std::vector<std::string> kWords = {"-1",
                                                    "0",
                                                    "4294967295",
                                                    "4294967296",
                                                    "-9223372036854775808",
                                                    "9223372036854775808",
                                                    "18446744073709551616",
                                                    "1e999",
                                                    "-1e-999",
                                                    "0x10",
                                                    "+1",
                                                    "nan",
                                                    "inf",
                                                    "",
                                                    "1.5",
                                                    "null",
                                                    "[]",
                                                    "{},",
                                                    "\"kernel\",",
                                                    "\"time_ns\":",
                                                    "1,",
                                                    "-1,",
                                                    "\"\\ud800\"",
                                                    std::string(100'000, '9'),
                                                    std::string(1'000, '\\'),
                                                    std::string(1, '\0')};
    std::vector<std::string> words;
    std::istringstream from(line);
    for (std::string word; std::getline(from, word, ' ');) words.push_back(word);
    if (words.empty()) words.emplace_back();
    words[below(words.size())] = kWords[below(kWords.size())];
    line = joined(words, ' ');
    line.pop_back();
  }

  std::mt19937 random_;
};

void expect_consistent(const RecordedData& data) {
  for (const DeviceTrace& trace : data.traces) {
    EXPECT_TRUE(trace.end_ns == 0 || trace.start_ns <= trace.end_ns);
    EXPECT_GE(std::min({trace.dropped, trace.incomplete, trace.foreign}), 0);
    for (const KernelRecord& record : trace.records) {
      EXPECT_LT(record.name, trace.names.size());
      EXPECT_LE(record.start_ns, record.end_ns);
      EXPECT_GE(record.bytes, 0);
      EXPECT_LT(static_cast<std::size_t>(record.kind), kKernelKindNames.size());
      EXPECT_LT(static_cast<std::size_t>(record.from), kMemoryNames.size());
      EXPECT_LT(static_cast<std::size_t>(record.to), kMemoryNames.size());
    }
  }
  for (const CounterTrace& trace : data.counters) {
    EXPECT_GE(std::min(trace.dropped, trace.passes), 0);
    EXPECT_LT(static_cast<std::size_t>(trace.ranges), 2U);
    for (const CounterSource& source : trace.sources)
      EXPECT_LT(static_cast<std::size_t>(source.counter), kCounterCount);
    for (const CounterRecord& record : trace.records) {
      for (const auto& value : record.values) EXPECT_TRUE(!value || std::isfinite(*value));
    }
  }
}

// True where it was read.
bool read_or_refused(const std::string& text) {
  try {
    const RecordedData data = recorded_from_json(text);
    expect_consistent(data);
    EXPECT_EQ(recorded_from_json(to_json(data)), data);
    return true;
  } catch (const RecordedDataError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with("the text is no recorded device data: ")) << message;
    EXPECT_LT(message.size(), 300U) << message;
    EXPECT_TRUE(std::ranges::all_of(message, [](unsigned char c) { return c >= 0x20 && c < 0x7f; })) << message;
    return false;
  }
}

std::vector<std::string> valid_files() {
  std::ifstream file(std::string(ROOFPROF_TEST_DATA) + "/data/device/hand_made.json");
  std::ostringstream hand_made;
  hand_made << file.rdbuf();
  return {to_json(sample_data()), hand_made.str(), to_json({})};
}

TEST(RecordedFuzz, DamagedFilesAreRefusedOrFitForUse) {
  constexpr unsigned kRounds = 4'000;
  int read = 0;
  int refused = 0;
  for (const std::string& valid : valid_files()) {
    ASSERT_TRUE(read_or_refused(valid)) << valid;
    for (unsigned round = 0; round < kRounds; ++round) {
      Damage damage(round);
      std::string text = valid;
      for (std::size_t times = 1 + damage.below(4); times > 0; --times) text = damage.once(std::move(text));
      ++(read_or_refused(text) ? read : refused);
      if (HasFailure()) FAIL() << "round " << round << " of:\n" << text;
    }
  }
  // Both ways are walked: were all refused, or all read, there would be nothing in this test.
  EXPECT_GT(read, 300);
  EXPECT_GT(refused, 3'000);
}

TEST(RecordedFuzz, NoFileThatWasCutOffIsRead) {
  for (const std::string& valid : valid_files()) {
    // But for the last line's end, every byte is needed.
    for (std::size_t bytes = 0; bytes + 1 < valid.size(); ++bytes) {
      ASSERT_FALSE(read_or_refused(valid.substr(0, bytes))) << bytes;
    }
  }
}

}  // namespace
}  // namespace roofprof
