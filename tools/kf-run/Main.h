//===- Main.h - What main() of a command does --------------- -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MAIN_H
#define KF_TOOLS_KF_RUN_MAIN_H

#include "OptionParser.h"

#include <span>

namespace kf {

/// Runs `command` with the arguments of main() behind the program's name, and
/// returns its exit code. What it throws, want of memory and faults of mapped
/// files are errors of one line.
int runMain(int argc, char **argv,
            int (*command)(std::span<const char *const>));

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MAIN_H
