//===- KernelCodes.h - Code of kernels that programs share ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_KERNELCODES_H
#define KF_PIPELINES_KERNELCODES_H

#include "runtime/core/Sha256.h"
#include "runtime/program/Executable.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace mlir::kf {

/// The code of kernels of many programs, by what it was made of, in memory and
/// of one process. Whoever owns it compiles with the same global options of
/// LLVM throughout. Any thread.
class KernelCodes {
public:
  /// What was made of a kernel alone.
  struct Code {
    ::kf::Executable made; ///< its binary, features, and this kernel
    std::vector<std::string> warnings;
  };

  /// Null where there is none; else it stays. `text` is all that code and the
  /// account of its work depend on: the tiled kernel and its module's
  /// attributes.
  std::shared_ptr<const Code> lookup(const std::string &text) const;

  /// Keeps `code`, unless another thread was first.
  void add(const std::string &text, Code code);

  /// How many kernels it has, and how many more it has been asked for.
  size_t size() const;
  size_t reused() const;

private:
  mutable std::mutex mutex;
  std::map<::kf::Digest, std::shared_ptr<const Code>> codes;
  mutable size_t found = 0;
};

} // namespace mlir::kf

#endif // KF_PIPELINES_KERNELCODES_H
