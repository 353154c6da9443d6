# Fails if a library of LINKED, names with blanks between them, is of LLVM or
# MLIR, or one of ours that links them: the compiler (KF...), or what CMake calls
# LLVM (kf_mlir, kf_orc).
message("what kf_session and kf_engine link: ${LINKED}")
string(REPLACE " " ";" LINKED "${LINKED}")
foreach(name ${LINKED})
  if(name MATCHES "LLVM|MLIR|^KF|^kf_(mlir|orc|llvm_headers|compiler|open_device|device_.*)$")
    message(FATAL_ERROR "kf_session or kf_engine links ${name}")
  endif()
endforeach()
