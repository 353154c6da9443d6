//===- ExecutableBuilder.cpp - Programs to runtime executables ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/Common/ExecutableBuilder.h"

#include "kf/Transforms/ArenaBytes.h"
#include "kf/Transforms/CountWork.h"

#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::kf;

FailureOr<::kf::DataType> mlir::kf::toDataType(Type type) {
  if (type.isF32())
    return ::kf::DataType::F32;
  if (type.isF16())
    return ::kf::DataType::F16;
  if (type.isBF16())
    return ::kf::DataType::BF16;
  if (type.isF64())
    return ::kf::DataType::F64;
  if (isa<Float8E4M3FNType>(type))
    return ::kf::DataType::F8E4M3;
  if (type.isInteger(1))
    return ::kf::DataType::I1;
  if (type.isInteger(8))
    return ::kf::DataType::I8;
  if (type.isInteger(16))
    return ::kf::DataType::I16;
  if (type.isInteger(32))
    return ::kf::DataType::I32;
  if (type.isInteger(64))
    return ::kf::DataType::I64;
  if (auto quant = dyn_cast<QuantType>(type))
    return getStorage(quant.getFormat()).type;
  return failure();
}

namespace {

class ExecutableBuilder {
public:
  ExecutableBuilder(ModuleOp module, ProgramOp program,
                    TargetAttrInterface target, const KernelWorks &works)
      : program(program), module(module), target(target), works(works) {
    executable.target = target.getDevice().str();
  }

  FailureOr<::kf::Executable> build() {
    executable.programName = program.getSymName().str();
    executable.ranks = getRanks(program);
    executable.minTokens = program.getMinTokens().value_or(1);
    executable.maxTokens = program.getMaxTokens();
    addSizes();
    executable.arenaBytes = program.getArenaBytes().value_or(0);
    if (failed(addInterface()))
      return failure();
    addKernels();
    for (Operation &op : program.getBody().front()) {
      LogicalResult added =
          TypeSwitch<Operation *, LogicalResult>(&op)
              .Case([&](WeightOp weight) { return addWeight(weight); })
              .Case([&](CacheLayerOp layer) {
                kf_binding binding = bindings.lookup(layer.getCache());
                binding.offset = layer.getLayer();
                bindings[layer.getResult()] = binding;
                return success();
              })
              .Case([&](DispatchOp dispatch) { return addDispatch(dispatch); })
              .Case<AllReduceOp, AllGatherOp, SendOp, ReceiveOp>(
                  [&](auto collective) { return addCollective(collective); })
              .Default([](Operation *) { return success(); });
      if (failed(added))
        return failure();
    }
    return std::move(executable);
  }

private:
  FailureOr<::kf::TensorSpec> describe(Operation *op, Type type) {
    auto tensor = cast<RankedTensorType>(type);
    FailureOr<::kf::DataType> element = toDataType(tensor.getElementType());
    if (failed(element))
      return op->emitError("an executable has no tensors of type ") << type;
    ::kf::TensorSpec spec;
    spec.type = *element;
    FailureOr<unsigned> slot = getSizeSlot(op, getSizeName(tensor));
    if (failed(slot))
      return op->emitError("the module's kf.sizes lacks the size of ") << type;
    for (int64_t extent : tensor.getShape())
      spec.shape.push_back(
          ShapedType::isDynamic(extent) ? ::kf::extentOfSlot(*slot) : extent);
    return spec;
  }

  /// All sizes that the module knows, so that they have their slots; those that
  /// the program has none of stay 0.
  void addSizes() {
    auto names = module->getAttrOfType<ArrayAttr>(kSizesAttrName);
    if (!names)
      return;
    for (auto name : names.getAsRange<StringAttr>()) {
      auto [least, most] =
          program.getRange(name).value_or(std::pair<int64_t, int64_t>(0, 0));
      executable.namedSizes.push_back({name.str(), least, most});
    }
  }

