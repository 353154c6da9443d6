//===- TokenizerLoader.cpp - Reading tokenizer.json -----------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every section accepts what it knows and names what it does not.
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/text/Bpe.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/TokenizerReader.h"
#include "runtime/text/Utf8.h"

using namespace kf;
using nlohmann::json;

//===----------------------------------------------------------------------===//
// JSON helpers
//===----------------------------------------------------------------------===//

/// Bytes that a decoder may put in the place of others; real ones put a space.
static constexpr size_t kMaxReplacement = 64;

static Status unsupported(const std::string &what) {
  return Status::error(what + " is not supported", StatusCode::Unsupported);
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

static Result<std::string> readText(const json &object, const char *key) {
  const json &value = member(object, key);
  if (!value.is_string())
    return Status::error("no text " + inQuotes(key));
  return value.get<std::string>();
}

/// A count, 0 if it is absent.
static Result<size_t> readCount(const json &object, const char *key) {
  const json &value = member(object, key);
  if (value.is_null())
    return size_t(0);
  if (!value.is_number_unsigned())
    return Status::error(inQuotes(key) + " is not a count");
  return value.get<size_t>();
}

static Result<TextPattern> readPattern(const json &step) {
  const json &pattern = member(step, "pattern");
  const json &regex = member(pattern, "Regex");
  const json &literal = member(pattern, "String");
  TextPattern result;
  if (regex.is_string()) {
    KF_ASSIGN_OR_RETURN(result.regex, Regex::compile(regex.get<std::string>()));
  } else if (literal.is_string() && !isText(literal, "")) {
    result.literal = literal.get<std::string>();
  } else {
    return Status::error("'pattern' is neither {Regex} nor {String}");
  }
  return result;
}

static Result<SplitStep::Behavior> readBehavior(const json &step) {
  using Behavior = SplitStep::Behavior;
  constexpr std::pair<std::string_view, Behavior> behaviors[] = {
      {"Removed", Behavior::Removed},
      {"Isolated", Behavior::Isolated},
      {"MergedWithPrevious", Behavior::MergedWithPrevious},
      {"MergedWithNext", Behavior::MergedWithNext},
      {"Contiguous", Behavior::Contiguous}};
  const json &behavior = member(step, "behavior");
  if (!behavior.is_string())
    return Status::error("no 'behavior'");
  for (const auto &[name, value] : behaviors)
    if (isText(behavior, name))
      return value;
  return unsupported("behavior " + inQuotes(behavior.get<std::string>()));
}

/// Reads the mark and the scheme of a Metaspace pre-tokenizer or decoder.
static Result<MetaspaceStep> readMetaspace(const json &step) {
  using Prepend = MetaspaceStep::Prepend;
  constexpr std::pair<std::string_view, Prepend> schemes[] = {
      {"always", Prepend::Always},
      {"first", Prepend::First},
      {"never", Prepend::Never}};
  MetaspaceStep result;
  KF_ASSIGN_OR_RETURN(result.mark, readText(step, "replacement"));
  if (result.mark.empty() || stepUtf8(result.mark).length != result.mark.size())
    return Status::error("'replacement' is not one character");
  bool addPrefixSpace = true;
  KF_RETURN_IF_ERROR(readFlag(step, "add_prefix_space", addPrefixSpace));
  KF_RETURN_IF_ERROR(readFlag(step, "split", result.split));
  if (!addPrefixSpace)
    result.prepend = Prepend::Never;
  const json &scheme = member(step, "prepend_scheme");
  if (scheme.is_null())
    return result;
  for (const auto &[name, value] : schemes) {
    if (isText(scheme, name)) {
      result.prepend = value;
      return result;
    }
  }
  return unsupported("a prepend_scheme that is not always, first or never");
}

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
  Result<MergeTable> readMerges(const TokenizerReader &reader) const;
  Status makeModel(const TokenizerReader &reader);
  Status readAddedTokens(const json &tokens);
  Status readNormalizer(const json &section);
  Status readNormalizerStep(const json &step, const std::string &type);
  Status readPreTokenizer(const json &section);
  Status readPreTokenizerStep(const json &step, const std::string &type);
  Status readSplit(const json &step);
  Status addSplit(std::string_view regex, SplitStep::Behavior behavior,
                  bool invert = false);
  Status readByteLevel(const json &step);
  Status readPostProcessor(const json &section);
  Status readTemplate(const json &step);
  Status readDecoder(const json &section);
  Status readDecoderStep(const json &step, const std::string &type);
  Status setLead(PieceDecoder::Lead lead);

  Tokenizer result;
  Vocabulary vocabulary; ///< moves into the result once it is finished
  BpeOptions bpe;
  std::string unknownToken; ///< empty: there is none
  bool sawFuse = false;     ///< among the decoders
};

} // namespace kf

