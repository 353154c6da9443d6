//===- ForeignDialects.cpp - Text in dialects that are not here -----------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/ForeignDialects.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;

/// Longer ones are not repeated to the user.
static constexpr size_t maxNameBytes = 32;

static StringRef takeName(StringRef text) {
  if (text.empty() || !(llvm::isAlpha(text.front()) || text.front() == '_'))
    return {};
  return text.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
}

/// The dialect of the op with which `line` begins, behind its results; empty
/// for anything else.
static StringRef dialectOfOp(StringRef line) {
  StringRef rest = line.ltrim();
  if (rest.starts_with("%")) {
    rest = rest.drop_front(std::min(rest.find('='), rest.size() - 1) + 1);
    rest = rest.ltrim();
  }
  rest.consume_front("\"");
  const StringRef name = takeName(rest);
  const StringRef behind = rest.drop_front(name.size());
  return behind.starts_with(".") && !takeName(behind.drop_front()).empty()
             ? name
             : StringRef();
}

/// The dialect of the first type in `line` that no dialect of `known` has.
static StringRef dialectOfType(StringRef line, ArrayRef<StringRef> known) {
  for (size_t at = line.find('!'); at != StringRef::npos;
       at = line.find('!', at + 1)) {
    const StringRef name = takeName(line.drop_front(at + 1));
    if (!name.empty() &&
        line.drop_front(at + 1 + name.size()).starts_with(".") &&
        !llvm::is_contained(known, name))
      return name;
  }
  return {};
}

std::string mlir::kf::explainForeignDialect(StringRef text,
                                            ArrayRef<StringRef> known) {
  while (!text.empty()) {
    auto [line, rest] = text.split('\n');
    text = rest;
    line = line.take_front(line.find("//"));
    StringRef name = dialectOfOp(line);
    if (name.empty() || llvm::is_contained(known, name))
      name = dialectOfType(line, known);
    if (name.empty())
      continue;
    return ("there is no dialect '" + name.take_front(maxNameBytes) +
            "' here: write functions in kf ops (docs/Dialect/KFDialect.md), or "
            "give kf-run the model itself, a GGUF file or a Hugging Face "
            "folder; 'kf-run emit-mlir MODEL --compile-to=import' shows a "
            "model in kf ops")
        .str();
  }
  return "";
}
