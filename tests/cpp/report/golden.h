#pragma once
// Layouts are compared with files under tests/golden/; ROOFPROF_UPDATE_GOLDEN=1 writes them anew.

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace roofprof::testing {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// The lines of rows: between the rule under the headings and the rule above the total.
inline std::vector<std::string> row_lines(const std::string& table) {
  std::vector<std::string> rows;
  int rules = 0;
  for (const auto& line : lines_of(table)) {
    const bool rule = line.starts_with("─");
    rules += rule ? 1 : 0;
    if (rules == 1 && !rule) rows.push_back(line);
  }
  return rows;
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline void expect_golden(const std::string& name, const std::string& text) {
  const auto path = std::filesystem::path(ROOFPROF_TEST_DATA) / "golden" / name;
  if (std::getenv("ROOFPROF_UPDATE_GOLDEN") != nullptr) {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
    return;
  }
  std::ifstream file(path, std::ios::binary);
  ASSERT_TRUE(file) << path << " is missing; write it with ROOFPROF_UPDATE_GOLDEN=1";
  std::stringstream expected;
  expected << file.rdbuf();
  EXPECT_EQ(text, expected.str()) << "layout changed; if it is meant to, run with ROOFPROF_UPDATE_GOLDEN=1";
}

}  // namespace roofprof::testing
