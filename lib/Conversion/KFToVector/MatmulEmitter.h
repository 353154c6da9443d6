//===- MatmulEmitter.h - Matrix products ------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What matmuls share whatever their weight is stored as. Rows of x are computed
// once for a workgroup into scratch (normalized, converted or rounded on the
// way); the packed weight is read panel by panel. Where rows have experts, that
// is done for those of one expert at a time.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOVECTOR_MATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOVECTOR_MATMULEMITTER_H

#include "ExpertRows.h"
#include "KernelEmitter.h"
#include "WeightPrefetch.h"

#include <array>
#include <optional>

namespace mlir::kf {

class MatmulEmitter {
public:
  explicit MatmulEmitter(KernelEmitter &e)
      : e(e), b(e.b), loc(e.loc), op(e.find<ProductOpInterface>()) {}
  virtual ~MatmulEmitter() = default;

  void emit();

protected:
  /// Takes what else the schedule and the weight's layout say.
  virtual void readLayout(LayoutAttr) {}
  /// Computes the rows of x, `most` or fewer, into scratch.
  virtual void computeRows(int64_t most) = 0;
  /// Computes `panels` panels of the result, from panel `firstPanel` of the
  /// weight on.
  virtual void computePanels(Value firstPanel, Value panels) = 0;

  /// Bias, gate, elementwise consumers, and the store of row `row` of panel `p`
  /// of the result, whose sums `sumOf` yields by group and vector.
  void storeRow(Value row, Value p,
                function_ref<Value(int64_t group, int64_t vector)> sumOf);
  /// Indices, but the column's, of row `row` in the tile of x.
  SmallVector<Value> xRow(Value row) {
    return experts ? experts->xRow(row) : SmallVector<Value>{row};
  }
  /// Whether rows of the tile are taken in another order, by their experts.
  bool hasExperts() const { return experts.has_value(); }
  /// Computes row `row` of x in floats, piece by piece; of codes, times their
  /// scales.
  void emitRow(Value row, KernelEmitter::StoreFn store);
  /// Columns of the kernel's whole product.
  int64_t wholeColumns();
  /// Vectors of the result that a row of the tile has.
  int64_t vectorsPerRow() const { return groups * panel / lanes; }

  // Panels of bf16 that are interleaved: each 32-bit lane of a row has two
  // columns, 16 apart.
  VectorType bitsType() { return e.vectorType(lanes, b.getI32Type()); }
  Value splatBits(uint32_t bits);
  /// The row's lanes at `indices` of the weight.
  Value loadHalves(ValueRange indices);
  /// A half of each lane, where an f32 has its upper bits, and 0 below; or the
  /// upper one as the lower, and 0 above.
  Value lowerAsFloat(Value bits);
  Value upperAsFloat(Value bits);
  Value lowFromHigh(Value bits);
  /// Lanes with elements of row `even` below and of row `odd` above: of the
  /// columns that both have in the lower halves, and of those in the upper.
  std::array<Value, 2> pairRows(Value even, Value odd);

  KernelEmitter &e;
  OpBuilder &b;
  Location loc;
  ProductOpInterface op;
  int64_t tileRows = 0, panel = 0, lanes = 0, groups = 1, extent = 0;
  int64_t mostTiles = 0; // of rows, that are computed into scratch
  Value rows;            // that are
  Value weights;         // panels; see KernelEmitter's storageType

private:
  void readSchedule();
  /// Rows of x in the workgroup's tile, at most.
  int64_t mostRowsOfGroup();
  void emitExperts(ExpertMatmulOp product, Value firstPanel, Value panels);
  Value columnMask(Value column);

  std::optional<ExpertRows> experts; // of kf.expert_matmul
  Value expert;                      // of the rows
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOVECTOR_MATMULEMITTER_H
