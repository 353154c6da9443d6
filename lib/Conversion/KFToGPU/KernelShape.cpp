//===- KernelShape.cpp - What a schedule asks of a GPU workgroup ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Conversion/KernelShape.h"

#include "llvm/Support/CheckedArithmetic.h"

using namespace mlir;
using namespace mlir::kf;

/// Anything larger is a mistake, and products of three stay within 64 bits.
static constexpr int64_t largest = 1 << 20;

template <typename OpTy> static OpTy findOp(KernelOp kernel) {
  OpTy found;
  kernel.walk([&](OpTy op) { found = op; });
  return found;
}

/// Statistics that a norm keeps of a row.
static int64_t statisticsOf(Operation *norm) {
  return isa_and_nonnull<LayerNormOp>(norm) ? 2
         : isa_and_nonnull<RmsNormOp>(norm) ? 1
                                            : 0;
}

/// Bytes of one partial result a thread for each type that the kernel reduces.
static int64_t reductionBytes(KernelOp kernel, int64_t threads) {
  if (findOp<ArgmaxOp>(kernel))
    return 2 * 4 * threads;
  bool reduces = findOp<RmsNormOp>(kernel) || findOp<LayerNormOp>(kernel) ||
                 findOp<SoftmaxOp>(kernel);
  return reduces ? 4 * threads : 0;
}

FailureOr<KernelShape> mlir::kf::getKernelShape(KernelOp kernel) {
  auto fail = [&](const Twine &message) {
    return kernel.emitError("schedule cannot run on a GPU: " + message);
  };
  if (!kernel.getSchedule())
    return fail("there is none; run kf-select-schedules first");
  auto schedule = dyn_cast<SimtScheduleAttr>(kernel.getScheduleAttr());
  if (!schedule)
    return fail("it is no #kf.simt");
  for (ArrayRef<int64_t> list :
       {schedule.getWorkgroup(), schedule.getTile(), schedule.getThreads()})
    for (int64_t size : list)
      if (size > largest)
        return fail("sizes are at most " + Twine(largest) + ", found " +
                    Twine(size));

  KernelShape shape;
  for (auto [dim, size] : llvm::enumerate(schedule.getThreads())) {
    shape.threads[dim] = size;
    shape.threadCount *= size;
  }
  shape.workgroupBytes = reductionBytes(kernel, shape.threadCount);
  auto matmul = findOp<MatmulOp>(kernel);
  if (!matmul) {
    if (!schedule.getTile().empty() || schedule.getReduction() != 0)
      return fail("tile and reduction are for matmul");
    return shape;
  }

  if (schedule.getWorkgroup().size() != 2 ||
      llvm::is_contained(schedule.getWorkgroup(), 0) ||
      schedule.getTile().size() != 2 || shape.threads[2] != 1)
    return fail("a matmul needs workgroup = [rows, columns], tile = [rows, "
                "columns] and threads = [x, y]");
  shape.rows = schedule.getWorkgroup()[0];
  shape.columns = schedule.getWorkgroup()[1];
  shape.tileRows = schedule.getTile()[0];
  shape.tileColumns = schedule.getTile()[1];
  if (shape.tileRows * shape.threads[1] != shape.rows ||
      shape.tileColumns * shape.threads[0] != shape.columns)
    return fail("tile [" + Twine(shape.tileRows) + ", " +
                Twine(shape.tileColumns) + "] of " + Twine(shape.threads[1]) +
                " x " + Twine(shape.threads[0]) +
                " threads does not make the workgroup's [" + Twine(shape.rows) +
                ", " + Twine(shape.columns) + "]");
  int64_t extent =
      cast<RankedTensorType>(matmul.getX().getType()).getDimSize(1);
  shape.step = schedule.getReduction() ? schedule.getReduction()
                                       : std::max<int64_t>(extent, 1);
  shape.unroll = schedule.getUnroll();
  if (shape.step > largest || shape.step % shape.unroll != 0)
    return fail("reduction (" + Twine(shape.step) +
                ") must be a multiple of unroll (" + Twine(shape.unroll) +
                ") and at most " + Twine(largest));
  shape.groups = matmul.getGlu() ? 2 : 1;
  if (shape.tileRows * shape.tileColumns * shape.groups * shape.unroll > 1024)
    return fail("tile and unroll make more than 1024 multiplications a thread "
                "and step");
  shape.statistics = statisticsOf(matmul.getX().getDefiningOp());
  shape.workgroupBytes +=
      4 * (shape.stride() * (shape.rows + shape.groups * shape.columns) +
           shape.statistics * shape.rows);
  return shape;
}
