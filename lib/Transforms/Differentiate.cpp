//===- Differentiate.cpp - Functions that return gradients, too -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/Gradients.h"
#include "kf/Transforms/ArenaBytes.h"
#include "kf/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::kf {
#define GEN_PASS_DEF_DIFFERENTIATE
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Whether gradients go through values of `type`: all but integers. Numbers
/// without a tensor, and those that are rounded to blocks, have no derivative,
/// but an op that makes them is to be named.
bool isDifferentiable(Type type) {
  return !getElementTypeOrSelf(type).isIntOrIndex();
}

bool isCheapToRecompute(Operation *op) {
  auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
  return isView(op) || isElementwise(op) ||
         (differentiable && differentiable.isCheapToRecompute());
}

/// What is in memory in any case, or in none: arguments, weights, and
/// constants.
bool takesNoMemory(Value value) {
  Operation *op = value.getDefiningOp();
  return !op || isa<WeightOp, arith::ConstantOp, IotaOp>(op) ||
         !isa<RankedTensorType>(value.getType());
}

/// Which values of the forward pass are computed again for the backward pass,
/// and their computation.
class Recomputation {
public:
  /// Ops up to `last` are the forward pass, those behind it the backward pass.
  /// Those up to `lastKept`, if it is not null, are computed again unless they
  /// have kf.kept, and those behind it where that is cheap.
  Recomputation(Block &block, Operation *last, Operation *lastKept,
                int64_t tokens)
      : block(block), last(last), lastKept(lastKept), tokens(tokens) {}

  void run() {
    for (Operation &op : backward())
      for (Value operand : op.getOperands())
        if (isForward(operand))
          needed.insert(operand);
    choose();
    for (Operation &op : llvm::make_early_inc_range(backward())) {
      OpBuilder builder(&op);
      for (OpOperand &operand : op.getOpOperands())
        operand.set(recompute(operand.get(), builder));
    }
  }

private:
  llvm::iterator_range<Block::iterator> backward() {
    return llvm::make_range(std::next(last->getIterator()),
                            block.getTerminator()->getIterator());
  }

  bool isForward(Value value) {
    Operation *op = value.getDefiningOp();
    return op && (op == last || op->isBeforeInBlock(last));
  }

  /// From the last op to the first, those that are worth it, where the backward
  /// pass or another one of them reads the result.
  void choose() {
    auto forward =
        llvm::make_range(block.begin(), std::next(last->getIterator()));
    bool isInLayers = false;
    for (Operation &op : llvm::reverse(forward)) {
      isInLayers |= &op == lastKept;
      const bool isNeeded = llvm::any_of(
          op.getResults(), [&](Value value) { return needed.contains(value); });
      if (!isNeeded || takesNoMemory(op.getResult(0)) ||
          !(isInLayers ? isBetweenKept(&op) : savesMemory(&op)))
        continue;
      chosen.insert(&op);
      for (Value operand : op.getOperands())
        if (isForward(operand))
          needed.insert(operand);
    }
  }

  static bool isBetweenKept(Operation *op) {
    return !op->hasAttr(kKeptAttrName) && isMemoryEffectFree(op);
  }

  /// Whether `op` is cheap, and its operands take less memory than its result,
  /// where nobody else keeps these.
  bool savesMemory(Operation *op) {
    if (!isCheapToRecompute(op))
      return false;
    int64_t more = 0, saved = 0;
    for (Value operand : op->getOperands())
      more += countKept(operand);
    for (Value result : op->getResults())
      saved += countBytes(result);
    return isView(op) || more < saved;
  }

  /// Bytes that reading `value` in the backward pass keeps in memory.
  int64_t countKept(Value value) {
    if (takesNoMemory(value) || needed.contains(value))
      return 0;
    Operation *op = value.getDefiningOp();
    if (!isView(op))
      return countBytes(value);
    int64_t sum = 0;
    for (Value operand : op->getOperands())
      sum += countKept(operand);
    return sum;
  }

  int64_t countBytes(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    FailureOr<int64_t> bytes =
        type ? getArenaBytes(type, tokens) : FailureOr<int64_t>(0);
    return succeeded(bytes) ? *bytes : 0;
  }

  /// `value`, or what the backward pass has computed in its place, by now.
  Value recompute(Value value, OpBuilder &builder) {
    Operation *op = value.getDefiningOp();
    if (!op || !chosen.contains(op))
      return value;
    if (lastKept && isOfKept(op)) {
      // Not that of ops that are computed again, which would have to be in
      // memory from there on. Numbers keep CSE from making both one, or either
      // of them one with what derivatives have computed again: all but
      // attention's weights, which both have (expandAttention).
      if (!seconds.contains(value)) {
        Operation *copy = builder.clone(*op);
        copy->setAttr(kRecomputedAttrName, builder.getI64IntegerAttr(2));
        for (auto [old, result] :
             llvm::zip_equal(op->getResults(), copy->getResults()))
          seconds[old] = result;
      }
      return seconds[value];
    }
    return copyOf(value, builder);
  }

