// The libraries that CUPTI loads for its counters: only to be found.
extern "C" const int roofprof_fake_nvperf = 1;
