//===- ModelDigest.cpp - Which model is trained ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/train/ModelDigest.h"

#include "runtime/core/Exceptions.h"
#include "runtime/core/Sha256.h"

#include <algorithm>

using namespace kf;

Result<std::string> kf::modelDigest(const ModelFiles &model) try {
  constexpr uint64_t most = 4096;
  Digest digest = sha256(signatureOf(model));
  for (const std::string &name : model.weights->names()) {
    // Without data where a tensor would have to be made for it.
    KF_ASSIGN_OR_RETURN(const TensorView view, model.weights->describe(name));
    std::string bytes(bytesOf(digest));
    if (view.data)
      bytes.append(static_cast<const char *>(view.data),
                   static_cast<size_t>(std::min(view.bytes, most)));
    digest = sha256(bytes);
  }
  return hexText(digest);
} catch (...) {
  return statusOfException();
}
