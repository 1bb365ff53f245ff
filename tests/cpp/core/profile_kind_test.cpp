// The kinds of profiles, and how JSON has them.

#include "core/profile_kind.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "core/json/members.h"

namespace roofprof {
namespace {

const Predicted kEveryOption{.precision = DType::bf16,
                             .batch = 8,
                             .counted_under_autocast = true,
                             .autocast = DType::fp16,
                             .channels_last = true,
                             .mode = LaunchMode::graph,
                             .host_seconds = 2e-5,
                             .bandwidth = 0.3,
                             .peak = 1.0 / 3,
                             .ranks = 8,
                             .parallel = Parallel::fsdp};

TEST(Predicted, HasWordsForItsOptions) {
  Predicted options;
  EXPECT_EQ(words_of(options), "as it was counted");
  options.precision = DType::bf16;
  options.batch = 8;
  options.mode = LaunchMode::compiled;
  options.bandwidth = 1.5;
  EXPECT_EQ(words_of(options), "in bf16, batch 8, compiled, with 1.5 x its bandwidth");
  EXPECT_EQ(words_of(kEveryOption),
            "in bf16, batch 8, as autocast ran it, as under autocast in fp16, channels last, as a graph, with 2e-05 s "
            "of the host per op, with 0.3 x its bandwidth, with 0.3333333333333333 x its peaks, 8 ranks by fsdp");
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
  data.origin.kind = kEveryOption;
  kinds_written(data);
  data.origin.kind = Predicted{.batch = 3};
  EXPECT_NE(kinds_written(data).find(R"("prediction": {"mode": "eager", "batch": 3},)"), std::string::npos);
  data.origin.kind.emplace<MergedRanks>().ranks.resize(2);
  EXPECT_NE(kinds_written(data).find("merged"), std::string::npos);
}

// Of schema version 5: a text, which is empty where nothing was predicted.
TEST(Origin, OptionsInWordsAreRefused) {
  auto text = kinds_written(Profile());
  EXPECT_EQ(text.find("prediction"), std::string::npos);
  const auto read_with = [&](const std::string& member) {
    const auto with = "{" + member + ", " + text.substr(1);
    JsonReader reader(with);
    Profile read;
    read_value(reader, read);
    return read;
  };
  EXPECT_EQ(read_with(R"("prediction": "")"), Profile());
  EXPECT_THROW(read_with(R"("prediction": "in fp16, batch 8")"), JsonError);
  EXPECT_THROW(read_with(R"("prediction": {"mode": "lazy"})"), JsonError);
  EXPECT_THROW(read_with(R"("prediction": {})"), JsonError);
}

TEST(Origin, AKeptReportIsAReportOfOneRankInTheReport) {
  Profile one;
  one.run.model = "Net";
  Profile merged;
  merged.origin.kind = MergedRanks{.ranks = {Rank{}}, .kept = {{0, std::make_shared<const Profile>(one)}}};
  EXPECT_NE(kinds_written(merged).find(R"("json": {"schema_version": 6, "model": "Net")"), std::string::npos);
  Profile of_merged;
  of_merged.origin.kind = MergedRanks{.ranks = {Rank{}}, .kept = {{0, std::make_shared<const Profile>(merged)}}};
  JsonWriter json;
  write_value(json, of_merged);
  const std::string text = json.take();
  JsonReader reader(text);
  Profile read;
  EXPECT_THROW(read_value(reader, read), JsonError);
}

TEST(Profile, IsEqualWhereAPartIsEmptyOrMissing) {
  Profile one, other;
  one.times.make();
  one.comms.make();
  EXPECT_EQ(one, other);
  one.device.make();  // its device did nothing, and was timed
  EXPECT_NE(one, other);
  other.device.make().timeline.busy_ns = 1;
  EXPECT_NE(one, other);
}

}  // namespace
}  // namespace roofprof
