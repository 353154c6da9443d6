//===- ConstraintCompiler.h - Constraints of a model's texts ----*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Makes of what a request asks for what the engine holds its text to. Requests
// come from strangers, so that everything is bounded: compiling takes a second
// of the CPU at most, and ends when it is cancelled; a mask takes a tenth of
// one. Compile on a thread that nobody waits for but who asked.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONSTRAINT_CONSTRAINTCOMPILER_H
#define KF_RUNTIME_CONSTRAINT_CONSTRAINTCOMPILER_H

#include "runtime/constraint/OutputFormat.h"
#include "runtime/core/Cancellation.h"
#include "runtime/engine/TokenConstraint.h"
#include "runtime/text/Tokenizer.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace kf {

class GrammarVocabulary;

/// Compiles formats for the tokens of one model. Those that were asked for last
/// are kept, with the masks that their texts have needed. Any thread; calls
/// wait for one another.
class ConstraintCompiler {
public:
  /// `tokenizer` outlives this, and all texts of what this compiles. Tokens
  /// from `vocabSize` on, the model's logits, are none; `endIds` are those that
  /// end a text.
  ConstraintCompiler(const Tokenizer &tokenizer, int64_t vocabSize,
                     std::vector<int64_t> endIds);
  ~ConstraintCompiler();

  /// Errors:
  /// - Invalid: what is wrong with the format, or that it exceeds a limit;
  /// - Unavailable: those of all texts that go on or wait take kMostBytes; some
  ///   time later they may not;
  /// - Cancelled.
  Result<std::shared_ptr<TokenConstraintSource>>
  compile(const OutputFormat &format, CancelFlag cancelled = nullptr);

  /// The most formats that are kept.
  static constexpr size_t kMostKept = 16;
  /// The most bytes of all compiled grammars, without what is remembered of
  /// their texts: 16 MiB for each text at most, and for each that is kept.
  static constexpr size_t kMostBytes = size_t(512) << 20;

private:
  struct Kept {
    OutputFormat format;
    std::shared_ptr<TokenConstraintSource> source;
  };

  Status makeVocabulary();

  const Tokenizer &tokenizer;
  int64_t vocabSize;
  std::vector<int64_t> endIds;
  std::mutex mutex;                                    ///< of what follows
  std::shared_ptr<const GrammarVocabulary> vocabulary; ///< once it is needed
  std::list<Kept> kept; ///< those that were asked for last first
  /// Bytes of the grammars that live, wherever.
  std::shared_ptr<std::atomic<size_t>> living;
};

} // namespace kf

#endif // KF_RUNTIME_CONSTRAINT_CONSTRAINTCOMPILER_H
