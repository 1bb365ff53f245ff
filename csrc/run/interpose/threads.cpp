// Threads that a run's call starts work for that run. The program's calls of pthread_create come through here, as those
// of torch::nn do, and go on to the system's; so do std::thread's and std::async's.

#include <dlfcn.h>
#include <pthread.h>

#include "observe/own_calls.h"

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                              void* argument) noexcept {
  using Create = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static const auto create = reinterpret_cast<Create>(dlsym(RTLD_NEXT, "pthread_create"));
  roofprof::observe::ThreadStart start;
  const int failed = create(thread, attributes, function, argument);
  if (failed == 0) start.started(*thread);
  return failed;
}
