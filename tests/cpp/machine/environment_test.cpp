#include "machine/cpu/environment.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>
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

TEST(CpuEnvironment, KeysArePlainAndUniqueAndFiguresPositive) {
  std::set<std::string> seen;
  for (const auto& [key, value] : cpu_environment()) {
    EXPECT_TRUE(seen.insert(key).second) << key;
    EXPECT_TRUE(std::ranges::all_of(key, [](unsigned char c) {
      return std::islower(c) || std::isdigit(c) || c == '_';
    })) << key;
    if (const auto* number = std::get_if<std::int64_t>(&value)) {
      EXPECT_GT(*number, 0) << key;
    }
    if (const auto* number = std::get_if<double>(&value)) {
      EXPECT_GT(*number, 0) << key;
    }
  }
}

}  // namespace
}  // namespace roofprof