  /// Inputs and caches are the program's arguments, outputs what it yields.
  LogicalResult addInterface() {
    for (BlockArgument argument : program.getArguments()) {
      if (auto cache = dyn_cast<KVCacheType>(argument.getType())) {
        bindings[argument] = {KF_BINDING_CACHE,
                              static_cast<uint32_t>(executable.caches.size()),
                              0};
        executable.caches.push_back({*toDataType(cache.getType()),
                                     cache.getLayers(), cache.getKvHeads(),
                                     cache.getHeadDim(), cache.getKeyBlock(),
                                     cache.getPage()});
        continue;
      }
      if (auto states = dyn_cast<StateCacheType>(argument.getType())) {
        bindings[argument] = {KF_BINDING_CACHE,
                              static_cast<uint32_t>(executable.caches.size()),
                              0};
        executable.caches.push_back(::kf::CacheSpec::ofStates(
            states.getLayers(), states.getHeads(), states.getElements(),
            states.getSlotPages()));
        continue;
      }
      auto spec = describe(program, argument.getType());
      if (failed(spec))
        return failure();
      bindings[argument] = {KF_BINDING_INPUT,
                            static_cast<uint32_t>(executable.inputs.size()), 0};
      executable.inputs.push_back(*spec);
    }
    for (Value result : program.getYield().getValues()) {
      auto spec = describe(program, result.getType());
      if (failed(spec))
        return failure();
      bindings[result] = {KF_BINDING_OUTPUT,
                          static_cast<uint32_t>(executable.outputs.size()), 0};
      executable.outputs.push_back(*spec);
    }
    return success();
  }

  void addKernels() {
    for (auto kernel : module.getOps<KernelOp>()) {
      kernels[kernel.getSymNameAttr()] = executable.kernels.size();
      ::kf::KernelSpec spec;
      spec.name = kernel.getSymName().str();
      if (auto work = works.find(kernel.getSymNameAttr()); work != works.end())
        spec.work = work->second;
      executable.kernels.push_back(spec);
    }
  }

  LogicalResult addWeight(WeightOp op) {
    auto type = cast<RankedTensorType>(op.getType());
    auto [known, isNew] = weights.try_emplace(
        {op.getNames(), op.getStackedAttr(), op.getTransposedAttr(), type},
        executable.weights.size());
    bindings[op.getResult()] = {KF_BINDING_WEIGHT, known->second, 0};
    if (!isNew)
      return success();
    FailureOr<::kf::DataType> element = toDataType(type.getElementType());
    if (failed(element))
      return op.emitOpError("an executable has no weights of type ") << type;
    ::kf::WeightSpec spec;
    for (StringRef name : op.getNames().getAsValueRange<StringAttr>())
      spec.names.push_back(name.str());
    spec.stacked = op.getStacked();
    spec.transposed = op.getTransposed();
    spec.type = *element;
    spec.shape = type.getShape();
    // An interpreter reads every tensor in the order of its shape.
    if (!target.isInterpreted()) {
      if (LayoutAttr layout = getLayout(type))
        spec.layout = {::kf::WeightLayout::Kind::Panels, layout.getPanel(),
                       layout.getInterleave()};
      else if (hasFragments(type))
        spec.layout = {::kf::WeightLayout::Kind::Fragments};
    }
    executable.weights.push_back(std::move(spec));
    return success();
  }

  /// Of a value that the planner gave memory, so that there is a number.
  uint64_t arenaBytesOf(Value value) {
    if (bindings.lookup(value).kind != KF_BINDING_ARENA)
      return 0;
    auto type = cast<RankedTensorType>(value.getType());
    return *getArenaBytes(type, program.getMostRows(type));
  }

  /// Whether a kernel writes to what `argument` refers to; tensors are values.
  static bool writesTo(BlockArgument argument) {
    return isCache(argument.getType()) &&
           llvm::any_of(argument.getUsers(), [&](Operation *user) {
             auto op = dyn_cast<MemoryEffectOpInterface>(user);
             return !op || op.getEffectOnValue<MemoryEffects::Write>(argument);
           });
  }

  /// Results lie where the plan says, or are the program's.
  LogicalResult bindResults(DispatchInterface op, ::kf::DispatchSpec &spec) {
    for (auto [number, result] : llvm::enumerate(op->getResults())) {
      if (!bindings.contains(result)) {
        if (!op.getOffsets())
          return op->emitOpError("memory is not planned; run kf-plan-memory");
        bindings[result] = {KF_BINDING_ARENA, 0,
                            static_cast<uint64_t>((*op.getOffsets())[number])};
      }
      spec.bindings.push_back(bindings.lookup(result));
      spec.accesses.push_back({true, arenaBytesOf(result)});
    }
    return success();
  }

