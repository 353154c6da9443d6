# Precompiled headers. Most of what a file costs to compile are the headers of
# MLIR (3 to 14 s) or of nlohmann's JSON (1 to 3 s); precompiled, they cost 0.3 s.
# There is one header for each kind of source:
#
#   mlir     the compiler: MLIR's dialects, and those of our own headers that
#            nearly every file of it includes (mlir_pch.h)
#   runtime  the runtime: the C++ library and JSON (runtime_pch.h)
#   tool     kf-run's commands: the same and what most of them include, which is
#            half of what one costs (tool_pch.h)
#   test     tests of the runtime: those of the runtime and GoogleTest (test_pch.h)
#
# Sources include what they use all the same: the preset `nopch` builds without
# the headers, and .ci/check_changes compiles with it what a submission changes.

option(KF_PRECOMPILED_HEADERS
  "Compile with precompiled headers (clang only); OFF shows missing includes" ON)
set(KF_PCH_FOLDER "${CMAKE_CURRENT_LIST_DIR}")

# kf_add_pch(KIND [LINK libraries...] [OPTIONS options...] [DEPENDS targets...]):
# the target kf_KIND_pch, whose property KF_PCH is the header's file.
function(kf_add_pch kind)
  cmake_parse_arguments(ARG "" "" "LINK;OPTIONS;DEPENDS" ${ARGN})
  set(name kf_${kind}_pch)
  file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/${name}.cpp"
    CONTENT "// Carries the precompiled header.\n")
  add_library(${name} OBJECT "${CMAKE_BINARY_DIR}/${name}.cpp")
  target_include_directories(${name} PRIVATE "${KF_PCH_FOLDER}"
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  # Without the time stamp, ccache can reuse what was compiled with the header.
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS} -Xclang -fno-pch-timestamp)
  # Found by the include path: the list that CMake writes is among what ccache
  # compares, and with a path of the checkout no other checkout would have it.
  target_precompile_headers(${name} PRIVATE <${name}.h>)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
  # A precompiled header holds paths of its checkout. Where there is a sum beside
  # it, ccache reads that instead (CCACHE_PCH_EXTSUM in the presets), so that a
  # second checkout shares what the first compiled. The sum is of every file that
  # the header was made from, and is made with it.
  if(CMAKE_CXX_COMPILER_LAUNCHER)
    set_target_properties(${name} PROPERTIES CXX_COMPILER_LAUNCHER
      "${KF_PCH_FOLDER}/sum_pch.sh;${PROJECT_SOURCE_DIR};${CMAKE_CXX_COMPILER_LAUNCHER}")
  endif()
  set_target_properties(${name} PROPERTIES KF_PCH
    "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/${name}.dir/cmake_pch.hxx.pch")
endfunction()

# kf_use_pch(TARGET KIND): the sources of TARGET are compiled with a precompiled
# header. Those with options of their own are not: clang takes a header only with
# the options that it was made with.
function(kf_use_pch target kind)
  if(NOT TARGET kf_${kind}_pch)
    return()
  endif()
  # Not by REUSE_FROM, whose options name the header by its absolute path where
  # ccache does not look for paths.
  get_target_property(pch kf_${kind}_pch KF_PCH)
  set(use -include-pch "${pch}")
  get_target_property(sources ${target} SOURCES)
  list(FILTER sources INCLUDE REGEX "\\.cpp$")
  foreach(source ${sources})
    get_source_file_property(options "${source}" COMPILE_OPTIONS)
    if(options AND NOT options STREQUAL use)
      continue()
    endif()
    set_source_files_properties("${source}" PROPERTIES
      COMPILE_OPTIONS "${use}" OBJECT_DEPENDS "${pch}")
  endforeach()
endfunction()

# kf_set_source_options(sources... OPTIONS options...): options that clang would
# refuse the precompiled header with, such as -O2.
function(kf_set_source_options)
  cmake_parse_arguments(ARG "" "" "OPTIONS" ${ARGN})
  set_source_files_properties(${ARG_UNPARSED_ARGUMENTS} PROPERTIES
    COMPILE_OPTIONS "${ARG_OPTIONS}" OBJECT_DEPENDS "")
endfunction()

if(KF_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  find_package(nlohmann_json REQUIRED)
  kf_add_pch(mlir LINK kf_llvm_headers OPTIONS ${KF_LLVM_FLAGS} DEPENDS KFIncGen)
  kf_add_pch(runtime LINK nlohmann_json::nlohmann_json)
  kf_add_pch(tool LINK nlohmann_json::nlohmann_json)
  if(KF_BUILD_TESTS)
    find_package(GTest REQUIRED)
    kf_add_pch(test LINK nlohmann_json::nlohmann_json GTest::gtest
      OPTIONS ${KF_TEST_FLAGS})
  endif()
endif()
