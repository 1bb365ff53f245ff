# Targets for the torch that the chosen Python has: roofprof_torch, roofprof_torch_python, roofprof_fmt.
#
# Never find_package(Torch): without a CUDA toolkit the CUDA wheel's config stops with an error, and with one it links
# libc10_cuda and libnvrtc, so that the result would no longer load beside a CPU-only torch.

if(ROOFPROF_PYTHON)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
else()
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
endif()

execute_process(
  COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u, pathlib as p; s = u.find_spec('torch'); print(p.Path(s.origin).parent if s else '')"
  OUTPUT_VARIABLE ROOFPROF_TORCH_DIR OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT EXISTS "${ROOFPROF_TORCH_DIR}/include/ATen/record_function.h")
  message(FATAL_ERROR "roofprof: ${Python_EXECUTABLE} has no torch to build against; run `pip install torch` with it first")
endif()
file(STRINGS "${ROOFPROF_TORCH_DIR}/version.py" _version REGEX "^__version__")
string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" ROOFPROF_TORCH_VERSION "${_version}")
string(REGEX MATCH "^[0-9]+\\.[0-9]+" ROOFPROF_TORCH_MINOR "${ROOFPROF_TORCH_VERSION}")
if(ROOFPROF_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "roofprof: torch ${ROOFPROF_TORCH_VERSION} is too old; 2.11 or newer is needed")
endif()
message(STATUS "roofprof: building against torch ${ROOFPROF_TORCH_VERSION} in ${ROOFPROF_TORCH_DIR}")

set(_include "${ROOFPROF_TORCH_DIR}/include")
foreach(_library torch torch_cpu c10 torch_python)
  add_library(roofprof_lib${_library} SHARED IMPORTED GLOBAL)
  set_target_properties(roofprof_lib${_library} PROPERTIES
    IMPORTED_LOCATION "${ROOFPROF_TORCH_DIR}/lib/lib${_library}.so" IMPORTED_NO_SONAME ON)
endforeach()

add_library(roofprof_torch INTERFACE)
target_include_directories(roofprof_torch SYSTEM INTERFACE "${_include}" "${_include}/torch/csrc/api/include")
# The system's libstdc++ comes first: torch 2.11's libtorch exports a std::filesystem of its own, whose remove_all crashes.
target_link_libraries(roofprof_torch INTERFACE stdc++ roofprof_libtorch roofprof_libtorch_cpu roofprof_libc10)
# at::RecordFunction has a member under #ifndef NDEBUG and the wheels are built with NDEBUG: without it here, in debug
# builds too, the struct's layout differs and inputs() throws inside the callback.
target_compile_definitions(roofprof_torch INTERFACE NDEBUG)

add_library(roofprof_torch_python INTERFACE)
target_link_libraries(roofprof_torch_python INTERFACE roofprof_torch roofprof_libtorch_python)

# fmt's headers come with torch. A folder of links keeps torch's other headers out of the rooms that need none.
set(_fmt "${CMAKE_BINARY_DIR}/fmt_include")
file(MAKE_DIRECTORY "${_fmt}")
file(CREATE_LINK "${_include}/fmt" "${_fmt}/fmt" SYMBOLIC)
add_library(roofprof_fmt INTERFACE)
target_include_directories(roofprof_fmt SYSTEM INTERFACE "${_fmt}")
target_compile_definitions(roofprof_fmt INTERFACE FMT_HEADER_ONLY=1)
