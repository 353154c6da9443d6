//===- KeptWeights.h - Packed weights of a session's models -----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_KEPTWEIGHTS_H
#define KF_RUNTIME_SESSION_KEPTWEIGHTS_H

#include "runtime/core/Observer.h"
#include "runtime/engine/Model.h"
#include "runtime/engine/ModelFiles.h"

namespace kf {

/// Has a model of `files` on `device` keep its packed weights in `cache`, which
/// may be null. Where they cannot be kept, `observer`, which may be null, is
/// warned: the device has memory of its own, or the weights are not made of
/// files alone. Error: programIdentity()'s.
Status keepPacked(const PackedCache *cache, const ModelFiles &files,
                  const Device &device, Observer *observer,
                  ModelOptions &options);

} // namespace kf

#endif // KF_RUNTIME_SESSION_KEPTWEIGHTS_H
