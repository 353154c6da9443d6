//===- KFCollectiveOps.cpp - Ops of all ranks of a module -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "OpChecks.h"

#include "mlir/IR/BuiltinOps.h"

using namespace mlir;
using namespace mlir::kf;

bool mlir::kf::isCollective(Operation *op) {
  return isa<AllReduceOp, AllGatherOp, SendOp, ReceiveOp>(op);
}

int64_t mlir::kf::getRanks(Operation *op) {
  auto module =
      isa<ModuleOp>(op) ? cast<ModuleOp>(op) : op->getParentOfType<ModuleOp>();
  auto ranks =
      module ? module->getAttrOfType<IntegerAttr>(kRanksAttrName) : nullptr;
  return ranks ? ranks.getInt() : 1;
}

/// Whether `tensor` is [T, C] of floats, C static, in their order.
static bool isRowsOfFloats(RankedTensorType tensor) {
  return tensor.getRank() == 2 && hasStaticFloatRows(tensor) &&
         !isPacked(tensor);
}

/// What collectives share: C3 but for the columns, C4, and what their `offsets`
/// are.
static LogicalResult verifyPlace(Operation *op,
                                 std::optional<ArrayRef<int64_t>> offsets,
                                 StringRef ofOffsets = "C5") {
  if (getRanks(op) < 2)
    return op->emitOpError("C3: the module around it has no kf.ranks, and a "
                           "single rank has nothing to put together");
  if (op->getParentOfType<KernelOp>())
    return op->emitOpError("C4: stands in a kf.kernel; a kf.program holds it");
  if (!offsets)
    return success();
  if (op->getNumResults() == 0 && !offsets->empty())
    return op->emitOpError()
           << ofOffsets << ": offsets must be empty, as there is no result";
  if (op->getNumResults() == 1 &&
      (offsets->size() != 1 || offsets->front() < -1))
    return op->emitOpError()
           << ofOffsets
           << ": offsets must have one entry, which is not negative, or -1 for "
              "a result of the program";
  return success();
}

//===----------------------------------------------------------------------===//
// all_reduce
//===----------------------------------------------------------------------===//

LogicalResult AllReduceOp::inferReturnTypes(MLIRContext *,
                                            std::optional<Location>,
                                            Adaptor adaptor,
                                            SmallVectorImpl<Type> &types) {
  types.push_back(adaptor.getX().getType());
  return success();
}

LogicalResult AllReduceOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (x.getRank() < 1 || !isFloatTensor(x) || isPacked(x))
    return emitOpError("C1: x must have rank 1 or more and elements of f32, "
                       "f16 or bf16 in their order, found ")
           << x;
  return verifyPlace(*this, getOffsets());
}

//===----------------------------------------------------------------------===//
// all_gather
//===----------------------------------------------------------------------===//

LogicalResult AllGatherOp::verify() {
  RankedTensorType x = tensorType(getX());
  auto result = cast<RankedTensorType>(getType());
  if (!isRowsOfFloats(x))
    return emitOpError("C1: x must be [T, C] of f32, f16 or bf16 with static "
                       "columns, in their order, found ")
           << x;
  if (result.getRank() != 2 || result.isDynamicDim(1) ||
      !haveSameRows(x, result) || isPacked(result) ||
      x.getElementType() != result.getElementType())
    return emitOpError("C2: the result must be [T, D] with the rows and the "
                       "elements of x and static columns, found ")
           << x << " and " << result;
  if (failed(verifyPlace(*this, getOffsets())))
    return failure();
  const int64_t ranks = getRanks(*this), columns = x.getDimSize(1);
  // Ranks and columns are at most 2^10 and 2^31 in what is compiled.
  if (columns > maxSize || result.getDimSize(1) <= (ranks - 1) * columns ||
      result.getDimSize(1) > ranks * columns)
    return emitOpError("C3: ")
           << ranks << " ranks with " << columns << " columns each make "
           << "more than " << (ranks - 1) * columns << " and at most "
           << ranks * columns << ", found " << result.getDimSize(1);
  return success();
}

//===----------------------------------------------------------------------===//
// send, receive
//===----------------------------------------------------------------------===//

LogicalResult SendOp::verify() {
  RankedTensorType x = tensorType(getX());
  if (!isRowsOfFloats(x))
    return emitOpError("C1: x must be [T, C] of f32, f16 or bf16 with static "
                       "columns, in their order, found ")
           << x;
  return verifyPlace(*this, getOffsets(), "C2");
}

LogicalResult ReceiveOp::verify() {
  auto result = cast<RankedTensorType>(getType());
  if (!isRowsOfFloats(result))
    return emitOpError("C1: the result must be [T, C] of f32, f16 or bf16 with "
                       "static columns, in their order, found ")
           << result;
  return verifyPlace(*this, getOffsets(), "C2");
}
