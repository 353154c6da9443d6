//===- ElementwiseSupportTest.cpp - Every op on elements of every type ----===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiles each elementwise op with each combination of element types that it
// verifies with, for every kind of device. A device computes with some types
// and refuses the others, whatever the op; it refuses when schedules are
// chosen, by an error that names op and type and says what there is instead.
// What it takes then it has code for.
//
//===----------------------------------------------------------------------===//

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"
#include "lib/Dialect/KF/IR/Elementwise.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "gtest/gtest.h"

using namespace mlir;

namespace {

constexpr StringLiteral elementTypes[] = {"f16",      "bf16",   "f32", "f64",
                                          "f8E4M3FN", "f8E5M2", "i1",  "i4",
                                          "i8",       "i16",    "i32", "i64"};

struct Device {
  const char *name, *target, *errorName;
  std::vector<StringRef> refused; ///< elements
};
void PrintTo(const Device &device, std::ostream *out) { *out << device.name; }

const Device devices[] = {
    {"reference", "reference", "reference", {"f8E4M3FN", "f8E5M2", "i4"}},
    {"cpu", "cpu:x86-64-v4", "CPU", {"f8E4M3FN", "f8E5M2", "i4"}},
    {"vulkan",
     "#kf.vulkan_target<threads = 256, memory = 16384, types = [f16, i8, i16, "
     "i64]>",
     "Vulkan",
     {"f64", "f8E4M3FN", "f8E5M2", "i4"}},
    {"least_vulkan",
     "vulkan",
     "Vulkan",
     {"f64", "f8E4M3FN", "f8E5M2", "i4", "i8", "i16", "i64"}},
    {"cuda", "cuda:sm_80", "CUDA", {"f64", "f8E4M3FN", "f8E5M2", "i4"}}};

/// An op with types of elements.
struct Case {
  StringRef op;
  SmallVector<Type> operands;
  Type result;
};

/// Appends a function that applies `cases`, to arguments of their own each.
void addFunction(ModuleOp module, ArrayRef<Case> cases) {
  OpBuilder b = OpBuilder::atBlockEnd(module.getBody());
  Location loc = b.getUnknownLoc();
  auto tensorOf = [](Type element) -> Type {
    return RankedTensorType::get({ShapedType::kDynamic, 8}, element);
  };
  SmallVector<Type> inputs, results;
  for (const Case &entry : cases) {
    for (Type operand : entry.operands)
      inputs.push_back(tensorOf(operand));
    results.push_back(tensorOf(entry.result));
  }
  auto function =
      func::FuncOp::create(b, loc, "f", b.getFunctionType(inputs, results));
  Block *entry = function.addEntryBlock();
  b.setInsertionPointToStart(entry);
  SmallVector<Value> values;
  size_t used = 0;
  for (auto [each, result] : llvm::zip_equal(cases, results)) {
    OperationState state(loc, each.op);
    state.addOperands(entry->getArguments().slice(used, each.operands.size()));
    used += each.operands.size();
    state.addTypes(result);
    if (each.op.starts_with("arith.cmp"))
      state.addAttribute("predicate", b.getI64IntegerAttr(2));
    values.push_back(b.create(state)->getResult(0));
  }
  func::ReturnOp::create(b, loc, values);
}

OwningOpRef<ModuleOp> moduleOf(ArrayRef<Case> cases, MLIRContext &context) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  addFunction(*module, cases);
  return module;
}

/// Appends those of OpTy: operands of one type, but for a condition; any
/// result.
template <typename OpTy>
void addCases(ArrayRef<Type> types, MLIRContext &context,
              std::vector<Case> &cases) {
  size_t operands = OpTy::template hasTrait<OpTrait::OneOperand>() ? 1
                    : OpTy::template hasTrait<OpTrait::NOperands<2>::Impl>()
                        ? 2
                        : 3;
  ScopedDiagnosticHandler ignore(&context, [](Diagnostic &) {});
  for (Type operand : types)
    for (Type result : types) {
      // Folded, whatever the device.
      if (std::is_same_v<OpTy, arith::BitcastOp> && operand == result)
        continue;
      Case entry{OpTy::getOperationName(), SmallVector<Type>(operands, operand),
                 result};
      if (std::is_same_v<OpTy, arith::SelectOp>)
        entry.operands[0] = IntegerType::get(&context, 1);
      if (succeeded(verify(*moduleOf(entry, context))))
        cases.push_back(entry);
    }
}

template <typename... OpTys>
std::vector<Case> allCases(mlir::kf::OpList<OpTys...>, ArrayRef<Type> types,
                           MLIRContext &context) {
  std::vector<Case> cases;
  (addCases<OpTys>(types, context, cases), ...);
  return cases;
}

std::string textOf(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

class ElementwiseSupport : public testing::TestWithParam<Device> {
protected:
  ElementwiseSupport() : context(registry(), MLIRContext::Threading::DISABLED) {
    context.loadAllAvailableDialects();
    options.target = GetParam().target;
    for (StringRef type : elementTypes)
      types.push_back(parseType(type, &context));
  }

  static DialectRegistry registry() {
    DialectRegistry registry;
    mlir::kf::registerDialects(registry);
    return registry;
  }

  /// Why schedules are not chosen for `entry`; empty if they are.
  std::string refusalOf(const Case &entry) {
    return llvm::toString(mlir::kf::runPhases(*moduleOf(entry, context),
                                              options, mlir::kf::Phase::Import,
                                              mlir::kf::Phase::Scheduled));
  }

  bool isRefused(const Case &entry) {
    auto isOne = [](Type type) {
      return llvm::is_contained(GetParam().refused, textOf(type));
    };
    return llvm::any_of(entry.operands, isOne) || isOne(entry.result);
  }

  MLIRContext context;
  mlir::kf::CompileOptions options;
  SmallVector<Type> types;
};

TEST_P(ElementwiseSupport, IsDecidedWhenSchedulesAreChosen) {
#ifdef KF_SANITIZERS
  GTEST_SKIP() << "takes long, and the suite of conformance compiles the ops";
#endif
  const std::vector<Case> cases =
      allCases(mlir::kf::ElementwiseOps(), types, context);
  EXPECT_GT(cases.size(), 600u);
  std::vector<Case> taken;
  for (const Case &entry : cases) {
    SCOPED_TRACE(entry.op.str() + " on " + textOf(entry.operands.back()) +
                 " to " + textOf(entry.result));
    const std::string error = refusalOf(entry);
    EXPECT_EQ(!error.empty(), isRefused(entry)) << error;
    if (error.empty()) {
      taken.push_back(entry);
      continue;
    }
    EXPECT_EQ(error.rfind(std::string("no ") + GetParam().errorName +
                              " kernel for '" + entry.op.str() + "' on ",
                          0),
              0u)
        << error;
    EXPECT_TRUE(error.find("; use ") != std::string::npos ||
                error.find("; elements are ") != std::string::npos ||
                error.find("; have others in bf16") != std::string::npos)
        << error;
  }
  // What is taken has code: all together, as a program has many kernels.
  OwningOpRef<ModuleOp> module = moduleOf(taken, context);
  auto executable = mlir::kf::compile(*module, options);
  EXPECT_TRUE(static_cast<bool>(executable))
      << llvm::toString(executable.takeError());
}

INSTANTIATE_TEST_SUITE_P(, ElementwiseSupport, testing::ValuesIn(devices),
                         [](const testing::TestParamInfo<Device> &info) {
                           return std::string(info.param.name);
                         });

} // namespace
