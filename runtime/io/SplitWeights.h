//===- SplitWeights.h - Rows of tensors as tensors --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some checkpoints hold several matrices of a model in one, whose rows are
// theirs, one after another (Phi-3's qkv_proj and gate_up_proj). Seen through
// SplitWeights, each is a tensor of its own, so that nothing else knows of it.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_SPLITWEIGHTS_H
#define KF_RUNTIME_IO_SPLITWEIGHTS_H

#include "runtime/weights/WeightSource.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace kf {

class SplitWeights : public WeightSource {
public:
  explicit SplitWeights(std::unique_ptr<WeightSource> source)
      : source(std::move(source)) {}

  struct Part {
    std::string name;
    int64_t rows = 0;
  };
  /// Presents the rows of `name` as `parts`, in their order, and hides `name`.
  /// Before other calls, beside none. Errors: no such tensor, one whose rows
  /// are not as many as the parts', a part that there is already.
  Status split(const std::string &name, const std::vector<Part> &parts);

  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  /// The last part that is released releases the whole.
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  std::vector<std::string> names() const override;

private:
  struct Whole {
    std::string name;
    size_t parts = 0, released = 0; ///< how many; `releasing` guards them
  };
  struct Place {
    Whole *whole = nullptr;
    int64_t rows = 0;
    uint64_t offset = 0, bytes = 0; ///< in the whole
    bool released = false;          ///< `releasing` guards it
  };
  TensorView partOf(const Place &place, TensorView whole) const;

  std::unique_ptr<WeightSource> source;
  std::map<std::string, std::unique_ptr<Whole>> wholes; ///< by name
  mutable std::map<std::string, Place> places;          ///< by a part's name
  mutable std::mutex releasing;
};

} // namespace kf

#endif // KF_RUNTIME_IO_SPLITWEIGHTS_H
