//===- TextLoss.h - How well a model predicts a text ------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SESSION_TEXTLOSS_H
#define KF_RUNTIME_SESSION_TEXTLOSS_H

#include "runtime/session/Session.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

namespace kf {

/// Sums of -log p and of its square over the tokens that were predicted.
struct TextLoss {
  double sum = 0, squares = 0; ///< in nats
  int64_t tokens = 0;

  void add(double loss) {
    sum += loss;
    squares += loss * loss;
    ++tokens;
  }
  double perToken() const { return sum / static_cast<double>(tokens); }
  double perplexity() const;
  /// Standard error of perToken(), as of independent tokens; NaN for one.
  double error() const;
};

/// The tokens of `text`, all of the model's vocabulary. Of a session with a
/// tokenizer.
Result<std::vector<int32_t>> encodeForLoss(const Session &session,
                                           std::string_view text,
                                           CancelFlag cancelled);

/// Adds the losses of predicting the tokens from number `first` on, at least 1,
/// of `ids`, each after all that are before it. Calls `onScored`, unless it is
/// empty, with the number of the one behind. Of a session that was started; its
/// thread. Errors: logits that are not finite, and the engine's.
Status addLoss(Session &session, std::span<const int32_t> ids, size_t first,
               TextLoss &loss,
               const std::function<void(size_t scored)> &onScored = {});

/// Adds the loss of one text: begin tokens, text, end token, of which the last
/// two are predicted. One that is longer than the context is cut into windows,
/// each of which begins anew. `onScored`, unless it is empty, is told how many
/// of `all` tokens were predicted. Errors as above, a context that is too short
/// to predict anything, and the tokenizer's; Status::cancelled() also where
/// `cancelled` ended the tokenizer.
Status addTextLoss(
    Session &session, std::string_view text, CancelFlag cancelled,
    TextLoss &loss,
    const std::function<void(size_t scored, size_t all)> &onScored = {});

} // namespace kf

#endif // KF_RUNTIME_SESSION_TEXTLOSS_H
