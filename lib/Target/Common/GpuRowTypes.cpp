//===- GpuRowTypes.cpp - How rows come to kernels of GPUs -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The policy of all GPU targets before there are kernels: which ops join those
// that make or read their rows, in which types rows of products and queries
// are, and which products are for matrix units. Schedules are chosen for what
// this leaves, in GpuSchedules.cpp.
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/GpuSchedules.h"

#include "kf/Conversion/KernelLoops.h"
#include "kf/Conversion/KernelShape.h"
#include "kf/Conversion/KernelSupport.h"
#include "kf/Target/Common/GpuSupport.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <limits>

using namespace mlir;
using namespace mlir::kf;

FusionRules mlir::kf::getGpuFusionRules() {
  // A workgroup computes the statistics of its rows itself. Of a product of
  // many rows, that is each row again for every few columns.
  FusionRules rules;
  rules.mostRowsOfNorm = kGpuFewRows;
  rules.roundingIntoAttention = true;
  return rules;
}

bool mlir::kf::haveOwnKeys(CacheAttentionInterface op, int64_t rows) {
  const bool hasSequences =
      cast<RankedTensorType>(op.getPageTable().getType()).getDimSize(0) != 1;
  return rows <= (hasSequences ? kGpuGeneratingRows : kGpuFewRows);
}

/// Elements of x in a product of f32 by f32 that are worth matrix units.
static constexpr int64_t leastElements = 1 << 12;

bool mlir::kf::areForMatrixUnits(MatmulOp op, int64_t rows) {
  if (!WideFactors::are(op.getX().getType(), op.getW().getType()))
    return rows > kGpuFewRows;
  // Of f32 they take products of training, whose rows are known. Few of them
  // are for threads, which read each element of a weight once, but not where
  // neighbours in memory are of unlike rows, as in an adapter's gradients.
  return cast<RankedTensorType>(op.getType()).hasStaticShape() &&
         rows * cast<RankedTensorType>(op.getX().getType()).getDimSize(1) >=
             leastElements &&
         (rows > kGpuFewRows || isTransposedInMemory(op.getX()) ||
          isTransposedInMemory(op.getW()));
}

bool mlir::kf::isForMatrixUnits(BatchMatmulOp op) {
  auto type = cast<RankedTensorType>(op.getType());
  auto x = cast<RankedTensorType>(op.getX().getType());
  return type.hasStaticShape() &&
         x.getElementType() == getElementTypeOrSelf(op.getW().getType()) &&
         std::min(type.getShape().end()[-2], x.getShape().back()) > kGpuFewRows;
}

bool mlir::kf::isForMatrixUnits(MatmulWgradOp op) {
  auto dy = cast<RankedTensorType>(op.getDy().getType());
  auto x = cast<RankedTensorType>(op.getX().getType());
  return WideFactors::are(dy, x) && dy.hasStaticShape() && x.hasStaticShape() &&
         dy.getNumElements() >= leastElements;
}

/// What matrix units multiply with the weight of `op`, up to `rows` rows of x:
/// its type of 16 bits, or that of codes; null: they do not.
static Type getRoundedType(MatmulOp op, int64_t rows) {
  Type type = getUnitElement(op.getW().getType().getElementType(),
                             /*areManyRows=*/rows > kGpuFewRows);
  return type.isF16() || type.isBF16() ? type : Type();
}

/// What matrix units multiply with keys; null: they do not.
static Type getQueryType(AttentionOp op) {
  if (!isForMatrixUnits(op))
    return Type();
  KVCacheType cache = op.getCache().getType();
  Type keys = cache.getType();
  if (cache.isQuantized())
    return Float16Type::get(op.getContext());
  return keys.isF16() || keys.isBF16() ? keys : Type();
}

/// Whether it is a loaded weight, or rows of one, which will be packed.
static bool willBePacked(Value weight) {
  while (auto slice = weight.getDefiningOp<tensor::ExtractSliceOp>())
    weight = slice.getSource();
  return weight.getDefiningOp<WeightOp>() != nullptr;
}

