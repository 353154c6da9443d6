//===- SplitWeights.h - Rows of tensors as tensors --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Some checkpoints hold several matrices of a model in one, whose rows are
// theirs, one after another (Phi-3's qkv_proj and gate_up_proj), or in a stack
// of matrices (GraniteMoe's experts). Seen through SplitWeights, each is a
// tensor of its own, so that nothing else knows of it.
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
    bool isVector = false; ///< of one row: [K] rather than [1, K]
  };
  /// Presents the rows of `name` as `parts`, in their order, and hides `name`,
  /// which may be a part's. Those of a stack [E, N, K] are E * N rows; parts
  /// are [rows, K]. A vector [K] is a matrix of one row where the only part has
  /// one, and else has K rows. Before other calls, beside none. Errors, which
  /// change nothing: no such tensor, one whose rows are not as many as the
  /// parts', a part that there is already.
  Status split(const std::string &name, const std::vector<Part> &parts);

  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  /// The last part that is released releases the whole.
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  Result<bool> keepFloat8(const std::string &name) override;
  std::vector<FileIdentity> mappedFiles() const override {
    return source->mappedFiles();
  }
  std::vector<std::string> names() const override;

private:
  struct Whole {
    std::string name;
    std::vector<Part> parts;
    uint64_t rowBytes = 0;
    bool isRow = false;   ///< a vector that is presented as a matrix
    bool isListed = true; ///< names() has the parts
    size_t released = 0;  ///< how many parts; `releasing` guards it
  };
  struct Place {
    Whole *whole = nullptr;
    int64_t firstRow = 0, rows = 0; ///< in the whole
    bool isVector = false;          ///< as its part
    bool released = false;          ///< `releasing` guards it

    uint64_t offset() const {
      return whole->rowBytes * static_cast<uint64_t>(firstRow);
    }
    uint64_t bytes() const {
      return whole->rowBytes * static_cast<uint64_t>(rows);
    }
  };
  /// Does what split() does, and leaves out of names() what is not `isListed`.
  Status add(const std::string &name, const std::vector<Part> &parts,
             bool isListed);
  /// Sets what a row of `whole` is, of which there are as many as its parts
  /// have: elements along the last dimension, or one where there is no other.
  Status setRows(Whole &whole) const;
  TensorView partOf(const Place &place, TensorView whole) const;

  std::unique_ptr<WeightSource> source;
  std::map<std::string, std::unique_ptr<Whole>> wholes; ///< by name
  mutable std::map<std::string, Place> places;          ///< by a part's name
  mutable std::mutex releasing;
};

} // namespace kf

#endif // KF_RUNTIME_IO_SPLITWEIGHTS_H
