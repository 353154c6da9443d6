//===- ModelDigest.h - Which model is trained -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TRAIN_MODELDIGEST_H
#define KF_RUNTIME_TRAIN_MODELDIGEST_H

#include "runtime/engine/ModelFiles.h"

#include <string>

namespace kf {

/// What tells models apart: a digest of the configuration, of names, types and
/// shapes of all tensors, and of the first 4 KiB of each, in hexadecimal
/// digits. Errors: those of the files.
Result<std::string> modelDigest(const ModelFiles &model);

} // namespace kf

#endif // KF_RUNTIME_TRAIN_MODELDIGEST_H
