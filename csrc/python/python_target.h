#pragma once
// Lets the run loop call a model of Python's (roofprof/calls/target.py).

#include <pybind11/pybind11.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "run/observed_run.h"

namespace roofprof::python {

// Called with the GIL held. What waits for a device is called without it.
class PythonTarget : public run::SessionTarget {
 public:
  PythonTarget(run::ObservedRun& run, const pybind11::object& target);

  void count(std::optional<Pass>& pass) override;
  std::string why_only_once() const override;
  std::int64_t undoing(const std::function<void()>& further) override;
  void prepare() override;
  void read_counters(const std::vector<Pass>& timed) override;
  void leave_out_counters(const std::string& why) override;
  bool is_among_ranks() const override { return target_.attr("is_among_ranks").cast<bool>(); }
  // False for code around the model: its counting call ran TorchScript's executor, too, so the executor's ops were
  // counted.
  bool by_executor() const override { return of_model_ && SessionTarget::by_executor(); }
  run::Compilations compilations() const override;
  std::optional<std::string> described(const std::exception* error) const override;

 private:
  void call() override;
  void call_in_scope() override { call_in_scope(args_, kwargs_); }
  void call_in_scope(const pybind11::tuple& args, const pybind11::dict& kwargs);
  void hooked(const std::function<void()>& body) override;
  void waiting(const std::function<void()>& body) override;

  pybind11::object target_;
  pybind11::object model_;
  pybind11::tuple args_;
  pybind11::dict kwargs_;
  bool of_model_;
  bool defers_;  // a call returns before its work is done (a generator, a coroutine, a future)
};

// Leaves bare calls to a Python object that has its own clocks (roofprof/latency/timing.py).
class TimedTarget final : public PythonTarget {
 public:
  TimedTarget(run::ObservedRun& run, const pybind11::object& target, pybind11::object timer)
      : PythonTarget(run, target), timer_(std::move(timer)) {}

  std::int64_t bare() override { return timer_.attr("bare")().cast<std::int64_t>(); }
  void keep() override { timer_.attr("keep")(); }

 private:
  pybind11::object timer_;
};

}  // namespace roofprof::python
