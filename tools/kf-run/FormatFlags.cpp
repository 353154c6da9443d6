//===- FormatFlags.cpp - What generated texts have to be ------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "FormatFlags.h"

#include "Prompt.h"

using namespace kf;

void FormatFlags::addTo(OptionParser &parser) {
  parser.text({"json-schema", 'j', "JSON|FILE"}, schema,
              "the text is JSON that a schema allows: JSON, which begins with "
              "{, or a file of it. '{\"type\": \"object\"}' is any object");
  parser.text({"grammar", 0, "GBNF"}, grammar,
              "the text is one of a grammar in llama.cpp's notation, as in "
              "'root ::= \"yes\" | \"no\"'");
  parser.text({"grammar-file", 0, "FILE"}, grammarFile,
              "the same, with the grammar in a file");
  parser.addCheck([this] {
    if (schema.has_value() + grammar.has_value() + grammarFile.has_value() > 1)
      return Status::error("--json-schema, --grammar and --grammar-file "
                           "exclude one another");
    return Status();
  });
}

Result<std::optional<OutputFormat>> FormatFlags::read() const {
  OutputFormat format;
  if (schema) {
    const size_t first = schema->find_first_not_of(" \t\r\n");
    const bool isJson = first != schema->npos && (*schema)[first] == '{';
    format.name = "--json-schema";
    if (isJson) {
      format.text = *schema;
    } else {
      KF_ASSIGN_OR_RETURN(format.text, readBytes(std::nullopt, *schema));
    }
  } else if (grammar || grammarFile) {
    format.kind = OutputFormat::Kind::Gbnf;
    format.name = grammar ? "--grammar" : "--grammar-file";
    KF_ASSIGN_OR_RETURN(format.text,
                        readBytes(grammar, grammarFile.value_or("")));
  } else {
    return std::optional<OutputFormat>();
  }
  return std::optional(std::move(format));
}

Result<std::unique_ptr<ConstraintCompiler>>
kf::makeConstraintCompiler(const ModelFiles &model,
                           const std::vector<int64_t> &endIds) {
  if (!model.tokenizer)
    return Status::error("a text is held to a schema or a grammar by the bytes "
                         "of its tokens, and the model has no tokenizer; give "
                         "--tokenizer, or leave it out");
  std::vector<int64_t> ends = model.config.eosIds;
  ends.insert(ends.end(), endIds.begin(), endIds.end());
  return std::make_unique<ConstraintCompiler>(
      *model.tokenizer, model.config.vocabSize, std::move(ends));
}
