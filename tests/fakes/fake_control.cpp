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

namespace {

template <class Value>
using ByName = std::map<std::string, Value, std::less<>>;

struct State {
  ByName<long long> settings;
  ByName<std::string> texts;
  ByName<std::pair<int, long long>> failures;  // the code, and from which call on
  ByName<long long> calls;
  ByName<long long> held;
  std::map<std::pair<unsigned, unsigned>, long long> stream_end_ns;
  std::map<unsigned, int> contexts;
  long long now_ns = 1'000'000;
  unsigned correlation = 0;
};

// What outlives a reset belongs to the process: who listens, and that the gate was passed.
std::mutex mutex;
State state;
std::vector<std::function<void(const fake::Event&)>> listeners;
bool gate_open = false;
long long ungated = 0;

template <class Call>
auto locked(const Call& call) {
  const std::lock_guard lock(mutex);
  return call();
}

template <class Map>
auto& named(Map& map, std::string_view name) {
  const auto found = map.find(name);
  if (found != map.end()) return found->second;
  std::fprintf(stderr, "fake libraries: there is no setting %s\n", std::string(name).c_str());
  std::abort();
}

// "devices=2,chip=AD102,fail:cuptiSubscribe=39"
void read_environment(State& fresh) {
  const char* text = std::getenv("ROOFPROF_FAKE");
  std::istringstream parts(text != nullptr ? text : "");
  for (std::string part; std::getline(parts, part, ',');) {
    const std::string name = part.substr(0, part.find('='));
    const std::string value = part.substr(std::min(part.size(), name.size() + 1));
    if (name.starts_with("fail:")) {
      fresh.failures[name.substr(5)] = {std::atoi(value.c_str()), 0};
    } else if (fresh.texts.contains(name)) {
      fresh.texts[name] = value;
    } else {
      named(fresh.settings, name) = std::atoll(value.c_str());
    }
  }
}

const bool ready = (fake_reset(), true);

// With the lock held.
long long now() {
  if (named(state.settings, "real_clock") == 0) return state.now_ns;
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

}  // namespace

extern "C" {

const int roofprof_simulated = 1;
unsigned long long roofprof_simulated_time(void) { return static_cast<unsigned long long>(fake_now()); }

void fake_reset(void) {
  State fresh;
#define SETTING(name, value) fresh.settings[#name] = value;
#define TEXT(name, value) fresh.texts[#name] = #value;
#include "fake_settings.def"
#undef SETTING
#undef TEXT
  read_environment(fresh);
  locked([&] { state = std::move(fresh); });
  fake::tell({});
}

void fake_set(const char* setting, long long value) {
  locked([&] { named(state.settings, setting) = value; });
}
void fake_set_text(const char* setting, const char* value) {
  locked([&] { named(state.texts, setting) = value; });
}
long long fake_get(const char* setting) {
  return locked([&] { return named(state.settings, setting); });
}
const char* fake_get_text(const char* setting) {
  return locked([&] { return named(state.texts, setting).c_str(); });
}
void fake_fail(const char* function, int code, long long after) {
  locked([&] { state.failures[function] = {code, state.calls[function] + after}; });
}

long long fake_calls(const char* function) {
  const std::lock_guard lock(mutex);
  const std::string_view wanted(function);
  if (!wanted.ends_with('*')) return state.calls[function];
  long long calls = 0;
  for (const auto& [name, count] : state.calls) {
    calls += name.starts_with(wanted.substr(0, wanted.size() - 1)) ? count : 0;
  }
  return calls;
}

long long fake_ungated_calls(void) {
  return locked([] { return ungated; });
}
long long fake_live(const char* what) {
  return locked([&] { return state.held[what]; });
}
long long fake_now(void) { return locked(now); }
void fake_advance(long long ns) {
  locked([&] { state.now_ns += ns; });
}

unsigned fake_launch(const FakeLaunch* launch) {
  fake::Event ran{.kind = fake::Event::launch, .launched = *launch};
  locked([&] {
    state.now_ns += named(state.settings, "launch_ns");
    long long& stream_end = state.stream_end_ns[{launch->device, launch->stream}];
    ran.start_ns = std::max(now(), stream_end);
    stream_end = ran.end_ns = ran.start_ns + launch->duration_ns;
    ran.correlation = launch->correlation != 0 ? launch->correlation : ++state.correlation;
    state.contexts.try_emplace(launch->device, 0);
  });
  fake::tell(ran);
  return ran.correlation;
}

unsigned fake_kernel(const char* name, unsigned device, unsigned stream, long long duration_ns) {
  const FakeLaunch launch{.name = name, .device = device, .stream = stream, .duration_ns = duration_ns};
  return fake_launch(&launch);
}

unsigned fake_launch_text(const char* fields) {
  FakeLaunch launch;
  std::string name;
  std::istringstream words(fields);
  for (std::string key; std::getline(words >> std::ws, key, '=');) {
    double value = 0;
    key == "name" ? void(std::getline(words, name)) : void(words >> value);
#define FIELD(member) \
  if (key == #member) launch.member = static_cast<decltype(launch.member)>(value)
    FIELD(kind);
    FIELD(stream);
    FIELD(duration_ns);
    FIELD(bytes);
    FIELD(copy_kind);
    FIELD(dram_read_bytes);
    FIELD(dram_write_bytes);
    FIELD(l2_bytes);
    FIELD(flops);
  }
  launch.name = name.c_str();
  return fake_launch(&launch);
}

void fake_call(unsigned correlation) { fake::tell({.kind = fake::Event::call, .correlation = correlation}); }

void fake_graph_node(unsigned long long node, unsigned long long original) {
  fake::tell({.kind = fake::Event::graph_node, .node = node, .original = original});
}
}

namespace fake {

int enter(const char* function) {
  const std::lock_guard lock(mutex);
  const long long call = state.calls[function]++;
  if (!gate_open && std::string_view(function).starts_with("cupti")) ++ungated;
  const auto failure = state.failures.find(std::string_view(function));
  return failure != state.failures.end() && call >= failure->second.second ? failure->second.first : 0;
}

void open_gate() {
  locked([] { gate_open = true; });
}
void live(const std::string& what, int change) {
  locked([&] { state.held[what] += change; });
}

void on_event(std::function<void(const Event&)> listener) {
  locked([&] { listeners.push_back(std::move(listener)); });
}
void tell(const Event& event) {
  for (const auto& listener : locked([] { return listeners; })) listener(event);
}

bool is_active(unsigned device) {
  return locked([&] { return state.contexts.contains(device); });
}

// A context that was launched in stays with the device, as torch never gives its own back.
void retain(unsigned device, int change) {
  live("primary_context", change);
  locked([&] { state.contexts.try_emplace(device, 0).first->second += change; });
}

void wait_for(unsigned device) {
  const std::lock_guard lock(mutex);
  for (const auto& [stream, end_ns] : state.stream_end_ns) {
    if (stream.first == device) state.now_ns = std::max(state.now_ns, end_ns);
  }
}

}  // namespace fake
