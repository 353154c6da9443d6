//===- TokenizerMetadata.h - Tokenizers as GGUF metadata --------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// GGUF has two kinds of BPE. "gpt2" is byte-level: tokens, merges, and the name
// of a pre-tokenizer that the reader has to know. "llama" is SentencePiece's:
// tokens with scores, of which the best pair merges first; the scores follow
// from the ranks of tokenizer.json's merges.
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_CONVERT_TOKENIZERMETADATA_H
#define KF_RUNTIME_CONVERT_TOKENIZERMETADATA_H

#include "runtime/io/GgufWriter.h"
#include "runtime/model/ModelConfig.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Adds tokenizer.ggml.* for the text of a tokenizer.json: as many tokens as
/// the model has rows, begin and end tokens from `config`. A part of the
/// tokenizer that GGUF cannot say is an error if it is a kind of tokenizer, and
/// a line in `notes` if only rare text is affected.
Status addTokenizerMetadata(std::string_view tokenizerJson,
                            const ModelConfig &config, GgufMetadata &metadata,
                            std::vector<std::string> &notes);

/// The same for the bytes of a SentencePiece tokenizer.model, BPE with byte
/// fallback; other kinds are errors.
Status addSentencePieceMetadata(std::string_view tokenizerModel,
                                const ModelConfig &config,
                                GgufMetadata &metadata,
                                std::vector<std::string> &notes);

/// Adds the ids of config's begin token and of up to three end tokens, for
/// which GGUF has places; more are lines in `notes`. `tokens` by id, empty
/// where there is no tokenizer.
void addSpecialIds(const ModelConfig &config,
                   std::span<const std::string> tokens, GgufMetadata &metadata,
                   std::vector<std::string> &notes);

} // namespace kf

#endif // KF_RUNTIME_CONVERT_TOKENIZERMETADATA_H
