//===- ModelFacts.h - What can be told about a model ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What `kf-run inspect` prints. A model that cannot run has facts too: each
// part that cannot be read says why, and the others are there.
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_MODELFACTS_H
#define KF_TOOLS_KF_RUN_MODELFACTS_H

#include "runtime/io/Gguf.h"
#include "runtime/model/ModelConfig.h"
#include "runtime/model/Stages.h"
#include "runtime/session/DummyModel.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace kf {

struct TensorFacts {
  std::string name;
  std::string type; ///< as its file calls it; empty where it has no name here
  std::vector<int64_t> shape;
  uint64_t elements = 0, bytes = 0;
};

/// Tensors of one type together.
struct TypeFacts {
  uint64_t tensors = 0, elements = 0, bytes = 0;
};

/// Memory that the weights and a cache for `context` positions take.
struct MemoryFacts {
  int64_t context = 0;
  uint64_t cacheF16 = 0, cacheF32 = 0; ///< bytes
};

struct ModelFacts {
  std::string name;         ///< the path, or "kf-stories (embedded)"
  std::string format;       ///< "GGUF version 3", "Hugging Face folder" ...
  std::string architecture; ///< as the files say it; empty: they do not
  std::optional<ModelConfig> config;
  std::string configProblem; ///< why there is no `config`

  std::string tokenizer; ///< its kind; empty: there is none
  uint64_t tokens = 0;   ///< of the tokenizer
  std::string tokenizerProblem;
  bool chatTemplate = false;

  std::vector<TensorFacts> tensors;
  std::string tensorProblem;  ///< why some or all are missing
  std::unique_ptr<Gguf> gguf; ///< metadata; null for other formats

  uint64_t parameters() const;
  uint64_t tensorBytes() const;
  std::map<std::string, TypeFacts> types() const;
  /// For contexts up to what the model was made for; none without `config`.
  std::vector<MemoryFacts> memory() const;
};

/// What one of several ranks has of a model.
struct RankFacts {
  int64_t ranks = 0;
  std::optional<int64_t> rank; ///< nothing: each of them, alike
  ModelConfig config;          ///< with its sizes
  uint64_t weights = 0;        ///< bytes
  /// Bytes of a token in a cache of f16 and of f32, rounded up: those by
  /// which each lengthens a long text's; 0: all layers have windows.
  uint64_t tokenF16 = 0, tokenF32 = 0;
  /// Those of layers with windows beside them, which do not grow with it.
  uint64_t windowsF16 = 0, windowsF32 = 0;
  /// Positions of texts whose pages have room in 1 GiB of each rank's cache; 0
  /// where all layers have windows.
  uint64_t tokensOfGiBF16 = 0, tokensOfGiBF32 = 0;
  std::vector<MemoryFacts> memory;
  std::vector<StepCollectives> collectives;
};

/// What ranks would have of the model that collectFacts() looks at, of which
/// nothing is read but names and types: of parts of layers, one for all; of
/// stages, one for each, by rank. Errors: a model that cannot run, or not on so
/// many ranks.
Result<std::vector<RankFacts>> collectRankFacts(const std::string &path,
                                                const DummyChoice &dummy,
                                                int64_t ranks,
                                                Parallelism parallelism);

/// Looks at the model at `path`, or the embedded one if it is empty, or the one
/// that `dummy` makes. Fails if there is no model of any kind.
Result<ModelFacts> collectFacts(const std::string &path,
                                const DummyChoice &dummy);

} // namespace kf

#endif // KF_TOOLS_KF_RUN_MODELFACTS_H
