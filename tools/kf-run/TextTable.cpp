//===- TextTable.cpp - Tables for a terminal ------------------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "TextTable.h"

#include <algorithm>

using namespace kf;

std::string TextTable::text() const {
  std::vector<size_t> widths;
  for (const std::vector<std::string> &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), row.size()));
      widths[i] = std::max(widths[i], row[i].size());
    }
  std::string out;
  for (const std::vector<std::string> &row : rows) {
    out += " ";
    for (size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      const bool last = i + 1 == row.size();
      if (right && i > 0)
        out += " " + blanks + row[i] + (last ? "" : " ");
      else
        out += " " + row[i] + (last ? "" : blanks + " ");
    }
    out += "\n";
  }
  return out;
}
