//===- SourceText.h - Bounds of text that is parsed -------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_SOURCETEXT_H
#define KF_PIPELINES_SOURCETEXT_H

#include "mlir/Support/LLVM.h"
#include "llvm/Support/Error.h"

namespace mlir::kf {

/// Refuses text that MLIR's parser, or whoever walks or prints what it makes,
/// could not handle. They call themselves for each bracket and for each term of
/// an affine expression, and follow an alias wherever it is used; upstream has
/// no bounds for any of that, and a larger stack would only move them. So the
/// text is measured first, in one pass and without recursion, as if aliases
/// were written out where they are used: brackets may be 512 deep, an affine
/// expression have 512 operators, the whole be 64 MiB long. The error names the
/// line.
llvm::Error checkSourceText(StringRef text);

} // namespace mlir::kf

#endif // KF_PIPELINES_SOURCETEXT_H
