# What `cmake --install --prefix <folder>` lays out. The Python package is that folder, so a pip install serves C++ too:
#
#   lib/libroofprof.so   include/roofprof/*.h   share/cmake/roofprof/   _C*.so   _build_info.py
include(CMakePackageConfigHelpers)
set(_config share/cmake/roofprof)

install(TARGETS roofprof EXPORT roofprofTargets LIBRARY DESTINATION lib)
install(DIRECTORY csrc/include/roofprof DESTINATION include)
install(EXPORT roofprofTargets NAMESPACE roofprof:: DESTINATION ${_config})
target_compile_features(roofprof INTERFACE cxx_std_20)

# Installed, torch is the neighbour in site-packages. In an editable install it is not, which does no harm: whoever
# loads roofprof (Python after `import torch`, a program linked with torch) has torch's libraries loaded by name.
set_target_properties(roofprof PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../torch/lib")
if(TARGET _C)
  set_target_properties(_C PROPERTIES INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../torch/lib")
endif()

configure_file(cmake/roofprofConfig.cmake.in roofprofConfig.cmake @ONLY)
write_basic_package_version_file(roofprofConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/roofprofConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/roofprofConfigVersion.cmake
        DESTINATION ${_config})

configure_file(cmake/_build_info.py.in _build_info.py @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/_build_info.py DESTINATION .)
