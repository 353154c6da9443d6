//===- EmbeddingAnswer.h - The answer with embeddings -----------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_SERVE_EMBEDDINGANSWER_H
#define KF_RUNTIME_SERVE_EMBEDDINGANSWER_H

#include "runtime/serve/HttpMessage.h"
#include "runtime/serve/Service.h"

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kf {

/// The bytes of `values`, the lowest of each first, in base64.
std::string base64Of(std::span<const float> values);

/// OpenAI's answer to a request for embeddings: one for each handle, in their
/// order, which are cancelled with it.
class EmbeddingAnswer : public HttpAnswer {
public:
  struct Options {
    std::string model;   ///< as the answer names it
    bool base64 = false; ///< else numbers
    /// Is told of each embedding.
    std::function<void()> onEnd;
  };

  EmbeddingAnswer(std::vector<std::unique_ptr<TextHandle>> handles,
                  Options options);

  Piece take() override;

private:
  struct Text {
    std::unique_ptr<TextHandle> handle; ///< null once it has ended
    std::string embedding;              ///< JSON
  };

  /// What came of a text; an error where it failed or was cancelled.
  Status advance(Text &text);

  std::vector<Text> texts;
  Options options;
  int64_t tokens = 0; ///< of the texts that have ended
  bool isDone = false;
};

} // namespace kf

#endif // KF_RUNTIME_SERVE_EMBEDDINGANSWER_H
