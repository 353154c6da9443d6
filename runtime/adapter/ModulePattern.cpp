//===- ModulePattern.cpp - Which modules a field names --------------------===//
//
// Part of the KernelForge project, under the Apache License v2.0 with LLVM
// Exceptions. See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/adapter/ModulePattern.h"

#include "runtime/model/LoraConfig.h"

#include <algorithm>

using namespace kf;

ModulePatterns ModulePatterns::ofNames(std::vector<std::string> names) {
  ModulePatterns patterns;
  patterns.names = std::move(names);
  return patterns;
}

/// `pattern` with each \b, which Regex does not take, as what it means.
static std::string withoutBoundaries(std::string_view pattern) {
  std::string text;
  bool inSet = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const std::string_view two = pattern.substr(i, 2);
    if (two == "\\b" && !inSet) {
      text += "(?:(?<=\\w)(?!\\w)|(?<!\\w)(?=\\w))";
      ++i;
    } else if (two.front() == '\\') {
      text += two;
      ++i;
    } else {
      if (two.front() == '[' || two.front() == ']')
        inSet = two.front() == '[';
      text += two.front();
    }
  }
  return text;
}

Result<ModulePatterns> ModulePatterns::compile(std::string_view begin,
                                               std::string_view pattern) {
  const std::string own = withoutBoundaries(pattern);
  // By itself first: a ')' must not end what is put around it.
  KF_RETURN_IF_ERROR(Regex::compile(own).status());
  ModulePatterns patterns;
  KF_ASSIGN_OR_RETURN(
      patterns.expression,
      Regex::compile("\\A" + std::string(begin) + "(?:" + own + ")\\z"));
  return patterns;
}

Result<ModulePatterns> ModulePatterns::ofExpression(std::string_view pattern) {
  if (pattern == kAllLinear) {
    ModulePatterns patterns;
    patterns.isAll = true;
    return patterns;
  }
  return compile("", pattern);
}

Result<ModulePatterns> ModulePatterns::ofEnd(std::string_view pattern) {
  return compile("(?:.*\\.)?", pattern);
}

Result<bool> ModulePatterns::matches(const std::string &module) const {
  if (expression) {
    KF_ASSIGN_OR_RETURN(const std::vector<Regex::Match> found,
                        expression->findAll(module));
    return !found.empty();
  }
  return isAll || std::ranges::any_of(names, [&](const std::string &name) {
           return isLoraTarget(name, module);
         });
}
