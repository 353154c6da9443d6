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

#include <functional>
#include <string>

namespace mlir::kf {

/// Keeps the first error that is reported in a context while it lives, as
/// "FILE:LINE:COLUMN", `separator` and the message; without a place, the
/// message alone. Warnings, written so too, go to `onWarning`, where there is
/// one.
class FirstError {
public:
  using Warning = std::function<void(const std::string &)>;

  FirstError(MLIRContext *context, StringRef separator, Warning onWarning = {})
      : handler(context, [this, separator, onWarning = std::move(onWarning)](
                             Diagnostic &diagnostic) {
          const DiagnosticSeverity severity = diagnostic.getSeverity();
          if (severity == DiagnosticSeverity::Error && text.empty())
            text = write(diagnostic, separator);
          if (severity == DiagnosticSeverity::Warning && onWarning)
            onWarning(write(diagnostic, separator));
        }) {}

  std::string text; ///< empty: there was none

private:
  static std::string write(Diagnostic &diagnostic, StringRef separator) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    if (auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation()))
      stream << place.getFilename().getValue() << ':' << place.getLine() << ':'
             << place.getColumn() << separator;
    stream << diagnostic;
    return text;
  }

  ScopedDiagnosticHandler handler;
};

} // namespace mlir::kf

#endif // KF_LIB_PIPELINES_FIRSTERROR_H
