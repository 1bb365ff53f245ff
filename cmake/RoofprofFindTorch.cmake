# Finds torch and makes the target roofprof::torch. Used by roofprof's own build, and installed for roofprofConfig.cmake.
#
# Never find_package(Torch): without a CUDA toolkit the CUDA wheel's config stops with an error, and with one it links
# libc10_cuda and libnvrtc, so that the result would no longer load beside a CPU-only torch.

# The folder of the torch that Python_EXECUTABLE imports; "" where it has none.
function(roofprof_torch_of_python folder)
  execute_process(
    COMMAND "${Python_EXECUTABLE}" -c "import importlib.util as u, pathlib as p; s = u.find_spec('torch'); print(p.Path(s.origin).parent if s else '')"
    OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(${folder} "${found}" PARENT_SCOPE)
endfunction()

# The version in a torch folder's headers, such as 2.15.0; "" where there are none.
function(roofprof_torch_version version folder)
  set(found "")
  foreach(header IN ITEMS torch/headeronly/version.h torch/csrc/api/include/torch/version.h)  # the second before 2.9
    if(NOT found AND EXISTS "${folder}/include/${header}")
      file(STRINGS "${folder}/include/${header}" found REGEX "^ *\"[0-9.]+\"")
      string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" found "${found}")
    endif()
  endforeach()
  set(${version} "${found}" PARENT_SCOPE)
endfunction()

# roofprof::torch: headers and libraries of the torch in that folder, as a program needs them.
function(roofprof_add_torch folder)
  set(torch "${folder}/lib/libtorch.so")
  set(torch_cpu "${folder}/lib/libtorch_cpu.so")
  set(c10 "${folder}/lib/libc10.so")
  add_library(roofprof::torch INTERFACE IMPORTED ${ARGN})
  target_include_directories(roofprof::torch INTERFACE "${folder}/include" "${folder}/include/torch/csrc/api/include")
  target_link_libraries(roofprof::torch INTERFACE "${torch}" "${torch_cpu}" "${c10}")
  # Options stand before all libraries on the linker's line, whatever else a program links and in which order.
  #   stdc++: torch 2.11's libtorch exports a std::filesystem of its own, whose remove_all crashes: the system's comes first.
  #   torch: libtorch.so has no symbols but brings the CUDA half in, and roofprof's libraries find torch's as already
  #   loaded by the program: a linker that drops what looks idle must keep them.
  target_link_options(roofprof::torch INTERFACE
    "SHELL:-Wl,--push-state,--no-as-needed -lstdc++ \"${torch}\" \"${torch_cpu}\" \"${c10}\" -Wl,--pop-state")
endfunction()
