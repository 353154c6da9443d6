//===- FormKernels.cpp - Clusters to kernels, functions to programs -------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormClusters.h"

#include "kf/Transforms/Passes.h"
#include "runtime/program/abi.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Remarks.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/DebugLog.h"

namespace mlir::kf {
#define GEN_PASS_DEF_FORMKERNELS
#include "kf/Transforms/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

#define DEBUG_TYPE "kf-form-kernels"

namespace {

/// Views that one op reads through; whatever works on a kernel follows them.
constexpr size_t maxViews = 32;
/// Kernels of a module: models have some dozens.
constexpr size_t maxKernels = 1024;
/// Bytes of the text by which kernels are compared, before equal ones are one.
/// A view that many kernels read through is part of each.
constexpr size_t maxText = size_t(256) << 20;

//===----------------------------------------------------------------------===//
// Outlining
//===----------------------------------------------------------------------===//

/// "rms_norm_matmul_add" for the ops of a kernel.
std::string kernelName(ArrayRef<Operation *> ops) {
  std::string name;
  for (Operation *op : ops) {
    StringRef part = op->getName().stripDialect();
    if (isa<arith::ArithDialect>(op->getDialect()))
      part.consume_back("f");
    name += (name.empty() ? "" : "_") + part.str();
  }
  return name;
}

InFlightDiagnostic emitTooManyKernels(Location loc) {
  return emitError(loc, "kf-form-kernels: a module has at most ")
         << maxKernels
         << " different kernels; compile fewer functions at a time";
}

class Outliner {
public:
  explicit Outliner(SymbolTable &symbols) : symbols(symbols) {}

  /// Dispatches `cluster` from `program`, whose values `values` maps from the
  /// function's. `updates` has the arguments that results of the function
  /// update.
  LogicalResult outline(const Cluster &cluster, OpBuilder &program,
                        IRMapping &values,
                        const DenseMap<Value, BlockArgument> &updates) {
    SmallVector<Operation *> ops = llvm::to_vector(cluster.ops);
    llvm::sort(
        ops, [](Operation *a, Operation *b) { return a->isBeforeInBlock(b); });
    Block body;
    IRMapping inner;
    SmallVector<Value> operands;
    OpBuilder builder(program.getContext());
    builder.setInsertionPointToStart(&body);
    for (Operation *op : ops) {
      importOperands(op, body, inner, builder, program, values, operands);
      Operation *copy = builder.clone(*op, inner);
      useOneLayer(copy);
      copy->removeAttr(kRecomputedAttrName);
    }
    auto results = cluster.root()->getResults();
    SmallVector<Value> yielded;
    for (Value result : results)
      yielded.push_back(inner.lookup(result));
    YieldOp::create(builder, cluster.root()->getLoc(), yielded);

    FailureOr<StringRef> kernel =
        intern(body, kernelName(ops), cluster.root(),
               updatesOf(results, values, operands, updates));
    if (failed(kernel))
      return failure();
    auto dispatch = DispatchOp::create(
        program, cluster.root()->getLoc(), results.getTypes(),
        SymbolRefAttr::get(program.getContext(), *kernel), operands,
        DenseI64ArrayAttr());
    values.map(results, dispatch.getResults());
    return success();
  }

private:
  /// Which of a kernel's `operands` its `results` may lie in the memory of, as
  /// attributes of these; null where there are none.
  static ArrayAttr updatesOf(ResultRange results, IRMapping &values,
                             ArrayRef<Value> operands,
                             const DenseMap<Value, BlockArgument> &updates) {
    SmallVector<Attribute> attributes;
    bool hasAny = false;
    if (results.empty()) // of what appends to a cache
      return ArrayAttr();
    Builder builder(results.front().getContext());
    for (Value result : results) {
      NamedAttrList list;
      if (Value argument = updates.lookup(result))
        if (auto found = llvm::find(operands, values.lookup(argument));
            found != operands.end()) {
          list.set(kUpdatesAttrName,
                   builder.getI64IntegerAttr(found - operands.begin()));
          hasAny = true;
        }
      attributes.push_back(list.getDictionary(builder.getContext()));
    }
    return hasAny ? builder.getArrayAttr(attributes) : ArrayAttr();
  }

