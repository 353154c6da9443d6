//===- MlirText.h - A text through the whole CPU pipeline -------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What kf_fuzz_mlir and kf_mlir_batch do with a text: all that
// `kf-run exec` does with a file.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TEST_FUZZ_MLIRTEXT_H
#define KF_TEST_FUZZ_MLIRTEXT_H

#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace kf {

/// How far a text came.
enum class Stage { Refused, Compiled, Ran };

struct Outcome {
  Stage stage = Stage::Refused;
  std::string error; ///< why it came no further; empty if it ran
};

/// Compiles texts to machine code for this CPU. One thread.
class TextCompiler {
public:
  TextCompiler();

  /// Parses and compiles a function of `text`, one that the text's bytes
  /// choose, and runs it for a few numbers of tokens if it is small: on random
  /// numbers, ids and positions.
  Outcome use(llvm::StringRef text);

private:
  mlir::MLIRContext context;
};

} // namespace kf

#endif // KF_TEST_FUZZ_MLIRTEXT_H