  /// The same for ops that are computed again.
  Value copyOf(Value value, OpBuilder &builder) {
    Operation *op = value.getDefiningOp();
    if (!op || !chosen.contains(op))
      return value;
    if (Value known = copies.lookupOrNull(value))
      return known;
    for (Value operand : op->getOperands())
      copies.map(operand, copyOf(operand, builder));
    Operation *copy = builder.clone(*op, copies);
    if (!isView(op))
      copy->setAttr(kRecomputedAttrName,
                    lastKept ? Attribute(builder.getI64IntegerAttr(1))
                             : builder.getUnitAttr());
    return copies.lookup(value);
  }

  /// Whether `op` is cheap, and reads what is in memory anyway: the norm of
  /// what a layer reads, for one.
  bool isOfKept(Operation *op) {
    return isCheapToRecompute(op) && !isView(op) &&
           llvm::none_of(op->getOperands(), [&](Value operand) {
             return operand.getDefiningOp() &&
                    chosen.contains(operand.getDefiningOp());
           });
  }

  Block &block;
  Operation *last, *lastKept;
  int64_t tokens;
  DenseSet<Value> needed;         // results of forward ops that are read
  DenseSet<Operation *> chosen;   // ops that are computed again
  IRMapping copies;               // of those, for others that are
  DenseMap<Value, Value> seconds; // and for gradients, of cheap ones
};

struct DifferentiatePass
    : mlir::kf::impl::DifferentiateBase<DifferentiatePass> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<BlockArgument> arguments;
      for (unsigned number = 0; number < function.getNumArguments(); ++number)
        if (function.getArgAttr(number, kGradientAttrName) &&
            !function.isExternal())
          arguments.push_back(function.getArgument(number));
      if (arguments.empty())
        continue;
      if (failed(check(function, arguments)) ||
          failed(differentiate(function, arguments)))
        return signalPassFailure();
    }
  }

