//===- Interrupt.h - Ctrl-C -------------------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_INTERRUPT_H
#define KF_TOOLS_KF_RUN_INTERRUPT_H

#include <atomic>
#include <initializer_list>

namespace kf {

/// Set by an interrupt once one of the functions below was called; what the
/// process is at then ends in good order. Steps look at it between
/// dispatches, the compiler between passes.
std::atomic<bool> &interruptFlag();

/// From now on the first interrupt sets the flag, and the second one ends the
/// process as it would have without this.
void catchFirstInterrupt();
/// From now on every interrupt sets the flag, and so do the signals `others`;
/// reading from a terminal ends, too.
void catchEveryInterrupt(std::initializer_list<int> others = {});

} // namespace kf

#endif // KF_TOOLS_KF_RUN_INTERRUPT_H
