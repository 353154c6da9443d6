//===- QuantizeRows.cpp - Rows that are rounded once for all workers ------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Workers.h"

#include "kf/Target/LLVMCPU/Passes.h"
#include "kf/Transforms/KernelKey.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

namespace mlir::kf {
#define GEN_PASS_DEF_QUANTIZECPUROWS
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Elements that a worker rounds in the time that one more dispatch takes.
constexpr int64_t elementsPerDispatch = 8192;
/// Columns that products of tiles have in one group if there is one worker,
/// whatever their rows are: half of those whose sums fill the cache
/// (KernelConfig.cpp).
constexpr int64_t tileColumns = 512;

struct QuantizeCpuRowsPass
    : mlir::kf::impl::QuantizeCpuRowsBase<QuantizeCpuRowsPass> {
  using QuantizeCpuRowsBase::QuantizeCpuRowsBase;

  void runOnOperation() override {
    target = getCpuTarget(getOperation());
    if (!target)
      return signalPassFailure();
    getOperation().walk([&](ExpertMatmulOp op) {
      if (!op.getScales() && !op.hasRowForEach() &&
          op.getX().getType().getElementType().isF32() && target.getInt8Dot() &&
          isQuantized(op) && pays(op))
        quantize(op);
    });
    getOperation().walk([&](MatmulOp op) {
      if (op.getScales() || !op.isOfMatrices() ||
          !op.getX().getType().getElementType().isF32())
        return;
      int64_t rows =
          getMostRows(getOperation(), op.getX().getType(), maxTokens);
      if (usesTiles(target, op.getW().getType(), rows))
        prepareForTiles(op);
      else if (usesPairs(target, op.getW().getType(), rows))
        prepareForPairs(op);
      else if (target.getInt8Dot() && isQuantized(op) && pays(op))
        quantize(op);
    });
  }

private:
  static bool isQuantized(ProductOpInterface op) {
    return isa<QuantType>(
        cast<RankedTensorType>(op.getW().getType()).getElementType());
  }

  /// Every group of columns brings the rows to tiles. Before it does, they are
  /// normalized and rounded once.
  void prepareForTiles(MatmulOp op) {
    RankedTensorType w = op.getW().getType();
    int64_t columns = w.getShape().end()[-2] * (op.getGlu() ? 2 : 1);
    if (threadsOf(target) == 1 && columns <= tileColumns)
      return;
    round(op);
  }

  /// Every group of columns rounds its rows where nobody did before. Of one
  /// worker, or a single panel, there is one.
  void prepareForPairs(MatmulOp op) {
    int64_t columns = op.getW().getType().getShape().end()[-2];
    if (threadsOf(target) > 1 && columns > panelOf(target))
      round(op);
  }

  static void round(MatmulOp op) {
    OpBuilder b(op);
    op.getXMutable().assign(arith::TruncFOp::create(
        b, op.getLoc(), op.getX().getType().clone(b.getBF16Type()), op.getX()));
    op.setWide(true);
  }

  /// Whether rounding in every group of columns takes longer than rounding
  /// once, in parallel if there are rows enough, and one more dispatch.
  bool pays(ProductOpInterface op) {
    auto x = cast<RankedTensorType>(op.getX().getType());
    auto w = cast<RankedTensorType>(op.getW().getType());
    int64_t rows = getMostRows(getOperation(), x, maxTokens);
    int64_t columns = w.getShape().end()[-2] * (op.getGlu() ? 2 : 1);
    int64_t threads = threadsOf(target);
    int64_t groups = int8ColumnGroups(rows, columns, threads);
    int64_t elements = rows * x.getDimSize(1);
    int64_t apart = elements * groups / threads;
    int64_t once = elements / std::min(threads, rows) + elementsPerDispatch;
    return threads > 1 && apart > once;
  }

  template <typename ProductOp> void quantize(ProductOp op) {
    OpBuilder b(op);
    auto quant = cast<QuantType>(op.getW().getType().getElementType());
    auto rows = QuantizeRowsOp::create(b, op.getLoc(), op.getX(),
                                       getStorage(quant.getFormat()).subBlock);
    op.getXMutable().assign(rows.getCodes());
    op.getScalesMutable().assign(rows.getScales());
    op.getSumsMutable().assign(rows.getSums());
  }

  CpuTargetAttr target;
};

} // namespace
