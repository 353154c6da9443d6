//===- GgufPreTokenizers.h - Splits by their name in GGUF files -*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_GGUFPRETOKENIZERS_H
#define KF_RUNTIME_TEXT_GGUFPRETOKENIZERS_H

#include "runtime/text/PreTokenizer.h"

#include <string_view>

namespace kf {

/// What `tokenizer.ggml.pre` stands for: how the model's tokenizer.json splits
/// text, and what else of it a GGUF file does not say.
struct GgufPreTokenizer {
  PreTokenizer preTokenizer;
  bool nfc = false;          ///< text is composed first
  bool ignoreMerges = false; ///< a word that is a token is that token
  bool addBegin = false;     ///< unless the file says otherwise
};

/// Looks up `name`; an error that lists the known ones if it is none of them.
Result<GgufPreTokenizer> findGgufPreTokenizer(std::string_view name);

} // namespace kf

#endif // KF_RUNTIME_TEXT_GGUFPRETOKENIZERS_H
