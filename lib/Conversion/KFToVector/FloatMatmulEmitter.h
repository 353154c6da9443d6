//===- FloatMatmulEmitter.h - Products in f32 -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What matmuls with dot = f32 share. For each k: one load of each vector of the
// panel's row, one broadcast and one fused multiply-add a row and vector.
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
  LogicalResult computeRows(int64_t most) override;
  /// Groups [first, first + count) of a panel.
  struct Groups {
    int64_t first, count;
  };
  /// Vectors of row `k` of the packed panel, one a group and `lanes` columns,
  /// as floats.
  virtual SmallVector<Value> loadPanelRow(Value p, Value k, Groups read) = 0;
  /// Whether panels lie in memory as floats.
  virtual bool isFloats() const = 0;
  /// Makes room for what storeUnpacked() stores.
  void beginUnpacking();
  /// Stores `values`, vectors of row `k` of the panel, to what is unpacked.
  void storeUnpacked(Value k, ArrayRef<Value> values);

  bool canUnpack() const override { return !isFloats(); }
  void unpackPanel(Value p) override;
  SmallVector<Value> sumTile(Value p, Value firstRow) override;

  /// Adds x[rows, k] * w to the partial sums `into`.
  void step(Value firstRow, Value k, ArrayRef<Value> w,
            MutableArrayRef<Value> into);

  Value x; // scratch [rows of the workgroup tile, K + padding]

private:
  SmallVector<Value> sumGroups(Value p, Value firstRow, Groups read);
  SmallVector<Value> loadUnpacked(Value k);

  Value unpacked; // scratch [K, vectors, lanes]
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_FLOATMATMULEMITTER_H
