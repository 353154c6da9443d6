//===- FirstError.h - What a context reports first --------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_LIB_PIPELINES_FIRSTERROR_H
#define KF_LIB_PIPELINES_FIRSTERROR_H

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Location.h"

#include <string>

namespace mlir::kf {

/// Keeps the first error that is reported in a context while it lives, as
/// "FILE:LINE:COLUMN", `separator` and the message; without a place, the
/// message alone.
class FirstError {
public:
  FirstError(MLIRContext *context, StringRef separator)
      : handler(context, [this, separator](Diagnostic &diagnostic) {
          if (diagnostic.getSeverity() != DiagnosticSeverity::Error ||
              !text.empty())
            return;
          llvm::raw_string_ostream stream(text);
          if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
            stream << place.getFilename().getValue() << ':' << place.getLine()
                   << ':' << place.getColumn() << separator;
          stream << diagnostic;
        }) {}

  std::string text; ///< empty: there was none

private:
  ScopedDiagnosticHandler handler;
};

} // namespace mlir::kf

#endif // KF_LIB_PIPELINES_FIRSTERROR_H
