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

Result<ModulePatterns> ModulePatterns::compile(const std::string &pattern) {
  ModulePatterns patterns;
  KF_ASSIGN_OR_RETURN(patterns.expression, Regex::compile(pattern));
  return patterns;
}

Result<ModulePatterns> ModulePatterns::ofExpression(std::string_view pattern) {
  if (pattern == kAllLinear) {
    ModulePatterns patterns;
    patterns.isAll = true;
    return patterns;
  }
  return compile("\\A(?:" + std::string(pattern) + ")\\z");
}

Result<ModulePatterns> ModulePatterns::ofEnd(std::string_view pattern) {
  return compile("\\A(?:.*\\.)?(?:" + std::string(pattern) + ")\\z");
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
