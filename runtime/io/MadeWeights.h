//===- MadeWeights.h - Tensors that are made of others ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What sources over a source have in common: some tensors are made of the
// other's when somebody asks for them, all others pass as they are.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_IO_MADEWEIGHTS_H
#define KF_RUNTIME_IO_MADEWEIGHTS_H

#include "runtime/core/AlignedBuffer.h"
#include "runtime/weights/WeightSource.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// Presents tensors that are made, beside or instead of those of `source`.
/// find() makes one, and holds it until release() or the end; different ones
/// are made at once on as many threads as ask, each by one of them while others
/// wait.
class MadeWeights : public WeightSource {
public:
  ~MadeWeights() override;

  Result<TensorView> find(const std::string &name) const override;
  Result<TensorView> describe(const std::string &name) const override;
  /// Of a tensor made here: nobody may use a view of it, or be in find().
  void release(const std::string &name) const override;
  void releasePart(const std::string &name, uint64_t first,
                   uint64_t bytes) const override;
  Result<bool> keepFloat8(const std::string &name) override;
  /// The source's: what is made needs no more than its tensors.
  std::vector<FileIdentity> mappedFiles() const override;

protected:
  class Tensor {
  public:
    virtual ~Tensor();
    /// Writes the tensor, which is called `name`, to `dst`.
    virtual Status make(const WeightSource &source, const std::string &name,
                        std::byte *dst) const = 0;
    /// It was released; so may be what it is made of.
    virtual void released(const WeightSource &source) const;

    DataType type = DataType::BF16;
    std::vector<int64_t> shape;
    uint64_t bytes = 0; ///< checkedByteCount(type, shape)

  private:
    friend MadeWeights;
    std::mutex making; ///< guards `memory`
    std::optional<AlignedBuffer> memory;
  };

  explicit MadeWeights(std::unique_ptr<WeightSource> source);

  bool isMade(const std::string &name) const { return made.contains(name); }

  std::unique_ptr<WeightSource> source;
  /// By name. Nothing is added or removed once find() may be called.
  std::map<std::string, std::unique_ptr<Tensor>> made;
};

} // namespace kf

#endif // KF_RUNTIME_IO_MADEWEIGHTS_H
