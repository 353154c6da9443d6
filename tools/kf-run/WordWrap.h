//===- WordWrap.h - Lines that end between words -----------------*- C++
//-*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_WORDWRAP_H
#define KF_TOOLS_KF_RUN_WORDWRAP_H

#include <cstddef>
#include <string>
#include <string_view>

namespace kf {

/// Breaks the lines of a text that comes bit by bit, and is shown at once: a
/// word that turns out not to fit is taken away and begins the next line. One
/// thread.
class WordWrap {
public:
  /// For a text that begins at a line's begin, `columns` wide; 0: as it is.
  explicit WordWrap(size_t columns = 0) : columns(columns) {}

  /// What to print for `text`, UTF-8 in whole characters.
  std::string add(std::string_view text);

private:
  size_t columns;
  size_t column = 0;    ///< where the cursor is
  std::string word;     ///< what was shown since the last blank
  size_t wordWidth = 0; ///< its columns
};

/// Columns of the terminal that stdout is, where lines can be taken back; else
/// 0.
size_t wrappedColumns();

} // namespace kf

#endif // KF_TOOLS_KF_RUN_WORDWRAP_H
