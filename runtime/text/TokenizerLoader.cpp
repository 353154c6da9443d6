//===- TokenizerLoader.cpp - Reading tokenizer.json -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The model's vocabulary and merges are most of the file: they go from the
// parser straight into their tables, the rest becomes a JSON document that is
// read section by section. Every section accepts what it knows and names what
// it does not.
//
//===----------------------------------------------------------------------===//

#include "runtime/io/Json.h"
#include "runtime/io/MappedFile.h"
#include "runtime/io/Quote.h"
#include "runtime/text/ByteAlphabet.h"
#include "runtime/text/Tokenizer.h"

using namespace kf;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// JSON helpers
//===----------------------------------------------------------------------===//

static Status unsupported(const std::string &what) {
  return Status::error(what + " is not supported");
}

static const json &member(const json &object, const char *key) {
  static const json none;
  auto it = object.find(key);
  return it == object.end() ? none : *it;
}

/// A flag, which may be absent.
static Status readFlag(const json &object, const char *key, bool &out) {
  const json &value = member(object, key);
  if (value.is_null())
    return Status();
  if (!value.is_boolean())
    return Status::error(inQuotes(key) + " is not true or false");
  out = value.get<bool>();
  return Status();
}

static Result<std::string> readType(const json &value) {
  const json &type = member(value, "type");
  if (!type.is_string())
    return Status::error("not an object with a 'type'");
  return type.get<std::string>();
}

static Result<int32_t> readId(const json &value) {
  if (!value.is_number_unsigned() || value.get<uint64_t>() > INT32_MAX)
    return Status::error("a token id is not a number from 0 to 2147483647");
  return static_cast<int32_t>(value.get<uint64_t>());
}

/// Calls `read` for the section, or for each of the elements of `list` if the
/// section is a Sequence (of Sequences...).
template <typename Read>
static Status forEachStep(const json &section, const char *list, Read read) {
  KF_ASSIGN_OR_RETURN(std::string type, readType(section));
  if (type != "Sequence")
    return read(section, type);
  const json &steps = member(section, list);
  if (!steps.is_array())
    return Status::error("a Sequence without an array " + inQuotes(list));
  for (const json &step : steps)
    KF_RETURN_IF_ERROR(forEachStep(step, list, read));
  return Status();
}

//===----------------------------------------------------------------------===//
// The model's tables
//===----------------------------------------------------------------------===//

namespace {

/// Builds the document without model.vocab and model.merges, which it collects.
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

