//===- FormatFlags.h - What generated texts have to be ----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_FORMATFLAGS_H
#define KF_TOOLS_KF_RUN_FORMATFLAGS_H

#include "OptionParser.h"

#include "runtime/constraint/ConstraintCompiler.h"
#include "runtime/engine/ModelFiles.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

/// Options that hold texts to a JSON schema or a grammar.
struct FormatFlags {
  std::optional<std::string> schema; ///< JSON, or a file of it
  std::optional<std::string> grammar, grammarFile;

  void addTo(OptionParser &parser);
  /// What they ask for, read from files; nothing where none was given.
  Result<std::optional<OutputFormat>> read() const;
};

/// Compiles formats for texts of `model`, which outlives it. Beside the model's
/// own, `endIds` end a text. Error: a model without a tokenizer.
Result<std::unique_ptr<ConstraintCompiler>>
makeConstraintCompiler(const ModelFiles &model,
                       const std::vector<int64_t> &endIds = {});

} // namespace kf

#endif // KF_TOOLS_KF_RUN_FORMATFLAGS_H
