# What `cmake --install --prefix <folder>` lays out; without ROOFPROF_PYTHON all but the last line. The Python package is
# that folder, so a pip install serves C++ too:
#
#   lib/libroofprof.so  lib/libroofprof_reports.so  lib/libroofprof_nn.so   lib/pkgconfig/roofprof.pc   include/roofprof/*.h   share/cmake/roofprof/
#   share/doc/roofprof/*.md
#   _C*.so   _report*.so   _build_info.py
include(CMakePackageConfigHelpers)
set(_config share/cmake/roofprof)

set_target_properties(roofprof PROPERTIES EXPORT_NAME library)
set_target_properties(roofprof_reports PROPERTIES EXPORT_NAME reports)
set_target_properties(roofprof_nn PROPERTIES EXPORT_NAME nn)
set_target_properties(roofprof_program PROPERTIES EXPORT_NAME roofprof)
install(TARGETS roofprof roofprof_reports roofprof_nn roofprof_program EXPORT roofprofTargets LIBRARY DESTINATION lib)
install(DIRECTORY csrc/include/roofprof DESTINATION include)
install(DIRECTORY docs/ DESTINATION share/doc/roofprof FILES_MATCHING PATTERN "*.md" PATTERN images EXCLUDE)
install(EXPORT roofprofTargets NAMESPACE roofprof:: DESTINATION ${_config})

# In site-packages torch is the neighbour. Elsewhere it is not, which does no harm: whoever loads roofprof (Python after
# `import torch`, a program linked with torch) has torch's libraries loaded by name.
set_target_properties(roofprof roofprof_nn PROPERTIES INSTALL_RPATH "$ORIGIN;$ORIGIN/../../torch/lib")

configure_file(cmake/roofprofConfig.cmake.in roofprofConfig.cmake @ONLY)
write_basic_package_version_file(roofprofSameMinorVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/roofprofConfig.cmake ${PROJECT_BINARY_DIR}/roofprofSameMinorVersion.cmake
              cmake/roofprofConfigVersion.cmake cmake/RoofprofFindTorch.cmake
        DESTINATION ${_config})

configure_file(cmake/roofprof.pc.in roofprof.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/roofprof.pc DESTINATION lib/pkgconfig)

if(ROOFPROF_PYTHON)
  set_target_properties(_C PROPERTIES INSTALL_RPATH "$ORIGIN/lib;$ORIGIN/../torch/lib")
  set_target_properties(_report PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
  install(TARGETS _C _report LIBRARY DESTINATION .)
  configure_file(cmake/_build_info.py.in _build_info.py @ONLY)
  install(FILES ${PROJECT_BINARY_DIR}/_build_info.py DESTINATION .)
endif()
