# Finds LLVM and MLIR 22 and defines two interface targets:
#   kf_mlir  everything that the compiler libraries and tools need
#   kf_orc   the JIT linker that the CPU device needs (no MLIR)
#
# KF_STATIC_LLVM=OFF links the shared libMLIR and libLLVM (links in 0.2 s);
# ON links the component archives, so that a tool is one file.

find_package(MLIR 22 REQUIRED CONFIG
  HINTS /usr/lib/llvm-22/lib/cmake/mlir)
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
# those out, and hang the LLVM component archives on MLIRSupport instead.
get_property(kf_all_mlir GLOBAL PROPERTY MLIR_ALL_LIBS)
foreach(lib ${kf_all_mlir})
  if(TARGET ${lib})
    get_target_property(deps ${lib} INTERFACE_LINK_LIBRARIES)
    if(deps)
      list(REMOVE_ITEM deps LLVM MLIR "$<LINK_ONLY:LLVM>" "$<LINK_ONLY:MLIR>")
      set_target_properties(${lib} PROPERTIES INTERFACE_LINK_LIBRARIES "${deps}")
    endif()
  endif()
endforeach()
llvm_map_components_to_libnames(kf_llvm_archives
  core support passes orcjit targetparser X86 NVPTX)
llvm_map_components_to_libnames(kf_orc_archives core support orcjit targetparser)
set_property(TARGET MLIRSupport APPEND PROPERTY
  INTERFACE_LINK_LIBRARIES "${kf_llvm_archives}")
target_link_libraries(kf_orc INTERFACE ${kf_orc_archives})

target_link_libraries(kf_mlir INTERFACE
  MLIROptLib MLIRLspServerLib MLIRReduceLib MLIRTransforms MLIRTransformUtils
  MLIRFuncDialect MLIRFuncAllExtensions MLIRFuncTransforms MLIRArithDialect MLIRArithTransforms
  MLIRTensorDialect MLIRTensorUtils MLIRTensorTransforms MLIRTensorTilingInterfaceImpl
  MLIRTensorInferTypeOpInterfaceImpl
  MLIRSCFDialect MLIRSCFUtils MLIRSCFTransforms MLIRSCFToControlFlow
  MLIRMemRefDialect MLIRMemRefUtils MLIRMemRefTransforms MLIRMemRefToLLVM
  MLIRVectorDialect MLIRVectorUtils MLIRVectorTransforms MLIRVectorToSCF
  MLIRVectorToLLVM MLIRVectorToLLVMPass
  MLIRMathDialect MLIRMathTransforms MLIRMathToLLVM
  MLIRAffineDialect MLIRAffineUtils MLIRAffineToStandard MLIRAffineAnalysis
  MLIRIndexDialect MLIRIndexToLLVM MLIRUBDialect MLIRUBToLLVM
  MLIRControlFlowDialect MLIRControlFlowToLLVM MLIRFuncToLLVM MLIRArithToLLVM
  MLIRReconcileUnrealizedCasts
  MLIRLLVMDialect MLIRLLVMToLLVMIRTranslation MLIRBuiltinToLLVMIRTranslation
  MLIRTargetLLVMIRExport
  MLIRGPUDialect MLIRGPUTransforms MLIRGPUToSPIRV MLIRSPIRVDialect MLIRSPIRVTransforms
  MLIRSPIRVConversion MLIRSPIRVSerialization MLIRSPIRVTarget MLIRFuncToSPIRV
  MLIRMemRefToSPIRV MLIRSCFToSPIRV MLIRArithToSPIRV MLIRMathToSPIRV
  MLIRIndexToSPIRV MLIRControlFlowToSPIRV MLIRConvertToSPIRVPass
  MLIRDestinationStyleOpInterface MLIRTilingInterface MLIRViewLikeInterface)
target_link_options(kf_mlir INTERFACE -static-libstdc++ -static-libgcc -Wl,--icf=all -Wl,-s)