  bool start_object(std::size_t size) override {
    if (mode != Mode::Document)
      return misplaced();
    if (!at("vocab"))
      return JsonBuilder::start_object(size);
    mode = Mode::Vocabulary;
    return takeOnce(sawVocabulary);
  }
  bool end_object() override {
    if (mode == Mode::Document)
      return JsonBuilder::end_object();
    mode = Mode::Document;
    return true;
  }
  bool start_array(std::size_t size) override {
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
  bool end_array() override {
    if (mode == Mode::Document)
      return JsonBuilder::end_array();
    if (mode == Mode::Pair && pairSize != 2)
      return fail("a merge is not a pair");
    mode = mode == Mode::Pair ? Mode::Merges : Mode::Document;
    return true;
  }
  bool key(string_t &name) override {
    if (mode == Mode::Document)
      return JsonBuilder::key(name);
    piece = std::move(name);
    return true;
  }
  bool string(string_t &value) override {
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
  bool number_unsigned(number_unsigned_t value) override {
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
  bool null() override {
    return mode == Mode::Document ? JsonBuilder::null() : misplaced();
  }
  bool boolean(bool value) override {
    return mode == Mode::Document ? JsonBuilder::boolean(value) : misplaced();
  }
  bool number_integer(number_integer_t value) override {
    return mode == Mode::Document ? JsonBuilder::number_integer(value)
                                  : misplaced();
  }
  bool number_float(number_float_t value, const string_t &text) override {
    return mode == Mode::Document ? JsonBuilder::number_float(value, text)
                                  : misplaced();
  }

private:
  enum class Mode { Document, Vocabulary, Merges, Pair };

  bool at(const char *key) const {
    return path().size() == 2 && path()[0] == "model" && path()[1] == key;
  }
  bool misplaced() {
    return fail(mode == Mode::Vocabulary
                    ? "model.vocab is not an object of token ids"
                    : "model.merges is not an array of pairs");
  }
  bool takeOnce(bool &seen) {
    if (seen)
      return fail("model.vocab or model.merges appears twice");
    seen = true;
    return true;
  }
  bool addSide(std::string_view side) {
    if (side.size() > UINT32_MAX)
      return fail("a merge's piece is too long");
    mergeText += side;
    if (pairSize++ == 0)
      merges.push_back({static_cast<uint32_t>(side.size()), 0});
    else
      merges.back().right = static_cast<uint32_t>(side.size());
    return pairSize <= 2 || fail("a merge is not a pair");
  }

  Mode mode = Mode::Document;
  bool sawVocabulary = false, sawMerges = false;
  std::string piece; ///< the vocabulary's key whose id comes next
  int pairSize = 0;
};

} // namespace

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

namespace kf {

/// Fills a Tokenizer, section by section.
class TokenizerLoader {
public:
  static Result<Tokenizer> load(std::string_view text);

private:
  Status readModel(const json &model, bool hasMerges);
  Status readMerges(const TokenizerReader &reader);
  Status readAddedTokens(const json &tokens);
  Status readNormalizer(const json &section);
  Status readPreTokenizer(const json &section);
  Status readSplit(const json &step);
  Status readByteLevel(const json &step);
  Status readPostProcessor(const json &section);
  Status readTemplate(const json &step);
  Status readDecoder(const json &section);

  Tokenizer result;
};

} // namespace kf

Status TokenizerLoader::readModel(const json &model, bool hasMerges) {
  if (!model.is_object())
    return Status::error("there is none");
  // Older files leave the type out; merges are BPE's alone.
  const json &type = member(model, "type");
  if (type.is_string() && type != "BPE")
    return unsupported("type " + inQuotes(type.get<std::string>()));
  if (!type.is_string() && !hasMerges)
    return Status::error("no 'type'");
  // unk_token, fuse_unk and byte_fallback matter only to characters without a
  // token, and every byte has one (Vocabulary::finish).
  const json &dropout = member(model, "dropout");
  if (!dropout.is_null() && dropout != 0)
    return unsupported("dropout");
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json &value = member(model, key);
    if (!value.is_null() && value != "")
      return unsupported(key);
  }
  return readFlag(model, "ignore_merges", result.bpe.ignoreMerges);
}

Status TokenizerLoader::readMerges(const TokenizerReader &reader) {
  Bpe &bpe = result.bpe;
  bpe.merges.reset(reader.merges.size());
  std::string_view rest = reader.mergeText;
  std::string left, right;
  for (size_t i = 0; i < reader.merges.size(); ++i) {
    auto [leftLength, rightLength] = reader.merges[i];
    std::string_view leftPiece = rest.substr(0, leftLength);
    std::string_view rightPiece = rest.substr(leftLength, rightLength);
    rest.remove_prefix(size_t(leftLength) + rightLength);
    std::optional<int32_t> leftId, rightId, whole;
    if (lettersToBytes(leftPiece, left) && lettersToBytes(rightPiece, right)) {
      leftId = bpe.vocabulary.idOfBytes(left);
      rightId = bpe.vocabulary.idOfBytes(right);
      whole = bpe.vocabulary.idOfBytes(left + right);
    }
    if (!leftId || !rightId || !whole)
      return Status::error("merge " + std::to_string(i) + " of " +
                           inQuotes(leftPiece) + " and " +
                           inQuotes(rightPiece) +
                           " needs a token that the vocabulary lacks");
    bpe.merges.add(*leftId, *rightId, {static_cast<uint32_t>(i), *whole});
  }
  return Status();
}

Status TokenizerLoader::readAddedTokens(const json &tokens) {
  if (tokens.is_null())
    return Status();
  if (!tokens.is_array())
    return Status::error("not an array");
  for (const json &token : tokens) {
    if (!token.is_object() || !member(token, "content").is_string())
      return Status::error("a token without 'content'");
    std::string content = member(token, "content").get<std::string>();
    if (content.empty())
      return Status::error("a token with empty 'content'");
    AddedTokens::Token added{};
    KF_ASSIGN_OR_RETURN(added.id, readId(member(token, "id")));
    bool special = false, normalized = false, singleWord = false;
    KF_RETURN_IF_ERROR(readFlag(token, "special", special));
    KF_RETURN_IF_ERROR(readFlag(token, "normalized", normalized));
    KF_RETURN_IF_ERROR(readFlag(token, "single_word", singleWord));
    KF_RETURN_IF_ERROR(readFlag(token, "lstrip", added.stripLeft));
    KF_RETURN_IF_ERROR(readFlag(token, "rstrip", added.stripRight));
    if (singleWord)
      return unsupported("single_word of " + inQuotes(content));
    KF_RETURN_IF_ERROR(
        result.bpe.vocabulary.addLiteral(content, added.id, special));
    if (normalized)
      result.normalizedTokens.add(result.normalizer.normalize(content), added);
    else
      result.rawTokens.add(content, added);
  }
  return Status();
}

Status TokenizerLoader::readNormalizer(const json &section) {
  if (section.is_null())
    return Status();
  return forEachStep(section, "normalizers",
                     [&](const json &, const std::string &type) {
                       if (type != "NFC")
                         return unsupported("type " + inQuotes(type));
                       result.normalizer.nfc = true;
                       return Status();
                     });
}

Status TokenizerLoader::readPreTokenizer(const json &section) {
  if (section.is_null())
    return unsupported("a tokenizer without ByteLevel");
  bool sawByteLevel = false;
  KF_RETURN_IF_ERROR(forEachStep(
      section, "pretokenizers", [&](const json &step, const std::string &type) {
        if (sawByteLevel)
          return unsupported(inQuotes(type) + " after ByteLevel");
        if (type == "Split")
          return readSplit(step).in("Split");
        if (type != "ByteLevel")
          return unsupported("type " + inQuotes(type));
        sawByteLevel = true;
        return readByteLevel(step).in("ByteLevel");
      }));
  return sawByteLevel ? Status() : unsupported("a tokenizer without ByteLevel");
}

Status TokenizerLoader::readSplit(const json &step) {
  using Behavior = SplitStep::Behavior;
  constexpr std::pair<std::string_view, Behavior> behaviors[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  SplitStep split;
  const json &behavior = member(step, "behavior");
  bool known = false;
  for (const auto &[name, value] : behaviors) {
    if (behavior == name) {
      split.behavior = value;
      known = true;
    }
  }
  if (!known)
    return behavior.is_string()
               ? unsupported("behavior " +
                             inQuotes(behavior.get<std::string>()))
               : Status::error("no 'behavior'");
  KF_RETURN_IF_ERROR(readFlag(step, "invert", split.invert));

  const json &pattern = member(step, "pattern");
  const json &regex = member(pattern, "Regex");
  const json &literal = member(pattern, "String");
  if (regex.is_string()) {
    KF_ASSIGN_OR_RETURN(split.regex, Regex::compile(regex.get<std::string>()));
  } else if (literal.is_string() && literal != "") {
    split.literal = literal.get<std::string>();
  } else {
    return Status::error("'pattern' is neither {Regex} nor {String}");
  }
  result.preTokenizer.steps.push_back(std::move(split));
  return Status();
}

Status TokenizerLoader::readByteLevel(const json &step) {
  bool useRegex = true;
  result.preTokenizer.addPrefixSpace = true;
  KF_RETURN_IF_ERROR(
      readFlag(step, "add_prefix_space", result.preTokenizer.addPrefixSpace));
  KF_RETURN_IF_ERROR(readFlag(step, "use_regex", useRegex));
  if (!useRegex)
    return Status();
  SplitStep split;
  KF_ASSIGN_OR_RETURN(split.regex, Regex::compile(gpt2SplitPattern()));
  result.preTokenizer.byteLevelSplit = std::move(split);
  return Status();
}

Status TokenizerLoader::readPostProcessor(const json &section) {
  if (section.is_null())
    return Status();
  return forEachStep(section, "processors",
                     [&](const json &step, const std::string &type) {
                       // ByteLevel moves offsets only, which are not kept.
                       if (type == "ByteLevel")
                         return Status();
                       if (type == "TemplateProcessing")
                         return readTemplate(step).in(type);
                       return unsupported("type " + inQuotes(type));
                     });
}

Status TokenizerLoader::readTemplate(const json &step) {
  const json &pieces = member(step, "single");
  const json &special = member(step, "special_tokens");
  if (!pieces.is_array() || !special.is_object())
    return Status::error("no 'single' and 'special_tokens'");
  // What this template puts around goes outside of what is there already.
  std::vector<int32_t> before, after;
  bool sawText = false;
  for (const json &piece : pieces) {
    const json &sequence = member(piece, "Sequence");
    const json &token = member(piece, "SpecialToken");
    if (sequence.is_object() && member(sequence, "id") == "A" && !sawText) {
      sawText = true;
      continue;
    }
    if (!token.is_object() || !member(token, "id").is_string())
      return Status::error("'single' is not special tokens around one text A");
    std::string name = member(token, "id").get<std::string>();
    const json &ids = member(member(special, name.c_str()), "ids");
    if (!ids.is_array())
      return Status::error("no ids of special token " + inQuotes(name));
    for (const json &value : ids) {
      KF_ASSIGN_OR_RETURN(int32_t id, readId(value));
      if (!result.bpe.vocabulary.find(id))
        return Status::error("special token " + inQuotes(name) + " has id " +
                             std::to_string(id) +
                             ", which is not in the vocabulary");
      (sawText ? after : before).push_back(id);
    }
  }
  if (!sawText)
    return Status::error("'single' has no text A");
  result.prefix.insert(result.prefix.begin(), before.begin(), before.end());
  result.suffix.insert(result.suffix.end(), after.begin(), after.end());
  return Status();
}

Status TokenizerLoader::readDecoder(const json &section) {
  if (section.is_null())
    return unsupported("a tokenizer without ByteLevel");
  return forEachStep(
      section, "decoders", [&](const json &, const std::string &type) {
        return type == "ByteLevel" ? Status()
                                   : unsupported("type " + inQuotes(type));
      });
}

Result<Tokenizer> TokenizerLoader::load(std::string_view text) {
  TokenizerReader reader;
  KF_ASSIGN_OR_RETURN(json document, reader.parse(text));
  if (!document.is_object())
    return Status::error("not a JSON object");
  // truncation and padding are left aside, as transformers does when it loads
  // a tokenizer.
  TokenizerLoader loader;
  loader.result.bpe.vocabulary = std::move(reader.vocabulary);
  KF_RETURN_IF_ERROR(
      loader.readModel(member(document, "model"), reader.hasMerges())
          .in("model"));
  KF_RETURN_IF_ERROR(
      loader.readNormalizer(member(document, "normalizer")).in("normalizer"));
  KF_RETURN_IF_ERROR(loader.readAddedTokens(member(document, "added_tokens"))
                         .in("added_tokens"));
  KF_RETURN_IF_ERROR(loader.result.bpe.vocabulary.finish());
  KF_RETURN_IF_ERROR(loader.readMerges(reader).in("model"));
  KF_RETURN_IF_ERROR(loader.readPreTokenizer(member(document, "pre_tokenizer"))
                         .in("pre_tokenizer"));
  KF_RETURN_IF_ERROR(
      loader.readPostProcessor(member(document, "post_processor"))
          .in("post_processor"));
  KF_RETURN_IF_ERROR(
      loader.readDecoder(member(document, "decoder")).in("decoder"));
  return std::move(loader.result);
}

//===----------------------------------------------------------------------===//
// Entry points
//===----------------------------------------------------------------------===//

Result<Tokenizer> Tokenizer::fromJson(std::string_view json,
                                      const std::string &name) {
  Result<Tokenizer> tokenizer = TokenizerLoader::load(json);
  if (!tokenizer.ok())
    return tokenizer.status().in(name);
  return tokenizer;
}

Result<Tokenizer> Tokenizer::open(const std::string &path) {
  KF_ASSIGN_OR_RETURN(MappedFile file, MappedFile::open(path));
  return fromJson(file.text(), path);
}
