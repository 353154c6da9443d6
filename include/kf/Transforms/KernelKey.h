//===- KernelKey.h - Kernels as the tuning database knows them --*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TRANSFORMS_KERNELKEY_H
#define KF_TRANSFORMS_KERNELKEY_H

#include "kf/Dialect/KF/IR/KF.h"
#include "runtime/tuning/TuningDatabase.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::kf {

/// Rows of a kernel that no program dispatches.
constexpr int64_t unknownRows = 512;

/// The most rows that `tensor` has in a step of `function`, of which
/// `maxTokens` tokens are the most where it says nothing.
int64_t getMostRows(func::FuncOp function, RankedTensorType tensor,
                    int64_t maxTokens);

/// The most rows that `dispatch` computes in its program: those of its result,
/// or, where it has none, of what it reads.
int64_t getMostRows(DispatchOp dispatch);

/// The same of each kernel over the dispatches of all programs, by the kernel's
/// name. Kernels that nobody dispatches are missing.
DenseMap<StringAttr, int64_t> getMostRows(ModuleOp module);

/// Of what the text of a schedule means: another one where a text that was
/// written before stands for other code, as when a field with a default says
/// what followed from others.
inline constexpr int64_t kScheduleVersion = 3;

/// Version of the compiler, of LLVM, of the ABI and of schedules.
std::string getCompilerVersion();

/// What measurements for `target` on the device of that description hold for.
::kf::TuningScope getTuningScope(TargetAttrInterface target, StringRef device);

/// The database's key of `kernel`, whose weights and caches are laid out and
/// which is not tiled: its text, without its name and schedule, counts.
::kf::TuningKey getTuningKey(KernelOp kernel, int64_t rows,
                             const ::kf::TuningScope &scope);

/// A product whose rows of f32 some pass may round, and the most of them.
struct PlainProduct {
  ProductOpInterface op;
  int64_t rows;
};

/// All of the functions of `module`; `maxTokens` are the most tokens of a step
/// where a function says nothing.
SmallVector<PlainProduct> findPlainProducts(ModuleOp module, int64_t maxTokens);

/// The database's key of what `product` reads its rows in: the op, its
/// attributes but `rows`, and its types count.
::kf::TuningKey getTuningKey(const PlainProduct &product,
                             const ::kf::TuningScope &scope);

/// What the kernel is, for people.
::kf::TuningSubject getTuningSubject(KernelOp kernel);
/// The same of what `product` reads its rows in: its operands.
::kf::TuningSubject getTuningSubject(ProductOpInterface product);

} // namespace mlir::kf

#endif // KF_TRANSFORMS_KERNELKEY_H
