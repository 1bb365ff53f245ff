/* What tests tell the fake libraries (libcuda.so.1, libcupti.so.13, libnvidia-ml.so.1) and ask them. A plain C
 * interface, exported by libroofprof_fakes.so, which they all share: C++ tests link it, Python loads it with ctypes.
 * Everything that comes from here is simulated: no figure of it says anything about a device. */
#pragma once

#ifdef __cplusplus
extern "C" {
#endif

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
/* How many of something are held now, for leak checks: "subscriber", "primary_context", "host_object",
 * "range_profiler", "activity_buffer", ... A name that nobody counted is 0. */
long long fake_live(const char* what);

/* The clock of the simulated machine, ns: it stands still but for the calls that say so. */
long long fake_now(void);
void fake_advance(long long ns);

enum FakeKind { FAKE_KERNEL = 0, FAKE_COPY = 1, FAKE_FILL = 2 };

/* One piece of work for a device. All zeros but a name and a duration are a plain kernel on device 0. */
typedef struct FakeLaunch {
  int kind;         /* FakeKind */
  const char* name; /* of a kernel, as CUPTI would give it: mangled, if need be */
  unsigned device;
  unsigned stream;
  long long duration_ns;
  int grid[3];
  int block[3];
  unsigned long long bytes; /* of a copy or fill */
  int copy_kind;            /* CUpti_ActivityMemcpyKind */
  unsigned graph;           /* 0: not from a graph */
  unsigned long long graph_node;
  unsigned correlation; /* 0: a launch of its own; else one of those that a graph's launch with that id runs */
  int incomplete;       /* its record has no start */
  /* what the counters say of it */
  double dram_read_bytes;
  double dram_write_bytes;
  double l2_bytes;
  double l1_bytes;
  double flops;       /* fp32, by CUDA cores */
  unsigned to_device; /* of a copy between devices: copy_kind 10 */
  int from_memory;    /* of a copy: CUpti_ActivityMemoryKind; 0: its record does not say */
  int to_memory;
} FakeLaunch;
/* For who mirrors it: fake_launch.py. */
extern const unsigned long fake_launch_size;

/* Launches it from this thread, now: the host's clock moves by the setting launch_ns, the work starts when its stream
 * is free. Returns its correlation id. Makes the device's primary context active, as torch does. */
unsigned fake_launch(const FakeLaunch* launch);
/* The same for a plain kernel. */
unsigned fake_kernel(const char* name, unsigned device, unsigned stream, long long duration_ns);

/* A call of the runtime's API and, inside it, of the driver's, on this thread, under one correlation id: work that has
 * the id as its `correlation` was launched by it. */
void fake_call(unsigned correlation);

/* A node of a CUDA graph comes to be, on this thread: captured, or (original not 0) cloned from one that was, as
 * instantiating a graph does. Nodes are numbered by whoever makes them. */
void fake_graph_node(unsigned long long node, unsigned long long original);

#ifdef __cplusplus
}
#endif