  /// Makes `op`'s operands available in `body`: views and constants are cloned,
  /// everything else becomes an argument.
  void importOperands(Operation *op, Block &body, IRMapping &inner,
                      OpBuilder &kernel, OpBuilder &program, IRMapping &values,
                      SmallVectorImpl<Value> &operands) {
    for (Value operand : op->getOperands()) {
      if (inner.contains(operand))
        continue;
      Operation *producer = operand.getDefiningOp();
      if (auto dim = dyn_cast_if_present<tensor::DimOp>(producer);
          dim && mapToKnownRows(dim, body, inner, kernel))
        continue;
      if (producer && isView(producer)) {
        importOperands(producer, body, inner, kernel, program, values,
                       operands);
        kernel.clone(*producer, inner);
        continue;
      }
      Value outer = values.lookup(operand);
      if (Type cache = operand.getType(); isCache(cache))
        outer =
            CacheLayerOp::create(program, op->getLoc(), withLayers(cache, 1),
                                 outer, cast<LayerOpInterface>(op).getLayer());
      inner.map(operand, body.addArgument(outer.getType(), operand.getLoc()));
      operands.push_back(outer);
    }
  }

  /// Every `?` of a name is the same: takes it from an argument that the kernel
  /// has.
  static bool mapToKnownRows(tensor::DimOp rows, Block &body, IRMapping &inner,
                             OpBuilder &kernel) {
    SizeAttr size = getSize(rows.getSource().getType());
    for (BlockArgument argument : body.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type || type.getRank() == 0 || !type.isDynamicDim(0) ||
          getSize(type) != size)
        continue;
      inner.map(rows.getResult(),
                tensor::DimOp::create(kernel, rows.getLoc(), argument, 0)
                    .getResult());
      return true;
    }
    return false;
  }

  /// A kernel sees one layer of the cache, which the program picks.
  static void useOneLayer(Operation *op) {
    if (auto ofLayer = dyn_cast<LayerOpInterface>(op))
      ofLayer.setLayer(0);
  }

  /// The kernel with this body; made if there is none yet.
  FailureOr<StringRef> intern(Block &body, StringRef name, Operation *root,
                              ArrayAttr resultAttributes) {
    OpBuilder builder(root->getContext());
    auto type = builder.getFunctionType(
        body.getArgumentTypes(), body.getTerminator()->getOperandTypes());
    auto kernel = KernelOp::create(
        builder, root->getLoc(), builder.getStringAttr("kernel"),
        TypeAttr::get(type), ScheduleAttrInterface(), GridAttr(), StringAttr(),
        ArrayAttr(), resultAttributes);
    // The block moves into the kernel.
    Block *block = builder.createBlock(&kernel.getBody());
    for (BlockArgument argument : body.getArguments())
      argument.replaceAllUsesWith(
          block->addArgument(argument.getType(), argument.getLoc()));
    block->getOperations().splice(block->end(), body.getOperations());

    std::string text;
    llvm::raw_string_ostream stream(text);
    kernel->print(stream, OpPrintingFlags().useLocalScope());
    textBytes += text.size();
    auto [it, isNew] = kernels.try_emplace(text);
    if (kernels.size() > maxKernels || textBytes > maxText) {
      kernel->erase();
      return failTooMany(root);
    }
    if (!isNew) {
      kernel->erase();
      return StringRef(it->second);
    }
    kernel.setSymName((name + "_" + Twine(counts[name]++)).str());
    it->second = symbols.insert(kernel).str();
    return StringRef(it->second);
  }

  LogicalResult failTooMany(Operation *root) {
    if (kernels.size() > maxKernels)
      return emitTooManyKernels(root->getLoc());
    return emitError(root->getLoc(), "kf-form-kernels: the kernels up to this "
                                     "one have more than ")
           << maxText << " bytes of text; let fewer ops read through views";
  }

  SymbolTable &symbols;
  llvm::StringMap<std::string> kernels; // printed body -> symbol
  llvm::StringMap<int64_t> counts;      // name -> kernels so called
  size_t textBytes = 0;                 // of all kernels, equal ones too
};

//===----------------------------------------------------------------------===//
// Pass
//===----------------------------------------------------------------------===//

struct FormKernelsPass : mlir::kf::impl::FormKernelsBase<FormKernelsPass> {
  using FormKernelsBase::FormKernelsBase;

