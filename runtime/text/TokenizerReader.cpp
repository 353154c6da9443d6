//===- TokenizerReader.cpp - The JSON of a tokenizer.json -----------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/TokenizerReader.h"

#include "runtime/core/Quote.h"

using namespace kf;

bool TokenizerReader::start_object(std::size_t size) {
  if (mode != Mode::Document)
    return misplaced();
  if (!at("vocab"))
    return JsonBuilder::start_object(size);
  mode = Mode::Vocabulary;
  return takeOnce(sawVocabulary);
}

bool TokenizerReader::end_object() {
  if (mode == Mode::Document)
    return JsonBuilder::end_object();
  mode = Mode::Document;
  return true;
}

bool TokenizerReader::start_array(std::size_t size) {
  if (mode == Mode::Merges) {
    mode = Mode::Pair;
    pairSize = 0;
    return true;
  }
  if (mode != Mode::Document)
    return misplaced();
  if (!at("merges"))
    return JsonBuilder::start_array(size);
  mode = Mode::Merges;
  return takeOnce(sawMerges);
}

bool TokenizerReader::end_array() {
  if (mode == Mode::Document)
    return JsonBuilder::end_array();
  if (mode == Mode::Pair && pairSize != 2)
    return fail("a merge is not a pair");
  mode = mode == Mode::Pair ? Mode::Merges : Mode::Document;
  return true;
}

bool TokenizerReader::key(string_t &name) {
  if (mode == Mode::Document)
    return JsonBuilder::key(name);
  piece = std::move(name);
  return true;
}

bool TokenizerReader::string(string_t &value) {
  switch (mode) {
  case Mode::Document:
    return JsonBuilder::string(value);
  case Mode::Vocabulary:
    return misplaced();
  case Mode::Pair:
    return addSide(value);
  case Mode::Merges: {
    size_t space = value.find(' ');
    if (space == std::string::npos ||
        value.find(' ', space + 1) != std::string::npos)
      return fail("merge " + inQuotes(value) +
                  " is not two pieces and a space");
    std::string_view text = value;
    pairSize = 0;
    return addSide(text.substr(0, space)) && addSide(text.substr(space + 1));
  }
  }
  return false;
}

bool TokenizerReader::number_unsigned(number_unsigned_t value) {
  if (mode == Mode::Document)
    return JsonBuilder::number_unsigned(value);
  if (mode != Mode::Vocabulary)
    return misplaced();
  if (value > INT32_MAX)
    return fail("token " + inQuotes(piece) + " has id " +
                std::to_string(value) + ", past 2147483647");
  Status added = vocabulary.add(piece, static_cast<int32_t>(value));
  return added.ok() || fail(added.message());
}

bool TokenizerReader::null() {
  return mode == Mode::Document ? JsonBuilder::null() : misplaced();
}

bool TokenizerReader::boolean(bool value) {
  return mode == Mode::Document ? JsonBuilder::boolean(value) : misplaced();
}

bool TokenizerReader::number_integer(number_integer_t value) {
  return mode == Mode::Document ? JsonBuilder::number_integer(value)
                                : misplaced();
}

bool TokenizerReader::number_float(number_float_t value, const string_t &text) {
  return mode == Mode::Document ? JsonBuilder::number_float(value, text)
                                : misplaced();
}

bool TokenizerReader::at(const char *key) const {
  return path().size() == 2 && path()[0] == "model" && path()[1] == key;
}

bool TokenizerReader::misplaced() {
  return fail(mode == Mode::Vocabulary
                  ? "model.vocab is not an object of token ids"
                  : "model.merges is not an array of pairs");
}

bool TokenizerReader::takeOnce(bool &seen) {
  if (seen)
    return fail("model.vocab or model.merges appears twice");
  seen = true;
  return true;
}

bool TokenizerReader::addSide(std::string_view side) {
  if (side.size() > UINT32_MAX)
    return fail("a merge's piece is too long");
  mergeText += side;
  if (pairSize++ == 0)
    merges.push_back({static_cast<uint32_t>(side.size()), 0});
  else
    merges.back().right = static_cast<uint32_t>(side.size());
  return pairSize <= 2 || fail("a merge is not a pair");
}
