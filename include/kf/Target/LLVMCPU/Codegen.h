//===- Codegen.h - kf kernels to machine code -------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TARGET_LLVMCPU_CODEGEN_H
#define KF_TARGET_LLVMCPU_CODEGEN_H

#include "kf/Dialect/KF/IR/KF.h"

#include "runtime/core/Cancellation.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/PassManager.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace llvm {
class TargetMachine;
} // namespace llvm

namespace mlir::kf {

/// The CPU that stands for this machine's, with the features it reports.
inline constexpr llvm::StringLiteral nativeCpu = "native";

/// LLVM's description of `cpu`, by LLVM's name of it ("znver4"), on the system
/// that the triple names, or without one on this host's. Errors name an unknown
/// CPU or system, and a CPU of 32 bits.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>>
createTargetMachine(llvm::StringRef cpu, llvm::StringRef triple = "");

/// The features, by LLVM's names and with commas between them, that code for
/// `machine` may use and that are off in `host`. Those that code generation
/// uses only where code names their instructions, as `pku`, do not count.
std::string missingFeatures(const llvm::TargetMachine &machine,
                            const llvm::StringMap<bool> &host);

/// An error that names the system, or the features, which code for `cpu` uses
/// and this host lacks.
llvm::Error checkHostRuns(llvm::StringRef cpu, llvm::StringRef triple = "");

/// The features that code for `machine` may use, by LLVM's names, of those that
/// this host knows; none for another architecture's. In the order of their
/// names.
std::vector<std::string> featuresOf(const llvm::TargetMachine &machine);

/// f32 lanes of the widest vector that `machine` computes with: 16, 8 or 4.
int64_t vectorLanes(const llvm::TargetMachine &machine);
/// How many vector registers it has: 16 or 32.
int64_t vectorRegisters(const llvm::TargetMachine &machine);
/// How it multiplies bytes and adds up products in such vectors, if it can.
std::optional<ByteDot> byteDotOf(const llvm::TargetMachine &machine);
/// Whether it multiplies tiles of bf16 (AMX), beside vectors of 16 lanes.
bool hasTiles(const llvm::TargetMachine &machine);
/// Whether it multiplies pairs of bf16 in such vectors (AVX512-BF16), and more
/// elements at a time than of f32.
bool hasBF16Dot(const llvm::TargetMachine &machine);
/// How lines of weights come from memory fastest.
PrefetchKind prefetchOf(const llvm::TargetMachine &machine);

/// Adds the passes from tiled kernels to the LLVM dialect.
void buildCpuCodegenPipeline(OpPassManager &passes);

/// Translates a module in the LLVM dialect to a relocatable object file,
/// optimized for `machine`. Once `cancelled` is set it ends, with an error,
/// before it optimizes or emits code.
llvm::Expected<std::string>
compileToObject(ModuleOp module, llvm::TargetMachine &machine,
                ::kf::CancelFlag cancelled = nullptr);

} // namespace mlir::kf

#endif // KF_TARGET_LLVMCPU_CODEGEN_H
