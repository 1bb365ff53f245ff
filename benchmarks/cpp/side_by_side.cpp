#include "side_by_side.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace bench {
namespace {

std::map<std::string, Bar>& bars() {
  static std::map<std::string, Bar> instance;
  return instance;
}

double quantile(std::vector<double> values, double part) {
  std::ranges::sort(values);
  const double place = part * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const auto above = std::min(below + 1, values.size() - 1);
  return values[below] + (values[above] - values[below]) * (place - static_cast<double>(below));
}

double median(const std::vector<double>& values) { return quantile(values, 0.5); }

std::string verdict(const Bar& bar, double added_ns, double ratio) {
  if (bar.added_ns) return fmt::format("{} {} ns", added_ns <= *bar.added_ns ? "within" : "OVER", *bar.added_ns);
  if (bar.ratio) return fmt::format("{} {}", ratio <= *bar.ratio ? "within" : "OVER", *bar.ratio);
  return "";
}

}  // namespace

void set_bar(const std::string& name, Bar bar) { bars()[name] = bar; }

SideBySide::Variant& SideBySide::variant_of(const std::string& benchmark) {
  const auto slash = benchmark.find('/');
  const auto workload_name = benchmark.substr(0, slash);
  const auto name = benchmark.substr(slash + 1, benchmark.find('/', slash + 1) - slash - 1);
  auto workload = std::ranges::find(workloads_, workload_name, &Workload::name);
  if (workload == workloads_.end()) workload = workloads_.insert(workload, {workload_name, {}});
  auto& variants = workload->variants;
  auto variant = std::ranges::find(variants, name, &Variant::name);
  if (variant == variants.end()) variant = variants.insert(variant, {name, {}, 1});
  return *variant;
}

void SideBySide::ReportRuns(const std::vector<Run>& runs) {
  for (const auto& run : runs) {
    if (run.run_type != Run::RT_Iteration || run.iterations == 0) continue;
    auto& variant = variant_of(run.benchmark_name());
    const double accumulated = cpu_time_ ? run.cpu_accumulated_time : run.real_accumulated_time;
    variant.seconds.push_back(accumulated / static_cast<double>(run.iterations));
    if (const auto ops = run.counters.find("ops"); ops != run.counters.end()) variant.ops = ops->second;
  }
  ConsoleReporter::ReportRuns(runs);
}

void SideBySide::print(const Workload& workload) {
  const auto plain = std::ranges::find(workload.variants, kPlain, &Variant::name);
  if (plain == workload.variants.end()) return;
  const double plain_median = median(plain->seconds);
  auto& out = GetOutputStream();
  out << fmt::format("\n{}: {:g} op{} an iteration, {} repetitions, {} time\n", workload.name, plain->ops,
                     plain->ops == 1 ? "" : "s", plain->seconds.size(), cpu_time_ ? "CPU" : "wall");
  out << fmt::format("  {:<28}{:>12}{:>9}{:>18}{:>16}  {}\n", "", "us", "ratio", "middle half", "added ns an op",
                     "bar");
  for (const auto& variant : workload.variants) {
    const double time = median(variant.seconds);
    const double ratio = time / plain_median;
    const double added_ns = (time - plain_median) / variant.ops * 1e9;
    const auto middle = fmt::format("{:.3f} to {:.3f}", quantile(variant.seconds, 0.25) / plain_median,
                                    quantile(variant.seconds, 0.75) / plain_median);
    const bool is_plain = variant.name == kPlain;
    out << fmt::format("  {:<28}{:>12.3f}{:>9}{:>18}{:>16}  {}\n", variant.name, time * 1e6,
                       is_plain ? "" : fmt::format("{:.3f}", ratio), middle,
                       is_plain ? "" : fmt::format("{:.1f}", added_ns),
                       is_plain ? "" : verdict(bars()[workload.name + "/" + variant.name], added_ns, ratio));
  }
}

void SideBySide::Finalize() {
  ConsoleReporter::Finalize();
  for (const auto& workload : workloads_) print(workload);
}

}  // namespace bench