  void runOnOperation() override {
    if (failed(nameSizes()))
      return signalPassFailure();
    SymbolTable symbols(getOperation());
    Outliner outliner(symbols);
    for (auto function :
         llvm::make_early_inc_range(getOperation().getOps<func::FuncOp>())) {
      if (function.isExternal())
        continue;
      if (failed(check(function)) ||
          failed(convert(function, outliner, symbols)))
        return signalPassFailure();
    }
    // With those that the source has.
    for (auto [number, kernel] :
         llvm::enumerate(getOperation().getOps<KernelOp>()))
      if (number == maxKernels) {
        emitTooManyKernels(kernel.getLoc());
        return signalPassFailure();
      }
  }

private:
  /// Gives each name of a size that functions use its place in the module's
  /// list.
  LogicalResult nameSizes() {
    ModuleOp module = getOperation();
    llvm::SetVector<Attribute> names;
    if (auto known = module->getAttrOfType<ArrayAttr>(kSizesAttrName))
      names.insert_range(known);
    for (auto function : module.getOps<func::FuncOp>())
      for (StringAttr name : sizesOf(function))
        names.insert(name);
    if (names.size() > KF_NAMED_SIZE_COUNT)
      return module.emitError("kf-form-kernels: a module has at most ")
             << int64_t(KF_NAMED_SIZE_COUNT) << " named sizes, found "
             << names.size();
    if (!names.empty())
      module->setAttr(kSizesAttrName,
                      ArrayAttr::get(&getContext(), names.getArrayRef()));
    return success();
  }

  /// The names of sizes in the types of a function's values, in their order.
  static llvm::SetVector<StringAttr> sizesOf(func::FuncOp function) {
    llvm::SetVector<StringAttr> names;
    auto add = [&](TypeRange types) {
      for (Type type : types)
        if (StringAttr name = getSizeName(type))
          names.insert(name);
    };
    add(function.getArgumentTypes());
    function.walk([&](Operation *op) { add(op->getResultTypes()); });
    return names;
  }

  /// What each of them may be, as `kf.size_ranges` says, else from 0 to
  /// `tokens`.
  FailureOr<ArrayAttr> rangesOf(func::FuncOp function, int64_t tokens) {
    llvm::MapVector<StringAttr, SizeRangeAttr> ranges;
    for (StringAttr name : sizesOf(function))
      ranges[name] = SizeRangeAttr::get(&getContext(), name, 0, tokens);
    if (Attribute given = function->getAttr(kSizeRangesAttrName)) {
      auto list = dyn_cast<ArrayAttr>(given);
      if (!list || !llvm::all_of(list, llvm::IsaPred<SizeRangeAttr>))
        return function.emitError("kf-form-kernels: ")
               << kSizeRangesAttrName << " must be a list of #kf.size_range";
      for (auto range : list.getAsRange<SizeRangeAttr>()) {
        auto found = ranges.find(range.getName());
        if (found == ranges.end())
          return function.emitError("kf-form-kernels: ")
                 << kSizeRangesAttrName << " has '"
                 << range.getName().getValue()
                 << "', which no tensor of the function is called after";
        found->second = range;
      }
    }
    if (ranges.empty())
      return ArrayAttr();
    SmallVector<Attribute> list;
    for (auto [name, range] : ranges)
      list.push_back(range);
    return ArrayAttr::get(&getContext(), list);
  }

  /// Names what a program cannot hold.
  LogicalResult check(func::FuncOp function) {
    if (!function.getBody().hasOneBlock())
      return function.emitError("kf-form-kernels: a program has one block, "
                                "found control flow");
    for (Type type : function.getArgumentTypes())
      if (failed(checkBoundary(function, type, "takes", "take", "kf.pack it")))
        return failure();
    for (Type type : function.getResultTypes())
      if (failed(checkBoundary(function, type, "returns", "return",
                               "leave out kf.pack")))
        return failure();
    for (Type type : function.getFunctionType().getResults())
      if (isCache(type))
        return function.emitError("kf-form-kernels: a cache is a reference; it "
                                  "cannot be returned");
    for (Value result :
         function.getBody().front().getTerminator()->getOperands())
      if (isCopied(result) && !isCopyable(result.getType()))
        return function.emitError("kf-form-kernels: returns ")
               << result.getType()
               << " that no kernel makes, and blocks are not copied; "
                  "kf.dequantize it";
    for (Operation &op : function.getBody().front()) {
      if (auto constant = dyn_cast<arith::ConstantOp>(op);
          constant && isDynamic(constant.getType()))
        return constant.emitOpError("kf-form-kernels: a constant has a static "
                                    "shape; fold by kf-canonicalize");
      if (isStructural(&op) || op.hasTrait<Expanded>() || isTileable(&op) ||
          isCollective(&op))
        continue;
      if (isa<tensor::CastOp>(op))
        return op.emitOpError("kf-form-kernels: changes what a type says of a "
                              "tensor's size, and nothing checks it when the "
                              "program runs; give the tensor one type");
      return op.emitOpError("kf-form-kernels: has no place in a kernel; use ")
             << describeTensorOps();
    }
    return checkViews(function.getBody().front());
  }

