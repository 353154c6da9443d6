//===- TokenizerReader.h - The JSON of a tokenizer.json ---------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_TEXT_TOKENIZERREADER_H
#define KF_RUNTIME_TEXT_TOKENIZERREADER_H

#include "runtime/core/Json.h"
#include "runtime/text/Vocabulary.h"

#include <string>
#include <string_view>
#include <vector>

namespace kf {

/// Builds the document without model.vocab and model.merges, which are most of
/// the file: they go from the parser straight into tables.
class TokenizerReader : public JsonBuilder {
public:
  Vocabulary vocabulary;
  /// Merges in order: the text of both sides, one after the other.
  std::string mergeText;
  struct MergeLengths {
    uint32_t left, right;
  };
  std::vector<MergeLengths> merges;
  bool hasMerges() const { return sawMerges; }

  bool start_object(std::size_t size) override;
  bool end_object() override;
  bool start_array(std::size_t size) override;
  bool end_array() override;
  bool key(string_t &name) override;
  bool string(string_t &value) override;
  bool number_unsigned(number_unsigned_t value) override;
  bool null() override;
  bool boolean(bool value) override;
  bool number_integer(number_integer_t value) override;
  bool number_float(number_float_t value, const string_t &text) override;

private:
  enum class Mode { Document, Vocabulary, Merges, Pair };

  bool at(const char *key) const;
  bool misplaced();
  bool takeOnce(bool &seen);
  bool addSide(std::string_view side);

  Mode mode = Mode::Document;
  bool sawVocabulary = false, sawMerges = false;
  std::string piece; ///< the vocabulary's key whose id comes next
  int pairSize = 0;
};

} // namespace kf

#endif // KF_RUNTIME_TEXT_TOKENIZERREADER_H
