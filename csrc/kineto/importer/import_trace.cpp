#include "kineto/importer/import_trace.h"

#include <fstream>
#include <memory>
#include <stdexcept>

#include "core/note_codes.h"
#include "join/join.h"
#include "kineto/costs/meta_costs.h"
#include "kineto/importer/step_mean.h"
#include "machine/known/published.h"

namespace roofprof {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

// The name of the device that most kernels ran on; empty where the trace does not say.
std::string device_name(const Environment& environment) {
  for (const auto& [key, value] : environment) {
    if (key == "gpu_device") return std::get<std::string>(value);
  }
  return "";
}

}  // namespace

Report import_trace(kineto::Trace trace, const std::optional<Ceilings>& roofs,
                    const std::optional<kineto::StepRange>& steps, bool mean, const kineto::CalledModel* model) {
  kineto::MetaCosts costs;
  auto observed = kineto::trace_record(std::move(trace), costs, steps, model);
  const auto device = device_name(observed.environment);
  if (roofs) {
    observed.ceilings = *roofs;
  } else if (auto known = device.empty() ? std::nullopt : published_for_driver_name(device)) {
    observed.ceilings = std::move(*known);
  } else {
    const std::string what = observed.device == "cpu" ? "the trace is of a CPU, of which nobody publishes roofs"
                             : device.empty()         ? "the trace does not name its device"
                                                      : "no roofs are published of " + device;
    add_note(observed.notes, "no-roof",
             what +
                 ": give a card that is like it (--device), or roofs that were measured there (roofprof ceilings "
                 "--json FILE)");
  }
  const auto count = observed.runs.steps;
  auto data = join(std::move(observed));
  if (mean && count > 0) data = mean_of_steps(std::move(data), count);
  return make_report(std::make_shared<const ProfileData>(std::move(data)), {});
}

Report Report::from_trace(const std::string& path, const std::optional<Ceilings>& roofs) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error(path + ": it cannot be read");
  kineto::TraceReader reader;
  std::string piece(kPieceBytes, '\0');
  try {
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
      reader.feed(std::string_view(piece).substr(0, static_cast<std::size_t>(file.gcount())));
    }
    return import_trace(reader.finish(), roofs);
  } catch (const kineto::TraceError& problem) {
    throw std::runtime_error(path + ": " + problem.what());
  }
}

}  // namespace roofprof
