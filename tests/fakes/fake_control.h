/* What tests tell the fake libraries (libcuda.so.1, libcupti.so.13, libnvidia-ml.so.1) and ask them. All share
 * libroofprof_fakes.so: C++ tests link it, Python loads it with ctypes. Everything that comes from here is simulated:
 * no figure of it says anything about a device. */
#pragma once

#include <functional>
#include <string>

extern "C" {

/* By this roofprof knows fakes, and says "simulated" wherever it shows what they told. */
extern const int roofprof_simulated;
/* The simulated machine's CLOCK_REALTIME, which is the real library's clock unless a client replaces it: fake_now(). */
unsigned long long roofprof_simulated_time(void);

/* All settings, failures, counts and the clock back to the start: the defaults, then what the environment variable
 * ROOFPROF_FAKE says, "devices=2,chip=AD102,fail:cuptiSubscribe=39". */
void fake_reset(void);

/* Settings, by name: fake_settings.def lists them with their defaults. A name that is not there ends the process. */
void fake_set(const char* setting, long long value);
void fake_set_text(const char* setting, const char* value);
long long fake_get(const char* setting);
const char* fake_get_text(const char* setting); /* valid until it is set again */

/* The function returns `code` from its call number `after` on, counted from 0 and from now. Code 0: works again. */
void fake_fail(const char* function, int code, long long after);

/* How often a function was called since the reset; a name that ends in * counts all that begin so: "cupti*".
 * "callback": how often CUPTI's subscriber was called back. */
long long fake_calls(const char* function);
/* Calls of cupti* functions, since the process began, before the driver was started and showed a device. */
long long fake_ungated_calls(void);
/* How many of something are held now, for leak checks: "subscriber", "primary_context", "activity_buffer", ... */
long long fake_live(const char* what);

/* The clock of the simulated machine, ns: it stands still but for the calls that say so. */
long long fake_now(void);
void fake_advance(long long ns);

enum FakeKind { FAKE_KERNEL = 0, FAKE_COPY = 1, FAKE_FILL = 2 };

/* One piece of work for a device. */
struct FakeLaunch {
  int kind = FAKE_KERNEL;
  const char* name = ""; /* of a kernel, as CUPTI would give it: mangled, if need be */
  unsigned device = 0;
  unsigned stream = 0;
  long long duration_ns = 0;
  int grid[3] = {1, 1, 1};
  int block[3] = {1, 1, 1};
  unsigned long long bytes = 0; /* of a copy or fill */
  int copy_kind = 0;            /* CUpti_ActivityMemcpyKind */
  int from_memory = 0;          /* CUpti_ActivityMemoryKind; 0: its record does not say */
  int to_memory = 0;
  unsigned long long graph_node = 0; /* 0: not from a graph */
  unsigned correlation = 0;          /* 0: a launch of its own; else one of those that a launch with that id runs */
  int incomplete = 0;                /* its record has no start */
  /* what the counters say of it */
  double dram_read_bytes = 0;
  double dram_write_bytes = 0;
  double l2_bytes = 0;
  double l1_bytes = 0;
  double flops = 0; /* fp32, by CUDA cores */
};

/* Launches it from this thread, now: the host's clock moves by the setting launch_ns, the work starts when its stream
 * is free. Returns its correlation id. Makes the device's primary context active, as torch does. */
unsigned fake_launch(const FakeLaunch* launch);
unsigned fake_kernel(const char* name, unsigned device, unsigned stream, long long duration_ns);
/* "duration_ns=5 dram_read_bytes=300 name=the rest": for other languages. */
unsigned fake_launch_text(const char* fields);

/* A call of the runtime's API and, inside it, of the driver's, on this thread, under one correlation id: work that has
 * the id as its `correlation` was launched by it. */
void fake_call(unsigned correlation);

/* A node of a CUDA graph comes to be, on this thread: captured, or (original not 0) cloned from one that was, as
 * instantiating a graph does. Nodes are numbered by whoever makes them. */
void fake_graph_node(unsigned long long node, unsigned long long original);
}

inline unsigned fake_launch(const FakeLaunch& launch) { return fake_launch(&launch); }

/* Between the libraries. */
namespace fake {

/* Counts a call of a function; what it is told to fail with, else 0. */
int enter(const char* function);
/* The driver was started and showed a device: calls of CUPTI are allowed from now on. */
void open_gate();
/* One more (or fewer) of something is held. */
void live(const std::string& what, int change);

/* What happens: on the thread where it does, without a lock held. */
struct Event {
  enum Kind { launch, call, graph_node, reset } kind = reset;
  FakeLaunch launched{};
  unsigned correlation = 0; /* of a launch or call; 0: of a call of the driver's that launches nothing */
  long long start_ns = 0;
  long long end_ns = 0;
  unsigned long long node = 0;
  unsigned long long original = 0;
};
void on_event(std::function<void(const Event&)> listener);
void tell(const Event& event);

/* Whether somebody holds the primary context of a device, or has launched on it. */
bool is_active(unsigned device);
void retain(unsigned device, int change);
/* Moves the clock to where all that was launched on the device has ended. */
void wait_for(unsigned device);

}  // namespace fake

/* The first line of a fake function: FAKE(CUptiResult, cuptiSubscribe) */
#define FAKE(Result, name) \
  if (const int fake_code = ::fake::enter(#name)) return static_cast<Result>(fake_code)
