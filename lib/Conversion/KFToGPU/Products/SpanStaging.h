//===- SpanStaging.h - A packed weight to workgroup memory ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// For products whose operands are staged: threads take a weight with
// `#kf.fragments` apart by words, 32 columns of K at a time.
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_SPANSTAGING_H
#define KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_SPANSTAGING_H

#include "ElementStaging.h"
#include "GPUMatmulEmitter.h"
#include "LaneTiles.h"

namespace mlir::kf {

class SpanStaging {
public:
  /// Of the weight of `op`, whose tile has `columns` columns, into `memory`.
  SpanStaging(GPUEmitter &emitter, MatmulOp op, Value columns,
              ElementStaging &memory);

  /// Spans that have code of their own each: those of a part of blocks.
  int64_t spans() const;
  /// Stages span number `span` of those that begin with column `first` of K.
  /// Barriers are the caller's.
  void stage(Value first, int64_t span);

private:
  void stageLane(Value block, Value lane, Value first, int64_t span);

  GPUEmitter &e;
  ElementStaging &memory;
  WeightRows weight;
  Type element;
  ::kf::FragmentTile tile;
  int64_t blockColumns, tilesOfRow;
  Value lastBlock, table;
};

} // namespace mlir::kf

#endif // KF_LIB_CONVERSION_KFTOGPU_PRODUCTS_SPANSTAGING_H
