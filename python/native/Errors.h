//===- Errors.h - Errors of the runtime as exceptions -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PYTHON_NATIVE_ERRORS_H
#define KF_PYTHON_NATIVE_ERRORS_H

#include "runtime/core/Status.h"

namespace kf::python {

/// Throws kernelforge's exception of the kind of `status`, which is an error,
/// with its line, in which options have the names that arguments have in
/// Python. With the GIL.
[[noreturn]] void raise(const Status &status);

inline void raiseIfError(const Status &status) {
  if (!status.ok())
    raise(status);
}

/// The value, or the error as an exception.
template <typename T> T valueOf(Result<T> result) {
  raiseIfError(result.status());
  return result.take();
}

} // namespace kf::python

#endif // KF_PYTHON_NATIVE_ERRORS_H
