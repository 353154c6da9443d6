//===- GenerationAnswer.h - Texts on their way to a client ------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_GENERATIONANSWER_H
#define KF_RUNTIME_SERVE_GENERATIONANSWER_H

#include "runtime/serve/ApiAnswer.h"
#include "runtime/serve/HttpMessage.h"
#include "runtime/serve/Service.h"

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace kf {

/// The answer to a request that generates, of one text or of several, as a
/// stream of events or whole. Destroying it cancels the texts.
class GenerationAnswer : public HttpAnswer {
public:
  struct Choice {
    std::unique_ptr<TextHandle> handle;
    AnswerText text;
    size_t prompt = 0; ///< the number of its prompt in the request
    // What came so far:
    AnswerPart all = {};
    std::vector<TextLogProbs> waiting = {}; ///< for text to be sent with
    std::optional<ChoiceEnd> end = {};
    bool hasCalls = false;
  };
  struct Options {
    bool stream = false;
    bool oneCall = false; ///< calls of tools after the first are left out
    /// Is told how each choice ended: finishReasonOf().
    std::function<void(std::string_view reason)> onEnd;
    /// Makes the id of a call.
    std::function<std::string()> makeCallId;
  };

  GenerationAnswer(std::vector<Choice> choices,
                   std::unique_ptr<AnswerForm> form, Options options);

  Piece take() override;
  std::string_view ping() const override;

private:
  /// What came of a choice; an error where it failed or was cancelled.
  Status advance(size_t number, std::string &events);
  AnswerPart finishCalls(Choice &choice, AnswerPart part);
  std::vector<ChoiceEnd> ends() const;
  Piece fail(const Status &status);

  std::vector<Choice> choices;
  std::unique_ptr<AnswerForm> form;
  Options options;
  bool isBegun = false, isDone = false;
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_GENERATIONANSWER_H
