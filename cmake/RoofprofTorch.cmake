# What roofprof itself is built against: roofprof_torch, roofprof_torch_python, roofprof_fmt, roofprof_pybind11. The torch is that of
# ROOFPROF_TORCH_DIR (its folder: include/ and lib/ are in it), else that of the chosen Python.
include(RoofprofFindTorch)

if(ROOFPROF_PYTHON)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter Development.Module)
elseif(NOT ROOFPROF_TORCH_DIR)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
endif()
if(NOT ROOFPROF_TORCH_DIR)
  roofprof_torch_of_python(ROOFPROF_TORCH_DIR)
endif()
roofprof_torch_version(ROOFPROF_TORCH_VERSION "${ROOFPROF_TORCH_DIR}")
if(NOT ROOFPROF_TORCH_VERSION)
  message(FATAL_ERROR "roofprof: there is no torch to build against: run `pip install torch` with ${Python_EXECUTABLE}, or set ROOFPROF_TORCH_DIR to the folder of one")
elseif(ROOFPROF_TORCH_VERSION VERSION_LESS 2.11)
  message(FATAL_ERROR "roofprof: torch ${ROOFPROF_TORCH_VERSION} in ${ROOFPROF_TORCH_DIR} is too old; 2.11 or newer is needed")
endif()
string(REGEX MATCH "^[0-9]+\\.[0-9]+" ROOFPROF_TORCH_MINOR "${ROOFPROF_TORCH_VERSION}")
message(STATUS "roofprof: building against torch ${ROOFPROF_TORCH_VERSION} in ${ROOFPROF_TORCH_DIR}")

set(_include "${ROOFPROF_TORCH_DIR}/include")
set(_lib "${ROOFPROF_TORCH_DIR}/lib")
roofprof_add_torch("${ROOFPROF_TORCH_DIR}" GLOBAL)

add_library(roofprof_torch INTERFACE)
target_include_directories(roofprof_torch SYSTEM INTERFACE "${_include}" "${_include}/torch/csrc/api/include")
# stdc++ first: see roofprof_add_torch. A linker may drop libtorch.so here: programs and Python bring it.
target_link_libraries(roofprof_torch INTERFACE stdc++ "${_lib}/libtorch.so" "${_lib}/libtorch_cpu.so" "${_lib}/libc10.so")
# at::RecordFunction has a member under #ifndef NDEBUG and the wheels are built with NDEBUG: without it here, in debug
# builds too, the struct's layout differs and inputs() throws inside the callback. No public header includes it.
target_compile_definitions(roofprof_torch INTERFACE NDEBUG)

add_library(roofprof_torch_python INTERFACE)
target_link_libraries(roofprof_torch_python INTERFACE roofprof_torch "${_lib}/libtorch_python.so")

# roofprof_of_torch(name): the headers of a library that come with torch. A folder of links keeps torch's other headers
# out of the rooms that need none.
function(roofprof_of_torch name)
  set(folder "${PROJECT_BINARY_DIR}/${name}_include")
  file(MAKE_DIRECTORY "${folder}")
  file(CREATE_LINK "${_include}/${name}" "${folder}/${name}" SYMBOLIC)
  add_library(roofprof_${name} INTERFACE)
  target_include_directories(roofprof_${name} SYSTEM INTERFACE "${folder}")
endfunction()
roofprof_of_torch(fmt)
target_compile_definitions(roofprof_fmt INTERFACE FMT_HEADER_ONLY=1)
roofprof_of_torch(pybind11)
