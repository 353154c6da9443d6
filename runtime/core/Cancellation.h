//===- Cancellation.h - An early end for long work --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CORE_CANCELLATION_H
#define KF_RUNTIME_CORE_CANCELLATION_H

#include <atomic>

namespace kf {

/// What another thread or a signal handler sets to end long work; null for work
/// that nobody ends. Work that ends so returns Status::cancelled().
using CancelFlag = const std::atomic<bool> *;

inline bool isCancelled(CancelFlag flag) {
  return flag && flag->load(std::memory_order_relaxed);
}

} // namespace kf

#endif // KF_RUNTIME_CORE_CANCELLATION_H
