//===- KernelCodesTest.cpp - Tests of code that programs share ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/KernelCodes.h"

#include "kf/Pipelines/Compiler.h"
#include "kf/Pipelines/Registration.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <string>

using namespace mlir::kf;

namespace {

/// Products of rows of 64 with weights of `columns` columns, one after the
/// other: each is a kernel.
::kf::Executable compileProducts(const std::string &columns,
                                 const std::string &target,
                                 KernelCodes *codes = nullptr) {
  const std::string wide = "tensor<?x" + columns + "xf32>",
                    weight = "tensor<" + columns + "x64xf32>";
  const std::string text = R"(
    func.func @f(%x: tensor<?x64xf32>) -> (tensor<?x64xf32>, )" +
                           wide + R"() {
      %square = kf.weight ["square"] : tensor<64x64xf32>
      %w = kf.weight ["w"] : )" +
                           weight + R"(
      %0 = kf.matmul %x, %square : tensor<?x64xf32>, tensor<64x64xf32>
      %1 = kf.matmul %0, %w : tensor<?x64xf32>, )" +
                           weight + R"(
      return %0, %1 : tensor<?x64xf32>, )" +
                           wide + R"(
    })";
  mlir::DialectRegistry registry;
  registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  if (!module)
    return {};
  CompileOptions options;
  options.target = target;
  options.maxTokens = 4;
  options.kernelCodes = codes;
  auto executable = compile(*module, options);
  EXPECT_TRUE(bool(executable)) << llvm::toString(executable.takeError());
  return executable ? std::move(*executable) : ::kf::Executable();
}

void expectSame(const ::kf::Executable &found,
                const ::kf::Executable &expected) {
  EXPECT_TRUE(found.binary == expected.binary);
  EXPECT_EQ(found.features, expected.features);
  ASSERT_EQ(found.kernels.size(), expected.kernels.size());
  for (size_t i = 0; i < found.kernels.size(); ++i) {
    EXPECT_EQ(found.kernels[i].name, expected.kernels[i].name);
    EXPECT_EQ(found.kernels[i].scratchBytes, expected.kernels[i].scratchBytes);
    ASSERT_TRUE(found.kernels[i].work && expected.kernels[i].work);
    EXPECT_TRUE(*found.kernels[i].work == *expected.kernels[i].work);
  }
}

TEST(KernelCodesTest, CodeIsThatOfKernelsCompiledAlone) {
  KernelCodes codes;
  for (const char *columns : {"40", "56"}) {
    const auto expected = compileProducts(columns, "cpu");
    ASSERT_EQ(expected.kernels.size(), 2u);
    expectSame(compileProducts(columns, "cpu", &codes), expected);
  }
  // The square one is of both programs.
  EXPECT_EQ(codes.size(), 3u);
  EXPECT_EQ(codes.reused(), 1u);
  expectSame(compileProducts("56", "cpu", &codes),
             compileProducts("56", "cpu"));
  EXPECT_EQ(codes.size(), 3u);
  EXPECT_EQ(codes.reused(), 3u);
}

TEST(KernelCodesTest, EachTargetHasItsOwn) {
  KernelCodes codes;
  for (const char *target : {"cpu", "cpu:aarch64-linux-gnu/cortex-a76"})
    expectSame(compileProducts("40", target, &codes),
               compileProducts("40", target));
  EXPECT_EQ(codes.size(), 4u);
  EXPECT_EQ(codes.reused(), 0u);
}

/// Whose code of a kernel depends on the programs that dispatch it.
TEST(KernelCodesTest, GpusKeepNone) {
  KernelCodes codes;
  for (const char *target : {"cuda:sm_90a", "vulkan"})
    for (int i = 0; i < 2; ++i)
      expectSame(compileProducts("40", target, &codes),
                 compileProducts("40", target));
  EXPECT_EQ(codes.size(), 0u);
  EXPECT_EQ(codes.reused(), 0u);
}

} // namespace
