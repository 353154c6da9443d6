//===- FloatMatmulEmitter.h - Products of floats ----------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What matmuls with dot = f32 and bf16_pairs share. A step of K is one element,
// or two neighbouring ones with pairs: a lane of 32 bits holds both in bf16. In
// each step, each vector of the panel's row is loaded once; each row of x has
// its element broadcast to all lanes, and multiplied with each vector by a
// fused multiply-add, or by an instruction that adds both products of a pair.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_FLOATMATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOVECTOR_FLOATMATMULEMITTER_H

#include "VectorMatmulEmitter.h"

namespace mlir::kf {

class FloatMatmulEmitter : public VectorMatmulEmitter {
public:
  using VectorMatmulEmitter::VectorMatmulEmitter;

protected:
  void computeRows(int64_t most) override;
  /// Groups [first, first + count) of a panel.
  struct Groups {
    int64_t first, count;
  };
  /// Vectors of step `k` of the packed panel, one a group and `lanes` columns:
  /// floats, or pairs.
  virtual SmallVector<Value> loadPanelRow(Value p, Value k, Groups read) = 0;
  /// Makes room for what storeUnpacked() stores.
  void beginUnpacking();
  /// Stores `values`, vectors of step `k` of the panel, to what is unpacked.
  void storeUnpacked(Value k, ArrayRef<Value> values);

  void unpackPanel(Value p) override;
  SmallVector<Value> sumTile(Value p, RegisterTile tile) override;

  /// Adds x[rows of `tile`, step `k`] * w to the partial sums `into`.
  void step(RegisterTile tile, Value k, ArrayRef<Value> w,
            MutableArrayRef<Value> into);

  /// Elements of K of a step.
  int64_t depth() const {
    return e.schedule.getDot() == DotKind::BF16Pairs ? 2 : 1;
  }

  Value x; // scratch [rows of the workgroup tile, K + padding]

private:
  int64_t partialSums(RegisterTile tile, int64_t unroll) const;
  SmallVector<Value> sumGroups(Value p, RegisterTile tile, Groups read);
  /// Of x and of the panel, as they are multiplied.
  Type elementType() {
    return depth() == 2 ? Type(b.getBF16Type()) : b.getF32Type();
  }
  SmallVector<Value> loadUnpacked(Value k, Groups read);
  /// What row `row` of x has for step `k`, in all lanes.
  Value broadcast(Value row, Value k);
  Value multiplyAdd(Value x, Value w, Value sum);

  Value unpacked; // scratch [steps, vectors, lanes * depth]
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_FLOATMATMULEMITTER_H
