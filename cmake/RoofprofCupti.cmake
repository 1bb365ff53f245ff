# CUPTI's headers, as torch's CUDA wheels bring them: roofprof_cupti_headers. The library itself is looked up when a program
# runs. Where the headers cannot be used, ROOFPROF_WITHOUT_CUPTI says why and ROOFPROF_WITHOUT_CUPTI_ADVICE what to do:
# roofprof is then built without kernel times and counters of GPUs, and says so itself. Both are empty otherwise.
set(ROOFPROF_CUPTI_INCLUDE_DIR "" CACHE PATH "Folder with CUPTI's headers, 13.0 or newer; else those beside torch")

set(ROOFPROF_WITHOUT_CUPTI "")
set(ROOFPROF_WITHOUT_CUPTI_ADVICE "")
set(_cupti "${ROOFPROF_CUPTI_INCLUDE_DIR}")
if(NOT _cupti)
  get_filename_component(_cupti "${ROOFPROF_TORCH_DIR}/../nvidia/cu13/include" ABSOLUTE)
endif()
set(_cupti_version "")
if(EXISTS "${_cupti}/cupti_version.h" AND EXISTS "${_cupti}/cupti_range_profiler.h" AND EXISTS "${_cupti}/cuda.h")
  file(STRINGS "${_cupti}/cupti_version.h" _cupti_version REGEX "^#define CUPTI_API_VERSION +[0-9]+")
  string(REGEX MATCH "[0-9]+$" _cupti_version "${_cupti_version}")
endif()

if(_cupti_version AND NOT _cupti_version LESS 130000)
  set(_cupti_folders "${_cupti}")
  # cupti.h includes crt/host_defines.h, which torch's wheels lack. NVIDIA's package nvidia-cuda-crt puts it beside cupti.h;
  # triton's wheel, which torch for CUDA requires, has it too. A folder of links keeps its other headers out.
  set(_crt "${ROOFPROF_TORCH_DIR}/../triton/backends/nvidia/include/crt")
  if(NOT EXISTS "${_cupti}/crt/host_defines.h" AND EXISTS "${_crt}/host_defines.h")
    set(_crt_include "${PROJECT_BINARY_DIR}/crt_include")
    file(MAKE_DIRECTORY "${_crt_include}")
    file(CREATE_LINK "${_crt}" "${_crt_include}/crt" SYMBOLIC)
    list(APPEND _cupti_folders "${_crt_include}")
  endif()

  # Whether they compile is tried: a system's own folders may or may not have what else they include.
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  try_compile(_cupti_compiles
    SOURCE_FROM_CONTENT cupti_headers.cpp
      "#include <cuda.h>\n#include <cupti.h>\n#include <cupti_profiler_host.h>\n#include <cupti_range_profiler.h>\n"
    CMAKE_FLAGS "-DINCLUDE_DIRECTORIES=${_cupti_folders}"
    CXX_STANDARD 20 CXX_STANDARD_REQUIRED ON
    OUTPUT_VARIABLE _cupti_said
    NO_CACHE)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  if(_cupti_compiles)
    message(STATUS "roofprof: CUPTI's headers (${_cupti_version}) are in ${_cupti}")
    add_library(roofprof_cupti_headers INTERFACE)
    target_include_directories(roofprof_cupti_headers SYSTEM INTERFACE ${_cupti_folders})
  else()
    string(REGEX MATCH "error: [^\n\"]*" _cupti_error "${_cupti_said}")
    set(ROOFPROF_WITHOUT_CUPTI "CUPTI's headers in ${_cupti} do not compile (${_cupti_error})")
    set(ROOFPROF_WITHOUT_CUPTI_ADVICE "pip install nvidia-cuda-crt and build again, or set ROOFPROF_CUPTI_INCLUDE_DIR")
  endif()
else()
  set(ROOFPROF_WITHOUT_CUPTI "there are no CUPTI headers (13.0 or newer) in ${_cupti}")
  set(ROOFPROF_WITHOUT_CUPTI_ADVICE "build it beside a CUDA form of torch, or set ROOFPROF_CUPTI_INCLUDE_DIR")
endif()

# As the last line of a build: what configuring says has long scrolled away by then.
function(roofprof_say_what_is_left_out target)
  if(ROOFPROF_WITHOUT_CUPTI)
    set(sentence "roofprof: built without kernel times and counters of GPUs: ${ROOFPROF_WITHOUT_CUPTI}; ${ROOFPROF_WITHOUT_CUPTI_ADVICE}")
    message(STATUS "${sentence}")
    add_custom_command(TARGET ${target} POST_BUILD COMMAND ${CMAKE_COMMAND} -E echo "${sentence}" VERBATIM)
  endif()
endfunction()
