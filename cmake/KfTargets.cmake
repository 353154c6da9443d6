# Functions that the CMakeLists.txt of every folder uses.

# The LLVM ABI: RTTI as LLVM was built. The runtime never sees these flags.
set(KF_LLVM_FLAGS)
if(NOT LLVM_ENABLE_RTTI)
  list(APPEND KF_LLVM_FLAGS -fno-rtti)
endif()

# Tests' own sources, but for those that include MLIR: what they call is optimized
# as ever, but for inline functions that a test has a copy of, and they run once.
set(KF_TEST_FLAGS -O0)

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

# kf_add_compiler_library(NAME sources... [DEPENDS tablegen targets...] [LINK libraries...])
function(kf_add_compiler_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_compile_options(${name} PRIVATE ${KF_LLVM_FLAGS})
  if(KF_SANITIZE STREQUAL "address")
    # Of each access to memory: a quarter of what a file of MLIR takes to
    # compile, for what the address sanitizer finds as well, but for alignment.
    target_compile_options(${name} PRIVATE
      -fno-sanitize=null,object-size,alignment)
  endif()
  target_link_libraries(${name} PUBLIC kf_llvm_headers ${ARG_LINK})
  kf_use_pch(${name} mlir)
  add_dependencies(${name} KFIncGen)
  if(ARG_DEPENDS)
    add_dependencies(${name} ${ARG_DEPENDS})
  endif()
endfunction()

# kf_add_runtime_library(NAME sources... [NO_PCH] [TOOL] [LINK libraries...]): no
# MLIR. NO_PCH is for a library with options of its own (KfPch.cmake), TOOL for
# what tools share.
function(kf_add_runtime_library name)
  cmake_parse_arguments(ARG "NO_PCH;TOOL" "" "LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PUBLIC "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PUBLIC ${ARG_LINK})
  if(ARG_TOOL)
    kf_use_pch(${name} tool)
  elseif(NOT ARG_NO_PCH)
    kf_use_pch(${name} runtime)
  endif()
endfunction()

# kf_add_runtime_tool(NAME sources... [LINK libraries...]): an executable in bin/
# whose sources include no MLIR.
function(kf_add_runtime_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  kf_use_pch(${name} tool)
  kf_use_sanitizer_options(${name})
endfunction()

# kf_add_tool(NAME sources... [LINK libraries...]): an executable in bin/ whose
# sources include MLIR.
function(kf_add_tool name)
  cmake_parse_arguments(ARG "" "" "LINK" ${ARGN})
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE
    "${PROJECT_SOURCE_DIR}" "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
  target_compile_options(${name} PRIVATE ${KF_LLVM_FLAGS})
  target_link_libraries(${name} PRIVATE ${ARG_LINK} kf_mlir)
  kf_use_pch(${name} mlir)
  kf_use_sanitizer_options(${name})
  add_dependencies(${name} KFIncGen)
endfunction()

# kf_add_unittest(NAME sources... [THREADS] [MLIR] [LINK libraries...]): a
# GoogleTest in ctest. Those with MLIR include its headers. Those with THREADS have
# the label `threads`; the target kf_thread_tests builds all of them, for the thread
# sanitizer.
add_custom_target(kf_thread_tests)
function(kf_add_unittest name)
  cmake_parse_arguments(ARG "THREADS;MLIR" "" "LINK" ${ARGN})
  find_package(GTest REQUIRED)
  add_executable(${name} ${ARG_UNPARSED_ARGUMENTS})
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${name} PRIVATE KF_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${name} PRIVATE ${ARG_LINK} GTest::gtest GTest::gtest_main)
  if(ARG_MLIR)
    target_include_directories(${name} PRIVATE
      "${PROJECT_SOURCE_DIR}/include" "${PROJECT_BINARY_DIR}/include")
    target_compile_options(${name} PRIVATE ${KF_LLVM_FLAGS})
    target_link_libraries(${name} PRIVATE kf_mlir)
    kf_use_pch(${name} mlir)
    add_dependencies(${name} KFIncGen)
  else()
    target_compile_options(${name} PRIVATE ${KF_TEST_FLAGS})
    kf_use_pch(${name} test)
  endif()
  kf_use_sanitizer_options(${name})
  # Only failures are printed: the message of one stands among thousands of cases.
  # Leaks of Vulkan drivers are not ours.
  add_test(NAME ${name} COMMAND ${name} --gtest_brief=1)
  set_tests_properties(${name} PROPERTIES
    ENVIRONMENT "LSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/test/lsan.supp")
  if(ARG_THREADS)
    set_tests_properties(${name} PROPERTIES LABELS threads)
    add_dependencies(kf_thread_tests ${name})
  endif()
endfunction()

# kf_export_alone(TARGET SYMBOL): for a module of the archives, whose objects are
# those of the tools, made for executables. All symbols but one are local to it,
# so that they are reached as in an executable, and LLVM's meet no other LLVM's;
# where an object needs more than that (a thread_local variable does), it is an
# error of the linker. What nobody defines is an error when it is loaded.
function(kf_export_alone target symbol)
  set(script "${CMAKE_CURRENT_BINARY_DIR}/${target}.map")
  file(CONFIGURE OUTPUT "${script}"
    CONTENT "{\n  global: ${symbol};\n  local: *;\n};\n")
  target_link_options(${target} PRIVATE
    "-Wl,--version-script=${script}" -Wl,-z,now)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()
