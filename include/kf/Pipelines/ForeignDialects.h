//===- ForeignDialects.h - Text in dialects that are not here ---*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_PIPELINES_FOREIGNDIALECTS_H
#define KF_PIPELINES_FOREIGNDIALECTS_H

#include "mlir/Support/LLVM.h"

#include <string>

namespace mlir::kf {

/// Of a text that MLIR's parser has refused: one line that names the first
/// dialect, of an op at the beginning of a line or of a type, that is none of
/// `known`, and says what is taken instead. Empty where all dialects are known.
std::string explainForeignDialect(StringRef text, ArrayRef<StringRef> known);

} // namespace mlir::kf

#endif // KF_PIPELINES_FOREIGNDIALECTS_H
