//===- EmitEntryPoints.cpp - The kernel ABI -------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Target/LLVMCPU/Passes.h"
#include "runtime/program/abi.h"

#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::kf {
#define GEN_PASS_DEF_EMITCPUENTRYPOINTS
#include "kf/Target/LLVMCPU/Passes.h.inc"
} // namespace mlir::kf

using namespace mlir;
using namespace mlir::kf;

namespace {

/// Builds `void name(ptr bindings, ptr scalars, ptr scratch, i64 workgroup)`.
class EntryPoint {
public:
  EntryPoint(OpBuilder &b, func::FuncOp body)
      : b(b), loc(body.getLoc()), body(body), types(b.getContext()),
        pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  void emit(StringRef name) {
    auto type =
        b.getFunctionType({pointer, pointer, pointer, b.getI64Type()}, {});
    auto entry = func::FuncOp::create(b, loc, name, type);
    b.setInsertionPointToStart(entry.addEntryBlock());
    bindings = entry.getArgument(0);
    scalars = entry.getArgument(1);

    ArrayRef<Type> inputs = body.getFunctionType().getInputs();
    size_t buffers = inputs.size() - 3;
    SmallVector<Value> arguments;
    for (size_t i = 0; i < buffers; ++i)
      arguments.push_back(describe(loadPointer(i), inputs[i]));
    arguments.push_back(describe(scalars, inputs[buffers]));
    arguments.push_back(describe(entry.getArgument(2), inputs[buffers + 1]));
    arguments.push_back(arith::IndexCastOp::create(b, loc, b.getIndexType(),
                                                   entry.getArgument(3)));
    func::CallOp::create(b, loc, body, arguments);
    func::ReturnOp::create(b, loc);
  }

private:
  Value constant(int64_t value) {
    return LLVM::ConstantOp::create(b, loc, b.getI64Type(),
                                    b.getI64IntegerAttr(value));
  }

  Value load(Value base, Type type, int64_t number) {
    Value address = LLVM::GEPOp::create(
        b, loc, pointer, type, base,
        ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(number)});
    return LLVM::LoadOp::create(b, loc, type, address);
  }

  Value loadPointer(int64_t number) { return load(bindings, pointer, number); }

  /// A memref over the dense buffer at `data`.
  Value describe(Value data, Type inputType) {
    auto type = cast<MemRefType>(inputType);
    // Allocated and aligned pointer, offset, sizes, strides.
    SmallVector<Value> fields = {data, data, constant(0)};
    SmallVector<Value> strides;
    int64_t stride = 1;
    for (int64_t extent : llvm::reverse(type.getShape())) {
      strides.push_back(constant(stride));
      stride *= ShapedType::isDynamic(extent) ? 1 : extent;
    }
    // Only a leading dimension is dynamic. Code takes its extent from the
    // scalars by its name, never from here, so that any size will do.
    for (int64_t extent : type.getShape())
      fields.push_back(ShapedType::isDynamic(extent)
                           ? load(scalars, b.getI64Type(), KF_SCALAR_N_TOKENS)
                           : constant(extent));
    llvm::append_range(fields, llvm::reverse(strides));
    Value descriptor = MemRefDescriptor::pack(b, loc, types, type, fields);
    return UnrealizedConversionCastOp::create(b, loc, type, descriptor)
        .getResult(0);
  }

  OpBuilder &b;
  Location loc;
  func::FuncOp body;
  LLVMTypeConverter types;
  Type pointer;
  Value bindings, scalars;
};

/// Whether arguments are buffers, scalars, scratch and the workgroup, and
/// buffers are dense with static dimensions but for the first.
bool isVectorizedKernel(func::FuncOp function) {
  ArrayRef<Type> inputs = function.getFunctionType().getInputs();
  if (inputs.size() < 3 || !inputs.back().isIndex() ||
      function.getNumResults() != 0)
    return false;
  return llvm::all_of(inputs.drop_back(), [](Type type) {
    auto memref = dyn_cast<MemRefType>(type);
    return memref && memref.getLayout().isIdentity() &&
           (memref.getRank() == 0 ||
            llvm::none_of(memref.getShape().drop_front(),
                          ShapedType::isDynamic));
  });
}

struct EmitCpuEntryPointsPass
    : mlir::kf::impl::EmitCpuEntryPointsBase<EmitCpuEntryPointsPass> {
  void runOnOperation() override {
    SmallVector<func::FuncOp> kernels;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr("kf.grid"))
        kernels.push_back(function);
    for (func::FuncOp body : kernels)
      if (!isVectorizedKernel(body)) {
        body.emitError(
            "kf-cpu-emit-entry-points: a function with kf.grid needs "
            "the arguments that convert-kf-to-vector gives it");
        return signalPassFailure();
      }
    for (func::FuncOp body : kernels) {
      std::string name = body.getName().str();
      OpBuilder builder(body);
      body.setName((name + "_body"));
      body.setPrivate();
      body->setAttr("passthrough", builder.getStrArrayAttr({"alwaysinline"}));
      body->setAttr(
          "llvm.linkage",
          LLVM::LinkageAttr::get(&getContext(), LLVM::Linkage::Internal));
      builder.setInsertionPointAfter(body);
      EntryPoint(builder, body).emit(name);
    }
  }
};

} // namespace
