#pragma once
// A command, its files and its options.

#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace roofprof::program {

class UsageError : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

class CommandLine {
 public:
  // Throws UsageError for options that are not known and for values that are missing.
  explicit CommandLine(const std::vector<std::string>& words);

  const std::string& command() const { return command_; }
  const std::vector<std::string>& files() const { return files_; }
  bool has(const std::string& option) const { return options_.contains(option); }
  std::optional<std::string> text(const std::string& option) const;
  // Of "a, b". Empty where the option is not there.
  std::vector<std::string> list(const std::string& option) const;
  // Throws UsageError for what is no whole number.
  std::optional<std::int64_t> number(const std::string& option) const;

 private:
  std::string command_;
  std::vector<std::string> files_;
  std::map<std::string, std::string> options_;
};

}  // namespace roofprof::program
