# Finds LLVM and MLIR 22 and defines two interface targets:
#   kf_mlir  everything that the compiler libraries and tools need
#   kf_orc   the JIT linker that the CPU device needs (no MLIR)
#
# KF_STATIC_LLVM=OFF links the shared libMLIR and libLLVM (links in 0.2 s);
# ON links the component archives, so that a tool is one file.

# LLVM's version file accepts only an exact major.minor, so the check is here.
find_package(MLIR QUIET CONFIG HINTS /usr/lib/llvm-22/lib/cmake/mlir)
if(NOT MLIR_FOUND)
  message(FATAL_ERROR "LLVM and MLIR 22 are missing: './kf install-deps' installs "
    "all that a build needs (libmlir-22-dev, mlir-22-tools, clang-22, lld-22 ...), "
    "or pass -DMLIR_DIR=<prefix>/lib/cmake/mlir")
endif()
if(NOT LLVM_VERSION_MAJOR EQUAL 22)
  message(FATAL_ERROR "LLVM and MLIR ${LLVM_PACKAGE_VERSION} found in "
    "${MLIR_DIR}; KernelForge needs 22.x: pass -DMLIR_DIR=<prefix>/lib/cmake/mlir")
endif()
message(STATUS "MLIR ${LLVM_PACKAGE_VERSION} in ${MLIR_DIR}")
list(APPEND CMAKE_MODULE_PATH "${MLIR_CMAKE_DIR}" "${LLVM_CMAKE_DIR}")
include(TableGen)
include(AddLLVM)
include(AddMLIR)

add_library(kf_llvm_headers INTERFACE)
target_include_directories(kf_llvm_headers SYSTEM INTERFACE
  ${LLVM_INCLUDE_DIRS} ${MLIR_INCLUDE_DIRS})
target_compile_definitions(kf_llvm_headers INTERFACE ${LLVM_DEFINITIONS_LIST})

add_library(kf_mlir INTERFACE)
add_library(kf_orc INTERFACE)
target_link_libraries(kf_mlir INTERFACE kf_llvm_headers)
target_link_libraries(kf_orc INTERFACE kf_llvm_headers)

if(NOT KF_STATIC_LLVM)
  target_link_libraries(kf_mlir INTERFACE MLIR LLVM)
  target_link_libraries(kf_orc INTERFACE LLVM)
  return()
endif()

# The exported MLIR targets name the shared libraries as dependencies; take
# those out, and hang the LLVM component archives on MLIRSupport instead. Every
# MLIR archive is offered to the linker, which takes what is referenced and
# nothing else, so that no list here follows the includes of the sources.
get_property(kf_all_mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
set(kf_mlir_archives)
foreach(lib ${kf_all_mlir})
  if(NOT TARGET ${lib})
    continue()
  endif()
  get_target_property(type ${lib} TYPE)
  if(NOT type STREQUAL "STATIC_LIBRARY")
    continue()
  endif()
  list(APPEND kf_mlir_archives ${lib})
  get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
  if(deps)
    list(REMOVE_ITEM deps LLVM MLIR "$<LINK_ONLY:LLVM>" "$<LINK_ONLY:MLIR>")
    set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${deps}")
  endif()
endforeach()
llvm_map_components_to_libnames(kf_llvm_archives
  core support SupportLSP passes orcjit targetparser native AArch64 NVPTX)
llvm_map_components_to_libnames(kf_orc_archives
  core support orcjit targetparser native)
set_property(TARGET MLIRSupport APPEND PROPERTY
  INTERFACE_LINK_LIBRARIES "${kf_llvm_archives}")
target_link_libraries(kf_mlir INTERFACE ${kf_mlir_archives})
target_link_libraries(kf_orc INTERFACE ${kf_orc_archives})
foreach(lib kf_mlir kf_orc)
  target_link_options(${lib} INTERFACE
    -static-libstdc++ -static-libgcc -Wl,--icf=all -Wl,-s)
endforeach()
