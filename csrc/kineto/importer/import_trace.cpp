#include "kineto/importer/import_trace.h"

#include <algorithm>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include "core/counted_bytes.h"
#include "core/note_codes.h"
#include "join/counter_join.h"
#include "join/device_launches.h"
#include "join/join.h"
#include "kineto/importer/counted_crossings.h"
#include "kineto/importer/meta_costs.h"
#include "machine/known/published.h"

namespace roofprof {

namespace {

// Divides what was summed over steps, part by part.
class Divider {
 public:
  explicit Divider(std::int64_t steps) : steps_(steps) {}

  void divide(RunInfo& run) {
    for (auto& tokens : run.token_calls) {
      for (auto* sum : {&tokens.calls, &tokens.sequences, &tokens.tokens}) count(*sum);
    }
    time(run.runs.total_ns);
    run.runs.steps = 0;  // it is of one
    run.runs.step_ns.clear();
    run.runs.after_steps.reset();
  }
  void divide(Tree& tree) {
    for (auto& region : tree.regions) {
      count(region.calls);
      time(region.wall_ns);
    }
  }
  void divide(Counts& counts) {
    for (auto& op : counts.ops) {
      count(op.calls);
      work(op.work);
      if (op.time_ns) time(*op.time_ns);
      count(op.link_bytes);
    }
  }
  void divide(Times& times) {
    for (auto& module : times.modules) {
      count(module.calls);
      time(module.self_ns);
      time(module.host_self_ns);
    }
  }
  void divide(DeviceWork& device) {
    for (auto& kernel : device.kernels) divide(kernel);
    auto& timeline = device.timeline;
    for (auto& module : timeline.modules) {
      for (auto* sum : {&module.busy_ns, &module.idle_ns, &module.self_busy_ns}) time(*sum);
    }
    for (auto* sum : {&timeline.busy_ns, &timeline.idle_before_ns, &timeline.idle_after_ns}) time(*sum);
  }
  void divide(CollectiveData& comms) {
    for (auto& collective : comms.collectives) {
      for (auto* calls : {&collective.calls, &collective.timed_calls}) count(*calls);
      for (auto* sum : {&collective.time_ns, &collective.exposed_ns}) time(*sum);
    }
    for (auto& part : comms.exposed_in) time(part.exposed_ns);
    for (auto* sum : {&comms.time_ns, &comms.exposed_ns}) {
      if (*sum) time(**sum);
    }
    comms.calls.clear();  // a mean over steps has no single calls
  }
  bool uneven() const { return uneven_; }

 private:
  void count(std::int64_t& sum) {
    uneven_ = uneven_ || sum % steps_ != 0;
    sum /= steps_;
  }
  void time(std::int64_t& sum) const { sum /= steps_; }
  void time(std::vector<std::int64_t>& runs) const {
    for (auto& run : runs) time(run);
  }
  void work(Work& work) {
    for (auto* sum : {&work.macs, &work.causal_macs, &work.read_bytes, &work.write_bytes, &work.updated_bytes,
                      &work.input_elements, &work.output_elements}) {
      count(*sum);
    }
    for (auto& sum : work.operations) count(sum);
  }
  void divide(KernelBucket& kernel) {
    // A sum of some launches alone stays unknown, whatever their number rounds to.
    const bool all_counted = kernel.counted == kernel.instances;
    const auto launches = static_cast<double>(kernel.instances);
    count(kernel.instances);
    kernel.counted = all_counted ? kernel.instances : 0;
    for (auto& value : kernel.counters) {
      if (!all_counted) value.reset();
      if (value) *value *= static_cast<double>(kernel.instances) / launches;
    }
    time(kernel.total_ns);
    count(kernel.bytes);
  }

