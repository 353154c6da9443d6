//===- SplitRows.cpp - Large values by parts of their rows ----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/TensorBuilder.h"
#include "kf/Transforms/ArenaBytes.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/DebugLog.h"

#define DEBUG_TYPE "kf-split-rows"

namespace mlir::kf {
#define GEN_PASS_DEF_SPLITROWS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Rows of a static tensor, or 0.
int64_t rowsOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() && type.getRank() > 0
             ? type.getDimSize(0)
             : 0;
}

/// Of each operand of an op, whether row r of the results is made of its row r
/// alone; of the others, all rows are read.
using RowOperands = SmallVector<bool>;

/// The same of an op with loops; none where its rows depend on one another.
std::optional<RowOperands> findRowOperands(LoopOpInterface op) {
  SmallVector<AffineMap> maps = op.getLoopMaps();
  const unsigned operands = op->getNumOperands();
  const AffineMap result = maps[operands];
  if (result.getNumResults() == 0 || !isa<AffineDimExpr>(result.getResult(0)))
    return std::nullopt;
  const auto rows = cast<AffineDimExpr>(result.getResult(0));
  if (op.getLoopTypes()[rows.getPosition()] != utils::IteratorType::parallel)
    return std::nullopt;
  RowOperands found;
  for (auto [number, map] : llvm::enumerate(maps)) {
    const bool hasRows = map.getNumResults() > 0 && map.getResult(0) == rows;
    const auto others = map.getResults().drop_front(hasRows ? 1 : 0);
    if (llvm::any_of(others,
                     [&](AffineExpr expr) {
                       return expr.isFunctionOfDim(rows.getPosition());
                     }) ||
        (number >= operands && !hasRows))
      return std::nullopt;
    if (number < operands)
      found.push_back(hasRows);
  }
  return found;
}

std::optional<RowOperands> findRowOperands(Operation *op) {
  if (!isMemoryEffectFree(op) || op->getNumRegions() > 0 ||
      op->getNumResults() == 0)
    return std::nullopt;
  if (isElementwise(op))
    return llvm::map_to_vector(op->getOperandTypes(),
                               [](Type type) { return isa<ShapedType>(type); });
  if (auto broadcast = dyn_cast<BroadcastOp>(op)) {
    auto from = cast<RankedTensorType>(broadcast.getX().getType());
    auto to = cast<RankedTensorType>(broadcast.getType());
    return RowOperands{from.getRank() == to.getRank() &&
                       from.getDimSize(0) == to.getDimSize(0)};
  }
  if (isa<tensor::ExpandShapeOp, tensor::CollapseShapeOp>(op)) {
    if (op->getNumOperands() != 1 ||
        rowsOf(op->getOperand(0)) != rowsOf(op->getResult(0)))
      return std::nullopt;
    return RowOperands{true};
  }
  // Ops that other ops are made of, which have no loops.
  if (isa<CrossEntropyOp>(op))
    return RowOperands{true, true};
  if (isa<MatmulDgradOp>(op))
    return RowOperands{true, false};
  if (auto product = dyn_cast<MatmulOp>(op); product && !product.isOfMatrices())
    return std::nullopt;
  auto loops = dyn_cast<LoopOpInterface>(op);
  return loops ? findRowOperands(loops) : std::nullopt;
}

/// A value that others are made of, and no op of the function computes.
bool isGiven(Value value) {
  return !value.getDefiningOp() || isa<WeightOp>(value.getDefiningOp());
}

/// The ops that make or read values as large as one product's result.
class LargeRows {
public:
  /// Finds those around `product`. Fails where one of them needs other rows for
  /// a row, or what it reads is made of what others of them give.
  LogicalResult collect(Operation *product);

  /// Has each of them compute `count` rows after the other.
  void split(int64_t count);

  /// Bytes of a row of the largest value.
  int64_t rowBytes() const;
  int64_t rowCount() const { return rows; }
  bool has(Operation *op) const { return ops.contains(op); }

private:
  bool isLarge(Value value) const {
    return rowsOf(value) == rows &&
           cast<RankedTensorType>(value.getType()).getNumElements() >= elements;
  }

  LogicalResult add(Operation *op);
  LogicalResult findReaders();

  /// Whether `op` shows what it reads by rows, so that a part of it is an op of
  /// its own: constants, and what is spread from less.
  static bool isShown(Operation *op);

  /// `count` rows of `value` from `first` on, for a part of `reader`.
  Value partOf(Value value, Operation *reader, int64_t first, int64_t count,
               OpBuilder &builder);
  /// Builds `op` for these rows.
  Operation *buildPart(Operation *op, int64_t first, int64_t count,
                       OpBuilder &builder);

