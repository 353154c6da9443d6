//===- ParsedProgram.h - What is asked of a program's text ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_PIPELINES_PARSEDPROGRAM_H
#define KF_TEST_PIPELINES_PARSEDPROGRAM_H

#include "kf/Dialect/KF/IR/KF.h"
#include "kf/Pipelines/Registration.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Parser/Parser.h"
#include "gtest/gtest.h"

#include <vector>

/// What `ask` gives of the first program of a module's text.
template <typename Answer>
std::vector<Answer>
askProgram(llvm::StringRef text,
           std::vector<Answer> (*ask)(mlir::kf::ProgramOp)) {
  mlir::DialectRegistry registry;
  mlir::kf::registerDialects(registry);
  mlir::MLIRContext context(registry, mlir::MLIRContext::Threading::DISABLED);
  auto module = mlir::parseSourceString<mlir::ModuleOp>(text, &context);
  EXPECT_TRUE(module);
  if (!module)
    return {};
  return ask(*module->getOps<mlir::kf::ProgramOp>().begin());
}

#endif // KF_TEST_PIPELINES_PARSEDPROGRAM_H
