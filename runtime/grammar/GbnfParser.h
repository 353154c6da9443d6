//===- GbnfParser.h - GBNF to a tree ----------------------------*- C++ -*-===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef KF_RUNTIME_GRAMMAR_GBNFPARSER_H
#define KF_RUNTIME_GRAMMAR_GBNFPARSER_H

#include "runtime/grammar/Rules.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace kf::grammar {

/// A part of a rule.
struct GbnfNode {
  enum class Kind : uint8_t {
    Text,     ///< `expression`
    Rule,     ///< the rule `rule`
    Sequence, ///< the parts one behind another
    Choice,   ///< one of the parts
    Repeat    ///< the only part, `least` to `most` times
  };
  Kind kind;
  ExprId expression = Expressions::kEmpty;
  uint32_t rule = 0;
  uint32_t least = 1, most = 1;
  std::vector<uint32_t> parts{}; ///< nodes, each with a lower number
};

struct GbnfTree {
  struct Rule {
    std::string name;
    uint32_t node = 0;
  };
  std::vector<GbnfNode> nodes;
  std::vector<Rule> rules;
  uint32_t root = 0; ///< a rule
};

/// Parses `text`; nodes are nested no deeper than four times the limit on
/// depth. Expressions go to those of `builder`. Throws Failure with the line
/// and the column.
GbnfTree parseGbnf(std::string_view text, RulesBuilder &builder);

} // namespace kf::grammar

#endif // KF_RUNTIME_GRAMMAR_GBNFPARSER_H