private:
  LogicalResult check(func::FuncOp function,
                      ArrayRef<BlockArgument> arguments) {
    auto fail = [&]() -> InFlightDiagnostic {
      return function.emitError("kf-differentiate: ");
    };
    if (!SymbolTable::symbolKnownUseEmpty(function, getOperation()))
      return fail() << "a function with gradients gets more results, and is "
                       "called by others; differentiate a copy of it";
    if (!function.getBody().hasOneBlock())
      return fail() << "a function with gradients has one block, found control "
                       "flow";
    Block &block = function.getBody().front();
    if (Operation *end = block.getTerminator(); !isa<func::ReturnOp>(end))
      return fail() << "a function with gradients ends in func.return, found '"
                    << end->getName() << "'";
    for (Operation &op : block)
      if (op.getNumRegions() > 0)
        return op.emitOpError("kf-differentiate: has a region, whose ops are "
                              "not differentiated; write it as ops on tensors");
    for (BlockArgument argument : arguments)
      if (auto type = dyn_cast<RankedTensorType>(argument.getType());
          !type ||
          (!type.getElementType().isF16() && !type.getElementType().isBF16() &&
           !type.getElementType().isF32() && !type.getElementType().isF64()))
        return fail() << "argument " << argument.getArgNumber()
                      << " has kf.gradient, and is no tensor of f16, bf16, f32 "
                         "or f64 but "
                      << argument.getType();
    auto loss = function.getNumResults() > 0
                    ? dyn_cast<RankedTensorType>(function.getResultTypes()[0])
                    : RankedTensorType();
    if (!loss || loss.getRank() != 0 || !isa<FloatType>(loss.getElementType()))
      return fail() << "the first result of a function with gradients is its "
                       "loss, one number as tensor<f32>; reduce it to that by "
                       "kf.reduce";
    return success();
  }

  LogicalResult differentiate(func::FuncOp function,
                              ArrayRef<BlockArgument> arguments) {
    Block &block = function.getBody().front();
    Operation *terminator = block.getTerminator();
    OpBuilder builder(terminator);
    Gradients gradients(builder);
    for (BlockArgument argument : arguments)
      gradients.want(argument);
    wantResults(block, gradients);
    Operation *last = terminator->getPrevNode(); // of the forward pass
    Value loss = terminator->getOperand(0);
    if (gradients.wants(loss)) {
      auto type = getGradientType(cast<RankedTensorType>(loss.getType()));
      gradients.add(loss,
                    TensorBuilder(builder, loss.getLoc()).constant(type, 1.0));
    }
    for (Operation *op = last; op; op = op->getPrevNode())
      if (failed(addGradients(op, gradients)))
        return failure();
    SmallVector<Value> results(terminator->getOperands());
    const auto first = static_cast<unsigned>(results.size());
    for (BlockArgument argument : arguments) {
      Value gradient = gradients.get(argument);
      if (!gradient)
        gradient =
            TensorBuilder(builder, argument.getLoc())
                .constant(
                    getGradientType(cast<RankedTensorType>(argument.getType())),
                    0.0);
      results.push_back(gradient);
      function.removeArgAttr(argument.getArgNumber(), kGradientAttrName);
    }
    if (accumulate)
      addToArguments(function, MutableArrayRef(results).drop_front(first), last,
                     builder);
    terminator->setOperands(results);
    function.setType(builder.getFunctionType(block.getArgumentTypes(),
                                             TypeRange(ValueRange(results))));
    for (unsigned i = 0; accumulate && first + i < results.size(); ++i)
      function.setResultAttr(first + i, kUpdatesAttrName,
                             builder.getI64IntegerAttr(block.getNumArguments() -
                                                       results.size() + first +
                                                       i));
    eraseUnread(block, last);
    if (last && policy != GradientPolicy::Store) {
      auto tokens = function->getAttrOfType<IntegerAttr>("kf.max_tokens");
      Recomputation(block, last,
                    policy == GradientPolicy::Layers ? findLastKept(block)
                                                     : nullptr,
                    tokens ? tokens.getInt() : assumedTokens)
          .run();
    }
    for (Operation &op : block)
      op.removeAttr(kKeptAttrName);
    return success();
  }

  static Operation *findLastKept(Block &block) {
    for (Operation &op : llvm::reverse(block))
      if (op.hasAttr(kKeptAttrName))
        return &op;
    return nullptr;
  }

  /// Makes each of `gradients` the sum of it and a new argument, as soon as it
  /// is there: an op that the sum joins is where the sum is, and what it reads
  /// lives until then. `last` ends the forward pass, whose ops stay as they
  /// are.
  static void addToArguments(func::FuncOp function,
                             MutableArrayRef<Value> gradients, Operation *last,
                             OpBuilder &builder) {
    for (Value &gradient : gradients) {
      const unsigned number = function.getNumArguments();
      (void)function.insertArgument(number, gradient.getType(), {},
                                    gradient.getLoc());
      OpBuilder::InsertionGuard atEnd(builder);
      if (Operation *made = gradient.getDefiningOp();
          made && last && last->isBeforeInBlock(made))
        builder.setInsertionPointAfter(made);
      gradient = TensorBuilder(builder, gradient.getLoc())
                     .add(function.getArgument(number), gradient);
    }
  }

  /// Wants the gradients of all that depends on what is wanted, and has ops
  /// expanded that are differentiated by their parts.
  void wantResults(Block &block, Gradients &gradients) {
    auto isWanted = [&](Value value) { return gradients.wants(value); };
    for (Operation *op = &block.front(), *next; op; op = next) {
      next = op->getNextNode();
      if (llvm::none_of(op->getOperands(), isWanted))
        continue;
      Operation *before = op->getPrevNode();
      if (Value parts = expand(op)) {
        next = before ? before->getNextNode() : &block.front();
        op->getResult(0).replaceAllUsesWith(parts);
        op->erase();
        continue;
      }
      for (Value result : op->getResults())
        if (isDifferentiable(result.getType()))
          gradients.want(result);
    }
  }

  /// What `op` makes by its parts, in front of it; null where these are not
  /// differentiated.
  Value expand(Operation *op) {
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return Value();
    OpBuilder builder(op);
    return differentiable.expandForGradients(builder,
                                             policy == GradientPolicy::Store);
  }

  static LogicalResult addGradients(Operation *op, Gradients &gradients) {
    const bool hasGradient = llvm::any_of(
        op->getResults(), [&](Value value) { return gradients.get(value); });
    if (!hasGradient)
      return success();
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable)
      return op->emitOpError("kf-differentiate: has no derivative, and an "
                             "argument with kf.gradient reaches the loss "
                             "through it; compute its operands elsewhere");
    return differentiable.buildGradients(gradients);
  }

  /// Erases what derivatives have built and none of them reads, so that it is
  /// no reader of values of the forward pass.
  static void eraseUnread(Block &block, Operation *last) {
    Operation *op = block.getTerminator()->getPrevNode();
    while (op != last) {
      Operation *before = op->getPrevNode();
      if (isOpTriviallyDead(op))
        op->erase();
      op = before;
    }
  }

  /// Of functions without kf.max_tokens, where sizes are compared.
  static constexpr int64_t assumedTokens = 512;
};

} // namespace
