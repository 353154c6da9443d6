//===- WordWrap.cpp - Lines that end between words ------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "WordWrap.h"

#include "runtime/text/Utf8.h"

#include <cstdlib>
#include <cstring>
#include <cwchar>

#include <sys/ioctl.h>
#include <unistd.h>

using namespace kf;

/// Columns that a character takes, as far as the locale knows it.
static size_t widthOf(char32_t character) {
  const int width = ::wcwidth(static_cast<wchar_t>(character));
  return width < 0 ? 1 : static_cast<size_t>(width);
}

std::string WordWrap::add(std::string_view text) {
  if (columns == 0)
    return std::string(text);
  // What is in the last column, terminals cannot take back alike.
  const size_t most = columns - 1;
  std::string out;
  while (!text.empty()) {
    const Utf8Step step = stepUtf8(text);
    const std::string_view bytes = text.substr(0, step.length);
    text.remove_prefix(step.length);
    if (bytes == "\n" || bytes == " ") {
      const bool ends = bytes == "\n" || column + 1 > most;
      out += ends ? "\n" : " ";
      column = ends ? 0 : column + 1;
      word.clear();
      wordWidth = 0;
      continue;
    }
    const size_t width = widthOf(step.character);
    if (column + width > most) {
      const bool fillsLine = wordWidth == column;
      if (fillsLine) {
        word.clear();
        wordWidth = 0;
      }
      out.append(wordWidth, '\b');
      out += wordWidth ? "\033[K\n" : "\n";
      out += word;
      column = wordWidth;
    }
    out += bytes;
    word += bytes;
    column += width;
    wordWidth += width;
  }
  return out;
}

size_t kf::wrappedColumns() {
  const char *type = std::getenv("TERM");
  if (!isatty(STDOUT_FILENO) || !type || std::strcmp(type, "dumb") == 0)
    return 0;
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0;
  // Narrower than this, breaks help nobody.
  return known && size.ws_col >= 20 ? size.ws_col : 0;
}