Status TokenizerLoader::readModel(const json &model, bool hasMerges) {
  if (!model.is_object())
    return Status::error("there is none");
  // Older files leave the type out; merges are BPE's alone.
  const json &type = member(model, "type");
  if (type.is_string() && !isText(type, "BPE"))
    return unsupported("type " + inQuotes(type.get<std::string>()));
  if (!type.is_string() && !hasMerges)
    return Status::error("no 'type'");
  const json &dropout = member(model, "dropout");
  if (!dropout.is_null() && dropout != 0)
    return unsupported("dropout");
  for (const char *key : {"continuing_subword_prefix", "end_of_word_suffix"}) {
    const json &value = member(model, key);
    if (!value.is_null() && !isText(value, ""))
      return unsupported(key);
  }
  if (!member(model, "unk_token").is_null()) {
    KF_ASSIGN_OR_RETURN(unknownToken, readText(model, "unk_token"));
  }
  KF_RETURN_IF_ERROR(readFlag(model, "fuse_unk", bpe.fuseUnknown));
  KF_RETURN_IF_ERROR(readFlag(model, "byte_fallback", bpe.byteFallback));
  return readFlag(model, "ignore_merges", bpe.ignoreMerges);
}

Result<MergeTable>
TokenizerLoader::readMerges(const TokenizerReader &reader) const {
  MergeTable merges;
  merges.reset(reader.merges.size());
  std::string_view rest = reader.mergeText;
  for (size_t i = 0; i < reader.merges.size(); ++i) {
    auto [leftLength, rightLength] = reader.merges[i];
    std::string_view whole = rest.substr(0, size_t(leftLength) + rightLength);
    std::string_view left = whole.substr(0, leftLength);
    std::string_view right = whole.substr(leftLength);
    rest.remove_prefix(whole.size());
    const Vocabulary::Token *leftToken = result.vocabulary->findPiece(left);
    const Vocabulary::Token *rightToken = result.vocabulary->findPiece(right);
    const Vocabulary::Token *merged = result.vocabulary->findPiece(whole);
    if (!leftToken || !rightToken || !merged)
      return Status::error("merge " + std::to_string(i) + " of " +
                           inQuotes(left) + " and " + inQuotes(right) +
                           " needs a token that the vocabulary lacks");
    merges.add(leftToken->id, rightToken->id,
               {static_cast<uint32_t>(i), merged->id});
  }
  return merges;
}

Status TokenizerLoader::makeModel(const TokenizerReader &reader) {
  KF_ASSIGN_OR_RETURN(MergeTable merges, readMerges(reader));
  const Vocabulary::Token *unknown = result.vocabulary->findPiece(unknownToken);
  if (unknown)
    bpe.unknown = unknown->id;
  auto model = std::make_shared<Bpe>(result.vocabulary, std::move(merges), bpe);
  if (!unknownToken.empty() && !unknown && !model->knowsAllBytes())
    return Status::error("unk_token " + inQuotes(unknownToken) +
                         " is not in the vocabulary");
  result.model = std::move(model);
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
    bool normalized = false;
    KF_RETURN_IF_ERROR(readFlag(token, "special", added.special));
    KF_RETURN_IF_ERROR(readFlag(token, "normalized", normalized));
    KF_RETURN_IF_ERROR(readFlag(token, "single_word", added.singleWord));
    KF_RETURN_IF_ERROR(readFlag(token, "lstrip", added.stripLeft));
    KF_RETURN_IF_ERROR(readFlag(token, "rstrip", added.stripRight));
    KF_RETURN_IF_ERROR(vocabulary.addAdded(content, added.id, added.special));
    if (!normalized) {
      result.rawTokens.add(content, added);
      continue;
    }
    KF_ASSIGN_OR_RETURN(std::string found,
                        result.normalizer.normalize(content));
    if (!found.empty())
      result.normalizedTokens.add(found, added);
  }
  return Status();
}

Status TokenizerLoader::readNormalizer(const json &section) {
  if (section.is_null())
    return Status();
  return forEachStep(section, "normalizers",
                     [&](const json &step, const std::string &type) {
                       return readNormalizerStep(step, type);
                     });
}

