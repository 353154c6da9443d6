//===- EmbeddingFlags.h - Options of how embeddings are made ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_EMBEDDINGFLAGS_H
#define KF_TOOLS_KF_RUN_EMBEDDINGFLAGS_H

#include "OptionParser.h"

#include "runtime/engine/Pooler.h"

#include <string>

namespace kf {

/// How a text's embedding is made; what is empty is as the model's files say.
struct EmbeddingFlags {
  std::string pooling, normalize;

  /// Adds --pooling, of one row for each text, and --normalize.
  void addTo(OptionParser &parser);
  /// The same, where --pooling may be none.
  void addWithRowsTo(OptionParser &parser);

  bool isGiven() const { return !pooling.empty() || !normalize.empty(); }
  EmbeddingChoice choice() const;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_EMBEDDINGFLAGS_H
