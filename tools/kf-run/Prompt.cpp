//===- Prompt.cpp - Where a prompt comes from -----------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Prompt.h"

#include "Report.h"

#include "runtime/core/Quote.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fcntl.h>
#include <unistd.h>

using namespace kf;

/// Reads `descriptor` to its end. It may be a pipe, so its size is not known.
static Result<std::string> readAll(int descriptor, const std::string &name) {
  constexpr size_t most = size_t(1) << 30;
  std::string text;
  char buffer[65536];
  for (;;) {
    const ssize_t count = read(descriptor, buffer, sizeof(buffer));
    if (count == 0)
      break;
    if (count < 0 && errno == EINTR)
      continue;
    if (count < 0)
      return Status::error("cannot read " + name + ": " + std::strerror(errno));
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > most)
      return Status::error(name + " has more than 1 GiB; no context is that "
                                  "long");
  }
  return text;
}

Result<std::string> kf::readBytes(const std::optional<std::string> &text,
                                  const std::string &file) {
  if (text)
    return *text;
  if (file == "-")
    return readAll(STDIN_FILENO, "stdin");
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0)
    return Status::error("cannot open " + quotePath(file) + ": " +
                         std::strerror(errno));
  Result<std::string> result = readAll(descriptor, quotePath(file));
  close(descriptor);
  return result;
}

std::string kf::unescaped(std::string_view text) {
  constexpr std::string_view letters = "nrt'\"\\", bytes = "\n\r\t'\"\\";
  std::string out;
  while (!text.empty()) {
    const size_t plain = std::min(text.find('\\'), text.size());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty())
      break;
    const size_t letter =
        text.size() > 1 ? letters.find(text[1]) : letters.npos;
    unsigned char byte = 0;
    if (letter != letters.npos) {
      out += bytes[letter];
      text.remove_prefix(2);
    } else if (text.size() >= 4 && text[1] == 'x' &&
               std::from_chars(&text[2], &text[2] + 2, byte, 16).ptr ==
                   &text[2] + 2) {
      out += static_cast<char>(byte);
      text.remove_prefix(4);
    } else {
      out += '\\';
      text.remove_prefix(1);
    }
  }
  return out;
}

void kf::addEscapeFlag(OptionParser &parser, bool &off,
                       std::function<void()> replace) {
  parser.flag(
      {"no-escape"}, off,
      "takes backslashes in texts of the command line as they are; by "
      "default \\n, \\t, \\\", \\\\ and \\xHH stand for what they do in C");
  parser.addCheck([&off, replace = std::move(replace)] {
    if (!off)
      replace();
    return Status();
  });
}

Result<std::vector<int32_t>> kf::parseIds(std::string_view text) {
  std::vector<int32_t> ids;
  for (;;) {
    const size_t comma = std::min(text.find(','), text.size());
    const std::string_view word = text.substr(0, comma);
    int32_t id = 0;
    auto [end, code] =
        std::from_chars(word.data(), word.data() + word.size(), id);
    if (code != std::errc() || end != word.data() + word.size())
      return Status::error(
          "--ids takes numbers with commas between them, not " +
          inQuotes(word));
    ids.push_back(id);
    if (comma == text.size())
      return ids;
    text.remove_prefix(comma + 1);
  }
}

Result<std::string> kf::readPrompt(const std::optional<std::string> &text,
                                   const std::string &file) {
  if (!text && file.empty() && isatty(STDIN_FILENO))
    return std::string();
  KF_ASSIGN_OR_RETURN(std::string prompt,
                      readBytes(text, file.empty() ? "-" : file));
  if (!text && prompt.ends_with('\n'))
    prompt.pop_back();
  return prompt;
}
