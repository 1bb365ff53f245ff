#include "machine/cpu/environment.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <set>
#include <string>
#include <utility>
#include <variant>

#include "machine/cpu/host.h"

namespace roofprof {
namespace {

const EnvironmentValue* find(const Environment& environment, const std::string& key) {
  const auto found = std::ranges::find(environment, key, &Environment::value_type::first);
  return found == environment.end() ? nullptr : &found->second;
}

std::int64_t integer(const Environment& environment, const std::string& key) {
  const auto* value = find(environment, key);
  const auto* number = value == nullptr ? nullptr : std::get_if<std::int64_t>(value);
  return number == nullptr ? -1 : *number;
}

TEST(CpuEnvironment, SaysWhatWasUsed) {
  const Environment environment = cpu_environment();
  for (const char* key : {"torch", "device", "simd", "governor", "kernel"}) {
    const auto* value = find(environment, key);
    ASSERT_NE(value, nullptr) << key;
    ASSERT_TRUE(std::holds_alternative<std::string>(*value)) << key;
    EXPECT_FALSE(std::get<std::string>(*value).empty()) << key;
  }
  EXPECT_EQ(std::get<std::string>(*find(environment, "device")), cpu_model());
  EXPECT_EQ(integer(environment, "torch_threads"), at::get_num_threads());
  EXPECT_EQ(integer(environment, "logical_cpus"), static_cast<std::int64_t>(allowed_cpus().size()));
  EXPECT_GT(integer(environment, "memory_total_bytes"), 0);
  if (find(environment, "cores") != nullptr) {
    EXPECT_GE(integer(environment, "cores"), 1);
    EXPECT_LE(integer(environment, "cores"), integer(environment, "logical_cpus"));
    EXPECT_GE(integer(environment, "sockets"), 1);
    EXPECT_LE(integer(environment, "sockets"), integer(environment, "cores"));
  }
}

class RankOfTheEnvironment : public ::testing::Test {
 protected:
  static void set(const char* rank, const char* size) {
    rank == nullptr ? unsetenv("RANK") : setenv("RANK", rank, 1);
    size == nullptr ? unsetenv("WORLD_SIZE") : setenv("WORLD_SIZE", size, 1);
  }
  void TearDown() override { set(nullptr, nullptr); }
};

TEST_F(RankOfTheEnvironment, IsThatOfTorchrun) {
  set("2", "4");
  EXPECT_EQ(rank_of_environment().rank, 2);
  EXPECT_EQ(rank_of_environment().world_size, 4);
  EXPECT_EQ(rank_of_environment().wrong, "");
  EXPECT_EQ(integer(cpu_environment(), "rank"), 2);
  EXPECT_EQ(integer(cpu_environment(), "world_size"), 4);
}

TEST_F(RankOfTheEnvironment, IsNoneWhereNothingIsSet) {
  for (const auto& [rank, size] : {std::pair<const char*, const char*>{nullptr, nullptr}, {"", ""}, {nullptr, "1"}}) {
    set(rank, size);
    EXPECT_EQ(rank_of_environment().world_size, 0);
    EXPECT_EQ(rank_of_environment().wrong, "");
    EXPECT_EQ(find(cpu_environment(), "rank"), nullptr);
  }
}

TEST_F(RankOfTheEnvironment, SaysWhatIsWrong) {
  for (const auto& [rank, size] : {std::pair<const char*, const char*>{"abc", "2"},
                                   {"1x", "2"},
                                   {"-1", "2"},
                                   {"2", "2"},
                                   {"0", "0"},
                                   {"0", nullptr},
                                   {nullptr, "2"},
                                   {"99999999999999999999", "2"}}) {
    set(rank, size);
    const auto found = rank_of_environment();
    EXPECT_EQ(found.world_size, 0);
    EXPECT_NE(found.wrong.find(rank == nullptr ? "RANK is not set" : "RANK is '" + std::string(rank) + "'"),
              std::string::npos)
        << found.wrong;
    EXPECT_EQ(find(cpu_environment(), "rank"), nullptr);
  }
}

}  // namespace
}  // namespace roofprof
