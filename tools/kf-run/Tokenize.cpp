//===- Tokenize.cpp - kf-run tokenize -------------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Commands.h"
#include "ModelArgument.h"
#include "OptionParser.h"
#include "Prompt.h"
#include "Report.h"

#include "runtime/session/EmbeddedModel.h"
#include "runtime/text/Tokenizer.h"
#include "runtime/text/Utf8.h"

#include <nlohmann/json.hpp>

using namespace kf;
using nlohmann::json;

namespace {

struct TokenizeOptions {
  std::string model;
  std::optional<std::string> named, text;
  std::string file, json;
  bool addSpecial = false, plain = false, noEscape = false;
};

Result<Tokenizer> openTokenizer(const std::string &model) {
  if (model.empty())
    return Tokenizer::fromJson(KF_EMBEDDED(tokenizer),
                               "the embedded tokenizer.json");
  return Tokenizer::open(model);
}

Status tokenize(const TokenizeOptions &options) {
  KF_ASSIGN_OR_RETURN(Tokenizer tokenizer, openTokenizer(options.model));
  KF_ASSIGN_OR_RETURN(
      std::string text,
      readBytes(options.text, options.file.empty() ? "-" : options.file));
  EncodeOptions encoding;
  encoding.addSpecial = options.addSpecial;
  encoding.parseSpecial = !options.plain;
  KF_ASSIGN_OR_RETURN(std::vector<int32_t> ids,
                      tokenizer.encode(text, encoding));
  json pieces = json::array();
  for (int32_t id : ids)
    pieces.push_back(toValidUtf8(tokenizer.pieceOf(id).value_or("")));
  const std::string idsText = json(ids).dump(), piecesText = pieces.dump();
  if (!options.json.empty())
    return writeOutput(options.json, "{\"ids\": " + idsText +
                                         ",\n \"pieces\": " + piecesText +
                                         "}\n");
  return writeStdout("ids: " + idsText + "\npieces: " + piecesText + "\n");
}

} // namespace

int kf::runTokenize(Arguments arguments) {
  TokenizeOptions options;
  OptionParser parser(
      "tokenize [MODEL] [options]",
      "Prints the token ids of a text, and the pieces as the tokenizer's file "
      "writes them. The text comes from stdin by default; its last line break "
      "belongs to it. Bytes that are no UTF-8 stay as they are with "
      "byte-level BPE and with tokens for single bytes (tokenizer.json, "
      "GGUF); a tokenizer.model reads them as U+FFFD, as SentencePiece does, "
      "and so do tokenizers without tokens for bytes.");
  addModelArgument(parser, options.model, options.named,
                   "a folder with tokenizer.json or tokenizer.model, one of "
                   "these files, or a GGUF file, which needs no tensors; "
                   "without it, the embedded model, kf-stories");
  parser.text({"prompt", 'p', "TEXT"}, options.text, "the text",
              OptionParser::Empty::Allowed);
  parser.text({"file", 0, "FILE"}, options.file,
              "reads the text from FILE; - is stdin");
  parser.flag({"add-special"}, options.addSpecial,
              "puts the tokens around that the model expects, as "
              "begin-of-text");
  parser.flag({"plain"}, options.plain,
              "special tokens that the text writes out stay text");
  addEscapeFlag(parser, options.noEscape, [&] {
    if (options.text)
      options.text = unescaped(*options.text);
  });
  parser.json(options.json, "\"ids\" and \"pieces\"");
  if (std::optional<int> code = parser.parse(arguments))
    return *code;
  if (options.text && !options.file.empty())
    return parser.usageError("--prompt and --file exclude each other");
  return report(tokenize(options));
}
