//===- Exceptions.h - Exceptions as errors ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime throws nothing itself, but the standard library does where there
// is no memory. What reads files, packs weights or runs programs turns that
// into a Status before it leaves the runtime or the thread that it was thrown
// on.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_EXCEPTIONS_H
#define KF_RUNTIME_CORE_EXCEPTIONS_H

#include "runtime/core/Status.h"

#include <exception>
#include <new>
#include <stdexcept>

namespace kf {

/// The exception that is being handled, as an error. Want of memory, and sizes
/// that no memory holds, are Status::outOfMemory().
inline Status statusOfException() noexcept {
  try {
    try {
      throw;
    } catch (const std::bad_alloc &) {
    } catch (const std::length_error &) {
    } catch (const std::exception &failure) {
      return Status::error(failure.what(), StatusCode::Internal);
    } catch (...) {
      return Status::error("an exception of unknown type",
                           StatusCode::Internal);
    }
  } catch (...) { // no memory for the text
  }
  return Status::outOfMemory();
}

/// Returns fn(), a Status or a Result. What it throws becomes an error.
template <typename Fn> auto catchExceptions(Fn &&fn) -> decltype(fn()) {
  try {
    return fn();
  } catch (...) {
    return statusOfException();
  }
}

} // namespace kf

#endif // KF_RUNTIME_CORE_EXCEPTIONS_H