/// Whether subgroups of the machine have as many vectors each of a step of a
/// unit's rows: wider ones have no tile on cooperative matrices.
static bool divideStep(const MachineDescription &machine, MatrixUnit unit) {
  const int64_t vectors =
      getUnitShape(unit).rows * CoopShape::step / CoopShape::vectorColumns;
  return vectors % machine.subgroupThreads == 0;
}

/// The most rows of `op` that are not rounded to `type` before: threads
/// multiply them, or matrix units take them as two numbers each, what is
/// rounded and what that leaves.
static int64_t mostWholeRows(MatmulOp op, Type type,
                             const MachineDescription &machine) {
  if (machine.has(MatrixUnit::MmaSync))
    return isa<Float8E4M3FNType>(op.getW().getType().getElementType())
               ? kGpuFewRows
               : StreamShape::mostSplitRows;
  const MatrixUnit unit =
      type.isF16() ? MatrixUnit::CoopF16 : MatrixUnit::CoopBF16;
  const bool isMultiplied = machine.has(unit) && divideStep(machine, unit) &&
                            willBePacked(op.getW()) && isForCoop(op, type);
  return isMultiplied ? kGpuThreadRows : std::numeric_limits<int64_t>::max();
}

/// Whether `rows` are those of a product whose own rows are rounded, moved,
/// rotated or changed element by element; of several, any one. Rows of f16
/// weights are not: bf16 is coarser.
static bool comeOfRoundedRows(Value rows, const MachineDescription &machine) {
  SmallVector<Value> next = {rows};
  llvm::SmallPtrSet<Operation *, 16> seen;
  while (!next.empty()) {
    Operation *op = next.pop_back_val().getDefiningOp();
    if (!op || !seen.insert(op).second)
      continue;
    if (auto product = dyn_cast<MatmulOp>(op)) {
      auto x = cast<RankedTensorType>(product.getX().getType());
      if (x.hasStaticShape() &&
          !getElementTypeOrSelf(product.getW().getType()).isF16() &&
          !getGpuRowTypes(product, machine,
                          x.getNumElements() / x.getShape().back())
               .front()
               .isF32())
        return true;
    } else if (isa<RopeOp, RotaryEmbeddingOp, RmsNormOp>(op)) {
      next.push_back(op->getOperand(0));
    } else if (isView(op) || isElementwise(op)) {
      llvm::append_range(next, op->getOperands());
    }
  }
  return false;
}

/// What matrix units multiply in a kernel of attention to tensors; null: there
/// is none. Gradients need the exponents of bf16.
static Type getBatchType(BatchAttentionInterface op,
                         const MachineDescription &machine) {
  const Type type = BFloat16Type::get(op.getContext());
  const Type own = getElementTypeOrSelf(op.getQ().getType());
  if (!machine.has(MatrixUnit::MmaSync) || !isForBatchKernel(op, type) ||
      getBatchAttentionShape(op, getBatchAttentionSchedule(op)).bytes() >
          machine.memory)
    return Type();
  const bool isRounded =
      own == type || (own.isF32() && comeOfRoundedRows(op.getQ(), machine) &&
                      comeOfRoundedRows(op.getK(), machine) &&
                      comeOfRoundedRows(op.getV(), machine));
  return isRounded ? type : Type();
}

SmallVector<Type> mlir::kf::getGpuRowTypes(Operation *op,
                                           const MachineDescription &machine,
                                           int64_t rows) {
  Type type;
  if (auto matmul = dyn_cast<MatmulOp>(op)) {
    type = getRoundedType(matmul, rows);
    if (type && rows <= mostWholeRows(matmul, type, machine))
      type = {};
  } else if (auto attention = dyn_cast<AttentionOp>(op);
             attention && machine.has(MatrixUnit::MmaSync) &&
             !haveOwnKeys(attention, rows)) {
    type = getQueryType(attention);
  } else if (auto batches = dyn_cast<BatchAttentionInterface>(op)) {
    type = getBatchType(batches, machine);
  }
  const Type whole = Float32Type::get(op->getContext());
  return type ? SmallVector<Type>{type, whole} : SmallVector<Type>{whole};
}