  int64_t rows = 0, elements = 0;
  SmallVector<Value> pending;       // large values, whose ops are to be added
  llvm::SetVector<Operation *> ops; // in the block's order once all are found
  SmallVector<Operation *> readers; // between them, of what they give
  IRMapping part;                   // of the rows that are built
};

LogicalResult LargeRows::add(Operation *op) {
  if (ops.contains(op))
    return success();
  std::optional<RowOperands> operands = findRowOperands(op);
  auto hasRows = [&](Value value) { return rowsOf(value) == rows; };
  if (!operands || !llvm::all_of(op->getResults(), hasRows)) {
    LDBG() << "rows are not independent: " << *op;
    return failure();
  }
  ops.insert(op);
  for (auto [operand, isOfRows] : llvm::zip_equal(op->getOperands(), *operands))
    if (isOfRows && !hasRows(operand))
      return failure();
    else if (isOfRows && isLarge(operand))
      pending.push_back(operand);
  for (Value result : op->getResults())
    if (isLarge(result))
      pending.push_back(result);
  return success();
}

LogicalResult LargeRows::collect(Operation *product) {
  rows = rowsOf(product->getResult(0));
  elements =
      cast<RankedTensorType>(product->getResult(0).getType()).getNumElements();
  if (failed(add(product)))
    return failure();
  while (!pending.empty()) {
    Value value = pending.pop_back_val();
    if (isGiven(value) || isShown(value.getDefiningOp()))
      continue;
    if (failed(add(value.getDefiningOp())))
      return failure();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      std::optional<RowOperands> operands = findRowOperands(user);
      if (!operands || !(*operands)[use.getOperandNumber()] ||
          failed(add(user))) {
        LDBG() << "read as a whole: " << *user;
        return failure();
      }
    }
  }
  SmallVector<Operation *> sorted = ops.takeVector();
  llvm::sort(sorted,
             [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
  ops.insert(sorted.begin(), sorted.end());
  return findReaders();
}

LogicalResult LargeRows::findReaders() {
  DenseSet<Operation *> moved, behind; // what others read cannot be behind them
  for (Operation &op : llvm::make_range(ops.front()->getIterator(),
                                        std::next(ops.back()->getIterator()))) {
    auto isMadeIn = [&](const DenseSet<Operation *> &set) {
      return llvm::any_of(op.getOperands(), [&](Value operand) {
        return set.contains(operand.getDefiningOp());
      });
    };
    // All rows of what parts make are there behind the last of them alone.
    auto readsWhole = [&] {
      std::optional<RowOperands> operands = findRowOperands(&op);
      return llvm::any_of(op.getOpOperands(), [&](OpOperand &operand) {
        return moved.contains(operand.get().getDefiningOp()) &&
               !(operands && (*operands)[operand.getOperandNumber()]);
      });
    };
    if (ops.contains(&op)) {
      if (isMadeIn(behind) || readsWhole())
        return failure();
      moved.insert(&op);
    } else if (isMadeIn(moved)) {
      moved.insert(&op);
      readers.push_back(&op);
      if (!isShown(&op) || isMadeIn(behind) || readsWhole())
        behind.insert(&op);
    }
  }
  return success();
}

int64_t LargeRows::rowBytes() const {
  int64_t most = 1;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (FailureOr<int64_t> bytes = getArenaBytes(
              cast<RankedTensorType>(result.getType()), /*rows=*/1);
          succeeded(bytes))
        most = std::max(most, *bytes / rows);
  return most;
}

bool LargeRows::isShown(Operation *op) {
  if (auto constant = dyn_cast<arith::ConstantOp>(op))
    return isa<SplatElementsAttr>(constant.getValue());
  if (auto iota = dyn_cast<IotaOp>(op))
    return iota.getDim() != 0;
  if (!isa<BroadcastOp, tensor::ExpandShapeOp>(op) || !findRowOperands(op))
    return false;
  return rowsOf(op->getOperand(0)) != rowsOf(op->getResult(0)) ||
         cast<RankedTensorType>(op->getOperand(0).getType()).getNumElements() <=
             rowsOf(op->getResult(0));
}

Operation *LargeRows::buildPart(Operation *op, int64_t first, int64_t count,
                                OpBuilder &builder) {
  IRMapping operands;
  if (std::optional<RowOperands> ofRows = findRowOperands(op))
    for (auto [operand, isOfRows] : llvm::zip_equal(op->getOperands(), *ofRows))
      if (isOfRows)
        operands.map(operand, partOf(operand, op, first, count, builder));
  auto typeOfPart = [&](Type type) {
    SmallVector<int64_t> shape(cast<RankedTensorType>(type).getShape());
    shape[0] = count;
    return cast<RankedTensorType>(type).clone(shape);
  };
  if (auto constant = dyn_cast<arith::ConstantOp>(op)) {
    auto value = cast<SplatElementsAttr>(constant.getValue());
    return arith::ConstantOp::create(
        builder, op->getLoc(),
        value.resizeSplat(typeOfPart(constant.getType())));
  }
  if (auto expand = dyn_cast<tensor::ExpandShapeOp>(op))
    return tensor::ExpandShapeOp::create(
        builder, op->getLoc(), typeOfPart(expand.getType()),
        operands.lookupOrDefault(expand.getSrc()),
        expand.getReassociationIndices());
  Operation *made = builder.clone(*op, operands);
  for (Value result : made->getResults())
    result.setType(typeOfPart(result.getType()));
  return made;
}

Value LargeRows::partOf(Value value, Operation *reader, int64_t first,
                        int64_t count, OpBuilder &builder) {
  if (Value known = part.lookupOrNull(value))
    return known;
  Operation *op = value.getDefiningOp();
  Value made;
  if (op && isShown(op)) {
    made = buildPart(op, first, count, builder)->getResult(0);
  } else {
    // In memory, so that kernels of all parts read the same.
    TensorBuilder build(builder, op ? op->getLoc() : value.getLoc());
    made = build.make<CopyOp>(build.slice(value, 0, first, count));
    // One for the forward pass and what is computed again would be kept.
    if (Attribute which = reader->getAttr(kRecomputedAttrName))
      made.getDefiningOp()->setAttr(kRecomputedAttrName, which);
  }
  part.map(value, made);
  return made;
}

void LargeRows::split(int64_t count) {
  OpBuilder builder(ops.back()->getBlock(),
                    std::next(ops.back()->getIterator()));
  llvm::MapVector<Value, SmallVector<Value>> given;
  for (Operation *op : ops)
    for (Value result : op->getResults())
      if (llvm::any_of(result.getUsers(),
                       [&](Operation *user) { return !ops.contains(user); }))
        given[result];
  for (int64_t first = 0; first < rows; first += count) {
    part.clear();
    for (Operation *op : ops) {
      Operation *made =
          buildPart(op, first, std::min(count, rows - first), builder);
      for (auto [whole, result] :
           llvm::zip_equal(op->getResults(), made->getResults()))
        part.map(whole, result);
    }
    for (auto &[whole, parts] : given)
      parts.push_back(part.lookup(whole));
  }
  for (auto &[whole, parts] : given) {
    TensorBuilder build(builder, whole.getLoc());
    whole.replaceAllUsesWith(build.make<CopyOp>(build.concat(0, parts)));
  }
  for (Operation *reader : readers)
    reader->moveBefore(&*builder.getInsertionPoint());
  for (Operation *op : llvm::reverse(ops))
    op->erase();
}

struct SplitRowsPass : mlir::kf::impl::SplitRowsBase<SplitRowsPass> {
  using SplitRowsBase::SplitRowsBase;

  void runOnOperation() override {
    for (Block &block : getOperation().getBody()) {
      SmallVector<Operation *> products;
      for (Operation &op : block)
        if (isTooLarge(&op))
          products.push_back(&op);
      DenseSet<Operation *> gone;
      for (Operation *product : products) {
        LargeRows large;
        if (gone.contains(product) || failed(large.collect(product)))
          continue;
        const auto most =
            std::max<int64_t>(mostBytes / large.rowBytes(), leastRows);
        const auto count =
            static_cast<int64_t>(llvm::bit_floor(static_cast<uint64_t>(most)));
        if (count >= large.rowCount())
          continue;
        for (Operation *other : products)
          if (large.has(other))
            gone.insert(other);
        large.split(count);
      }
      if (!gone.empty())
        eraseUnread(block);
    }
  }

private:
  /// Erases what was shown to ops that there are no more.
  static void eraseUnread(Block &block) {
    for (Operation &op : llvm::make_early_inc_range(llvm::reverse(block)))
      if (isOpTriviallyDead(&op))
        op.erase();
  }

  bool isTooLarge(Operation *op) const {
    if (!isa<MatmulOp, MatmulDgradOp>(op) || rowsOf(op->getResult(0)) == 0)
      return false;
    FailureOr<int64_t> bytes = getArenaBytes(
        cast<RankedTensorType>(op->getResult(0).getType()), /*rows=*/1);
    return failed(bytes) || *bytes > mostBytes;
  }

  /// Of which products on matrix units are not slower than of more.
  static constexpr int64_t leastRows = 128;
};

} // namespace
