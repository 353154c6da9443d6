//===- SourceText.cpp - Bounds of text that is parsed ---------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "kf/Pipelines/SourceText.h"

#include "FirstError.h"

#include "kf/Pipelines/ForeignDialects.h"

#include "mlir/Bytecode/BytecodeReader.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBufferRef.h"

using namespace mlir;
using namespace mlir::kf;

namespace {

constexpr int64_t maxDepth = 512, maxLength = int64_t(64) << 20;
/// The parser reads a shape again for each of its dimensions, takes a time like
/// the square of their digits for numbers, and looks for each name of an affine
/// map in all that it declares.
constexpr size_t maxNumberBytes = 256, maxWordBytes = 4096;
constexpr int64_t maxMapNames = 64;
constexpr unsigned maxBits = 64;

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
    } else if (c == '#' || c == '!' || c == '%' || c == '^') {
      kind = c == '#' || c == '!' ? Kind::Alias : Kind::Word;
      if (at < text.size() && llvm::isDigit(text[at]))
        takeWhile(llvm::isDigit);
      else
        takeWhile(isWordLike);
    } else if (llvm::isAlpha(c) || c == '_' || c == '@') {
      kind = Kind::Word;
      takeWhile([](char c) { return isWordLike(c) && c != '-'; });
    } else if (llvm::isDigit(c)) {
      kind = Kind::Number;
      takeNumber(c);
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

  /// Takes the rest of a number as MLIR's lexer does, so that what follows
  /// without a blank is a token of its own: 42, 0x2a, 4.2 or 4.2e+1.
  void takeNumber(char first) {
    auto next = [&](size_t skipped) {
      return at + skipped < text.size() ? text[at + skipped] : '\0';
    };
    if (first == '0' && next(0) == 'x') {
      if (!llvm::isHexDigit(next(1)))
        return;
      ++at;
      takeWhile(llvm::isHexDigit);
      return;
    }
    takeWhile(llvm::isDigit);
    if (next(0) != '.')
      return;
    ++at;
    takeWhile(llvm::isDigit);
    if (next(0) != 'e' && next(0) != 'E')
      return;
    const size_t sign = next(1) == '+' || next(1) == '-';
    if (!llvm::isDigit(next(1 + sign)))
      return;
    at += 1 + sign;
    takeWhile(llvm::isDigit);
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
    if (llvm::Error error = checkToken())
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

  /// Checks a token for itself, and where it stands in an affine map or set.
  llvm::Error checkToken() {
    if (kind == Kind::Word || kind == Kind::Number) {
      // 4x8xi32, x8xi32 (behind a `?`) or i32.
      const size_t shape =
          std::min(token.find_first_not_of("0123456789x"), token.size());
      StringRef type = token.substr(shape);
      type.consume_front("s") || type.consume_front("u");
      unsigned bits;
      if (type.consume_front("i") && !type.empty() &&
          llvm::all_of(type, llvm::isDigit) &&
          (type.getAsInteger(10, bits) || bits > maxBits))
        return fail("an integer has at most " + Twine(maxBits) + " bits");
      if ((kind == Kind::Number || shape > 0) && token.size() > maxNumberBytes)
        return fail("a number or shape is longer than " +
                    Twine(maxNumberBytes) + " bytes");
    }
    if (kind != Kind::String && token.size() > maxWordBytes)
      return fail("a name is longer than " + Twine(maxWordBytes) + " bytes");

    const int64_t depth = operators.size();
    if (kind == Kind::Word && (token == "affine_map" || token == "affine_set"))
      mapDepth = depth, mapNames = 0;
    else if (kind == Kind::Close && depth - 1 <= mapDepth)
      mapDepth = noMap;
    else if (kind == Kind::Other && token == "," && depth > mapDepth &&
             ++mapNames > maxMapNames)
      return fail("an affine map has more than " + Twine(maxMapNames) +
                  " names and results");
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
  static constexpr int64_t noMap = std::numeric_limits<int64_t>::max();
  int64_t mapDepth = noMap; // around the affine map that is being read
  int64_t mapNames = 0;     // and its commas so far
  llvm::StringMap<Extent> aliases;
  std::string name; // of the alias that is being defined; empty if none is
  Extent definition;
  int64_t baseDepth = 0;
};

} // namespace

llvm::Error mlir::kf::checkSourceText(StringRef text) {
  return TextMeter(text).measure();
}

llvm::Expected<OwningOpRef<ModuleOp>>
mlir::kf::parseSource(StringRef text, StringRef name, MLIRContext *context) {
  if (isBytecode(llvm::MemoryBufferRef(text, name)))
    return llvm::createStringError(
        name + ": this is MLIR bytecode; only text is read, which 'kf-opt FILE "
               "-o TEXT.mlir' makes of a file that you trust");
  if (llvm::Error error = checkSourceText(text))
    return llvm::createStringError(name + ": " +
                                   llvm::toString(std::move(error)));
  // The parser wants a zero after the text, which a mapping does not have.
  const std::string copy = text.str();
  FirstError errors(context, ": error: ");
  OwningOpRef<ModuleOp> module =
      parseSourceString<ModuleOp>(copy, ParserConfig(context), name);
  if (module)
    return module;
  std::string message = errors.text.empty()
                            ? (name + ": error: it cannot be parsed").str()
                            : errors.text;
  if (const std::string hint =
          explainForeignDialect(text, context->getAvailableDialects());
      !hint.empty())
    message += "; " + hint;
  return llvm::createStringError(message);
}
