//===- MergeMasks.cpp - Masks and constants in one instruction ------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MergeMasks.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PatternMatch.h"
#include "llvm/Transforms/Utils/Local.h"

using namespace llvm::PatternMatch;

/// `x & mask | bits`. What the instruction computes is a table of eight bits,
/// which is the same function of these three.
static llvm::Value *createMerge(llvm::IRBuilder<> &b, llvm::Value *x,
                                const llvm::APInt &mask,
                                const llvm::APInt &bits) {
  constexpr unsigned ofX = 0xf0, ofMask = 0xcc, ofBits = 0xaa;
  constexpr unsigned table = (ofX & ofMask) | ofBits;
  std::string text = "lop3.b32 $0, $1, 0x" +
                     llvm::utohexstr(mask.getZExtValue()) + ", 0x" +
                     llvm::utohexstr(bits.getZExtValue()) + ", 0x" +
                     llvm::utohexstr(table) + ";";
  auto *type = llvm::FunctionType::get(b.getInt32Ty(), {b.getInt32Ty()},
                                       /*isVarArg=*/false);
  llvm::CallInst *merged = b.CreateCall(
      llvm::InlineAsm::get(type, text, "=r,r", /*hasSideEffects=*/false), {x});
  // Loads before and behind are joined as if it were an instruction.
  merged->setDoesNotAccessMemory();
  merged->setDoesNotThrow();
  merged->addFnAttr(llvm::Attribute::WillReturn);
  return merged;
}

/// What takes the place of `bits | other`; null: there is no mask in it.
static llvm::Value *merge(llvm::Instruction &op) {
  const llvm::APInt *mask, *bits;
  llvm::Value *x, *rest;
  if (!op.getType()->isIntegerTy(32))
    return nullptr;
  llvm::IRBuilder<> b(&op);
  if (match(&op,
            m_Or(m_OneUse(m_And(m_Value(x), m_APInt(mask))), m_APInt(bits))))
    return createMerge(b, x, *mask, *bits);
  // Another part of a code is joined by the mask's instruction.
  if (match(&op,
            m_Or(m_OneUse(m_c_Or(m_OneUse(m_And(m_Value(x), m_APInt(mask))),
                                 m_Value(rest))),
                 m_APInt(bits))))
    return b.CreateOr(createMerge(b, x, *mask, *bits), rest);
  return nullptr;
}

void mlir::kf::mergeMasks(llvm::Module &module) {
  llvm::SmallVector<llvm::WeakTrackingVH> merged;
  for (llvm::Function &function : module)
    for (llvm::Instruction &op : llvm::instructions(function))
      if (llvm::Value *value = merge(op)) {
        op.replaceAllUsesWith(value);
        merged.push_back(&op);
      }
  llvm::RecursivelyDeleteTriviallyDeadInstructionsPermissive(merged);
}