  static bool isDynamic(Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && !tensor.hasStaticShape();
  }

  /// What callers give and get: caches, and tensors that lie in the order of
  /// their shape.
  static LogicalResult checkBoundary(func::FuncOp function, Type type,
                                     StringRef verb, StringRef instead,
                                     StringRef packing) {
    if (isCache(type))
      return success();
    if (!isRowsTensor(type))
      return function.emitError("kf-form-kernels: ")
             << type
             << " is neither a cache nor a tensor whose dimensions are "
                "static but for the first, and not 0";
    auto tensor = cast<RankedTensorType>(type);
    if (!tensor.getEncoding() || (getSize(tensor) && !tensor.hasStaticShape()))
      return success();
    if (getSize(tensor))
      return function.emitError("kf-form-kernels: ")
             << verb << " " << type
             << ", and #kf.size is the name of a `?`; leave it out";
    return function.emitError("kf-form-kernels: ")
           << verb << " " << type << ", and a caller knows nothing of layouts; "
           << instead << " "
           << RankedTensorType::get(tensor.getShape(), tensor.getElementType())
           << " and " << packing;
  }

  /// Views are cloned into every kernel that reads through them.
  static LogicalResult checkViews(Block &block) {
    DenseMap<Operation *, size_t> depths;
    for (Operation &op : block) {
      if (!isView(&op))
        continue;
      size_t depth = 1;
      for (Value operand : op.getOperands())
        depth = std::max(depth, 1 + depths.lookup(operand.getDefiningOp()));
      if (depth > maxViews)
        return op.emitOpError("kf-form-kernels: is the last of more than ")
               << maxViews << " views of one another; combine them";
      depths[&op] = depth;
    }
    return success();
  }

  /// Whether no kernel makes a returned value.
  static bool isCopied(Value result) {
    return !result.getDefiningOp() || isStructural(result.getDefiningOp());
  }

  static bool isCopyable(Type type) {
    return !isa<QuantType>(cast<RankedTensorType>(type).getElementType());
  }

  /// Returned values that no kernel makes, or that are returned twice, are
  /// copied: a program writes each result once.
  void copyPlainResults(func::FuncOp function) {
    auto terminator =
        cast<func::ReturnOp>(function.getBody().front().getTerminator());
    OpBuilder builder(terminator);
    DenseSet<Value> seen;
    for (OpOperand &operand : terminator->getOpOperands()) {
      if (!isCopied(operand.get()) && seen.insert(operand.get()).second)
        continue;
      operand.set(CopyOp::create(builder, terminator.getLoc(), operand.get()));
    }
  }

  /// Collectives are no kernels, which could read through views: what they put
  /// together lies in memory.
  static void copyPlainOperands(func::FuncOp function) {
    for (Operation &op : function.getBody().front()) {
      if (!isCollective(&op) || op.getNumOperands() == 0)
        continue;
      Value operand = op.getOperand(0);
      if (!operand.getDefiningOp() || !isStructural(operand.getDefiningOp()))
        continue;
      OpBuilder builder(&op);
      op.setOperand(0, CopyOp::create(builder, op.getLoc(), operand));
    }
  }

  /// Whether a kernel reads a view of its operand from memory alone: ids,
  /// positions and tables, but for slices of rows of an argument; and all that
  /// attention to tensors reads.
  static bool isViewToCopy(OpOperand &operand) {
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    Operation *view = operand.get().getDefiningOp();
    if (!type || !view || !isView(view))
      return false;
    Operation *reader = operand.getOwner();
    if (isa<BatchAttentionInterface>(reader))
      return true;
    if (!type.getElementType().isInteger() ||
        !reader->hasTrait<IntegersInMemory>())
      return false;
    auto slice = dyn_cast<tensor::ExtractSliceOp>(view);
    return !slice || !slice.hasUnitStride() ||
           slice.getSourceType().getRank() != type.getRank() ||
           slice.getSource().getDefiningOp();
  }

