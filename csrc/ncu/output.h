#pragma once
// Reads the text that Nsight Compute prints with --csv: the metrics of each kernel that it ran.

#include <array>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace roofprof::ncu {

// Says in one sentence why the text has no counters, and what to do.
class NcuError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// One kernel that ncu ran.
struct CountedKernel {
  std::uint32_t name = 0;  // index into Output::names
  std::int64_t process = 0;
  std::int64_t device = 0;
  std::int64_t stream = 0;
  std::array<std::int32_t, 3> grid{};  // zeros: not known
  std::array<std::int32_t, 3> block{};
  std::int64_t blocks = 0;         // of the grid; 0: not known
  std::int64_t block_threads = 0;  // of a block; 0: not known
  std::vector<double> values;      // by Output::metrics, maybe fewer; not a number: not known
};

// The table: bytes in bytes, times in nanoseconds, all else as ncu's base units have it.
struct Output {
  std::vector<std::string> names;    // of kernels, as ncu wrote them
  std::vector<std::string> metrics;  // those that counters are made of: "dram__bytes.sum"
  std::vector<CountedKernel> kernels;
  std::string device_name;         // empty: the table does not have it
  std::string compute_capability;  // "9.0"; empty: the table does not have it
  bool rounded = false;            // values have prefixes ("1.57 Mbyte"), so ncu has rounded them
  std::int64_t damaged_rows = 0;   // with too few or too many fields: left out
  std::int64_t unread_values = 0;
  std::string unread_value;  // the first of them: "dram__bytes.sum = 12 foo"

  // The column of a metric; -1: the table has no value of it.
  std::int64_t column_of(std::string_view metric) const;
};

class OutputReader {
 public:
  // Takes the next piece of the text, of any length. Throws NcuError as soon as the text cannot be what ncu prints.
  void feed(std::string_view piece);
  // Returns the table, after the last piece. Throws NcuError if there is none.
  Output finish();

 private:
  enum class Layout : std::uint8_t { none, metric_a_row, kernel_a_row };
  using Fields = std::vector<std::string>;

  void take(std::string_view record);
  void take_before(std::string_view line);
  bool take_header(const Fields& fields);
  void take_row(const Fields& fields);
  void describe(CountedKernel& kernel, const Fields& fields);
  void take_value(CountedKernel& kernel, std::string_view metric, std::string_view unit, std::string_view value);
  std::string_view field(const Fields& fields, std::string_view column) const;
  [[noreturn]] void refuse() const;

  Output output_;
  Layout layout_ = Layout::none;
  Fields header_;
  Fields units_;  // of a kernel a row
  std::unordered_map<std::string, std::size_t> columns_;
  std::unordered_map<std::string, std::uint32_t> names_;
  std::unordered_map<std::string, std::size_t> metrics_;
  std::string last_id_;
  std::string rest_;  // the end of what was fed, which is not yet a whole record
  std::size_t looked_ = 0;
  bool quoted_ = false;  // at looked_
  bool begun_ = false;
  std::string message_;    // the last error or warning of ncu's
  std::string begins_;     // the first line that is none of ncu's messages
  bool messages_ = false;  // some line is one
};

}  // namespace roofprof::ncu
