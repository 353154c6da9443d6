//===- Regex.cpp - Split patterns of tokenizers ---------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/text/Regex.h"

#include "runtime/core/Quote.h"
#include "runtime/text/Utf8.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>

#if PCRE2_MAJOR < 10 || (PCRE2_MAJOR == 10 && PCRE2_MINOR < 40)
#error "PCRE2 10.40 or later is needed (for \p{White_Space})"
#endif

using namespace kf;

namespace {

/// Bounds of what one pattern may cost.
constexpr size_t kMaxPatternBytes = 1 << 16;
constexpr uint32_t kMatchLimit = 10'000'000; ///< backtracking steps per match
constexpr uint32_t kHeapLimitKiB = 256 << 10;

constexpr std::string_view kWordClass = "\\p{L}\\p{M}\\p{Nd}\\p{Pc}";

/// Rewrites a pattern, one construct at a time.
class Translator {
public:
  explicit Translator(std::string_view pattern)
      : pattern(pattern), rest(pattern) {}

  Result<std::string> run() {
    while (!rest.empty()) {
      KF_RETURN_IF_ERROR(rest.front() == '\\' ? escape()
                         : inClass            ? classItem()
                                              : item());
    }
    if (inClass)
      return unsupported("'[' without ']'");
    return std::move(out);
  }

private:
  Status unsupported(const std::string &what) const {
    return Status::error(
        "regular expression " + inQuotes(pattern) + ": " + what + " at byte " +
            std::to_string(pattern.size() - rest.size()) + " is not supported",
        StatusCode::Unsupported);
  }

  void copy(size_t count) {
    out += rest.substr(0, count);
    rest.remove_prefix(count);
  }

  void replace(size_t count, std::string_view by) {
    out += by;
    rest.remove_prefix(count);
  }

  Status escape() {
    if (rest.size() < 2)
      return unsupported("a trailing backslash");
    char c = rest[1];
    if (c == 's')
      return replace(2, "\\p{White_Space}"), Status();
    if (c == 'S')
      return replace(2, "\\P{White_Space}"), Status();
    if (c == 'w')
      return replace(2, inClass ? std::string(kWordClass)
                                : "[" + std::string(kWordClass) + "]"),
             Status();
    if (c == 'W' && !inClass)
      return replace(2, "[^" + std::string(kWordClass) + "]"), Status();
    if ((c == 'z' || c == 'A') && !inClass)
      return copy(2), Status();
    if (c == 'd' || c == 'D' || c == 'r' || c == 'n' || c == 't' || c == 'f')
      return copy(2), Status();
    if (c == 'p' || c == 'P') {
      size_t end = rest.find('}');
      if (rest.size() < 3 || rest[2] != '{' || end == std::string_view::npos)
        return unsupported("\\p without {name}");
      return copy(end + 1), Status();
    }
    if (c == 'x' || c == 'u')
      return hexEscape();
    bool alphanumeric = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                        (c >= 'A' && c <= 'Z');
    if (alphanumeric || static_cast<unsigned char>(c) >= 0x80)
      return unsupported("escape " + inQuotes(rest.substr(0, 2)));
    return copy(2), Status();
  }

  /// \xHH, \x{H...} and \uHHHH.
  Status hexEscape() {
    std::string_view digits;
    size_t length;
    if (rest[1] == 'x' && rest.size() > 2 && rest[2] == '{') {
      size_t end = rest.find('}');
      if (end == std::string_view::npos)
        return unsupported("\\x{ without }");
      digits = rest.substr(3, end - 3);
      length = end + 1;
    } else {
      size_t count = rest[1] == 'x' ? 2 : 4;
      digits = rest.substr(2, count);
      length = 2 + digits.size();
      if (digits.size() != count)
        return unsupported("a short hexadecimal escape");
    }
    constexpr std::string_view hex = "0123456789abcdefABCDEF";
    if (digits.empty() || digits.size() > 6 ||
        digits.find_first_not_of(hex) != std::string_view::npos)
      return unsupported("a hexadecimal escape without digits");
    // Below \x80 both mean the character; above, \xHH is a byte to Oniguruma.
    if (rest[1] == 'x' && rest[2] != '{' && digits[0] > '7')
      return unsupported("a byte escape");
    return replace(length, "\\x{" + std::string(digits) + "}"), Status();
  }

  Status classItem() {
    if (rest.front() == ']') {
      inClass = false;
    } else if (rest.front() == '[') {
      return unsupported("a set inside a set");
    } else if (rest.starts_with("&&")) {
      return unsupported("an intersection of sets");
    }
    return copy(1), Status();
  }

