//===- InputRoles.cpp - What a program's inputs mean ----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/InputRoles.h"

#include "kf/Dialect/KF/IR/KF.h"

#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kf;
using ::kf::KernelInput;
using Role = ::kf::KernelInput::Role;

namespace {

/// The kernel's argument that `value` is, or is a view of.
BlockArgument findArgument(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<tensor::CollapseShapeOp, tensor::ExpandShapeOp,
             tensor::ExtractSliceOp, tensor::CastOp>(op))
      return nullptr;
    value = op->getOperand(0);
  }
  return dyn_cast<BlockArgument>(value);
}

/// Roles of a program's inputs, from the ops of its kernels.
class RoleFinder {
public:
  explicit RoleFinder(ProgramOp program) {
    for (BlockArgument argument : program.getBody().getArguments())
      if (auto type = dyn_cast<RankedTensorType>(argument.getType())) {
        numbers[argument] = roles.size();
        // Integers of which no op says more are small.
        const bool counts = type.getElementType().isInteger();
        roles.push_back({Role::Numbers, counts ? 0.0 : -1.0, counts ? 8.0 : 1.0,
                         /*codes=*/0});
      }
  }

  void visit(DispatchOp dispatch, KernelOp kernel) {
    operands.clear();
    for (auto [argument, operand] :
         llvm::zip(kernel.getBody().getArguments(), dispatch.getOperands_()))
      operands[argument] = operand;
    kernel.walk([&](Operation *op) { visit(op); });
  }

  std::vector<KernelInput> take() { return std::move(roles); }

private:
  void visit(Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<CacheAttentionInterface, KVAppendOp>([&](auto use) {
          set(use.getPositions(), {.role = Role::Positions});
          set(use.getSequences(), {.role = Role::Sequences});
          set(use.getPageTable(), {.role = Role::PageTable});
        })
        .Case([&](GatedDeltaOp delta) {
          set(delta.getPositions(), {.role = Role::Positions});
          set(delta.getSequences(), {.role = Role::Sequences});
          set(delta.getStates(), {.role = Role::Slots});
        })
        .Case([&](RopeOp rope) {
          set(rope.getPositions(), {.role = Role::Positions});
        })
        .Case([&](EmbeddingOp lookup) {
          auto table = cast<RankedTensorType>(lookup.getTable().getType());
          setRange(lookup.getIds(), 0, extentOf(table));
        })
        .Case([&](ProductOpInterface product) {
          setRange(product.getScales(), 0.002, 0.01);
          setRange(product.getWeightScales(), 0.0002, 0.001);
          if (std::optional<size_t> codes = find(product.getX()))
            set(product.getSums(), {.role = Role::CodeSums, .codes = *codes});
          // Rows choose all experts alike.
          if (auto experts = dyn_cast<ExpertMatmulOp>(product.getOperation()))
            setRange(experts.getExperts(), 0,
                     static_cast<double>(experts.countExperts()));
        })
        .Case([&](AttentionCombineOp combine) {
          setRange(combine.getTotals(), 0.5, 2);
        })
        .Case([&](SampleOp sample) { visitSample(sample); });
  }

  /// Settings that people use, and neither adjustments nor masks of rows.
  void visitSample(SampleOp sample) {
    auto logits = cast<RankedTensorType>(sample.getLogits().getType());
    setRange(sample.getTemperature(), 0, 1);
    setRange(sample.getTopK(), 1, 50);
    setRange(sample.getTopP(), 0.5, 1);
    setRange(sample.getMinP(), 0, 0.1);
    setRange(sample.getSeed(), 0, 1000);
    setRange(sample.getCounter(), 0, 1000);
    setRange(sample.getFirst(), 0, 1);
    setRange(sample.getCount(), 0, 1);
    setRange(sample.getIds(), 0, static_cast<double>(logits.getDimSize(1)));
    setRange(sample.getSeen(), 0, 2);
    setRange(sample.getRepetition(), 1, 1.2);
    setRange(sample.getPresence(), 0, 0.5);
    setRange(sample.getFrequency(), 0, 0.5);
    setRange(sample.getMasked(), -1, 0);
  }

  /// Rows of a table, of which one that has a row for each token has at least
  /// one.
  static double extentOf(RankedTensorType table) {
    return table.isDynamicDim(0) ? 1 : static_cast<double>(table.getDimSize(0));
  }

  /// The number of the program's input that `value`, in a kernel, is.
  std::optional<size_t> find(Value value) const {
    if (!value)
      return std::nullopt;
    auto operand = operands.find(findArgument(value));
    if (operand == operands.end())
      return std::nullopt;
    auto number = numbers.find(operand->second);
    return number == numbers.end() ? std::nullopt
                                   : std::optional<size_t>(number->second);
  }

  void set(Value value, const KernelInput &role) {
    if (std::optional<size_t> number = find(value))
      roles[*number] = role;
  }
  void setRange(Value value, double low, double high) {
    set(value, {Role::Numbers, low, high, /*codes=*/0});
  }

  std::vector<KernelInput> roles;
  DenseMap<Value, size_t> numbers;         ///< of the program's arguments
  DenseMap<BlockArgument, Value> operands; ///< of the kernel's, at a dispatch
};

} // namespace

std::vector<KernelInput> mlir::kf::getInputRoles(ProgramOp program) {
  RoleFinder finder(program);
  auto module = program->getParentOfType<ModuleOp>();
  program.walk([&](DispatchOp dispatch) {
    if (auto kernel = module.lookupSymbol<KernelOp>(dispatch.getKernel()))
      finder.visit(dispatch, kernel);
  });
  return finder.take();
}
