// roofprof-report: report files shown and merged where there is no Python. It calls what Python's commands call.

#include <cstdint>
#include <exception>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "report/program/command_line.h"
#include "roofprof/ranks.h"
#include "roofprof/report.h"
#include "roofprof/version.h"

namespace roofprof::program {
namespace {

constexpr std::string_view kUsage = R"(roofprof-report: report files as tables, without Python

  roofprof-report show REPORT [options]        print the table of a report's JSON file
  roofprof-report merge REPORT... [options]    make one report of those of several ranks

  --by KIND           module, op, kernel, scope, rank, collective, or keys such as "op, phase"
  --columns A,B,...   the columns to show, by their names
  --sort COLUMN       largest first, as a flat list
  --depth N           deepest row
  --limit N           most rows
  --width N           characters; 0: as many as it takes
  --expand            equal siblings are lines of their own
  --rows-only         nothing above or below the rows
  --no-legend         without the meaning of the columns
  --json FILE         write the report (-o FILE is the same)
  --csv FILE          write its rows
  --version, --help

Comparing and checking budgets: `roofprof compare` and `roofprof check`, which need Python but load no torch. All else
is in the command roofprof of the Python package too.
)";

TableOptions table_options(const CommandLine& line) {
  TableOptions options;
  options.by = line.text("--by").value_or(options.by);
  options.sort = line.text("--sort").value_or("");
  options.columns = line.list("--columns");
  options.depth = line.number("--depth");
  options.limit = line.number("--limit").value_or(options.limit);
  options.width = line.number("--width").value_or(options.width);
  options.expand = line.has("--expand");
  options.rows_only = line.has("--rows-only");
  options.legend = !line.has("--no-legend");
  options.speech = Speech::shell;
  return options;
}

namespace fs = std::filesystem;

// By whatever names: links, or other ways to it. A pipe or a device holds nothing that could be lost.
bool is_one_file(const std::string& one, const std::string& other) {
  std::error_code error;
  if (!fs::exists(one, error) && !fs::exists(other, error)) {
    return fs::weakly_canonical(one, error) == fs::weakly_canonical(other, error);
  }
  return fs::is_regular_file(one, error) && fs::equivalent(one, other, error);
}

// Throws where a file that is read, or the other output, would be lost. Called before anything is read.
void check_files(const CommandLine& line) {
  const auto json = line.text("--json");
  const auto csv = line.text("--csv");
  for (const auto& read : line.files()) {
    std::error_code error;
    if (!fs::exists(read, error)) continue;  // reading it says so
    for (const auto& written : {json, csv}) {
      if (!written || !is_one_file(read, *written)) continue;
      throw UsageError("'" + *written + "' is read by this command and would be lost: give the output another name");
    }
  }
  if (json && csv && is_one_file(*json, *csv)) {
    throw UsageError("'" + *csv + "' is named for two outputs: give each a file of its own");
  }
}

void put_out(const Report& report, const CommandLine& line) {
  const auto options = table_options(line);
  const std::string table = report.table(options);  // what is wrong is found before anything is written
  if (const auto path = line.text("--json")) report.write_json(*path);
  if (const auto path = line.text("--csv"))
    report.write_csv(*path, options.by == "kernel" || options.by == "memory" ? options.by : "module");
  std::cout << table << std::flush;
  if (!std::cout) throw std::runtime_error("the table could not be written to the standard output");
}

void run(const CommandLine& line) {
  if (line.has("--help")) {
    std::cout << kUsage;
  } else if (line.has("--version")) {
    std::cout << "roofprof " << ROOFPROF_VERSION << '\n';
  } else if (line.command() == "show") {
    if (line.files().size() != 1) throw UsageError("show takes one report");
    check_files(line);
    put_out(Report::from_json(line.files().front()), line);
  } else if (line.command() == "merge") {
    if (line.files().empty()) throw UsageError("merge takes the reports of several ranks");
    check_files(line);
    put_out(merge_reports(line.files()), line);
  } else {
    throw UsageError(line.command().empty() ? "a command is needed: show or merge"
                                            : "there is no command '" + line.command() + "': show or merge");
  }
}

}  // namespace
}  // namespace roofprof::program

int main(int count, char** arguments) {
  using namespace roofprof::program;
  try {
    run(CommandLine({arguments + 1, arguments + count}));
    return 0;
  } catch (const UsageError& error) {
    std::cerr << "roofprof-report: " << error.what() << "; --help says how it is used\n";
    return 2;
  } catch (const std::exception& error) {
    std::cerr << "roofprof-report: " << error.what() << '\n';
    return 2;
  }
}
