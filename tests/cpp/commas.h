#pragma once
// A locale with decimal commas and points between thousands, on every machine.

#include <locale>
#include <string>

namespace roofprof::testing {

struct Commas : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

// The program's, as long as this.
class WithCommas {
 public:
  WithCommas() : before_(std::locale::global(std::locale(std::locale::classic(), new Commas))) {}
  ~WithCommas() { std::locale::global(before_); }
  WithCommas(const WithCommas&) = delete;
  WithCommas& operator=(const WithCommas&) = delete;

 private:
  std::locale before_;
};

}  // namespace roofprof::testing
