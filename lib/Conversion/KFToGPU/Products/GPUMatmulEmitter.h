//===- GPUMatmulEmitter.h - Matrix products on a GPU ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the algorithms for products share: rows of x, which a norm may compute
// on the way, and what happens to an element of the product once it is summed.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_GPUMATMULEMITTER_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_GPUMATMULEMITTER_H

#include "../GPUEmitter.h"

namespace mlir::kf {

/// Where an argument has the rows of a product's packed weight: from number
/// `first` on, of each expert's where there are several.
struct WeightRows {
  BlockArgument argument;
  Value first;
};
WeightRows findWeightRows(GPUEmitter &e, ProductOpInterface op);

class GPUMatmulEmitter {
public:
  explicit GPUMatmulEmitter(GPUEmitter &e)
      : e(e), b(e.b), loc(e.loc), shape(e.shape),
        product(e.find<ProductOpInterface>()),
        op(dyn_cast_if_present<MatmulOp>(product.getOperation())) {}
  virtual ~GPUMatmulEmitter() = default;

  void emit();

protected:
  /// Sums the products of the tile and stores its elements.
  virtual void emitProduct() = 0;

  /// The element of x; a code times its scale where rows are in 8 bits.
  virtual Value loadX(Value row, Value k);
  /// Indices into the weight: with those of gate or up where there are both.
  SmallVector<Value> groupIndices(int64_t group, ValueRange indices);
  /// Bias, gate, elementwise consumers, and the store of the element of the
  /// product with these sums, one a group, if it is inside of the tile.
  void storeElement(Value row, Value column, ValueRange sums);
  /// What is stored of that element, which is inside, and its place in the
  /// tile.
  virtual Value finishElement(Value row, Value column, ValueRange sums);
  virtual SmallVector<Value> resultIndices(Value row, Value column) {
    return {row, column};
  }

  GPUEmitter &e;
  OpBuilder &b;
  Location loc;
  const KernelShape &shape;
  ProductOpInterface product;
  MatmulOp op;         // the same; null: it is no matmul
  int64_t extent = 0;  // K
  Value rows, columns; // of this workgroup's tile, at its edges less than whole

  /// Makes elements of x loadable.
  virtual void prepareInput();
};

/// Through workgroup memory: every thread sums elements of its own.
void emitStagedMatmul(GPUEmitter &emitter);
/// For few rows: threads that are neighbours share the sum of an element.
void emitSharedMatmul(GPUEmitter &emitter);
/// For few rows: a weight with `#kf.fragments`, taken apart by threads.
void emitLanesMatmul(GPUEmitter &emitter);
/// Of 16-bit floats, on matrix units.
void emitMmaMatmul(GPUEmitter &emitter);
/// On cooperative matrices: a weight with `#kf.fragments`.
void emitCoopMatmul(GPUEmitter &emitter);
/// For few rows, on matrix units: a weight with `#kf.fragments`.
void emitStreamMatmul(GPUEmitter &emitter);
/// The same of rows of 16-bit floats, which warps hold in registers.
void emitHeldMatmul(GPUEmitter &emitter);

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_GPUMATMULEMITTER_H
