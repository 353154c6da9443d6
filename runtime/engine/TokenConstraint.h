//===- TokenConstraint.h - Which tokens a text may have ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What the engine knows of a grammar: before each token which ones are allowed,
// and which are certain; behind it whether the text is complete.
// runtime/constraint has grammars.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_ENGINE_TOKENCONSTRAINT_H
#define KF_RUNTIME_ENGINE_TOKENCONSTRAINT_H

#include "runtime/core/Status.h"

#include <cstdint>
#include <memory>
#include <span>

namespace kf {

/// What one text is held to, as far as it has come. One thread at a time.
class TokenConstraint {
public:
  virtual ~TokenConstraint() = default;

  /// The tokens that may come next: bit i % 32 of word i / 32 for token i, of
  /// maskWords() of the model's vocabulary; valid until accept(). May be called
  /// any number of times for a token. Errors: no token may come, or it takes
  /// more than its limits to find out; the text cannot go on then.
  virtual Result<std::span<const uint32_t>> allowed() = 0;
  /// The tokens that come next whatever is chosen, in their order; maybe none.
  /// Each is the only one that is allowed() in its place, so that a text is the
  /// same whether the model is asked for them or not. Valid until accept().
  virtual Result<std::span<const int32_t>> forced() {
    return std::span<const int32_t>();
  }
  /// `id` comes next. One that is not allowed is an error.
  virtual Status accept(int32_t id) = 0;
  /// Whether the text has ended, or nothing but its end may come.
  virtual bool isComplete() const = 0;
};

/// What many texts are held to, each by itself. Any thread may own it and
/// destroy it.
class TokenConstraintSource {
public:
  virtual ~TokenConstraintSource() = default;

  /// The constraint of a text that has no token yet; it may outlive this. All
  /// calls, and all uses of what they gave, are of one thread: that of the
  /// engine. May take some milliseconds.
  virtual Result<std::unique_ptr<TokenConstraint>> begin() = 0;
};

} // namespace kf

#endif // KF_RUNTIME_ENGINE_TOKENCONSTRAINT_H
