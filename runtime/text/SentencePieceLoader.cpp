//===- SentencePieceLoader.cpp - Reading tokenizer.model ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/core/Exceptions.h"
#include "runtime/core/Quote.h"
#include "runtime/text/ScoreBpe.h"
#include "runtime/text/SentencePieceFile.h"
#include "runtime/text/SentencePieceNormalizer.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Unigram.h"

using namespace kf;

namespace kf {

/// Fills a Tokenizer from a tokenizer.model.
class SentencePieceLoader {
public:
  explicit SentencePieceLoader(const SentencePieceFile &file) : file(file) {}

  Result<Tokenizer> load();

private:
  Status check() const;
  Status makeNormalizer();
  void makeDecoder();
  Status makeVocabulary();
  void makeModel();
  void findControls();

  const SentencePieceFile &file;
  Tokenizer result;
};

} // namespace kf

Status SentencePieceLoader::check() const {
  using Model = SentencePieceFile::Model;
  if (file.model == Model::Word || file.model == Model::Char)
    return Status::error("a model of type WORD or CHAR is not supported; BPE "
                         "and unigram are",
                         StatusCode::Unsupported);
  if (file.hasDenormalizer)
    return Status::error("a denormalizer is not supported",
                         StatusCode::Unsupported);
  int unknowns = 0;
  size_t bytes = 0;
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece &piece = file.pieces[id];
    unknowns += piece.kind == TokenKind::Unknown;
    if (piece.kind == TokenKind::Byte) {
      ++bytes;
      if (!parseBytePiece(piece.text))
        return Status::error("piece " + inQuotes(piece.text) +
                             " is no byte, as its type says");
    }
    if (file.model == Model::Unigram &&
        piece.text.size() > Unigram::kMaxPieceBytes)
      return Status::error("piece " + std::to_string(id) + " has " +
                           std::to_string(piece.text.size()) +
                           " bytes; the limit is " +
                           std::to_string(Unigram::kMaxPieceBytes));
  }
  if (unknowns != 1)
    return Status::error("there are " + std::to_string(unknowns) +
                         " unknown pieces where one is needed");
  if (bytes != (file.byteFallback ? 256 : 0))
    return Status::error("there are " + std::to_string(bytes) +
                         " byte pieces, and byte_fallback is " +
                         (file.byteFallback ? "on" : "off"));
  return Status();
}

Status SentencePieceLoader::makeNormalizer() {
  auto normalizer = std::make_shared<SentencePieceNormalizer>();
  if (!file.charsMap.empty()) {
    KF_ASSIGN_OR_RETURN(normalizer->charsMap, CharsMap::parse(file.charsMap));
  }
  for (const SentencePieceFile::Piece &piece : file.pieces)
    if (piece.kind == TokenKind::UserDefined)
      normalizer->userDefined.add(piece.text, 0);
  normalizer->addDummyPrefix = file.addDummyPrefix;
  normalizer->removeExtraWhitespaces = file.removeExtraWhitespaces;
  normalizer->escapeWhitespaces = file.escapeWhitespaces;
  normalizer->whitespaceAsSuffix = file.whitespaceAsSuffix;
  result.normalizer.steps.push_back(SentencePieceStep(std::move(normalizer)));
  return Status();
}

void SentencePieceLoader::makeDecoder() {
  using Lead = PieceDecoder::Lead;
  PieceDecoder &decoder = result.decoder;
  decoder.replacements.emplace_back(decoder.mark, " ");
  decoder.unknownText = file.unknownSurface;
  if (file.removeExtraWhitespaces)
    decoder.lead = Lead::MarkPerPiece;
  else if (file.addDummyPrefix)
    decoder.lead = Lead::OneMark;
}

Status SentencePieceLoader::makeVocabulary() {
  auto vocabulary = std::make_shared<Vocabulary>();
  for (size_t id = 0; id < file.pieces.size(); ++id) {
    const SentencePieceFile::Piece &piece = file.pieces[id];
    KF_RETURN_IF_ERROR(vocabulary->add(piece.text, static_cast<int32_t>(id),
                                       piece.kind,
                                       piece.kind == TokenKind::Control));
  }
  KF_RETURN_IF_ERROR(vocabulary->finish(
      [&](const Vocabulary::Token &token, std::string_view text) {
        return result.decoder.bytesOf(token, text);
      }));
  result.vocabulary = std::move(vocabulary);
  return Status();
}

void SentencePieceLoader::makeModel() {
  std::vector<float> scores;
  for (const SentencePieceFile::Piece &piece : file.pieces)
    scores.push_back(piece.score);
  ScoredPieces pieces(result.vocabulary, std::move(scores));
  if (file.model == SentencePieceFile::Model::Bpe)
    result.model = std::make_shared<ScoreBpe>(std::move(pieces));
  else
    result.model = std::make_shared<Unigram>(std::move(pieces));
}

/// Control pieces are found where they are written out; the begin-of-text one
/// goes before every text, as LLaMA's models have it.
void SentencePieceLoader::findControls() {
  for (const Vocabulary::Token &token : result.vocabulary->all())
    if (token.kind == TokenKind::Control || token.kind == TokenKind::Unknown)
      result.rawTokens.add(result.vocabulary->textOf(token),
                           {token.id, /*special=*/true});
  const Vocabulary::Token *begin = result.vocabulary->find(file.beginPiece);
  if (begin && begin->kind == TokenKind::Control)
    result.prefix.push_back(begin->id);
  const Vocabulary::Token *end = result.vocabulary->find(file.endPiece);
  if (end && end->kind == TokenKind::Control)
    result.endId = end->id;
}

Result<Tokenizer> SentencePieceLoader::load() {
  KF_RETURN_IF_ERROR(check());
  KF_RETURN_IF_ERROR(makeNormalizer());
  makeDecoder();
  KF_RETURN_IF_ERROR(makeVocabulary());
  makeModel();
  findControls();
  return std::move(result);
}

Result<Tokenizer> Tokenizer::fromSentencePiece(std::string_view model,
                                               const std::string &name) try {
  Result<SentencePieceFile> file = SentencePieceFile::parse(model);
  if (!file.ok())
    return file.status().in(name);
  Result<Tokenizer> tokenizer = SentencePieceLoader(*file).load();
  if (!tokenizer.ok())
    return tokenizer.status().in(name);
  return tokenizer;
} catch (...) {
  return statusOfException();
}
