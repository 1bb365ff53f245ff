# CUPTI's headers, as torch's CUDA wheels bring them: roofprof_cupti_headers. The library itself is looked up when a program
# runs. Without headers the collector of a GPU's kernel times and counters is left out, and says so.
set(ROOFPROF_CUPTI_INCLUDE_DIR "" CACHE PATH "Folder with CUPTI's headers, 13.0 or newer; else those beside torch")

set(_cupti "${ROOFPROF_CUPTI_INCLUDE_DIR}")
if(NOT _cupti)
  set(_cupti "${ROOFPROF_TORCH_DIR}/../nvidia/cu13/include")
endif()
if(EXISTS "${_cupti}/cupti_range_profiler.h" AND EXISTS "${_cupti}/cuda.h")
  message(STATUS "roofprof: CUPTI's headers are in ${_cupti}")
  add_library(roofprof_cupti_headers INTERFACE)
  target_include_directories(roofprof_cupti_headers SYSTEM INTERFACE "${_cupti}")
else()
  message(STATUS "roofprof: no CUPTI headers (13.0 or newer) in ${_cupti}: built without GPU kernel times and counters")
endif()