Status TokenizerLoader::readNormalizerStep(const json &step,
                                           const std::string &type) {
  auto &steps = result.normalizer.steps;
  if (type == "NFC") {
    steps.push_back(NfcStep());
  } else if (type == "Prepend") {
    KF_ASSIGN_OR_RETURN(std::string text, readText(step, "prepend"));
    steps.push_back(PrependStep{std::move(text)});
  } else if (type == "Replace") {
    ReplaceStep replace;
    KF_ASSIGN_OR_RETURN(replace.pattern, readPattern(step));
    KF_ASSIGN_OR_RETURN(replace.by, readText(step, "content"));
    steps.push_back(std::move(replace));
  } else if (type == "Strip") {
    StripStep strip{true, true};
    KF_RETURN_IF_ERROR(readFlag(step, "strip_left", strip.left));
    KF_RETURN_IF_ERROR(readFlag(step, "strip_right", strip.right));
    steps.push_back(strip);
  } else {
    return unsupported("type " + inQuotes(type));
  }
  return Status();
}

Status TokenizerLoader::readPreTokenizer(const json &section) {
  if (section.is_null())
    return Status();
  return forEachStep(
      section, "pretokenizers", [&](const json &step, const std::string &type) {
        if (bpe.byteLevel)
          return unsupported(inQuotes(type) + " after ByteLevel");
        return readPreTokenizerStep(step, type);
      });
}

Status TokenizerLoader::readPreTokenizerStep(const json &step,
                                             const std::string &type) {
  using Behavior = SplitStep::Behavior;
  if (type == "Split")
    return readSplit(step).in(type);
  if (type == "ByteLevel")
    return readByteLevel(step).in(type);
  if (type == "Metaspace") {
    Result<MetaspaceStep> metaspace = readMetaspace(step);
    if (!metaspace.ok())
      return metaspace.status().in(type);
    result.preTokenizer.steps.push_back(metaspace.take());
    return Status();
  }
  if (type == "Digits") {
    bool individual = false;
    KF_RETURN_IF_ERROR(readFlag(step, "individual_digits", individual));
    return addSplit("\\p{N}",
                    individual ? Behavior::Isolated : Behavior::Contiguous);
  }
  if (type == "Punctuation") {
    Behavior behavior = Behavior::Isolated;
    if (!member(step, "behavior").is_null()) {
      KF_ASSIGN_OR_RETURN(behavior, readBehavior(step));
    }
    return addSplit("[\\p{P}$+<=>^`|~]", behavior);
  }
  // Rust's \w, which is more than Oniguruma's.
  if (type == "Whitespace")
    return addSplit(
        "[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}]+|"
        "[^\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\x{200c}\\x{200d}\\s]+",
        Behavior::Removed, /*invert=*/true);
  if (type == "WhitespaceSplit")
    return addSplit("\\s", Behavior::Removed);
  return unsupported("type " + inQuotes(type));
}

Status TokenizerLoader::readSplit(const json &step) {
  SplitStep split;
  KF_ASSIGN_OR_RETURN(split.behavior, readBehavior(step));
  KF_RETURN_IF_ERROR(readFlag(step, "invert", split.invert));
  KF_ASSIGN_OR_RETURN(split.pattern, readPattern(step));
  result.preTokenizer.steps.push_back(std::move(split));
  return Status();
}

Status TokenizerLoader::addSplit(std::string_view regex,
                                 SplitStep::Behavior behavior, bool invert) {
  SplitStep split;
  KF_ASSIGN_OR_RETURN(split.pattern.regex, Regex::compile(regex));
  split.behavior = behavior;
  split.invert = invert;
  result.preTokenizer.steps.push_back(std::move(split));
  return Status();
}

