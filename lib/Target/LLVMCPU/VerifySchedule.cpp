//===- VerifySchedule.cpp - Schedules that a CPU can run ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VerifySchedule.h"

#include "kf/Conversion/VectorLimits.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

class Verifier {
public:
  Verifier(KernelOp kernel, CpuTargetAttr target)
      : kernel(kernel),
        schedule(dyn_cast<VectorScheduleAttr>(kernel.getScheduleAttr())),
        lanes(target.getLanes()), int8Dot(target.getInt8Dot()) {}

  LogicalResult verify() {
    if (!schedule)
      return fail("it is no #kf.vector");
    if (schedule.getLanes() > lanes)
      return fail("lanes = " + Twine(schedule.getLanes()) +
                  " exceeds the register's " + Twine(lanes));
    auto matmuls = kernel.getBody().getOps<MatmulOp>();
    if (!matmuls.empty())
      return verifyMatmul(*matmuls.begin());
    if (schedule.getDot() == DotKind::I8)
      return fail("dot = i8 is for matmuls with block-quantized weights");
    if (schedule.getUnroll() != 1)
      return fail("unroll is for matmuls");
    auto attentions = kernel.getBody().getOps<CacheAttentionInterface>();
    if (!attentions.empty())
      return verifyAttention(*attentions.begin());
    if (!schedule.getTile().empty() || schedule.getReduction() != 0)
      return fail("tile and reduction are for matmuls and attention");
    auto packs = kernel.getBody().getOps<PackOp>();
    return packs.empty() ? success() : verifyPack(*packs.begin());
  }

private:
  LogicalResult fail(const Twine &message) {
    return kernel.emitError("schedule cannot run on this CPU: " + message);
  }

  /// The tile of workgroup loop `dim`; 0 leaves it whole.
  int64_t workgroup(size_t dim) {
    ArrayRef<int64_t> sizes = schedule.getWorkgroup();
    return dim < sizes.size() ? sizes[dim] : 0;
  }

  LogicalResult verifyMatmul(MatmulOp op) {
    auto weight = cast<RankedTensorType>(op.getW().getType());
    bool quantized = isa<QuantType>(weight.getElementType());
    if (schedule.getDot() == DotKind::I8) {
      if (!int8Dot)
        return fail("dot = i8 needs VNNI");
      if (schedule.getLanes() < 4)
        return fail("dot = i8 needs lanes = 4, 8 or 16");
      if (!quantized)
        return fail("dot = i8 is for matmuls with block-quantized weights");
    }
    if (quantized && schedule.getUnroll() != 1)
      return fail("unroll must be 1 for block-quantized weights, whose blocks "
                  "are unrolled whole");
    if (schedule.getReduction() != 0)
      return fail("a matmul's reduction is not tiled; reduction must be 0");
    ArrayRef<int64_t> tile = schedule.getTile();
    if (tile.size() != 2)
      return fail("a matmul needs tile = [rows, columns]");
    if (tile[1] % schedule.getLanes() != 0)
      return fail("tile columns must be a multiple of lanes");
    LayoutAttr layout = getLayout(weight);
    if (layout && layout.getPanel() != tile[1])
      return fail("tile columns (" + Twine(tile[1]) +
                  ") must be the panel of the weight's layout (" +
                  Twine(layout.getPanel()) + ")");
    if (workgroup(1) % tile[1] != 0)
      return fail("workgroup columns (" + Twine(workgroup(1)) +
                  ") must be a multiple of tile columns (" + Twine(tile[1]) +
                  ")");
    if (failed(verifyRows(op.getX())))
      return failure();
    int64_t vectors =
        tile[0] * tile[1] / schedule.getLanes() * (op.getGlu() ? 2 : 1);
    if (failed(verifyRegisters("tile and accumulators",
                               vectors * schedule.getAccumulators())))
      return failure();
    int64_t products =
        vectors * (quantized ? ::kf::PackedBlock::unit : schedule.getUnroll());
    if (products > maxUnrolledProducts)
      return fail("tile and unroll make " + Twine(products) +
                  " products of vectors a step; at most " +
                  Twine(maxUnrolledProducts) + " are accepted");
    return success();
  }

  LogicalResult verifyAttention(CacheAttentionInterface op) {
    ArrayRef<int64_t> tile = schedule.getTile();
    if (tile.empty() || tile.size() > 2)
      return fail(
          "attention needs tile = [query rows] or [query rows, those of "
          "one token]");
    int64_t vector = schedule.getLanes(), keys = schedule.getReduction();
    int64_t page = op.getCache().getType().getPage();
    if (keys == 0 || keys % vector != 0 || page % keys != 0)
      return fail("attention needs a reduction that divides the cache's page "
                  "(" +
                  Twine(page) + ") and is a multiple of lanes, found " +
                  Twine(keys));
    if (failed(verifyRegisters("tile and reduction",
                               *llvm::max_element(tile) * keys / vector)))
      return failure();
    auto q = cast<RankedTensorType>(op.getQ().getType());
    int64_t kvHeads = op.getCache().getType().getKvHeads();
    int64_t group = q.getDimSize(1) / kvHeads;
    if (kvHeads > 1 && workgroup(1) != group)
      return fail("workgroup heads (" + Twine(workgroup(1)) + ") must be the " +
                  Twine(group) + " that share a KV head");
    auto partial = dyn_cast<AttentionPartialOp>(op.getOperation());
    if (partial && partial.getSplits() > 1 && workgroup(2) != 1)
      return fail("workgroup splits (" + Twine(workgroup(2)) + ") must be 1");
    return verifyRows(op.getQ());
  }

  LogicalResult verifyRegisters(const Twine &fields, int64_t vectors) {
    if (vectors <= maxTileVectors)
      return success();
    return fail(fields + " need " + Twine(vectors) +
                " vector registers; 32 are there, and " +
                Twine(maxTileVectors) + " are accepted");
  }

  /// Workgroups share no panel.
  LogicalResult verifyPack(PackOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rows = workgroup(type.getRank() - 2);
    int64_t panel = getLayout(type).getPanel();
    if (rows % panel != 0)
      return fail("workgroup rows (" + Twine(rows) +
                  ") must be a multiple of the layout's panel (" +
                  Twine(panel) + ")");
    return success();
  }

  /// Rows of a workgroup lie in scratch, whose size has to be known.
  LogicalResult verifyRows(Value x) {
    if (workgroup(0) == 0 &&
        cast<RankedTensorType>(x.getType()).isDynamicDim(0))
      return fail("workgroup rows must be given, as their number is dynamic");
    return success();
  }

  KernelOp kernel;
  VectorScheduleAttr schedule;
  int64_t lanes;
  bool int8Dot;
};

} // namespace

LogicalResult mlir::kf::verifyCpuSchedule(KernelOp kernel,
                                          CpuTargetAttr target) {
  return Verifier(kernel, target).verify();
}
