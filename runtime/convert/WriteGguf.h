//===- WriteGguf.h - From a plan to a GGUF file -----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_WRITEGGUF_H
#define KF_RUNTIME_CONVERT_WRITEGGUF_H

#include "runtime/convert/GgufPlan.h"
#include "runtime/core/ThreadPool.h"

#include <functional>
#include <map>
#include <string>

namespace kf {

struct WriteOptions {
  bool replace = false; ///< a file of that name
  /// Called after each piece with the elements done and all; false ends the
  /// work with the error "interrupted", and nothing is written.
  std::function<bool(int64_t done, int64_t all)> progress;
};

/// What was written.
struct WriteSummary {
  uint64_t fileBytes = 0;
  uint64_t sourceBytes = 0; ///< of the tensors that were read
  int64_t elements = 0;
  uint64_t tensorBytes = 0;              ///< of the tensors in the file
  std::map<DataType, int64_t> tensors{}; ///< how many of each type
};

/// Writes the file `path` as planned, its values from `weights`, on the pool's
/// threads. Errors are those of the source, of the disk, and values that the
/// types cannot say; after one, whatever was at `path` is still there.
Result<WriteSummary> writeGguf(const GgufPlan &plan,
                               const WeightSource &weights,
                               const std::string &path, ThreadPool &pool,
                               const WriteOptions &options);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_WRITEGGUF_H
