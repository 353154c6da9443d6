# Functions that the CMakeLists.txt of every folder uses.

# The LLVM ABI: RTTI as LLVM was built. The runtime never sees these flags.
set(KF_LLVM_FLAGS)
if(NOT LLVM_ENABLE_RTTI)
  list(APPEND KF_LLVM_FLAGS -fno-rtti)
endif()
# Without the time stamp, ccache can reuse what was compiled with the header.
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND KF_LLVM_FLAGS -Xclang -fno-pch-timestamp)
endif()

# Options for the sanitized executables, which link libraries that are not.
if(KF_SANITIZE)
  add_library(kf_sanitizer_options OBJECT
    "${CMAKE_CURRENT_LIST_DIR}/sanitizer_options.c")
endif()
function(kf_use_sanitizer_options target)
  if(KF_SANITIZE)
    target_link_libraries(${target} PRIVATE kf_sanitizer_options)
  endif()
endfunction()

# One precompiled header with MLIR's core headers, built once and reused by
# every compiler library (14 s of headers per file become 0.3 s).
function(kf_use_mlir_pch target)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    return()
  endif()
  if(NOT TARGET kf_mlir_pch)
    file(CONFIGURE OUTPUT "${CMAKE_BINARY_DIR}/kf_mlir_pch.cpp"
      CONTENT "// Carries the precompiled header.\n")
    add_library(kf_mlir_pch OBJECT "${CMAKE_BINARY_DIR}/kf_mlir_pch.cpp")
    target_link_libraries(kf_mlir_pch PRIVATE kf_llvm_headers)
    target_compile_options(kf_mlir_pch PRIVATE ${KF_LLVM_FLAGS})
    set(header "${PROJECT_SOURCE_DIR}/cmake/mlir_pch.h")
    target_precompile_headers(kf_mlir_pch PRIVATE "${header}")
    # A precompiled header holds paths of its checkout. ccache reads this sum of
    # what it was made from instead (CCACHE_PCH_EXTSUM in the presets), so that
    # a second checkout shares what the first compiled.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${header}")
    file(SHA256 "${header}" sum)
    set(pch "${CMAKE_CURRENT_BINARY_DIR}/CMakeFiles/kf_mlir_pch.dir/cmake_pch.hxx.pch")
    set_target_properties(kf_mlir_pch PROPERTIES KF_PCH "${pch}")
    file(CONFIGURE OUTPUT "${pch}.sum"
      CONTENT "${sum} ${LLVM_PACKAGE_VERSION} ${CMAKE_CXX_COMPILER_VERSION} ${KF_LLVM_FLAGS}\n")
  endif()
  # Not by REUSE_FROM, whose options name the header by its absolute path where
  # ccache does not look for paths.
  get_target_property(pch kf_mlir_pch KF_PCH)
  target_compile_options(${target} PRIVATE -include-pch "${pch}")
  get_target_property(sources ${target} SOURCES)
  set_property(SOURCE ${sources} APPEND PROPERTY OBJECT_DEPENDS "${pch}")
endfunction()

# kf_add_compiler_library(NAME sources... [DEPENDS tablegen targets...] [LINK libraries...])
function(kf_add_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_compile_options(${name} PRIVATE ${KF_LLVM_FLAGS})
  target_link_libraries(${name} PUBLIC kf_llvm_headers ${ARG_LINK})
  kf_use_mlir_pch(${name})
  add_dependencies(${name} KFIncGen)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# kf_add_runtime_library(NAME sources... [LINK libraries...]): no MLIR.
function(kf_add_runtime_library name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
endfunction()

# kf_add_tool(NAME sources... [LINK libraries...]): an executable in bin/.
function(kf_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_compile_options(${name} PRIVATE ${KF_LLVM_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} kf_mlir)
  kf_use_mlir_pch(${name})
  kf_use_sanitizer_options(${name})
  add_dependencies(${name} KFIncGen)
endfunction()

# kf_add_unittest(NAME sources... [THREADS] [LINK libraries...]): a GoogleTest
# in ctest. Those with THREADS have the label `threads`; the target
# kf_thread_tests builds all of them, for the thread sanitizer.
add_custom_target(kf_thread_tests)
function(kf_add_unittest name)
  cmake_parse_arguments(ARG "THREADS" "" "LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE KF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  kf_use_sanitizer_options(${name})
  # Only failures are printed: the message of one stands among thousands of cases.
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  if(ARG_THREADS)
    set_tests_properties(${name} PROPERTIES LABELS threads)
    add_dependencies(kf_thread_tests ${name})
  endif()
endfunction()