  std::int64_t steps_;
  bool uneven_ = false;
};

// Returns the profile of one step, from that of `steps` steps (1 or more): every sum is divided by their number. If the
// steps did different work, counts are rounded down, and a note says so.
Profile mean_of_steps(Profile data, std::int64_t steps) {
  Divider divider(steps);
  divider.divide(data.run);
  divider.divide(data.tree);
  divider.divide(data.counts);
  if (data.times) divider.divide(data.times.make());
  if (data.device) divider.divide(data.device.make());
  if (data.comms) divider.divide(data.comms.make());
  if (data.device) set_counted_bytes(data.counts, *data.device);
  data.origin.imported->source += ", the mean of " + std::to_string(steps) + (steps == 1 ? " step" : " steps");
  if (divider.uneven()) {
    add_note(data.notes, "steps-differ",
             "the steps did different work: counts of what some of them did are rounded down to whole calls of a step");
  }
  return data;
}

constexpr std::size_t kPieceBytes = std::size_t{1} << 20;

bool are_of_gpu(const Ceilings& roofs) {
  return roofs.facts != CardFacts{} || roofs.device.find(", cuda:") != std::string::npos;  // published, or measured
}

// Says that times of one device are compared with what another one could do. `device`: the driver's name of the GPU
// that was recorded; empty: not known.
void note_other_device(RunRecord& observed, const Ceilings& roofs, const std::string& device,
                       const std::string& source) {
  if (!are_of_gpu(roofs)) return;
  std::string recorded;
  if (observed.run.device == "cpu") {
    recorded = "a CPU";
  } else if (!device.empty() && roofs.device.find(device) == std::string::npos) {
    const auto published = published_for_driver_name(device);
    if (!published || published->device != roofs.device) recorded = device;
  }
  if (recorded.empty()) return;
  add_note(observed.notes, "roofs-of-another",
           "the times of " + source + " are those of " + recorded + ", and the roofs those of " + roofs.device +
               ": bounds, %roof and wasted time compare two devices");
}

// Gives the record roofs: those given, else the published ones of the device that its environment names; where there
// are none, a note says so. `source`: the file's name in notes, "the trace".
void give_roofs(RunRecord& observed, const std::optional<Ceilings>& roofs, const std::string& source) {
  const auto device = facts_in(observed.run.environment).gpu;
  if (roofs) {
    observed.roofs = *roofs;
    note_other_device(observed, *roofs, device, source);
  } else if (auto known = device.empty() ? std::nullopt : published_for_driver_name(device)) {
    observed.roofs = std::move(*known);
  } else {
    const std::string what = observed.run.device == "cpu" ? source + " is of a CPU, of which nobody publishes roofs"
                             : device.empty()             ? source + " does not name its device"
                                                          : "no roofs are published of " + device;
    add_note(observed.notes, "no-roof",
             what +
                 ": give a card that is like it (--device), or roofs that were measured there (roofprof ceilings "
                 "--json FILE)");
  }
}

std::vector<std::string> ranges_of(const RunRecord& observed, const KernelRecord& record) {
  std::vector<std::string> names;
  auto range = observed.launches[owner_of_launch(record.launch)].key.owner.region;
  for (; range != kNoRegion; range = observed.tree.regions[static_cast<std::size_t>(range) - 1].parent) {
    names.push_back(observed.tree.regions[static_cast<std::size_t>(range) - 1].name);
  }
  std::ranges::reverse(names);
  return names;
}

// Gives the kernels of the trace the counters that were read of them in another run.
void add_counters(RunRecord& observed, const CountKernels& count) {
  const auto& trace = observed.timed.front().device;
  if (trace == nullptr) throw kineto::TraceError("it has no kernels that the counters of ncu could be of");
  const auto launches = launches_of(*trace, {});
  std::vector<TracedKernel> kernels;
  std::uint32_t number = 0;
  for (const auto* launch : counted_kernels(launches, observed.run.device)) {
    const auto& record = *launch->record;
    number = record.device;
    kernels.push_back(
        {trace->names[record.name], record.grid, record.block, ranges_of(observed, record), launch->duration_ns()});
  }
  auto& device = *observed.on_device;
  auto [counters, capability] = count(kernels, number, device.compute_capability, observed.run.runs.steps);
  device.counters = std::move(counters);
  if (device.compute_capability.empty()) device.compute_capability = std::move(capability);
}

}  // namespace

Report import_trace(kineto::Trace trace, ImportOptions options) {
  kineto::MetaCosts costs;
  auto observed =
      kineto::trace_record(std::move(trace), costs, options.steps, options.model, std::move(options.captures));
  if (options.alone) {
    observed.run.model = observed.tree.modules.front().type = "kernels";
    observed.notes.clear();  // of what such a trace lacks
  }
  give_roofs(observed, options.roofs, options.alone ? "ncu's table" : "the trace");
  if (options.counters) add_counters(observed, options.counters);
  const auto count = observed.run.runs.steps;
  auto data = join(std::move(observed));
  if (options.alone && data.device) {
    auto& device = data.device.make();
    device.timeline = {};
    device.unattributed_kernels = 0;  // nobody expects a module of these
    for (auto& kernel : device.kernels) kernel.attributed = true;
  }
  if (options.mean && count > 0) data = mean_of_steps(std::move(data), count);
  const bool has_models_rows = data.tree.modules[index_of(kModel)].params_known;
  if (options.counted != nullptr && has_models_rows) {
    if (auto text = take_crossings(data, *options.counted); !text.empty())
      add_note(data.notes, "fused-not-known", std::move(text));
  }
  return make_report(std::make_shared<const Profile>(std::move(data)), {});
}

Report Report::from_trace(const std::string& path, const std::optional<Ceilings>& roofs) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw RuntimeError(path + ": it cannot be read");
  kineto::TraceReader reader;
  std::string piece(kPieceBytes, '\0');
  try {
    while (file.read(piece.data(), static_cast<std::streamsize>(piece.size())) || file.gcount() > 0) {
      reader.feed(std::string_view(piece).substr(0, static_cast<std::size_t>(file.gcount())));
    }
    return import_trace(reader.finish(), {.roofs = roofs});
  } catch (const kineto::TraceError& problem) {
    throw RuntimeError(path + ": " + problem.what());
  }
}

}  // namespace roofprof