Status TokenizerLoader::readByteLevel(const json &step) {
  bpe.byteLevel = true;
  bool addPrefixSpace = true, useRegex = true;
  KF_RETURN_IF_ERROR(readFlag(step, "add_prefix_space", addPrefixSpace));
  KF_RETURN_IF_ERROR(readFlag(step, "use_regex", useRegex));
  if (addPrefixSpace)
    result.preTokenizer.steps.push_back(PrefixSpaceStep());
  return useRegex ? addSplit(gpt2SplitPattern(), SplitStep::Behavior::Isolated)
                  : Status();
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
    if (sequence.is_object() && isText(member(sequence, "id"), "A") &&
        !sawText) {
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
      if (!result.vocabulary->find(id))
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
    return unsupported("a tokenizer without one");
  PieceDecoder &decoder = result.decoder;
  KF_RETURN_IF_ERROR(forEachStep(
      section, "decoders", [&](const json &step, const std::string &type) {
        return readDecoderStep(step, type);
      }));
  if (decoder.byteLevel == bpe.byteLevel)
    return Status();
  return unsupported(bpe.byteLevel
                         ? "a ByteLevel pre-tokenizer without its decoder"
                         : "ByteLevel without its pre-tokenizer");
}

Status TokenizerLoader::setLead(PieceDecoder::Lead lead) {
  if (result.decoder.lead != PieceDecoder::Lead::Keep)
    return Status::error("a second decoder that strips is not supported",
                         StatusCode::Unsupported);
  result.decoder.lead = lead;
  return Status();
}

Status TokenizerLoader::readDecoderStep(const json &step,
                                        const std::string &type) {
  PieceDecoder &decoder = result.decoder;
  if (type == "ByteLevel") {
    decoder.byteLevel = true;
  } else if (type == "ByteFallback") {
    decoder.byteFallback = true;
  } else if (type == "Fuse") {
    sawFuse = true;
  } else if (type == "Replace") {
    KF_ASSIGN_OR_RETURN(TextPattern pattern, readPattern(step));
    KF_ASSIGN_OR_RETURN(std::string content, readText(step, "content"));
    if (pattern.regex || sawFuse)
      return unsupported("a Replace of a Regex, or after Fuse,");
    if (content.size() > kMaxReplacement)
      return unsupported("a Replace by " + std::to_string(content.size()) +
                         " bytes");
    decoder.replacements.emplace_back(pattern.literal, content);
  } else if (type == "Strip") {
    KF_ASSIGN_OR_RETURN(std::string content, readText(step, "content"));
    KF_ASSIGN_OR_RETURN(decoder.leadSpaces, readCount(step, "start"));
    KF_ASSIGN_OR_RETURN(size_t stop, readCount(step, "stop"));
    if (content != " " || stop != 0 || !sawFuse)
      return unsupported("a Strip but of spaces at the start, after Fuse,");
    return setLead(PieceDecoder::Lead::Spaces);
  } else if (type == "Metaspace") {
    KF_ASSIGN_OR_RETURN(MetaspaceStep metaspace, readMetaspace(step));
    decoder.replacements.emplace_back(metaspace.mark, " ");
    decoder.mark = metaspace.mark;
    if (metaspace.prepend != MetaspaceStep::Prepend::Never)
      return setLead(PieceDecoder::Lead::FirstToken);
  } else {
    return unsupported("type " + inQuotes(type));
  }
  return Status();
}

Result<Tokenizer> TokenizerLoader::load(std::string_view text) {
  TokenizerReader reader;
  KF_ASSIGN_OR_RETURN(JsonDocument parsed, reader.parse(text));
  const json &document = *parsed;
  if (!document.is_object())
    return Status::error("not a JSON object");
  // truncation and padding are left aside, as transformers does when it loads
  // a tokenizer.
  TokenizerLoader loader;
  Tokenizer &result = loader.result;
  loader.vocabulary = std::move(reader.vocabulary);
  auto section = [&](const char *name) -> const json & {
    return member(document, name);
  };
  KF_RETURN_IF_ERROR(
      loader.readModel(section("model"), reader.hasMerges()).in("model"));
  KF_RETURN_IF_ERROR(
      loader.readNormalizer(section("normalizer")).in("normalizer"));
  KF_RETURN_IF_ERROR(
      loader.readAddedTokens(section("added_tokens")).in("added_tokens"));
  KF_RETURN_IF_ERROR(
      loader.readPreTokenizer(section("pre_tokenizer")).in("pre_tokenizer"));
  KF_RETURN_IF_ERROR(loader.readDecoder(section("decoder")).in("decoder"));
  KF_RETURN_IF_ERROR(loader.vocabulary.finish(
      [&](const Vocabulary::Token &token, std::string_view text) {
        return result.decoder.bytesOf(token, text);
      }));
  result.vocabulary =
      std::make_shared<const Vocabulary>(std::move(loader.vocabulary));
  KF_RETURN_IF_ERROR(loader.makeModel(reader).in("model"));
  KF_RETURN_IF_ERROR(
      loader.readPostProcessor(section("post_processor")).in("post_processor"));
  return std::move(result);
}

Result<Tokenizer> Tokenizer::fromJson(std::string_view json,
                                      const std::string &name) try {
  Result<Tokenizer> tokenizer = TokenizerLoader::load(json);
  if (!tokenizer.ok())
    return tokenizer.status().in(name);
  return tokenizer;
} catch (...) {
  return statusOfException();
}
