//===- SourceText.h - Bounds of text that is parsed -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_SOURCETEXT_H
#define KF_PIPELINES_SOURCETEXT_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Refuses text that MLIR's parser, or whoever walks or prints what it makes,
/// could not handle. They call themselves for each bracket and for each term of
/// an affine expression, and follow an alias wherever it is used; upstream has
/// no bounds for any of that, and a larger stack would only move them. So the
/// text is measured first, in one pass and without recursion, as if aliases
/// were written out where they are used: brackets may be 512 deep, an affine
/// expression have 512 operators, the whole be 64 MiB long. And where the
/// parser asks for more than a multiple of a text's length, that is bounded:
/// integers have 64 bits, numbers and shapes 256 bytes, names 4096, an affine
/// map 64 names and results. The error names the line.
llvm::Error checkSourceText(StringRef text);

/// Parses a text that may be hostile: refuses bytecode, whose reader is not
/// made for that, and what checkSourceText() refuses. Errors are one line that
/// begins with `name`; those of the parser are "name:line:column: error: ...".
llvm::Expected<OwningOpRef<ModuleOp>>
parseSource(StringRef text, StringRef name, MLIRContext *context);

} // namespace mlir::kf

#endif // KF_PIPELINES_SOURCETEXT_H
