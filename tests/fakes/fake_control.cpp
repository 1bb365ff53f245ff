#include "fake_control.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <map>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fake_state.h"

namespace {

struct Failure {
  int code = 0;
  long long from_call = 0;
};

struct State {
  std::map<std::string, long long, std::less<>> settings;
  std::map<std::string, std::string, std::less<>> texts;
  std::map<std::string, Failure, std::less<>> failures;
  std::map<std::string, long long, std::less<>> calls;
  std::map<std::string, long long, std::less<>> held;
  std::map<std::pair<unsigned, unsigned>, long long> stream_end_ns;
  std::map<unsigned, int> contexts;
  long long now_ns = 1'000'000;
  unsigned correlation = 0;
};

// What outlives a reset belongs to the process: who listens, and that the gate was passed.
std::mutex mutex;
State state;

// Who wants to hear of something; told without a lock held.
template <class... Args>
class Listeners {
 public:
  void add(std::function<void(Args...)> listener) {
    const std::lock_guard lock(mutex);
    all_.push_back(std::move(listener));
  }
  void tell(Args... args) {
    std::vector<std::function<void(Args...)>> told;
    {
      const std::lock_guard lock(mutex);
      told = all_;
    }
    for (const auto& listener : told) listener(args...);
  }

 private:
  std::vector<std::function<void(Args...)>> all_;
};
Listeners<const fake::Ran&> of_launches;
Listeners<unsigned long long, unsigned long long> of_graph_nodes;
Listeners<unsigned> of_calls;
Listeners<> of_resets;
bool gate_open = false;
long long ungated = 0;

[[noreturn]] void refuse(const std::string& why) {
  std::fprintf(stderr, "fake libraries: %s\n", why.c_str());
  std::abort();
}

template <class Map>
auto& named(Map& map, std::string_view name) {
  const auto found = map.find(name);
  if (found == map.end()) refuse("there is no setting " + std::string(name));
  return found->second;
}

// "devices=2,chip=AD102,fail:cuptiSubscribe=39"
void read_environment(State& fresh) {
  const char* text = std::getenv("ROOFPROF_FAKE");
  std::istringstream parts(text != nullptr ? text : "");
  for (std::string part; std::getline(parts, part, ',');) {
    const auto equals = part.find('=');
    if (equals == std::string::npos) refuse("ROOFPROF_FAKE has no = in " + part);
    const std::string name = part.substr(0, equals);
    const std::string value = part.substr(equals + 1);
    if (name.starts_with("fail:")) {
      fresh.failures[name.substr(5)] = {std::atoi(value.c_str()), 0};
    } else if (fresh.texts.contains(name)) {
      fresh.texts[name] = value;
    } else {
      named(fresh.settings, name) = std::atoll(value.c_str());
    }
  }
}

State fresh_state() {
  State fresh;
#define SETTING(name, value) fresh.settings[#name] = value;
#define TEXT(name, value) fresh.texts[#name] = #value;
#include "fake_settings.def"
#undef SETTING
#undef TEXT
  read_environment(fresh);
  return fresh;
}

const bool ready = (fake_reset(), true);

// With the lock held.
long long now() {
  if (named(state.settings, "real_clock") == 0) return state.now_ns;
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

fake::Ran run(const FakeLaunch& launch) {
  const std::lock_guard lock(mutex);
  fake::Ran ran{.launch = launch};
  state.now_ns += named(state.settings, "launch_ns");
  long long& stream_end = state.stream_end_ns[{launch.device, launch.stream}];
  ran.start_ns = std::max(now(), stream_end);
  ran.end_ns = ran.start_ns + launch.duration_ns;
  stream_end = std::max(stream_end, ran.end_ns);
  ran.correlation = launch.correlation != 0 ? launch.correlation : ++state.correlation;
  state.contexts.try_emplace(launch.device, 0);
  return ran;
}

}  // namespace

extern "C" {

const int roofprof_simulated = 1;
unsigned long long roofprof_simulated_time(void) { return static_cast<unsigned long long>(fake_now()); }
const unsigned long fake_launch_size = sizeof(FakeLaunch);

void fake_reset(void) {
  State fresh = fresh_state();
  {
    const std::lock_guard lock(mutex);
    state = std::move(fresh);
  }
  of_resets.tell();
}

void fake_set(const char* setting, long long value) {
  const std::lock_guard lock(mutex);
  named(state.settings, setting) = value;
}

void fake_set_text(const char* setting, const char* value) {
  const std::lock_guard lock(mutex);
  named(state.texts, setting) = value;
}

long long fake_get(const char* setting) {
  const std::lock_guard lock(mutex);
  return named(state.settings, setting);
}

const char* fake_get_text(const char* setting) {
  const std::lock_guard lock(mutex);
  return named(state.texts, setting).c_str();
}

void fake_fail(const char* function, int code, long long after) {
  const std::lock_guard lock(mutex);
  state.failures[function] = {code, state.calls[function] + after};
}

long long fake_calls(const char* function) {
  const std::lock_guard lock(mutex);
  const std::string_view asked(function);
  if (!asked.ends_with('*')) return state.calls[function];
  const std::string_view prefix = asked.substr(0, asked.size() - 1);
  long long calls = 0;
  for (const auto& [name, count] : state.calls) calls += name.starts_with(prefix) ? count : 0;
  return calls;
}

long long fake_ungated_calls(void) {
  const std::lock_guard lock(mutex);
  return ungated;
}

long long fake_live(const char* what) {
  const std::lock_guard lock(mutex);
  return state.held[what];
}

long long fake_now(void) {
  const std::lock_guard lock(mutex);
  return now();
}

void fake_advance(long long ns) {
  const std::lock_guard lock(mutex);
  state.now_ns += ns;
}

unsigned fake_launch(const FakeLaunch* launch) {
  const fake::Ran ran = run(*launch);
  of_launches.tell(ran);
  return ran.correlation;
}

void fake_call(unsigned correlation) { of_calls.tell(correlation); }

void fake_graph_node(unsigned long long node, unsigned long long original) { of_graph_nodes.tell(node, original); }

unsigned fake_kernel(const char* name, unsigned device, unsigned stream, long long duration_ns) {
  FakeLaunch launch{};
  launch.name = name;
  launch.device = device;
  launch.stream = stream;
  launch.duration_ns = duration_ns;
  for (int axis = 0; axis < 3; ++axis) launch.grid[axis] = launch.block[axis] = 1;
  return fake_launch(&launch);
}
}

namespace fake {

int enter(const char* function) {
  const std::lock_guard lock(mutex);
  const long long call = state.calls[function]++;
  if (!gate_open && std::string_view(function).starts_with("cupti")) ++ungated;
  const auto failure = state.failures.find(std::string_view(function));
  return failure != state.failures.end() && call >= failure->second.from_call ? failure->second.code : 0;
}

void open_gate() {
  const std::lock_guard lock(mutex);
  gate_open = true;
}

void live(const std::string& what, int change) {
  const std::lock_guard lock(mutex);
  state.held[what] += change;
}

void on_launch(std::function<void(const Ran&)> listener) { of_launches.add(std::move(listener)); }
void on_graph_node(std::function<void(unsigned long long, unsigned long long)> listener) {
  of_graph_nodes.add(std::move(listener));
}
void on_call(std::function<void(unsigned)> listener) { of_calls.add(std::move(listener)); }
void driver_call() { of_calls.tell(0); }
void on_reset(std::function<void()> listener) { of_resets.add(std::move(listener)); }

bool is_active(unsigned device) {
  const std::lock_guard lock(mutex);
  return state.contexts.contains(device);
}

// A context that was launched in stays with the device, as torch never gives its own back.
void retain(unsigned device, int change) {
  const std::lock_guard lock(mutex);
  state.held["primary_context"] += change;
  state.contexts.try_emplace(device, 0).first->second += change;
}

void wait_for(unsigned device) {
  const std::lock_guard lock(mutex);
  for (const auto& [stream, end_ns] : state.stream_end_ns) {
    if (stream.first == device) state.now_ns = std::max(state.now_ns, end_ns);
  }
}

unsigned last_correlation() {
  const std::lock_guard lock(mutex);
  return state.correlation;
}

}  // namespace fake
