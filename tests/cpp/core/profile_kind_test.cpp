// The kinds of profiles, and the words that stand for a prediction's options in JSON.

#include "core/profile_kind.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "core/json/members.h"

namespace roofprof {
namespace {

TEST(PredictedInWords, AreReadBackAsTheSameOptions) {
  Predicted options;
  EXPECT_EQ(words_of(options), "as it was counted");
  EXPECT_EQ(options_in_words(words_of(options)), options);

  options.precision = DType::bf16;
  options.batch = 8;
  options.mode = LaunchMode::compiled;
  options.bandwidth = 1.5;
  EXPECT_EQ(words_of(options), "in bf16, batch 8, compiled, with 1.5 x its bandwidth");
  EXPECT_EQ(options_in_words(words_of(options)), options);

  options.mode = LaunchMode::graph;
  options.host_seconds = 1.0 / 3;
  options.ranks = 8;
  options.parallel = Parallel::fsdp;
  EXPECT_EQ(options_in_words(words_of(options)), options) << words_of(options);

  options.counted_under_autocast = true;
  options.autocast = DType::fp16;
  for (const double factor : {1.0 / 3, 1e-9, 0.1 + 0.2, 12345678.0}) {
    options.peak = factor;
    EXPECT_EQ(options_in_words(words_of(options)), options) << words_of(options);
  }
}

TEST(PredictedInWords, OfOtherOptionsAreRefused) {
  for (const std::string words : {"", "in fp12", "batch x", "batch 8 ", "with 2 x its", "in fp16, ", "compiled,"}) {
    EXPECT_THROW(options_in_words(words), std::invalid_argument) << words;
  }
}

std::string kinds_written(const Profile& data) {
  JsonWriter json;
  write_value(json, data);
  const std::string text = json.take();
  JsonReader reader(text);
  Profile read;
  read_value(reader, read);
  EXPECT_EQ(read, data);
  return text;
}

TEST(Origin, IsReadAsItWasWritten) {
  Profile data;
  data.origin.part = Part{"inner within outer"};
  data.origin.imported = Imported{"torch.profiler"};
  data.origin.kind = Predicted{.batch = 3};
  EXPECT_NE(kinds_written(data).find("batch 3"), std::string::npos);
  data.origin.kind.emplace<MergedRanks>().ranks.resize(2);
  EXPECT_NE(kinds_written(data).find("merged"), std::string::npos);
}

TEST(Origin, IsPredictedOrMergedAndNotBoth) {
  Origin origin{.kind = Predicted{}};
  EXPECT_THROW(set_kind(origin, MergedRanks{}), std::invalid_argument);
}

TEST(Origin, AKeptReportIsAReportInTheReport) {
  Profile one;
  one.run.model = "Net";
  Profile merged;
  merged.origin.kind = MergedRanks{.ranks = {Rank{}}, .kept = {{0, std::make_shared<const Profile>(one)}}};
  const auto text = kinds_written(merged);
  EXPECT_NE(text.find(R"("json": {"schema_version": 5, "model": "Net")"), std::string::npos);
}

TEST(Origin, AKeptReportIsOfOneRank) {
  Profile one;
  one.origin.kind = MergedRanks{.ranks = {Rank{}}};
  Profile merged;
  merged.origin.kind = MergedRanks{.ranks = {Rank{}}, .kept = {{0, std::make_shared<const Profile>(one)}}};
  JsonWriter json;
  write_value(json, merged);
  const std::string text = json.take();
  JsonReader reader(text);
  Profile read;
  EXPECT_THROW(read_value(reader, read), JsonError);
}

}  // namespace
}  // namespace roofprof
