//===- MergeMasks.h - Masks and constants in one instruction ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_TARGET_NVVM_MERGEMASKS_H
#define KF_LIB_TARGET_NVVM_MERGEMASKS_H

namespace llvm {
class Module;
} // namespace llvm

namespace mlir::kf {

/// Makes `x & C | D` of 32 bits, with constants C and D, one `lop3.b32` (PTX
/// ISA, "Logic and Shift Instructions"). The assembler takes two instructions,
/// since an instruction has one constant, and does not keep the other one in a
/// register; taking codes of weights apart is mostly such masks. Comes behind
/// the optimizer, which does not know the instruction.
void mergeMasks(llvm::Module &module);

} // namespace mlir::kf

#endif // KF_LIB_TARGET_NVVM_MERGEMASKS_H
