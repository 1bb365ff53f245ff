#include "machine/gpu/timer.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>
#include <cmath>

namespace roofprof {
namespace {

using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

double seconds_by_events(c10::Device device, int calls, const std::function<void()>& body) {
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  c10::Event begin(device.type(), c10::EventFlag::BACKEND_DEFAULT);  // the other kind keeps no time
  c10::Event end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  begin.record(stream);
  for (int call = 0; call < calls; ++call) body();
  end.record(stream);
  end.synchronize();
  return begin.elapsedTime(end) / 1000;
}

double seconds_by_clock(int calls, const std::function<void()>& body) {
  const auto begin = Clock::now();
  for (int call = 0; call < calls; ++call) body();
  return Seconds(Clock::now() - begin).count();
}

}  // namespace

Timer timer_of(c10::Device device) {
  if (device.is_cpu()) return seconds_by_clock;
  return [device](int calls, const std::function<void()>& body) { return seconds_by_events(device, calls, body); };
}

void synchronize(c10::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).synchronizeDevice(device.index());
}

Rate measured_rate(const Trial& trial, const Timer& timer, Seconds budget) {
  constexpr int kRepeats = 7;
  constexpr int kFewestRepeats = 3;
  constexpr double kMostCalls = 10'000;
  constexpr double kShortest = 1e-9;
  const auto begin = Clock::now();
  timer(1, trial.run);  // kernels are chosen and loaded at the first call
  const double once = std::max(timer(1, trial.run), kShortest);
  const int calls = static_cast<int>(std::clamp(std::floor(budget.count() / kRepeats / once), 1.0, kMostCalls));

  Rate rate{.name = trial.name};
  double worst = 0;
  while (rate.repeats < kRepeats && (rate.repeats < kFewestRepeats || Clock::now() - begin < budget)) {
    const double per_second = trial.work * calls / std::max(timer(calls, trial.run), kShortest);
    rate.per_second = std::max(rate.per_second, per_second);
    worst = rate.repeats == 0 ? per_second : std::min(worst, per_second);
    ++rate.repeats;
  }
  rate.spread = (rate.per_second - worst) / rate.per_second;
  return rate;
}

std::vector<Rate> measured_rates(const std::vector<Trial>& trials, const Timer& timer, Seconds budget) {
  std::vector<Rate> rates;
  rates.reserve(trials.size());
  for (const Trial& trial : trials) {
    rates.push_back(measured_rate(trial, timer, budget / static_cast<double>(trials.size())));
  }
  std::ranges::stable_sort(rates, std::greater{}, &Rate::per_second);
  return rates;
}

}  // namespace roofprof
