//===- OutOfMemory.h - An error where there is no memory --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime's functions return errors where there is no memory. LLVM and MLIR
// cannot: no exception may pass through them, and what malloc returns is not
// always looked at. There the process ends, with the error's line and its exit
// code.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_OUTOFMEMORY_H
#define KF_TOOLS_KF_RUN_OUTOFMEMORY_H

namespace kf {

/// Prints the error and ends the process, without any memory.
[[noreturn]] void exitOutOfMemory();

/// For main(), once. From then on a segmentation fault is an error for want of
/// memory if the system gives none at that moment: it is what malloc's null
/// pointer comes to where nobody looks at it, and a stack that cannot grow. Any
/// other fault has the effect that it had before.
void exitOnFaultsOutOfMemory();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_OUTOFMEMORY_H
