//===- ProgramIdentity.h - Which build this program is ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_PROGRAM_PROGRAMIDENTITY_H
#define KF_RUNTIME_PROGRAM_PROGRAMIDENTITY_H

#include "runtime/core/Status.h"

#include <string>

namespace kf {

/// Bytes that tell this program, or the library that this is part of, from
/// every other build of it: the linker's build id, or a hash of its file where
/// it was linked without one, which takes a second for 500 MB. Fails where that
/// file cannot be read. Any thread.
Result<std::string> programIdentity();

} // namespace kf

#endif // KF_RUNTIME_PROGRAM_PROGRAMIDENTITY_H
