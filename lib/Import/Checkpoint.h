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
#include "runtime/WeightSource.h"
#include "runtime/model/ModelConfig.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

/// What an architecture calls its tensors, without the suffixes ".weight" and
/// ".bias". Empty where it has no such tensor.
struct TensorNames {
  StringRef prefix;               ///< of everything but `head`; may be absent
  StringRef layer;                ///< "<layer>.<i>." begins a layer's tensors
  StringRef embedding, positions; ///< [V, D], [maxPositions, D]
  StringRef finalNorm, head;      ///< [D], [V, D]
  // In a layer.
  StringRef attentionNorm, mlpNorm;      ///< [D]
  StringRef fusedQkv, query, key, value; ///< fused or apart, [heads * dim, D]
  StringRef queryNorm, keyNorm;          ///< [head dim]
  StringRef output;                      ///< [D, heads * dim]
  StringRef gate, up, down;              ///< [F, D], [F, D], [D, F]
  StringRef ropeFactors;                 ///< [head dim / 2], of the whole model
  bool transposed = false; ///< a layer's matrices are stored [in, out]
};

const TensorNames &getTensorNames(const ::kf::ModelConfig &config);

/// The tensors of one checkpoint that a model uses, by the name that
/// TensorNames gives them (suffix included, prefix not).
class Checkpoint {
public:
  struct Tensor {
    std::string name;      ///< in the checkpoint
    RankedTensorType type; ///< logical: [out, in] for a matrix
    bool transposed = false;
  };

  /// Finds and checks every tensor that `config` implies.
  static llvm::Expected<Checkpoint> read(MLIRContext &context,
                                         const ::kf::ModelConfig &config,
                                         const ::kf::WeightSource &source);

  /// Null where the model has no tensor of this name.
  const Tensor *find(StringRef name) const {
    auto it = tensors.find(name);
    return it == tensors.end() ? nullptr : &it->second;
  }

private:
  llvm::StringMap<Tensor> tensors;
};

} // namespace mlir::kf

#endif // KF_LIB_IMPORT_CHECKPOINT_H
