//===- TextTable.h - Tables for a terminal ----------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_TOOLS_KF_RUN_TEXTTABLE_H
#define KF_TOOLS_KF_RUN_TEXTTABLE_H

#include <string>
#include <utility>
#include <vector>

namespace kf {

/// Rows of cells, the columns aligned: the first to the left, the others by
/// `right`.
class TextTable {
public:
  explicit TextTable(bool right) : right(right) {}
  void add(std::vector<std::string> row) { rows.push_back(std::move(row)); }

  /// A line for each row, with a blank at its begin.
  std::string text() const;

private:
  bool right;
  std::vector<std::vector<std::string>> rows;
};

} // namespace kf

#endif // KF_TOOLS_KF_RUN_TEXTTABLE_H
