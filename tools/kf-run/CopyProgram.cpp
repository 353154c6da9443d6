//===- CopyProgram.cpp - A program that copies ----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CopyProgram.h"

#include "Interrupt.h"

#include "kf/Driver/Compiler.h"
#include "runtime/measure/Ceilings.h"

#include <string>

using namespace kf;

Result<Executable> kf::compileCopy(const Device &device, int64_t rows) {
  CompilerOptions options;
  options.target = targetFor(device, options.targetCpu);
  options.workers = device.workers();
  options.device = device.description();
  options.maxTokens = rows;
  options.cancelled = &interruptFlag();
  const std::string type = "tensor<?x" + std::to_string(kCopyWidth) + "xf32>";
  KF_ASSIGN_OR_RETURN(CompilerModule module,
                      CompilerModule::parseText("func.func @copy(%x: " + type +
                                                    ") -> " + type +
                                                    " {\n"
                                                    "  %0 = arith.negf %x : " +
                                                    type +
                                                    "\n"
                                                    "  return %0 : " +
                                                    type + "\n}\n",
                                                "copy", "copy", true));
  return module.compile(options);
}