  /// One copy of each such view, for all that read it.
  static void copyViewedOperands(func::FuncOp function) {
    DenseMap<Value, Value> copies;
    for (Operation &op : function.getBody().front())
      for (OpOperand &operand : op.getOpOperands()) {
        if (!isViewToCopy(operand))
          continue;
        Value &copy = copies[operand.get()];
        if (!copy) {
          OpBuilder builder(&op);
          copy = CopyOp::create(builder, op.getLoc(), operand.get());
        }
        operand.set(copy);
      }
  }

  /// Says what is one kernel.
  void reportKernel(func::FuncOp function, const Cluster &cluster) {
    std::string ops;
    for (Operation *op : llvm::reverse(cluster.ops))
      ops += (ops.empty() ? "" : ", ") + op->getName().getStringRef().str();
    StringRef form = cluster.ops.size() == 1 ? "alone" : "fused";
    LDBG() << "kernel (" << form << "): " << ops;
    remark::passed(cluster.root()->getLoc(),
                   remark::RemarkOpts::name("Kernel")
                       .category(DEBUG_TYPE)
                       .function(function.getSymName()))
        << remark::add("{0}", form) << remark::metric("Ops", ops);
  }

  /// The argument that each returned value updates, as far as it is one.
  static DenseMap<Value, BlockArgument> updatesOf(func::FuncOp function) {
    DenseMap<Value, BlockArgument> updates;
    Operation *terminator = function.getBody().front().getTerminator();
    for (auto [number, result] : llvm::enumerate(terminator->getOperands())) {
      auto argument = dyn_cast_if_present<IntegerAttr>(function.getResultAttr(
          static_cast<unsigned>(number), kUpdatesAttrName));
      if (argument && argument.getValue().ult(function.getNumArguments()))
        updates[result] =
            function.getArgument(static_cast<unsigned>(argument.getInt()));
    }
    return updates;
  }

  LogicalResult convert(func::FuncOp function, Outliner &outliner,
                        SymbolTable &symbols) {
    copyPlainResults(function);
    copyPlainOperands(function);
    copyViewedOperands(function);
    int64_t tokens = maxTokens;
    if (auto attribute = function->getAttrOfType<IntegerAttr>("kf.max_tokens"))
      tokens = attribute.getInt();
    if (tokens < 1)
      return function.emitError("kf-form-kernels: kf.max_tokens must be "
                                "positive, found ")
             << tokens;
    FailureOr<ArrayAttr> sizes = rangesOf(function, tokens);
    if (failed(sizes))
      return failure();
    OpBuilder builder(function);
    auto program = ProgramOp::create(
        builder, function.getLoc(), function.getSymNameAttr(),
        function.getFunctionTypeAttr(), builder.getI64IntegerAttr(tokens),
        /*min_tokens=*/IntegerAttr(), *sizes, /*arena_bytes=*/IntegerAttr(),
        StringAttr(), ArrayAttr(), /*res_attrs=*/function.getResAttrsAttr());
    Block &source = function.getBody().front();
    Block *block = builder.createBlock(
        &program.getBody(), {}, source.getArgumentTypes(),
        SmallVector<Location>(source.getNumArguments(), function.getLoc()));
    IRMapping values;
    values.map(source.getArguments(), block->getArguments());
    for (auto weight : source.getOps<WeightOp>())
      if (!weight->use_empty())
        builder.clone(*weight, values);
    const DenseMap<Value, BlockArgument> updates = updatesOf(function);
    FusionRules rules;
    if (auto target =
            getOperation()->getAttrOfType<TargetAttrInterface>(kTargetAttrName))
      rules = target.getFusionRules();
    rules.fuses &= fuse;
    for (const Cluster &cluster : formClusters(function, rules, tokens)) {
      if (isCollective(cluster.root())) { // alone, and no kernel
        builder.clone(*cluster.root(), values);
        continue;
      }
      reportKernel(function, cluster);
      if (failed(outliner.outline(cluster, builder, values, updates)))
        return failure();
    }
    SmallVector<Value> results;
    for (Value result : source.getTerminator()->getOperands())
      results.push_back(values.lookup(result));
    YieldOp::create(builder, function.getLoc(), results);
    symbols.erase(function);
    symbols.insert(program);
    return success();
  }
};

} // namespace
