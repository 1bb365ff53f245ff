#include "kineto/importer/step_mean.h"

#include <string>

#include "core/note_codes.h"

namespace roofprof {
namespace {

class Divider {
 public:
  explicit Divider(std::int64_t steps) : steps_(steps) {}
  void count(std::int64_t& sum) {
    uneven_ = uneven_ || sum % steps_ != 0;
    sum /= steps_;
  }
  void time(std::int64_t& sum) const { sum /= steps_; }
  void work(Work& work) {
    for (auto* sum : {&work.macs, &work.causal_macs, &work.read_bytes, &work.write_bytes, &work.updated_bytes,
                      &work.input_elements, &work.output_elements}) {
      count(*sum);
    }
    for (auto& sum : work.operations) count(sum);
  }
  bool uneven() const { return uneven_; }

 private:
  std::int64_t steps_;
  bool uneven_ = false;
};

}  // namespace

ProfileData mean_of_steps(ProfileData data, std::int64_t steps) {
  Divider divide(steps);
  for (auto& op : data.ops) {
    divide.count(op.calls);
    divide.work(op.work);
    if (op.time_ns) divide.time(*op.time_ns);
    divide.count(op.link_bytes);
  }
  for (auto& time : data.times) {
    divide.count(time.calls);
    for (auto* runs : {&time.self_ns, &time.host_self_ns}) {
      for (auto& run : *runs) divide.time(run);
    }
  }
  for (auto& region : data.regions) {
    divide.count(region.calls);
    for (auto& run : region.wall_ns) divide.time(run);
  }
  for (auto& kernel : data.kernels) {
    divide.count(kernel.instances);
    divide.time(kernel.total_ns);
    divide.count(kernel.bytes);
  }
  for (auto& device : data.device_times) {
    for (auto* sum : {&device.busy_ns, &device.idle_ns, &device.self_busy_ns}) divide.time(*sum);
  }
  divide.time(data.busy_ns);
  for (auto& run : data.runs.total_ns) divide.time(run);
  data.runs.steps = 0;  // it is of one
  data.runs.step_ns.clear();
  data.runs.after_steps.reset();
  data.imported->source += ", the mean of " + std::to_string(steps) + (steps == 1 ? " step" : " steps");
  if (divide.uneven()) {
    add_note(data.notes, "steps-differ",
             "the steps did different work: counts of what some of them did are rounded down to whole calls of a step");
  }
  return data;
}

}  // namespace roofprof
