//===- TerminalObserver.h - The runtime's work on a terminal ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TERMINALOBSERVER_H
#define KF_TOOLS_KF_RUN_TERMINALOBSERVER_H

#include "runtime/core/Observer.h"

namespace kf {

/// The process's observer, which outlives all: work is shown as Progress, and
/// warnings and notes are printed.
Observer &terminal();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TERMINALOBSERVER_H
