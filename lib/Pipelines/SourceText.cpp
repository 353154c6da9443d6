//===- SourceText.cpp - Bounds of text that is parsed ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/SourceText.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr int64_t maxDepth = 512, maxLength = int64_t(64) << 20;

class TextMeter {
public:
  explicit TextMeter(StringRef text) : text(text) {}

  llvm::Error measure() {
    if (text.size() > maxLength)
      return tooLong();
    while (next())
      if (llvm::Error error = take())
        return error;
    return llvm::Error::success();
  }

private:
  enum class Kind { Word, Alias, Number, String, Open, Close, Operator, Other };

  /// What an alias stands for when it is written out.
  struct Extent {
    int64_t depth = 0, length = 0;
  };

  llvm::Error fail(const Twine &message) {
    return llvm::createStringError("line " + Twine(line) + ": " + message);
  }

  llvm::Error tooLong() {
    return fail("the text, with its aliases written out, is longer than " +
                Twine(maxLength) + " bytes");
  }

  //===--------------------------------------------------------------------===//
  // Tokens
  //===--------------------------------------------------------------------===//

  static bool isWordLike(char c) {
    return llvm::isAlnum(c) || c == '_' || c == '$' || c == '.' || c == '-';
  }

  /// Moves over blanks and comments.
  void skipBlanks() {
    while (at < text.size()) {
      if (text.substr(at).starts_with("//")) {
        at = std::min(text.find('\n', at), text.size());
        continue;
      }
      if (!llvm::isSpace(text[at]) && text[at] != '\0')
        return;
      line += text[at++] == '\n';
    }
  }

  /// Takes the next token into `token` and `kind`; false at the end.
  bool next() {
    previous = kind;
    skipBlanks();
    if (at == text.size())
      return false;
    size_t begin = at;
    char c = text[at++];
    if (c == '"') {
      kind = Kind::String;
      while (at < text.size() && text[at] != '"' && text[at] != '\n')
        at += text[at] == '\\' ? 2 : 1;
      at = std::min(at, text.size());
      at += at < text.size() && text[at] == '"';
    } else if (c == '#' || c == '!') {
      kind = Kind::Alias;
      if (at < text.size() && llvm::isDigit(text[at]))
        takeWhile(llvm::isDigit);
      else
        takeWhile(isWordLike);
    } else if (llvm::isAlpha(c) || c == '_' || c == '%' || c == '@' ||
               c == '^') {
      kind = Kind::Word;
      takeWhile([](char c) { return isWordLike(c) && c != '-'; });
    } else if (llvm::isDigit(c)) {
      kind = Kind::Number;
      takeWhile([](char c) { return llvm::isAlnum(c) || c == '.'; });
    } else if (takeArrow(c)) {
      kind = Kind::Other;
    } else {
      kind = StringRef("([{<").contains(c)   ? Kind::Open
             : StringRef(")]}>").contains(c) ? Kind::Close
             : StringRef("+-*").contains(c)  ? Kind::Operator
                                             : Kind::Other;
    }
    token = text.slice(begin, at);
    if (kind == Kind::Word &&
        (token == "floordiv" || token == "ceildiv" || token == "mod"))
      kind = Kind::Operator;
    return true;
  }

  void takeWhile(function_ref<bool(char)> belongs) {
    while (at < text.size() && belongs(text[at]))
      ++at;
  }

  /// Takes the rest of "->", ">=", "<=" and "==", whose signs are no brackets.
  bool takeArrow(char first) {
    char second = at < text.size() ? text[at] : '\0';
    bool isArrow =
        (first == '-' && second == '>') ||
        ((first == '>' || first == '<' || first == '=') && second == '=');
    at += isArrow;
    return isArrow;
  }

  //===--------------------------------------------------------------------===//
  // Measures
  //===--------------------------------------------------------------------===//

  /// Adds the token to the measures.
  llvm::Error take() {
    if (kind == Kind::Alias && isDefinition()) {
      endDefinition();
      name = token.str();
      definition = Extent();
      baseDepth = operators.size() - 1;
      return llvm::Error::success();
    }
    if (endsDefinition())
      endDefinition();
    if (llvm::Error error = addExtent())
      return error;
    switch (kind) {
    case Kind::Open:
      operators.push_back(0);
      break;
    case Kind::Close:
      if (operators.size() > 1) {
        // What is in parentheses is part of the expression around them.
        int64_t inner = operators.pop_back_val();
        if (token == ")")
          operators.back() += inner;
      }
      break;
    case Kind::Operator:
      if (++operators.back() > maxDepth)
        return fail("an affine expression has more than " + Twine(maxDepth) +
                    " operators");
      break;
    case Kind::Other:
      operators.back() = 0;
      break;
    default:
      break;
    }
    return llvm::Error::success();
  }

  /// Adds the token, or what its alias stands for, to the text's extent and to
  /// that of the alias that is being defined.
  llvm::Error addExtent() {
    Extent extent = {kind == Kind::Open ? 1 : 0,
                     static_cast<int64_t>(token.size()) + 1};
    if (kind == Kind::Alias)
      if (auto found = aliases.find(token); found != aliases.end())
        extent = found->second;
    int64_t depth = operators.size() - 1;
    if (depth + extent.depth > maxDepth)
      return fail("brackets are nested more than " + Twine(maxDepth) + " deep" +
                  (kind == Kind::Alias ? ", with aliases" : ""));
    length += extent.length;
    if (length > maxLength)
      return tooLong();
    if (!name.empty()) {
      definition.depth =
          std::max(definition.depth, depth - baseDepth + extent.depth);
      definition.length += extent.length;
    }
    return llvm::Error::success();
  }

  /// Whether an alias stands before "=".
  bool isDefinition() {
    skipBlanks();
    StringRef rest = text.substr(at);
    return rest.starts_with("=") && !rest.starts_with("==");
  }

  /// Whether the token begins something behind the alias that is defined: two
  /// values do not follow each other without a sign between.
  bool endsDefinition() const {
    auto isValue = [](Kind kind) {
      return kind == Kind::Word || kind == Kind::Alias ||
             kind == Kind::Number || kind == Kind::String;
    };
    return !name.empty() &&
           static_cast<int64_t>(operators.size()) - 1 <= baseDepth &&
           isValue(kind) && (isValue(previous) || previous == Kind::Close);
  }

  void endDefinition() {
    if (!name.empty())
      aliases[std::exchange(name, {})] = definition;
  }

  StringRef text;
  size_t at = 0;
  int64_t line = 1;
  StringRef token;
  Kind kind = Kind::Other, previous = Kind::Other;

  /// Operators of the expression so far, for each open bracket and outside.
  SmallVector<int64_t> operators = {0};
  int64_t length = 0;
  llvm::StringMap<Extent> aliases;
  std::string name; // of the alias that is being defined; empty if none is
  Extent definition;
  int64_t baseDepth = 0;
};

} // namespace

llvm::Error mlir::kf::checkSourceText(StringRef text) {
  return TextMeter(text).measure();
}
