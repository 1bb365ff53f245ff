// A simulated libcupti.so.13, third part: the host profiler and the range profiler.
#include <cuda.h>
#include <cupti.h>

#include "fake_cupti.h"
#include "fake_state.h"
