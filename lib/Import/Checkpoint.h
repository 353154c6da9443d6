//===- Checkpoint.h - The tensors of a model --------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_IMPORT_CHECKPOINT_H
#define KF_LIB_IMPORT_CHECKPOINT_H

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/IR/BuiltinTypes.h"
#include "runtime/model/TensorList.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

/// The tensors of one checkpoint that a model uses, by ListedTensor::key.
class Checkpoint {
public:
  struct Tensor {
    std::string name;      ///< in the checkpoint
    RankedTensorType type; ///< logical: [out, in] for a matrix
    bool transposed = false;
    std::string scales = {}; ///< of a row each, in the checkpoint; empty: none
  };

  /// Finds and checks every tensor that `config` implies.
  static llvm::Expected<Checkpoint> read(MLIRContext &context,
                                         const ::kf::ModelConfig &config,
                                         const ::kf::WeightSource &source);

  /// Null where the model has no tensor of this name.
  const Tensor *find(StringRef key) const {
    auto it = tensors.find(key);
    return it == tensors.end() ? nullptr : &it->second;
  }

private:
  llvm::Error checkExperts(const ::kf::ModelConfig &config) const;

  llvm::StringMap<Tensor> tensors;
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_CHECKPOINT_H