  Status item() {
    switch (rest.front()) {
    case '[':
      inClass = true;
      copy(1);
      if (rest.starts_with('^'))
        copy(1);
      if (rest.starts_with(']'))
        return unsupported("an empty set");
      return Status();
    case '(': {
      if (!rest.starts_with("(?")) // a group that captures, to no effect
        return copy(1), Status();
      for (std::string_view open :
           {"(?:", "(?=", "(?!", "(?<=", "(?<!", "(?>", "(?i:", "(?-i:"})
        if (rest.starts_with(open))
          return copy(open.size()), Status();
      return unsupported("group " + inQuotes(rest.substr(0, 4)));
    }
    case '{': {
      // {n}, {n,} and {n,m} mean the same to both; {,m} does not, and a '+'
      // after them repeats again in Ruby's syntax.
      size_t end = rest.find('}');
      if (end == std::string_view::npos || end < 2 || rest[1] == ',' ||
          rest.substr(1, end - 1).find_first_not_of("0123456789,") !=
              std::string_view::npos)
        return unsupported("'{'");
      copy(end + 1);
      if (rest.starts_with('+'))
        return unsupported("'+' after '}'");
      return Status();
    }
    case '*':
      // (*VERB) is PCRE2's own.
      if (out.ends_with('('))
        return unsupported("'(*'");
      return copy(1), Status();
    default:
      return copy(1), Status();
    }
  }

  std::string_view pattern, rest;
  std::string out;
  bool inClass = false;
};

std::string pcreMessage(int code) {
  PCRE2_UCHAR buffer[256];
  if (pcre2_get_error_message(code, buffer, sizeof(buffer)) < 0)
    return "PCRE2 error " + std::to_string(code);
  return reinterpret_cast<char *>(buffer);
}

using MatchData =
    std::unique_ptr<pcre2_match_data, decltype(&pcre2_match_data_free)>;
using MatchContext =
    std::unique_ptr<pcre2_match_context, decltype(&pcre2_match_context_free)>;
using CompileContext = std::unique_ptr<pcre2_compile_context,
                                       decltype(&pcre2_compile_context_free)>;

} // namespace

Result<std::string> kf::translateRegex(std::string_view pattern) {
  return Translator(pattern).run();
}

Result<Regex> Regex::compile(std::string_view pattern) {
  if (pattern.size() > kMaxPatternBytes)
    return Status::error(
        "a regular expression of " + std::to_string(pattern.size()) +
        " bytes is too long; the limit is " + std::to_string(kMaxPatternBytes));
  KF_ASSIGN_OR_RETURN(std::string translated, translateRegex(pattern));
  CompileContext context(pcre2_compile_context_create(nullptr),
                         pcre2_compile_context_free);
  if (!context)
    return Status::error("out of memory for a regular expression",
                         StatusCode::OutOfMemory);
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  // MULTILINE: in Ruby's syntax ^ and $ always match at lines.
  int code;
  PCRE2_SIZE offset;
  pcre2_code *compiled = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C |
          PCRE2_NO_AUTO_CAPTURE,
      &code, &offset, context.get());
  if (!compiled)
    return Status::error("regular expression " + inQuotes(pattern) + ": " +
                         pcreMessage(code));
  std::shared_ptr<const void> owner(compiled, [](const void *pointer) {
    pcre2_code_free(static_cast<pcre2_code *>(const_cast<void *>(pointer)));
  });
  // Where the JIT cannot run, pcre2_match interprets.
  pcre2_jit_compile(compiled, PCRE2_JIT_COMPLETE);
  return Regex(std::move(owner));
}

Result<std::vector<Regex::Match>> Regex::findAll(std::string_view text,
                                                 CancelFlag cancelled) const {
  const auto *compiled = static_cast<const pcre2_code *>(code.get());
  MatchData data(pcre2_match_data_create(1, nullptr), pcre2_match_data_free);
  MatchContext context(pcre2_match_context_create(nullptr),
                       pcre2_match_context_free);
  if (!data || !context)
    return Status::error("out of memory while splitting text",
                         StatusCode::OutOfMemory);
  pcre2_set_match_limit(context.get(), kMatchLimit);
  pcre2_set_heap_limit(context.get(), kHeapLimitKiB);

  std::vector<Match> matches;
  auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  size_t at = 0, lastEnd = std::string_view::npos;
  while (at <= text.size()) {
    if (isCancelled(cancelled))
      return Status::cancelled();
    int found = pcre2_match(compiled, subject, text.size(), at,
                            PCRE2_NO_UTF_CHECK, data.get(), context.get());
    // The JIT's stack is small; the interpreter's grows to the heap limit.
    if (found == PCRE2_ERROR_JIT_STACKLIMIT)
      found = pcre2_match(compiled, subject, text.size(), at,
                          PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(),
                          context.get());
    if (found == PCRE2_ERROR_NOMATCH)
      break;
    if (found < 0)
      return Status::error("splitting text at byte " + std::to_string(at) +
                           ": " + pcreMessage(found));
    const PCRE2_SIZE *bounds = pcre2_get_ovector_pointer(data.get());
    Match match{bounds[0], bounds[1]};
    // An empty match right after the match before it is not one of its own.
    if (match.begin == match.end && match.begin == lastEnd) {
      if (match.begin == text.size())
        break;
      at = match.begin + stepUtf8(text.substr(match.begin)).length;
      continue;
    }
    matches.push_back(match);
    at = lastEnd = match.end;
  }
  return matches;
}
