#pragma once
// The table of scenarios, tests/scenarios.txt, which says what its columns mean.

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "run/run_loop.h"

namespace roofprof::testing {

struct Scenario {
  std::string name;
  run::RunLimits limits;
  std::string model;
  std::int64_t at = 0;
  std::int64_t calls = 0;
  std::int64_t warmup = 0;
  std::int64_t timed = 0;
  std::int64_t bare = 0;
  std::string ends;
  std::string note;
};

inline std::string trimmed(const std::string& text) {
  const auto begin = text.find_first_not_of(' ');
  return begin == std::string::npos ? "" : text.substr(begin, text.find_last_not_of(' ') - begin + 1);
}

inline std::vector<Scenario> read_scenarios() {
  std::ifstream file(ROOFPROF_TEST_DATA "/scenarios.txt");
  std::vector<Scenario> scenarios;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line.starts_with('#')) continue;
    std::vector<std::string> cells;
    std::istringstream cut(line + " ");
    for (std::string cell; std::getline(cut, cell, '|');) cells.push_back(trimmed(cell));
    Scenario row;
    row.name = cells.at(0);
    row.limits.warmup = std::stoll(cells.at(1));
    if (cells.at(2) != "-") row.limits.repeat = std::stoll(cells.at(2));
    row.model = cells.at(3);
    row.at = std::stoll(cells.at(4));
    row.calls = std::stoll(cells.at(5));
    row.warmup = std::stoll(cells.at(6));
    row.timed = std::stoll(cells.at(7));
    row.bare = std::stoll(cells.at(8));
    row.ends = cells.at(9);
    row.note = cells.at(10);
    scenarios.push_back(row);
  }
  return scenarios;
}

// The row's note with what was raised, and why a front end cannot call again, filled in.
inline std::string expected_note(const Scenario& scenario, const std::string& error, const std::string& front_end) {
  auto note = scenario.note;
  for (const auto& [mark, text] : {std::pair{std::string("{error}"), error}, {std::string("{front_end}"), front_end}}) {
    if (const auto at = note.find(mark); at != note.npos) note.replace(at, mark.size(), text);
  }
  return note;
}

inline std::string test_name(const ::testing::TestParamInfo<Scenario>& info) {
  std::string name;
  for (const char letter : info.param.name) name += std::isalnum(static_cast<unsigned char>(letter)) ? letter : '_';
  return name;
}

}  // namespace roofprof::testing