  static ::kf::CollectiveSpec::Kind kindOf(DispatchInterface op) {
    using Kind = ::kf::CollectiveSpec::Kind;
    return TypeSwitch<Operation *, Kind>(op)
        .Case([](AllReduceOp) { return Kind::AllReduce; })
        .Case([](AllGatherOp) { return Kind::AllGather; })
        .Case([](SendOp) { return Kind::Send; })
        .Case([](ReceiveOp) { return Kind::Receive; });
  }

  /// One that lacks an operand, or a result, has the columns of the other.
  LogicalResult addCollective(DispatchInterface op) {
    Value x = op->getNumOperands() ? op->getOperand(0) : Value();
    if (x && x.getDefiningOp<WeightOp>())
      return op->emitOpError("takes a weight, and ranks put together what they "
                             "compute; kf.copy it");
    Value result = op->getNumResults() ? op->getResult(0) : Value();
    FailureOr<::kf::TensorSpec> from = describe(op, (x ? x : result).getType()),
                                to = describe(op,
                                              (result ? result : x).getType());
    if (failed(from) || failed(to))
      return failure();
    auto columnsOf = [](const ::kf::TensorSpec &spec) {
      int64_t columns = 1;
      for (int64_t extent : ArrayRef(spec.shape).drop_front())
        columns *= extent;
      return columns;
    };
    ::kf::DispatchSpec spec;
    spec.collective = {kindOf(op), from->type, from->shape.front(),
                       columnsOf(*from), columnsOf(*to)};
    if (x) {
      spec.bindings.push_back(bindings.lookup(x));
      spec.accesses.push_back({false, arenaBytesOf(x)});
    }
    if (failed(bindResults(op, spec)))
      return failure();
    executable.dispatches.push_back(std::move(spec));
    return success();
  }

  LogicalResult addDispatch(DispatchOp op) {
    auto kernel =
        SymbolTable::lookupNearestSymbolFrom<KernelOp>(op, op.getKernelAttr());
    if (!kernel)
      return op.emitOpError("kernel @")
             << op.getKernel() << " is already lowered";
    ::kf::DispatchSpec spec;
    spec.kernel = kernels.lookup(kernel.getSymNameAttr());
    for (auto [operand, argument] :
         llvm::zip_equal(op.getOperands_(), kernel.getBody().getArguments())) {
      spec.bindings.push_back(bindings.lookup(operand));
      spec.accesses.push_back({writesTo(argument), arenaBytesOf(operand)});
    }
    if (failed(bindResults(op, spec)))
      return failure();
    if (GridAttr grid = kernel.getGridAttr()) {
      FailureOr<unsigned> slot = getSizeSlot(kernel, grid.getSize());
      if (failed(slot))
        return kernel.emitOpError("the module's kf.sizes lacks '")
               << grid.getSize().getValue() << "'";
      for (size_t dim = 0; dim < grid.getTokens().size(); ++dim)
        spec.grid[dim] = grid.getTokens()[dim]
                             ? kf_grid_dim{static_cast<int32_t>(*slot),
                                           grid.getTokens()[dim]}
                             : kf_grid_dim{-1, grid.getCounts()[dim]};
    }
    executable.dispatches.push_back(std::move(spec));
    return success();
  }

  ProgramOp program;
  ModuleOp module;
  TargetAttrInterface target;
  const KernelWorks &works;
  ::kf::Executable executable;
  DenseMap<Value, kf_binding> bindings;
  DenseMap<StringAttr, uint32_t> kernels;
  /// By names, whether they are stacked and transposed, and type.
  DenseMap<std::tuple<Attribute, Attribute, Attribute, Type>, uint32_t> weights;
};

} // namespace

KernelWorks mlir::kf::countWorks(ModuleOp module) {
  KernelWorks works;
  for (auto kernel : module.getOps<KernelOp>())
    if (std::optional<::kf::KernelWork> work = countWork(kernel))
      works[kernel.getSymNameAttr()] = *work;
  return works;
}

FailureOr<::kf::Executable>
mlir::kf::buildExecutable(ModuleOp module, TargetAttrInterface target,
                          const KernelWorks &works) {
  auto programs = module.getOps<ProgramOp>();
  if (std::distance(programs.begin(), programs.end()) != 1)
    return module.emitError("an executable is made of one kf.program, found ")
           << std::distance(programs.begin(), programs.end());
  return ExecutableBuilder(module, *programs.begin(), target, works).build();
}
