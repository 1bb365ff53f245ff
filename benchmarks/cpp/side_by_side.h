#pragma once
// Compares variants of a workload with its plain form: the benchmark "adds/profiled" with "adds/plain".

#include <benchmark/benchmark.h>

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace bench {

inline constexpr std::string_view kPlain = "plain";

// Returns the number of ops (or calls) of one iteration, by which the table divides.
inline void set_ops(benchmark::State& state, std::int64_t ops) { state.counters["ops"] = static_cast<double>(ops); }

// The limit for a workload's variant.
struct Bar {
  std::optional<double> added_ns;  // an op
  std::optional<double> ratio;     // to plain
};

// `name` as "workload/variant".
void set_bar(const std::string& name, Bar bar);

// Prints Google Benchmark's lines while it runs, and at the end a table for each workload.
class SideBySide : public benchmark::ConsoleReporter {
 public:
  explicit SideBySide(bool cpu_time) : cpu_time_(cpu_time) {}
  void ReportRuns(const std::vector<Run>& runs) override;
  void Finalize() override;

 private:
  struct Variant {
    std::string name;
    std::vector<double> seconds;  // of one iteration, one for each repetition
    double ops = 1;
  };
  struct Workload {
    std::string name;
    std::vector<Variant> variants;
  };

  Variant& variant_of(const std::string& benchmark);
  void print(const Workload& workload);

  bool cpu_time_;
  std::vector<Workload> workloads_;
};

}  // namespace bench
