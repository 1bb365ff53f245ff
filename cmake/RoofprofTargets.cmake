# How roofprof's own targets are made.

function(roofprof_compile_options target)
  # gcc 12 warns of std::string's own code (-Wrestrict).
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict> $<$<BOOL:${ROOFPROF_WARNINGS_AS_ERRORS}>:-Werror>)
  # -O3 takes a fifth longer to compile and makes nothing here faster; the loops that measure bandwidth ask for it.
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O2>)
  # Memory is there for gcc's garbage: collecting it less often saves a tenth of the time.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:--param=ggc-min-heapsize=1000000>)
  # Calls between roofprof's own functions are not interposed: they go straight there.
  target_compile_options(${target} PRIVATE -fno-semantic-interposition)
  # Some compilers link libstdc++ statically. Its functions must not be seen by another library of the process, which would
  # use them with the data of the libstdc++ that torch brings, and crash.
  target_link_options(${target} PRIVATE $<$<NOT:$<PLATFORM_ID:Darwin>>:LINKER:--exclude-libs,libstdc++.a:libgcc.a:libgcc_eh.a>)
  if(ROOFPROF_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${ROOFPROF_SANITIZE} -fno-omit-frame-pointer)
    # With the address sanitizer's checks, gcc 12 takes members of std::regex for uninitialised.
    if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -Wno-maybe-uninitialized)
    endif()
    # torch's headers have fences, which gcc's thread sanitizer does not see.
    if(ROOFPROF_SANITIZE MATCHES thread AND CMAKE_CXX_COMPILER_ID STREQUAL GNU)
      target_compile_options(${target} PRIVATE -Wno-tsan)
    endif()
    target_link_options(${target} PUBLIC -fsanitize=${ROOFPROF_SANITIZE})
  endif()
endfunction()

# The sources of a target are compiled several in one go, as torch's headers take ten times longer than a
# file's own code. With ROOFPROF_UNITY=OFF each is compiled by itself: slower from scratch, quicker after a change.
option(ROOFPROF_UNITY "Compile several sources together" ON)
function(roofprof_compile_together target files)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${ROOFPROF_UNITY} UNITY_BUILD_BATCH_SIZE ${files})
endfunction()

# roofprof_data(room file variable header): the one file that has it, as the text that `header` declares.
function(roofprof_data room file variable header)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  set(ROOFPROF_DATA_FILE ${file})
  set(ROOFPROF_DATA_VARIABLE ${variable})
  set(ROOFPROF_DATA_HEADER ${header})
  file(READ ${file} ROOFPROF_DATA)
  get_filename_component(name ${file} NAME_WE)
  configure_file(cmake/data.cpp.in ${name}.cpp @ONLY)
  target_sources(roofprof_${room} PRIVATE ${PROJECT_BINARY_DIR}/${name}.cpp)
endfunction()

# roofprof_room(folder [WITHOUT folders...] [LINK targets...]): roofprof_<last part of it> of every source below
# csrc/<folder>, but for those below other folders that have a target of their own. Includes are written from csrc/ on.
function(roofprof_room folder)
  cmake_parse_arguments(room "" "" "WITHOUT;LINK" ${ARGN})
  get_filename_component(name ${folder} NAME)
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/csrc/${folder}/*.cpp)
  foreach(other IN LISTS room_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/csrc/${other}/")
  endforeach()
  add_library(roofprof_${name} OBJECT ${sources})
  roofprof_compile_options(roofprof_${name})
  roofprof_compile_together(roofprof_${name} 64)
  target_include_directories(roofprof_${name} PUBLIC ${PROJECT_SOURCE_DIR}/csrc ${PROJECT_SOURCE_DIR}/csrc/include)
  # Object libraries: a link between rooms hands on include paths, not objects; what is linked names all its rooms.
  target_link_libraries(roofprof_${name} PUBLIC ${room_LINK})
endfunction()
