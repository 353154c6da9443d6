# Build options and compiler flags that hold for every target.

option(KF_STATIC_LLVM "Link LLVM and MLIR statically: one file per tool" OFF)
set(KF_SANITIZE "" CACHE STRING
  "Sanitizers: address (with undefined behaviour), thread, or none")
set_property(CACHE KF_SANITIZE PROPERTY STRINGS "" address thread)
option(KF_BUILD_TESTS "Build the tests" ON)
option(KF_BUILD_BENCHMARKS "Build the benchmarks" ON)
option(KF_BUILD_PYTHON
  "Build the Python package: needs KF_STATIC_LLVM, and nanobind in Python" OFF)
set(KF_PYTHON_PREBUILT "" CACHE PATH
  "A folder with the package's module, to make a wheel without compiling")
option(KF_BUILD_FUZZERS "Build the libFuzzer targets (clang only)" OFF)

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/bin")
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${CMAKE_BINARY_DIR}/lib")

add_compile_options(-Wall -Wextra -Wno-unused-parameter -fvisibility-inlines-hidden
                    -ffunction-sections -fdata-sections)
if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  add_link_options(-fuse-ld=lld)
endif()
if(KF_SANITIZE STREQUAL "address")
  add_compile_options(-fsanitize=address,undefined -fno-sanitize=vptr,function
                      -fno-sanitize-recover=undefined -fno-omit-frame-pointer)
  add_link_options(-fsanitize=address,undefined)
elseif(KF_SANITIZE STREQUAL "thread")
  add_compile_options(-fsanitize=thread -fno-omit-frame-pointer)
  add_link_options(-fsanitize=thread)
elseif(KF_SANITIZE)
  message(FATAL_ERROR "KF_SANITIZE is '${KF_SANITIZE}'; address, thread and "
    "nothing are possible")
else()
  add_link_options(-Wl,--gc-sections -Wl,--as-needed)
endif()
