//===- KernelKey.cpp - Kernels as the tuning database knows them ----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Transforms/KernelKey.h"

#include "runtime/program/ExecutableCache.h"
#include "runtime/program/abi.h"

#include "mlir/Support/DebugStringHelper.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;
using namespace mlir::kf;

int64_t mlir::kf::getMostRows(func::FuncOp function, RankedTensorType tensor,
                              int64_t maxTokens) {
  if (!tensor.isDynamicDim(0))
    return tensor.getDimSize(0);
  if (auto tokens = function->getAttrOfType<IntegerAttr>("kf.max_tokens"))
    maxTokens = tokens.getInt();
  StringAttr name = getSizeName(tensor);
  auto ranges = function->getAttrOfType<ArrayAttr>(kSizeRangesAttrName);
  if (!name || !ranges)
    return maxTokens;
  for (Attribute attribute : ranges)
    if (auto range = dyn_cast<SizeRangeAttr>(attribute);
        range && range.getName() == name)
      return range.getMost();
  return maxTokens;
}

int64_t mlir::kf::getMostRows(DispatchOp dispatch) {
  auto program = dispatch->getParentOfType<ProgramOp>();
  if (dispatch.getNumResults() > 0)
    return program.getMostRows(
        cast<RankedTensorType>(dispatch.getResultTypes().front()));
  // What it reads may be weights as well, whose rows are static.
  int64_t most = 0, first = 0;
  for (Type type : dispatch.getOperandTypes()) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() == 0)
      continue;
    const int64_t rows = program.getMostRows(tensor);
    first = first ? first : rows;
    if (tensor.isDynamicDim(0))
      most = std::max(most, rows);
  }
  return most ? most : std::max<int64_t>(first, 1);
}

DenseMap<StringAttr, int64_t> mlir::kf::getMostRows(ModuleOp module) {
  DenseMap<StringAttr, int64_t> rows;
  for (auto program : module.getOps<ProgramOp>())
    program.walk([&](DispatchOp dispatch) {
      int64_t &most = rows[dispatch.getKernelAttr().getAttr()];
      most = std::max(most, getMostRows(dispatch));
    });
  return rows;
}

std::string mlir::kf::getCompilerVersion() {
  return "kf-" KF_VERSION " llvm-" LLVM_VERSION_STRING " abi-" +
         std::to_string(KF_ABI_VERSION) + " schedules-" +
         std::to_string(kScheduleVersion);
}

::kf::TuningScope mlir::kf::getTuningScope(TargetAttrInterface target,
                                           StringRef device) {
  ::kf::TuningScope scope;
  scope.target = debugString(target);
  // The features of a CPU alone have a thousand characters.
  if (std::string identity = target.getIdentity(); !identity.empty())
    scope.identity = ::kf::hashKey({identity});
  scope.device = device.str();
  scope.compiler = getCompilerVersion();
  return scope;
}

::kf::TuningKey mlir::kf::getTuningKey(KernelOp kernel, int64_t rows,
                                       const ::kf::TuningScope &scope) {
  OwningOpRef<KernelOp> copy(kernel.clone());
  copy->setSymName("kernel");
  copy->removeScheduleAttr();
  std::string text;
  llvm::raw_string_ostream stream(text);
  (*copy)->print(stream, OpPrintingFlags().useLocalScope());
  return {::kf::hashKey({text}), rows, scope};
}

SmallVector<PlainProduct> mlir::kf::findPlainProducts(ModuleOp module,
                                                      int64_t maxTokens) {
  SmallVector<PlainProduct> products;
  for (auto function : module.getOps<func::FuncOp>())
    function.walk([&](ProductOpInterface op) {
      auto matmul = dyn_cast<MatmulOp>(op.getOperation());
      auto x = cast<RankedTensorType>(op.getX().getType());
      if (x.getElementType().isF32() && x.getRank() == 2 &&
          (!matmul || matmul.isOfMatrices()))
        products.push_back({op, getMostRows(function, x, maxTokens)});
    });
  return products;
}

::kf::TuningKey mlir::kf::getTuningKey(const PlainProduct &product,
                                       const ::kf::TuningScope &scope) {
  Operation *op = product.op;
  NamedAttrList attributes(op->getAttrDictionary());
  attributes.erase("rows");
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << "rows of " << op->getName() << ' '
         << attributes.getDictionary(op->getContext()) << " : ";
  llvm::interleaveComma(op->getOperandTypes(), stream);
  return {::kf::hashKey({text}), product.rows, scope};
}

/// "f32", "q4_0", or "kv_cache f16".
static std::string typeName(Type type) {
  if (auto cache = dyn_cast<KVCacheType>(type))
    return "kv_cache " + typeName(cache.getType());
  if (isa<StateCacheType>(type))
    return "state_cache f32";
  if (auto quant = dyn_cast<QuantType>(type))
    return stringifyBlockFormat(quant.getFormat()).str();
  return debugString(type);
}

/// Adds what is of `type` to `subject`.
static void addType(::kf::TuningSubject &subject, Type type) {
  std::vector<int64_t> &shape = subject.shapes.emplace_back();
  if (auto cache = dyn_cast<KVCacheType>(type)) {
    shape = {cache.getKvHeads(), cache.getPage(), cache.getHeadDim()};
    subject.types.push_back(typeName(cache));
    return;
  }
  if (auto states = dyn_cast<StateCacheType>(type)) {
    shape = {states.getHeads(), states.getElements()};
    subject.types.push_back(typeName(states));
    return;
  }
  auto tensor = cast<RankedTensorType>(type);
  for (int64_t extent : tensor.getShape())
    shape.push_back(ShapedType::isDynamic(extent) ? -1 : extent);
  subject.types.push_back(typeName(tensor.getElementType()));
}

::kf::TuningSubject mlir::kf::getTuningSubject(KernelOp kernel) {
  ::kf::TuningSubject subject;
  // kf-form-kernels numbers the kernels of the same ops.
  StringRef name = kernel.getSymName();
  auto [op, number] = name.rsplit('_');
  unsigned parsed;
  subject.op = (number.getAsInteger(10, parsed) ? name : op).str();
  for (Type type : kernel.getArgumentTypes())
    addType(subject, type);
  return subject;
}

::kf::TuningSubject mlir::kf::getTuningSubject(ProductOpInterface product) {
  ::kf::TuningSubject subject;
  subject.op = "rows of " + product->getName().stripDialect().str();
  for (Type type : product->getOperandTypes())
    addType(subject, type);
  return subject;
}
