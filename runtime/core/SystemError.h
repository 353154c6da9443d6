//===- SystemError.h - Codes of the system's errors -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_SYSTEMERROR_H
#define KF_RUNTIME_CORE_SYSTEMERROR_H

#include "runtime/core/Status.h"

#include <cerrno>

namespace kf {

/// The code of a failure with the number `error` (errno): of files, memory and
/// threads.
inline StatusCode codeOfSystemError(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return StatusCode::NotFound;
  case ENOMEM:
    return StatusCode::OutOfMemory;
  case EINVAL:
  case EISDIR:
  case ENAMETOOLONG:
    return StatusCode::Invalid;
  default:
    return StatusCode::Unavailable;
  }
}

} // namespace kf

#endif // KF_RUNTIME_CORE_SYSTEMERROR_H
