// A simulated libcupti.so.13, second part: activity records.
#include <cuda.h>
#include <cupti.h>

#include "fake_cupti.h"
#include "fake_state.h"
