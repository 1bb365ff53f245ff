#include "machine/common/measurement.h"

#include <array>
#include <ctime>
#include <string_view>

#include "core/phrases.h"

namespace roofprof {

std::string local_date() {
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  localtime_r(&now, &local);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &local);
  return text.data();
}

std::string number_text(double value) { return value < 100 ? short_text(value, 3) : fixed_text(value, 0); }

std::string bytes_text(std::int64_t bytes) {
  constexpr std::int64_t kMiB = 1 << 20;
  return bytes < kMiB ? number_text(static_cast<double>(bytes) / 1024) + " KiB"
                      : std::to_string((bytes + kMiB / 2) / kMiB) + " MiB";
}

std::string first_line_of(const std::string& message) { return message.substr(0, message.find('\n')); }

void note_unsteady(const Ceilings& ceilings, std::vector<std::string>& notes) {
  constexpr double kSteady = 0.25;
  std::string names;
  const auto check = [&](std::string_view name, const Provenance& provenance) {
    if (provenance.spread.value_or(0) > kSteady) add_item(names, name);
  };
  // A level's spread is the largest of five kernels over many working sets, and more than that on many a machine.
  for (const auto& level : ceilings.memory) {
    if (ceilings.curve.empty() || level.level == kHostLink) check(level.level, level.provenance);
  }
  for (const auto& peak : ceilings.compute) check(name_of(peak.dtype), peak.provenance);
  if (!names.empty()) notes.push_back("the repeats of " + names + " differ by more than 25%");
}

void note_odd_order(const std::vector<MemoryCeiling>& memory, std::vector<std::string>& notes) {
  for (std::size_t i = 1; i < memory.size(); ++i) {
    if (memory[i].bytes_per_second <= memory[i - 1].bytes_per_second) continue;
    notes.push_back(memory[i].level + " was measured faster than " + memory[i - 1].level + " (" +
                    number_text(memory[i].bytes_per_second / 1e9) + " and " +
                    number_text(memory[i - 1].bytes_per_second / 1e9) +
                    " GB/s): the machine was busy, or the system misstates its caches");
  }
}

}  // namespace roofprof
