//===- RenamedWeights.h - Tensors by other names ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_RENAMEDWEIGHTS_H
#define KF_RUNTIME_IO_RENAMEDWEIGHTS_H

#include "runtime/weights/WeightSource.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace kf {

/// Some tensors of another source, by names of their own. Safe to use as that
/// source is.
class RenamedWeights : public WeightSource {
public:
  using Names = std::map<std::string, std::string>;
  /// `names`: the source's name of each tensor, by the new one.
  RenamedWeights(std::unique_ptr<WeightSource> source, Names names)
      : source(std::move(source)), renamed(std::move(names)) {}

  /// Errors say the source's name.
  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  Result<bool> keepFloat8(const std::string &name) override;
  std::vector<FileIdentity> mappedFiles() const override {
    return source->mappedFiles();
  }
  std::vector<std::string> names() const override;

private:
  /// What the source calls `name`; null where that is not here.
  const std::string *nameOf(const std::string &name) const;

  std::unique_ptr<WeightSource> source;
  Names renamed;
  Names scales; ///< the same of the factors of those that are kept in 8 bits
};

} // namespace kf

#endif // KF_RUNTIME_IO_RENAMEDWEIGHTS_H
